/* symbols_module.c: the module that libtapescope loads when it has an error message to complete:
 * the source line of a call in this very process.
 *
 * Built as tapescope-symbols.so; all but the entry is hidden. Invariant: one caller at a time (a
 * mutex); a failure is reported as -1 and nothing else happens.
 */
#include "base_strings.h"
#include "symbols.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The function and source line of a return address in this process, as "mlp.c:41 in dense";
 * line: __LINE__ of the call if known, else 0. buf holds n bytes. Returns 0, or -1. Any thread;
 * keeps errno. Its type is that of tape_symbol_describe_fn in the tape's hook, which this folder
 * may not include. */
__attribute__((visibility("default"))) int tapescope_symbol_describe(uintptr_t pc, uint32_t line,
                                                                     char *buf, unsigned n);

enum { LEAST_MIB = 64 }; /* of address space free, beside twice the file, before libdw is asked */

struct found_module {
    uintptr_t pc;
    char path[4096];
    uint64_t start, end, bias;
    int found;
};

/* The file that was opened last stays open: errors come in groups from one program. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct found_module current;
static struct symbols *symbols;

static int match_module(struct dl_phdr_info *info, size_t size, void *payload)
{
    (void)size;
    struct found_module *module = payload;
    for (ElfW(Half) i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uint64_t start = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type != PT_LOAD || module->pc - 1 < start ||
            module->pc - 1 >= start + segment->p_memsz)
            continue;
        module->start = start;
        module->end = start + segment->p_memsz;
        module->bias = info->dlpi_addr;
        if (info->dlpi_name && info->dlpi_name[0]) {
            int n = snprintf(module->path, sizeof module->path, "%s", info->dlpi_name);
            module->found = n > 0 && (size_t)n < sizeof module->path;
        } else { /* the program itself has no name here */
            ssize_t n = readlink("/proc/self/exe", module->path, sizeof module->path - 1);
            module->path[n > 0 ? n : 0] = '\0';
            module->found = n > 0;
        }
        return 1;
    }
    return 0;
}

/* libdw ends the process, or follows a null pointer, where it lacks memory; it is not asked unless
 * there is plenty. What other threads take meanwhile cannot be known. */
static int module_has_room(const char *path)
{
    struct stat st;
    size_t n = (size_t)LEAST_MIB << 20;
    if (path[0] && stat(path, &st) == 0 && st.st_size > 0)
        n += 2 * (size_t)st.st_size;
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return 0;
    munmap(p, n);
    return 1;
}

/* Sets symbols to those of pc's module. */
static int select_module(uintptr_t pc)
{
    struct found_module module = {.pc = pc};
    dl_iterate_phdr(match_module, &module);
    if (!module.found || !module_has_room(module.path))
        return -1;
    if (symbols && current.bias == module.bias && current.start == module.start &&
        strcmp(current.path, module.path) == 0)
        return 0;
    symbols_close(symbols);
    struct symbols_module set = {
        .path = module.path, .start = module.start, .end = module.end, .bias = module.bias};
    symbols = symbols_open(&set, 1, NULL, NULL);
    current = module;
    return symbols ? 0 : -1;
}

static int module_describe(uintptr_t pc, uint32_t line, char *buf, unsigned n)
{
    struct symbols_place place;
    if (pc == 0 || select_module(pc) != 0)
        return -1;
    int complete = symbols_resolve(symbols, pc, line, &place);
    if (symbols_no_memory(symbols)) { /* the next message may have more */
        symbols_close(symbols);
        symbols = NULL;
        return -1;
    }
    if (complete == 0) {
        snprintf(buf, n, "%s:%u%s%s", base_file_name(place.file), (unsigned)place.line,
                 place.function ? " in " : "", place.function ? place.function : "");
        return 0;
    }
    if (!place.function)
        return -1;
    if (line)
        snprintf(buf, n, "line %u in %s", (unsigned)line, place.function);
    else
        snprintf(buf, n, "%s+0x%llx in %s", place.function, (unsigned long long)place.offset,
                 base_file_name(place.module));
    return 0;
}

int tapescope_symbol_describe(uintptr_t pc, uint32_t line, char *buf, unsigned n)
{
    if (!buf || n == 0)
        return -1;
    int saved = errno;
    pthread_mutex_lock(&mutex);
    int status = module_describe(pc, line, buf, n);
    pthread_mutex_unlock(&mutex);
    errno = saved;
    return status;
}

__attribute__((destructor)) static void release(void)
{
    symbols_close(symbols);
    symbols = NULL;
}
