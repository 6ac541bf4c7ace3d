/* ad_npz.c: see ad_npz.h.
 *
 * Invariant: the file at the path is the old one or the new one whole, whatever fails; and no
 * descriptor, no memory and no file beside it is left.
 */
#include "ad_npz.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SHOWN = 160, NAME_SHOWN = 64, TRIES = 100 };
static const char SUFFIX[] = ".npy";

/* The end of a path that is too long for a message. */
static const char *path_shown(const char *path)
{
    const size_t n = strlen(path);
    return n > PATH_SHOWN ? path + n - PATH_SHOWN : path;
}

bool ad_npz_begin(struct ad_npz *f, ad_tape tape, ad_status *status)
{
    f->t = ad_tape_find(tape.slot, tape.generation, f->what, f->site);
    if (!f->t) {
        *status = ad_failed();
        return false;
    }
    f->scratch = (struct ad_scratch){.memory = *f->t->memory};
    *status = (ad_status)f->t->error.code;
    if (*status == AD_OK && !f->path)
        *status = (ad_status)tape_fail(f->t, TAPE_ERROR_ARGUMENT, f->site,
                                       "%s: path is a null pointer", f->what);
    return *status == AD_OK;
}

static ad_status fail(struct ad_npz *f, enum tape_status code, const char *name, const char *reason)
{
    if (!name)
        return (ad_status)tape_fail(f->t, code, f->site, "%s: %s: %s", f->what, path_shown(f->path),
                                    reason);
    return (ad_status)tape_fail(f->t, code, f->site, "%s: %s: %.*s %s", f->what,
                                path_shown(f->path), NAME_SHOWN, name, reason);
}

static ad_status fail_memory(struct ad_npz *f)
{
    return (ad_status)tape_fail(f->t, TAPE_ERROR_MEMORY, f->site, "%s: out of memory", f->what);
}

/* ---- names ---- */

/* Well-formed UTF-8 (RFC 3629), without which Python opens no archive. */
static bool is_utf8(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    while (*p) {
        const unsigned c = *p++;
        const int more = c < 0x80   ? 0
                         : c < 0xC2 ? -1
                         : c < 0xE0 ? 1
                         : c < 0xF0 ? 2
                         : c < 0xF5 ? 3
                                    : -1;
        if (more < 0 || (c == 0xE0 && *p < 0xA0) || (c == 0xED && *p > 0x9F) ||
            (c == 0xF0 && *p < 0x90) || (c == 0xF4 && *p > 0x8F))
            return false;
        for (int k = 0; k < more; k++)
            if ((*p++ & 0xC0) != 0x80)
                return false;
    }
    return true;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

ad_status ad_npz_check_names(struct ad_npz *f, int n, const struct ad_npz_array *a)
{
    const char **const sorted = ad_scratch_get(&f->scratch, n, sizeof *sorted);
    if (!sorted)
        return fail_memory(f);
    for (int i = 0; i < n; i++) {
        const char *const name = a[i].name;
        const char *const wrong = !name    ? "is a null pointer"
                                  : !*name ? "is empty"
                                  : strlen(name) + sizeof SUFFIX - 1 > AD_ZIP_NAME_MOST
                                      ? "is too long"
                                  : !is_utf8(name) ? "is no UTF-8"
                                                   : NULL;
        if (wrong)
            return (ad_status)tape_fail(f->t, TAPE_ERROR_ARGUMENT, f->site, "%s: name %d %s",
                                        f->what, i, wrong);
        sorted[i] = name;
    }
    qsort(sorted, (size_t)n, sizeof *sorted, compare_names);
    for (int i = 1; i < n; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            return (ad_status)tape_fail(f->t, TAPE_ERROR_ARGUMENT, f->site,
                                        "%s: the name %.*s is there twice", f->what, NAME_SHOWN,
                                        sorted[i]);
    return AD_OK;
}

/* ---- writing ---- */

/* Where the bytes go, until they are the file. */
struct target {
    char path[PATH_MAX];   /* of the file that is replaced; a link was followed */
    char beside[PATH_MAX]; /* what is written; "": the path itself */
    int fd;
};

/* Opens a new file beside the path. errno says why not. */
static int open_beside(struct target *to)
{
    static unsigned number; /* atomic: names differ in a process */
    for (int k = 0; k < TRIES; k++) {
        const unsigned mine = __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED);
        const int n = snprintf(to->beside, sizeof to->beside, "%s.%ld.%u.tmp", to->path,
                               (long)getpid(), mine);
        if (n < 0 || (size_t)n >= sizeof to->beside) {
            to->beside[0] = '\0';
            errno = ENAMETOOLONG;
            return -1;
        }
        const int fd = open(to->beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* 0, or errno. */
static int target_open(struct target *to, const char *path)
{
    struct stat st;
    to->beside[0] = '\0';
    if (!realpath(path, to->path)) {
        if (strlen(path) >= sizeof to->path)
            return ENAMETOOLONG;
        memcpy(to->path, path, strlen(path) + 1);
    }
    const bool exists = stat(to->path, &st) == 0;
    if (exists && !S_ISREG(st.st_mode)) {
        to->fd = open(to->path, O_WRONLY | O_CLOEXEC);
        return to->fd < 0 ? errno : 0;
    }
    to->fd = open_beside(to);
    if (to->fd < 0) {
        to->beside[0] = '\0';
        return errno;
    }
    if (exists)
        (void)fchmod(to->fd, st.st_mode & 07777);
    return 0;
}

/* Ends it, with an error (an errno) or without, and returns the first there was. */
static int target_close(struct target *to, int error)
{
    const bool renamed = to->beside[0] != '\0';
    if (!error && renamed && fsync(to->fd) != 0)
        error = errno;
    if (close(to->fd) != 0 && !error)
        error = errno;
    if (!error && renamed && rename(to->beside, to->path) != 0)
        error = errno;
    if (error && renamed)
        (void)unlink(to->beside);
    return error;
}

static size_t array_bytes(const struct ad_npy_array *a)
{
    return (size_t)a->size * kernel_dtype_bytes(a->dtype);
}

static int write_arrays(struct ad_zip_writer *w, int n, const struct ad_npz_array *a,
                        struct ad_zip_member *m)
{
    for (int i = 0; i < n && !w->error; i++) {
        char header[AD_NPY_HEADER];
        const size_t before = ad_npy_header(&a[i].array, header), bytes = array_bytes(&a[i].array);
        m[i].size = before + bytes;
        m[i].crc = (uint32_t)crc32_z(0, (const unsigned char *)header, before);
        if (bytes > 0)
            m[i].crc = (uint32_t)crc32_z(m[i].crc, a[i].array.data, bytes);
        ad_zip_begin_member(w, &m[i]);
        ad_zip_put(w, header, before);
        ad_zip_put(w, a[i].array.data, bytes);
    }
    ad_zip_end(w, m, (uint64_t)n);
    return w->error;
}

/* The names in the archive. False: no memory. */
static bool name_members(struct ad_scratch *s, int n, const struct ad_npz_array *a,
                         struct ad_zip_member *m)
{
    for (int i = 0; i < n; i++) {
        const size_t bytes = strlen(a[i].name);
        char *const name = ad_scratch_get(s, (int64_t)(bytes + sizeof SUFFIX), 1);
        if (!name)
            return false;
        memcpy(name, a[i].name, bytes);
        memcpy(name + bytes, SUFFIX, sizeof SUFFIX);
        m[i].name = name;
    }
    return true;
}

ad_status ad_npz_write(struct ad_npz *f, int n, const struct ad_npz_array *a)
{
    const ad_status status = ad_npz_check_names(f, n, a);
    if (status != AD_OK)
        return status;
    struct ad_zip_member *const m = ad_scratch_get(&f->scratch, n, sizeof *m);
    struct ad_zip_writer *const w = ad_scratch_get(&f->scratch, 1, sizeof *w);
    struct target *const to = ad_scratch_get(&f->scratch, 1, sizeof *to);
    if (!m || !w || !to || !name_members(&f->scratch, n, a, m))
        return fail_memory(f);
    int error = target_open(to, f->path);
    if (!error) {
        w->fd = to->fd;
        w->limit = AD_ZIP_LIMIT;
        error = target_close(to, write_arrays(w, n, a, m));
    }
    return error ? fail(f, TAPE_ERROR_FILE, NULL, strerror(error)) : AD_OK;
}

/* ---- reading ---- */

static bool names_array(const struct ad_zip_entry *e, const char *name)
{
    const size_t n = strlen(name);
    return e->name_bytes == n + sizeof SUFFIX - 1 && memcmp(e->name, name, n) == 0 &&
           memcmp(e->name + n, SUFFIX, sizeof SUFFIX - 1) == 0;
}

/* "is not there; there are a, b": as many names as there is room for. */
static void list_names(const struct ad_zip_reader *z, struct ad_zip_fault *fault)
{
    const int room = (int)sizeof fault->reason;
    struct ad_zip_entry e;
    uint64_t at = 0;
    int n = snprintf(fault->reason, sizeof fault->reason, "is not there, but");
    while (ad_zip_next(z, &at, &e)) {
        const int bytes = (int)e.name_bytes - (int)(sizeof SUFFIX - 1);
        if (bytes <= 0 || memchr(e.name, 0, e.name_bytes))
            continue;
        if (n + bytes + 8 > room) {
            snprintf(fault->reason + n, (size_t)(room - n), " …");
            return;
        }
        n += snprintf(fault->reason + n, (size_t)(room - n), " %.*s", bytes, e.name);
    }
    if (z->directory_bytes == 0)
        snprintf(fault->reason, sizeof fault->reason, "is not there, nothing is");
}

static bool find_entry(const struct ad_zip_reader *z, const char *name, struct ad_zip_entry *found)
{
    struct ad_zip_entry e;
    uint64_t at = 0;
    bool there = false;
    while (ad_zip_next(z, &at, &e)) {
        if (!names_array(&e, name))
            continue;
        if (there)
            return ad_zip_fail(z->fault, "is there twice");
        *found = e;
        there = true;
    }
    if (!there)
        list_names(z, z->fault);
    return there;
}

/* The array is the one that is expected; else the error is made. */
static bool fits(struct ad_npz *f, const struct ad_npz_array *a, const struct ad_npy_array *found)
{
    char reason[256], there[96], wanted[96];
    const struct ad_npy_array *const w = &a->array;
    const struct kernel_array is = {.rank = (uint8_t)found->rank,
                                    .dtype = (uint8_t)found->dtype,
                                    .size = found->size,
                                    .shape = found->shape},
                              must = {.rank = (uint8_t)w->rank,
                                      .dtype = (uint8_t)w->dtype,
                                      .size = w->size,
                                      .shape = w->shape};
    const bool dtype =
        found->dtype == w->dtype || (found->dtype == KERNEL_F32 && w->dtype == KERNEL_F64);
    const bool shape = found->rank == w->rank &&
                       memcmp(found->shape, w->shape, (size_t)w->rank * sizeof *w->shape) == 0;
    if (dtype && shape)
        return true;
    snprintf(reason, sizeof reason, "is %s, not %s", kernel_describe(&is, there, sizeof there),
             kernel_describe(&must, wanted, sizeof wanted));
    fail(f, dtype ? TAPE_ERROR_SHAPE : TAPE_ERROR_DTYPE, a->name, reason);
    return false;
}

/* Reads an open member. False: the zip's fault, or the tape's error. */
static bool read_array(struct ad_npz *f, struct ad_zip_stream *s, struct ad_npz_array *a)
{
    struct ad_npy h;
    if (!ad_npy_read_header(s, &h) || (a->given && !fits(f, a, &h.array)))
        return false;
    const int dtype = a->given ? a->array.dtype : h.array.dtype;
    void *const data = ad_scratch_get(&f->scratch, h.array.size, kernel_dtype_bytes(dtype));
    if (!data) {
        s->zip->fault->memory = true;
        return ad_zip_fail(s->zip->fault, "out of memory");
    }
    if (!ad_npy_read_elements(s, &h, dtype, data) || !ad_zip_check(s))
        return false;
    a->array = h.array;
    a->array.dtype = dtype;
    a->array.data = data;
    return true;
}

static ad_status read_arrays(struct ad_npz *f, const struct ad_zip_reader *z, int n,
                             struct ad_npz_array *a)
{
    struct ad_zip_stream *const s = ad_scratch_get(&f->scratch, 1, sizeof *s);
    if (!s)
        return fail_memory(f);
    for (int i = 0; i < n; i++) {
        struct ad_zip_entry e;
        bool right = find_entry(z, a[i].name, &e);
        if (right) {
            right = ad_zip_open_member(s, z, &e) && read_array(f, s, &a[i]);
            ad_zip_close_member(s);
        }
        if (!right && z->fault->memory)
            return fail_memory(f);
        if (!right)
            return fail(f, TAPE_ERROR_FILE, a[i].name, z->fault->reason);
    }
    return AD_OK;
}

ad_status ad_npz_read(struct ad_npz *f, int n, struct ad_npz_array *a)
{
    struct ad_zip_fault fault = {.memory = false};
    ad_status status = ad_npz_check_names(f, n, a);
    if (status != AD_OK)
        return status;
    /* A pipe without a writer does not hold it up. */
    const int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return fail(f, TAPE_ERROR_FILE, NULL, strerror(errno));
    struct ad_zip_reader z = {.fd = fd, .fault = &fault, .scratch = &f->scratch};
    if (ad_zip_open(&z))
        status = read_arrays(f, &z, n, a);
    else if (fault.memory)
        status = fail_memory(f);
    else
        status = fail(f, TAPE_ERROR_FILE, NULL, fault.reason);
    close(fd);
    return status == AD_OK ? AD_OK : (ad_status)f->t->error.code;
}
