/* collect_modules.c: the executable mappings of this process, with paths and build ids.
 *
 * A mapping stays listed after its library is gone, unless another took its addresses: rows
 * recorded in it are resolved later. A library that comes and goes between two readings is missed.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "collect.h"
#include "unwind.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct collect_module *modules_append(struct collect_modules *list)
{
    if (list->n == list->capacity) {
        size_t capacity = list->capacity == 0 ? 16 : 2 * list->capacity;
        struct collect_module *module = realloc(list->module, capacity * sizeof *module);
        if (module == NULL)
            return NULL;
        list->module = module;
        list->capacity = capacity;
    }
    struct collect_module *module = &list->module[list->n];
    memset(module, 0, sizeof *module);
    return module;
}

/* Finds the build id in a segment of notes. */
static void read_notes(struct collect_module *to, const uint8_t *at, size_t n, size_t align)
{
    align = align == 8 ? 8 : 4;
    while (n >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, at, sizeof note);
        size_t name = (note.n_namesz + align - 1) & ~(align - 1);
        size_t description = (note.n_descsz + align - 1) & ~(align - 1);
        size_t room = n - sizeof note;
        if (name > room || note.n_descsz > room - name)
            return;
        const uint8_t *text = at + sizeof note;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(text, "GNU", 4) == 0 &&
            note.n_descsz <= sizeof to->build_id) {
            memcpy(to->build_id, text + name, note.n_descsz);
            to->n_build_id = note.n_descsz;
            return;
        }
        if (description > room - name)
            return;
        at += sizeof note + name + description;
        n -= sizeof note + name + description;
    }
}

/* Whether a segment of notes is in memory, and not in the file alone. */
static bool is_loaded(const struct dl_phdr_info *info, const ElfW(Phdr) * note)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *load = &info->dlpi_phdr[i];
        if (load->p_type == PT_LOAD && (load->p_flags & PF_R) && note->p_vaddr >= load->p_vaddr &&
            note->p_memsz <= load->p_memsz &&
            note->p_vaddr - load->p_vaddr <= load->p_memsz - note->p_memsz)
            return true;
    }
    return false;
}

static void read_build_id(struct collect_module *to, const struct dl_phdr_info *info)
{
    for (int i = 0; i < info->dlpi_phnum && to->n_build_id == 0; i++) {
        const ElfW(Phdr) *note = &info->dlpi_phdr[i];
        if (note->p_type == PT_NOTE && is_loaded(info, note))
            read_notes(to, (const uint8_t *)info->dlpi_addr + note->p_vaddr, note->p_memsz,
                       note->p_align);
    }
}

static int add_module(struct dl_phdr_info *info, size_t size, void *payload)
{
    struct collect_modules *list = payload;
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs) {
        list->adds = info->dlpi_adds;
        list->subs = info->dlpi_subs;
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *load = &info->dlpi_phdr[i];
        if (load->p_type != PT_LOAD || !(load->p_flags & PF_X))
            continue;
        struct collect_module *module = modules_append(list);
        if (module == NULL)
            return -1;
        module->path = strdup(info->dlpi_name != NULL ? info->dlpi_name : "");
        if (module->path == NULL)
            return -1;
        module->start = info->dlpi_addr + load->p_vaddr;
        module->end = module->start + load->p_memsz;
        module->bias = info->dlpi_addr;
        read_build_id(module, info);
        list->n++;
    }
    return 0;
}

static int read_counters(struct dl_phdr_info *info, size_t size, void *payload)
{
    struct collect_modules *now = payload;
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs) {
        now->adds = info->dlpi_adds;
        now->subs = info->dlpi_subs;
    }
    return 1;
}

/* The path in a line of /proc/self/maps ("start-end perms offset device inode path") whose
 * mapping has the address, or NULL. */
static const char *path_at(const char *line, uint64_t address)
{
    char *at;
    uint64_t start = strtoull(line, &at, 16);
    if (*at != '-')
        return NULL;
    uint64_t end = strtoull(at + 1, &at, 16);
    if (address < start || address >= end)
        return NULL;
    for (int field = 0; field < 4; field++) {
        at += strspn(at, " ");
        at += strcspn(at, " \n");
    }
    at += strspn(at, " ");
    return *at == '\0' || *at == '\n' ? NULL : at;
}

/* The loader knows the program as "" and others by the name they were asked for: the absolute
 * path of the mapping is the kernel's. False: no memory. */
static bool name_mapping(struct collect_module *module, const char *line)
{
    const char *found = path_at(line, module->start);
    if (found == NULL)
        return true;
    char *path = strndup(found, strcspn(found, "\n"));
    if (path == NULL)
        return false;
    static const char deleted[] = " (deleted)";
    size_t n = strlen(path);
    if (n > sizeof deleted - 1 && strcmp(path + n - (sizeof deleted - 1), deleted) == 0)
        path[n - (sizeof deleted - 1)] = '\0';
    free(module->path);
    module->path = path;
    return true;
}

/* Where the system shows no mappings, names stay as the loader has them. Returns 0 or an error
 * number. */
static int name_modules(struct collect_modules *list)
{
    struct collect_buffer maps = {0};
    int error = collect_file_read(&maps, "/proc/self/maps", SIZE_MAX);
    if (error == 0 && !collect_put_bytes(&maps, "", 1))
        error = ENOMEM;
    for (const char *line = (char *)maps.data; error == 0 && *line != '\0';) {
        for (size_t i = 0; error == 0 && i < list->n; i++)
            if (list->module[i].path[0] != '/' && !name_mapping(&list->module[i], line))
                error = ENOMEM;
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    free(maps.data);
    return error == ENOENT ? 0 : error;
}

static bool modules_overlaps(const struct collect_modules *list,
                             const struct collect_module *module)
{
    for (size_t i = 0; i < list->n; i++)
        if (module->start < list->module[i].end && list->module[i].start < module->end)
            return true;
    return false;
}

/* Adds the mappings of `old` whose addresses are free now. */
static bool keep_gone(struct collect_modules *list, const struct collect_modules *old)
{
    for (size_t i = 0; i < old->n; i++) {
        if (modules_overlaps(list, &old->module[i]))
            continue;
        struct collect_module *module = modules_append(list);
        if (module == NULL)
            return false;
        *module = old->module[i];
        module->path = strdup(old->module[i].path);
        if (module->path == NULL)
            return false;
        list->n++;
    }
    return true;
}

/* The loader's own lock is held while its list is read. A fork in that time would leave it held
 * for good in the child, which could load nothing: hence no fork comes in that time. */
static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;

static int read_list(int (*take)(struct dl_phdr_info *info, size_t size, void *payload),
                     struct collect_modules *now)
{
    pthread_mutex_lock(&reading);
    const int status = dl_iterate_phdr(take, now);
    pthread_mutex_unlock(&reading);
    return status;
}

static collect_locate *of_tape; /* atomic */

/* It reads that list as well. */
static uintptr_t modules_locate(uint32_t low, uintptr_t near)
{
    pthread_mutex_lock(&reading);
    const uintptr_t pc = __atomic_load_n(&of_tape, __ATOMIC_RELAXED)(low, near);
    pthread_mutex_unlock(&reading);
    return pc;
}

collect_locate *collect_modules_locate(collect_locate *tape_locate)
{
    __atomic_store_n(&of_tape, tape_locate, __ATOMIC_RELAXED);
    return tape_locate != NULL ? modules_locate : NULL;
}

void collect_modules_before_fork(void)
{
    pthread_mutex_lock(&reading);
}

void collect_modules_after_fork(void)
{
    pthread_mutex_unlock(&reading);
}

const char *collect_modules_refresh(struct collect_modules *modules)
{
    struct collect_modules now = {0};
    (void)read_list(read_counters, &now);
    if (modules->n > 0 && now.adds == modules->adds && now.subs == modules->subs)
        return NULL;
    int error = read_list(add_module, &now) == 0 ? name_modules(&now) : ENOMEM;
    if (error == 0 && !keep_gone(&now, modules))
        error = ENOMEM;
    if (error != 0) {
        collect_modules_free(&now);
        return collect_reason(error);
    }
    if (now.subs != modules->subs)
        unwind_forget();
    collect_modules_free(modules);
    *modules = now;
    modules->changed = true;
    return NULL;
}

void collect_modules_free(struct collect_modules *modules)
{
    for (size_t i = 0; i < modules->n; i++)
        free(modules->module[i].path);
    free(modules->module);
    *modules = (struct collect_modules){0};
}
