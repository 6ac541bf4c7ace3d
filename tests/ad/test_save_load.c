/* test_save_load.c: named tensors to files and back, bit for bit; and what a file that is none, a
 * disk that is full or a name that is wrong does. test_save_load_numpy.sh asks NumPy.
 */
#include <tapescope/ad_file.h>

#include "ad_zip.h"
#include "run_cases.h"
#include "tape.h"
#include "tape_memory.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tape_fixture.h"

#define SHAPE(...) ((int64_t[]){__VA_ARGS__})

/* In memory: a disk takes milliseconds for each file that is on it for good. */
static char folder[40], path[64];
static const char *const two[] = {"w", "b"};

static void setup(void)
{
    tape_begin(NULL);
    snprintf(folder, sizeof folder, "/dev/shm/tapescope-save-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/model.npz", folder);
}

/* Files in the folder. */
static int count_files(void)
{
    DIR *d = opendir(folder);
    int n = 0;
    ck_assert_ptr_nonnull(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void finish(void)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.')
            unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
    ck_assert_int_eq(rmdir(folder), 0);
    teardown_fine();
}

static size_t read_file(const char *name, char *to, size_t room)
{
    FILE *f = fopen(name, "rb");
    ck_assert_ptr_nonnull(f);
    const size_t n = fread(to, 1, room, f);
    ck_assert_uint_lt(n, room);
    fclose(f);
    return n;
}

static void write_file(const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(name, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
    ck_assert_int_eq(fclose(f), 0);
}

static const double numbers[6] = {1, -0.0, 1e-310, 4, INFINITY, 6};

static ad_tensor matrix(void)
{
    return ad_constant(tape, AD_F64, 2, SHAPE(2, 3), numbers);
}

static void save_two(const double *w)
{
    const ad_tensor x[] = {ad_constant(tape, AD_F64, 2, SHAPE(2, 3), w), ad_scalar_f64(tape, 0.5)};
    check_ok(ad_save(tape, path, 2, two, x));
}

static __attribute__((noinline)) ad_status load(int n, const char *const *names, ad_tensor *x)
{
    return ad_load(tape, path, n, names, x);
}

/* ---- values ---- */

TEST(tensors_come_back_bit_for_bit)
{
    static const char *const names[] = {"f64", "f32", "i64", "number", "empty", "deep/\u03b2.w"};
    static const uint64_t bits[3] = {UINT64_C(0x7ff0000000000001), UINT64_C(0xfff8123456789abc),
                                     UINT64_C(0x8000000000000000)}; /* the first NaN signals */
    static const uint32_t narrow[2] = {UINT32_C(0x7f800001), UINT32_C(0xffc12345)};
    static const int64_t whole[2] = {INT64_MIN, INT64_MAX};
    const ad_tensor saved[] = {
        ad_constant(tape, AD_F64, 2, SHAPE(1, 3), (const void *)bits),
        ad_constant(tape, AD_F32, 1, SHAPE(2), (const void *)narrow),
        ad_constant(tape, AD_I64, 1, SHAPE(2), whole),
        ad_scalar_f32(tape, 2.5F),
        ad_constant(tape, AD_F64, 3, SHAPE(2, 0, 4), NULL),
        ad_constant(tape, AD_F64, 8, SHAPE(1, 1, 1, 3, 1, 2, 1, 1), numbers)};
    ad_tensor x[6];
    uint64_t wide[3];
    int64_t shape[AD_MAX_RANK], integers[2];
    uint32_t floats[2];
    float number;
    double deep[6];
    check_ok(ad_save(tape, path, 6, names, saved));
    ck_assert_int_eq(count_files(), 1);
    check_ok(ad_load(tape, path, 6, names, x));
    for (int i = 0; i < 6; i++) {
        int64_t other[AD_MAX_RANK];
        ck_assert_int_eq(ad_dtype_of(x[i]), ad_dtype_of(saved[i]));
        ck_assert_int_eq(ad_rank(x[i]), ad_rank(saved[i]));
        check_ok(ad_shape(x[i], shape));
        check_ok(ad_shape(saved[i], other));
        ck_assert_mem_eq(shape, other, (size_t)ad_rank(x[i]) * sizeof *shape);
    }
    check_ok(ad_value(x[0], (void *)wide, 3));
    ck_assert_mem_eq(wide, bits, sizeof bits);
    check_ok(ad_value(x[1], (void *)floats, 2));
    ck_assert_mem_eq(floats, narrow, sizeof narrow);
    check_ok(ad_value(x[2], integers, 2));
    ck_assert_mem_eq(integers, whole, sizeof whole);
    check_ok(ad_value(x[3], &number, 1));
    ck_assert(number == 2.5F);
    check_ok(ad_value(x[5], deep, 6));
    ck_assert_mem_eq(deep, numbers, sizeof deep);
}

TEST(floats_become_leaves_and_views_are_saved_row_major)
{
    const ad_tensor m = matrix(), view = ad_transpose(m);
    ad_tensor x[2];
    double value[6], gradient[6];
    check_ok(ad_save(tape, path, 2, two, (ad_tensor[]){view, m}));
    check_ok(load(2, two, x));
    check_ok(ad_value(x[0], value, 6));
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(memcmp(&value[i], &numbers[i % 2 * 3 + i / 2], sizeof *value), 0);
    check_ok(ad_backward(ad_sum(ad_scale(x[0], 3))));
    check_ok(ad_gradient(x[0], gradient, 6));
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq(gradient[i], 3);
}

TEST(equal_tensors_make_equal_files)
{
    char first[4096], second[4096];
    save_two(numbers);
    const size_t n = read_file(path, first, sizeof first);
    save_two(numbers);
    ck_assert_uint_eq(read_file(path, second, sizeof second), n);
    ck_assert_mem_eq(first, second, n);
}

TEST(no_tensor_at_all_is_a_file)
{
    check_ok(ad_save(tape, path, 0, NULL, NULL));
    check_ok(load(0, NULL, NULL));
    ad_tensor x;
    ck_assert_int_eq(load(1, two, &x), AD_ERROR_FILE);
    check_error_in(tape, AD_ERROR_FILE, "model.npz: w is not there, nothing is", "in load");
}

/* ---- a struct ---- */

struct pair {
    double w[6];
    float b[2];
    const char *w_name;
    int64_t columns;
    int dtype;
    void *data;
};

static void visit(void *of, ad_visitor *v)
{
    struct pair *p = of;
    ad_tensor unused = {0, 0, 0, 0};
    ad_visit(v, p->w_name, &unused, (ad_dtype)p->dtype, 2, SHAPE(2, p->columns), p->data);
    ad_visit(v, "b", &unused, AD_F32, 1, SHAPE(2), p->b);
}

static struct pair pair_of(double first)
{
    return (struct pair){.w = {first, 2, 3, 4, 5, (double)NAN},
                         .b = {1.5F, -2},
                         .w_name = "w",
                         .columns = 3,
                         .dtype = AD_F64};
}

TEST(a_struct_comes_back_or_stays_as_it_was)
{
    struct pair p = pair_of(7), q = pair_of(1), as_it_was;
    p.data = p.w;
    q.data = q.w;
    q.b[0] = 0;
    check_ok(ad_visit_save(tape, path, visit, &p));
    ck_assert_uint_eq(stats().values, 0);
    memcpy(&as_it_was, &q, sizeof q);
    q.w_name = "v";
    check_call_refused(ad_visit_load(tape, path, visit, &q), AD_ERROR_FILE,
                       "model.npz: v is not there, but w b at");
    q.w_name = "b";
    check_call_refused(ad_visit_load(tape, path, visit, &q), AD_ERROR_ARGUMENT,
                       "visit_load: the name b is there twice");
    q.w_name = "w";
    q.columns = 2;
    check_call_refused(ad_visit_load(tape, path, visit, &q), AD_ERROR_SHAPE,
                       "model.npz: w is f64 [2,3], not f64 [2,2] at");
    q.columns = 3;
    q.dtype = AD_F32;
    check_call_refused(ad_visit_load(tape, path, visit, &q), AD_ERROR_DTYPE,
                       "model.npz: w is f64 [2,3], not f32 [2,3] at");
    q.dtype = AD_I64;
    check_call_refused(ad_visit_load(tape, path, visit, &q), AD_ERROR_DTYPE,
                       "visit: w is neither f32 nor f64");
    q.dtype = AD_F64;
    q.data = NULL;
    check_call_refused(ad_visit_load(tape, path, visit, &q), AD_ERROR_ARGUMENT,
                       "visit: the data of w is a null pointer");
    q.data = q.w;
    ck_assert_mem_eq(&q, &as_it_was, sizeof q);
    /* The first array is fine, the second is not. */
    save_two(numbers);
    check_call_refused(ad_visit_load(tape, path, visit, &q), AD_ERROR_DTYPE,
                       "model.npz: b is f64 [], not f32 [2] at");
    ck_assert_mem_eq(&q, &as_it_was, sizeof q);
    check_ok(ad_visit_save(tape, path, visit, &p));
    check_ok(ad_visit_load(tape, path, visit, &q));
    ck_assert_mem_eq(q.w, p.w, sizeof q.w);
    ck_assert_mem_eq(q.b, p.b, sizeof q.b);
}

TEST(floats_go_into_doubles)
{
    static const float narrow[6] = {0.1F, -2, 3e-39F, 4, INFINITY, 6};
    const ad_tensor x[] = {ad_constant(tape, AD_F32, 2, SHAPE(2, 3), narrow),
                           ad_constant(tape, AD_F32, 1, SHAPE(2), narrow)};
    struct pair q = pair_of(1);
    q.data = q.w;
    check_ok(ad_save(tape, path, 2, two, x));
    check_ok(ad_visit_load(tape, path, visit, &q));
    for (int i = 0; i < 6; i++)
        ck_assert(q.w[i] == (double)narrow[i]);
    ck_assert_mem_eq(q.b, narrow, sizeof q.b);
}

/* ---- wrong arguments ---- */

TEST(arguments_are_looked_at)
{
    static const char *const same[] = {"w", "w"}, *const empty[] = {"w", ""},
                             *const bad[] = {"w", "\xc3("}, *const none[] = {"w", NULL};
    const ad_tensor m = matrix(), pair[] = {m, m};
    ad_tensor x[2];
    check_call_refused(ad_save(tape, NULL, 2, two, pair), AD_ERROR_ARGUMENT,
                       "save: path is a null pointer");
    check_call_refused(ad_save(tape, path, -1, two, pair), AD_ERROR_ARGUMENT,
                       "save: n is negative: -1");
    check_call_refused(ad_save(tape, path, 2, NULL, pair), AD_ERROR_ARGUMENT,
                       "save: names is a null pointer");
    check_call_refused(ad_save(tape, path, 2, two, NULL), AD_ERROR_ARGUMENT,
                       "save: x is a null pointer");
    check_call_refused(ad_save(tape, path, 2, same, pair), AD_ERROR_ARGUMENT,
                       "save: the name w is there twice");
    check_call_refused(ad_save(tape, path, 2, empty, pair), AD_ERROR_ARGUMENT,
                       "save: name 1 is empty");
    check_call_refused(ad_save(tape, path, 2, bad, pair), AD_ERROR_ARGUMENT,
                       "save: name 1 is no UTF-8");
    check_call_refused(ad_save(tape, path, 2, none, pair), AD_ERROR_ARGUMENT,
                       "save: name 1 is a null pointer");
    check_call_refused(ad_save(tape, path, 2, two, (ad_tensor[]){m, {0, 0, 0, 0}}), AD_ERROR_HANDLE,
                       "save: x[1]");
    ck_assert_int_eq(count_files(), 0);
    check_call_refused(ad_load(tape, path, 2, same, x), AD_ERROR_ARGUMENT,
                       "load: the name w is there twice");
    check_call_refused(load(2, two, x), AD_ERROR_FILE, "model.npz: No such file or directory");
    ck_assert_uint_eq(stats().values, 1);
    /* They are as results of an op that failed. */
    save_two(numbers);
    const char *const third[] = {"w", "c"};
    check_call_refused(load(2, third, x), AD_ERROR_FILE, "c is not there, but w b at");
    ck_assert(x[0].value == 0 && x[1].value == 0 && x[0].tape == tape.slot);
}

TEST(long_names_and_all_of_utf8_are_taken)
{
    static char longest[65532], longer[65533];
    static const char *const right[] = {"\x7f",   "\xc2\x80",   "\u07ff",    "\u0800",
                                        "\uffff", "\U00010000", "\U0010ffff"};
    static const char *const wrong[] = {"\x80",
                                        "\xc1\xbf",
                                        "\xe0\x9f\xbf",
                                        "\xed\xa0\x80",
                                        "\xf0\x8f\xbf\xbf",
                                        "\xf4\x90\x80\x80",
                                        "\xf5\x80\x80\x80",
                                        "a\xe2\x82",
                                        "\xff"};
    const ad_tensor one = ad_scalar_f64(tape, 1);
    ad_tensor x[7] = {one, one, one, one, one, one, one};
    memset(longest, 'n', sizeof longest - 1);
    memset(longer, 'n', sizeof longer - 1);
    check_ok(ad_save(tape, path, 7, right, x));
    check_ok(ad_load(tape, path, 7, right, x));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        check_call_refused(ad_save(tape, path, 1, &wrong[i], &one), AD_ERROR_ARGUMENT,
                           "save: name 0 is no UTF-8");
    const char *names[] = {longest}, *too_long[] = {longer};
    check_ok(ad_save(tape, path, 1, names, &one));
    check_ok(ad_load(tape, path, 1, names, x));
    check_call_refused(ad_save(tape, path, 1, too_long, &one), AD_ERROR_ARGUMENT,
                       "save: name 0 is too long");
}

TEST(a_tape_in_error_saves_nothing)
{
    const ad_tensor m = matrix();
    ad_matmul(m, m);
    ck_assert_int_eq(ad_save(tape, path, 1, two, &m), AD_ERROR_SHAPE);
    ad_tape_clear_error(tape);
    ck_assert_int_eq(count_files(), 0);
}

/* ---- files ---- */

/* Under a limit of `bytes` a file cannot grow further, as on a disk that is full. */
static ad_status save_within(rlim_t bytes, const ad_tensor *x)
{
    struct rlimit before, now;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    now = before;
    now.rlim_cur = bytes;
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &now), 0);
    const ad_status status = ad_save(tape, path, 2, two, x);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    return status;
}

TEST(a_save_that_fails_leaves_the_old_file)
{
    enum { MANY = 10000 };
    static double zeros[MANY];
    char before[4096], after[4096];
    struct stat st;
    save_two(numbers);
    ck_assert_int_eq(chmod(path, 0640), 0);
    const size_t n = read_file(path, before, sizeof before);
    const ad_tensor large = ad_constant(tape, AD_F64, 1, SHAPE(MANY), zeros);
    const ad_tensor x[] = {large, large};
    for (rlim_t limit = 0; limit < 2 * sizeof zeros + 600; limit += 7777) {
        check_call_refused(save_within(limit, x), AD_ERROR_FILE, "model.npz: File too large at");
        ck_assert_uint_eq(read_file(path, after, sizeof after), n);
        ck_assert_mem_eq(before, after, n);
        ck_assert_int_eq(count_files(), 1);
    }
    check_ok(save_within(2 * sizeof zeros + 1000, x));
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 07777, 0640);
    ck_assert_int_gt(st.st_size, 2 * (off_t)sizeof zeros);
}

TEST(paths_that_cannot_be_written_are_said)
{
    char under[80], longer[5000];
    const ad_tensor m = matrix();
    check_call_refused(ad_save(tape, "/dev/full", 1, two, &m), AD_ERROR_FILE,
                       "save: /dev/full: No space left on device at");
    struct stat st;
    ck_assert(stat("/dev/full", &st) == 0 && S_ISCHR(st.st_mode));
    check_ok(ad_save(tape, "/dev/null", 1, two, &m));
    ck_assert(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode));
    check_call_refused(ad_save(tape, folder, 1, two, &m), AD_ERROR_FILE, "Is a directory");
    snprintf(under, sizeof under, "%s/nowhere/x.npz", folder);
    check_call_refused(ad_save(tape, under, 1, two, &m), AD_ERROR_FILE,
                       "No such file or directory");
    check_call_refused(ad_save(tape, "", 1, two, &m), AD_ERROR_FILE, "No such file or directory");
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    check_call_refused(ad_save(tape, longer, 1, two, &m), AD_ERROR_FILE, "xxx: File name too long");
    longer[4090] = '\0';
    check_call_refused(ad_save(tape, longer, 1, two, &m), AD_ERROR_FILE, "xxx: File name too long");
    ck_assert_int_eq(count_files(), 0);
}

TEST(a_link_stays_a_link)
{
    char link[80];
    struct stat st;
    const ad_tensor m = matrix();
    ad_tensor x;
    save_two(numbers);
    snprintf(link, sizeof link, "%s/link", folder);
    ck_assert_int_eq(symlink("model.npz", link), 0);
    check_ok(ad_save(tape, link, 1, (const char *const[]){"through"}, &m));
    ck_assert(lstat(link, &st) == 0 && S_ISLNK(st.st_mode));
    check_ok(load(1, (const char *const[]){"through"}, &x));
    ck_assert_int_eq(count_files(), 2);
}

TEST(a_pipe_is_written_to)
{
    static char text[65536];
    char name[32];
    int ends[2];
    const ad_tensor m = matrix();
    ad_tensor x;
    ck_assert_int_eq(pipe(ends), 0);
    snprintf(name, sizeof name, "/proc/self/fd/%d", ends[1]);
    check_ok(ad_save(tape, name, 1, two, &m));
    const ssize_t n = read(ends[0], text, sizeof text);
    ck_assert_int_gt(n, 0);
    write_file(path, text, (size_t)n);
    check_ok(load(1, two, &x));
    snprintf(name, sizeof name, "/proc/self/fd/%d", ends[0]);
    check_call_refused(ad_load(tape, name, 1, two, &x), AD_ERROR_FILE, "is no regular file");
    close(ends[0]);
    close(ends[1]);
}

/* ---- files that are none ---- */

static char whole[4096];

/* Loads bytes as a file: what they were, or an error and nothing else. */
static bool load_bytes(const void *bytes, size_t n)
{
    ad_tensor x[2];
    double value[6], number;
    const uint64_t values = stats().values;
    const ad_mark mark = ad_tape_mark(tape);
    write_file(path, bytes, n);
    const ad_status status = load(2, two, x);
    if (status != AD_OK) {
        ck_assert_msg(status == AD_ERROR_FILE, "%s", ad_tape_message(tape));
        check_error_in(tape, AD_ERROR_FILE, "model.npz: ", "in load");
        ck_assert_uint_eq(stats().values, values);
        ck_assert(x[0].value == 0 && x[1].value == 0);
    } else {
        check_ok(ad_value(x[0], value, 6));
        ck_assert_mem_eq(value, numbers, sizeof value);
        check_ok(ad_value(x[1], &number, 1));
        ck_assert_double_eq(number, 0.5);
    }
    check_ok(ad_tape_rewind(tape, mark));
    return status == AD_OK;
}

TEST(a_file_that_was_cut_off_is_refused)
{
    save_two(numbers);
    const size_t n = read_file(path, whole, sizeof whole);
    for (size_t k = 0; k < n; k++)
        ck_assert(!load_bytes(whole, k));
    ck_assert(load_bytes(whole, n));
    memset(whole + n, 0, 10);
    ck_assert(!load_bytes(whole, n + 10));
}

/* Dates, versions and the like say nothing of the arrays. */
TEST(no_changed_byte_gives_other_numbers)
{
    int unharmed = 0;
    save_two(numbers);
    const size_t n = read_file(path, whole, sizeof whole);
    for (size_t k = 0; k < n; k++)
        for (int bit = 0; bit < 8; bit += 7) {
            whole[k] = (char)(whole[k] ^ 1 << bit);
            unharmed += load_bytes(whole, n);
            whole[k] = (char)(whole[k] ^ 1 << bit);
        }
    ck_assert_int_gt(unharmed, 0);
    ck_assert_int_lt(unharmed, (int)n / 2); /* of 2 n */
}

/* The 8-byte form of sizes and offsets, which otherwise begins at 4 GiB. */
TEST(large_sizes_have_their_form)
{
    struct ad_zip_writer *w = calloc(1, sizeof *w);
    struct ad_zip_member m[3] = {{.name = "small", .size = 3},
                                 {.name = "large", .size = 200},
                                 {.name = "behind", .size = 3}};
    char bytes[200] = "abc", back[200];
    ck_assert_ptr_nonnull(w);
    w->fd = open(path, O_RDWR | O_CREAT, 0600);
    ck_assert_int_ge(w->fd, 0);
    w->limit = 100;
    for (int i = 0; i < 3; i++) {
        m[i].crc = (uint32_t)crc32_z(0, (const unsigned char *)bytes, m[i].size);
        ad_zip_begin_member(w, &m[i]);
        ad_zip_put(w, bytes, m[i].size);
    }
    ad_zip_end(w, m, 3);
    ck_assert_int_eq(w->error, 0);
    struct ad_zip_fault fault = {.memory = false};
    struct ad_scratch scratch = {.memory = tape_memory_system};
    struct ad_zip_reader z = {.fd = w->fd, .fault = &fault, .scratch = &scratch};
    struct ad_zip_stream *s = calloc(1, sizeof *s);
    struct ad_zip_entry e;
    uint64_t at = 0;
    ck_assert_ptr_nonnull(s);
    ck_assert_msg(ad_zip_open(&z), "%s", fault.reason);
    for (int i = 0; i < 3; i++) {
        ck_assert(ad_zip_next(&z, &at, &e));
        ck_assert_uint_eq(e.size, m[i].size);
        ck_assert_uint_eq(e.offset, m[i].offset);
        ck_assert(ad_zip_open_member(s, &z, &e) && ad_zip_read(s, back, e.size) && ad_zip_check(s));
        ad_zip_close_member(s);
        ck_assert_mem_eq(back, bytes, e.size);
    }
    ck_assert(!ad_zip_next(&z, &at, &e));
    close(w->fd);
    ad_scratch_free(&scratch);
    free(s);
    free(w);
}

TEST(other_tapes_and_no_tape_are_refused)
{
    ad_tape other;
    ad_tensor x;
    ck_assert_int_eq(ad_tape_create(&other, NULL), AD_OK);
    x = ad_scalar_f64(other, 1);
    check_call_refused(ad_save(tape, path, 1, two, &x), AD_ERROR_TAPE, "save: x[0]");
    ck_assert_int_eq(ad_tape_destroy(other), AD_OK);
    ck_assert_int_eq(ad_load((ad_tape){0, 0}, path, 1, two, &x), AD_ERROR_HANDLE);
    check_error_of((ad_tape){0, 0}, AD_ERROR_HANDLE, "load: the handle is zero");
    ck_assert_uint_eq(x.value, 0);
    ck_assert_int_eq(count_files(), 0);
}

RUN_TESTS(setup, finish)
