/* symbols.c: the set of modules of a process and the way from an address to its place.
 *
 * See symbols.h for the invariant.
 */
#include "symbols.h"

#include "base_memory.h"

#include "symbols_object.h"
#include "symbols_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A mapping; mappings of one file share an object, and so do symbols that were opened beside. */
struct mapping {
    const char *path;
    uint64_t start, end, bias;
    size_t object;
};

struct lazy_object {
    size_t users; /* symbols that have it */
    char *path;
    uint8_t *build_id;
    size_t build_id_bytes;
    bool opened;
    struct symbols_object elf;
};

struct symbols {
    struct mapping *mapping;
    struct lazy_object **object;
    bool *asked; /* of each object: whether these symbols have asked it, and warned */
    size_t n_mappings, n_objects;
    struct base_strings texts; /* paths */
    symbols_warn_fn *warn;
    void *payload;
    bool no_memory;
};

/* The kernel's own name for code that is in no file, such as "[vdso]". */
static bool symbols_is_file(const char *path)
{
    return *path != '[';
}

static bool same_object(const struct lazy_object *object, const char *path,
                        const struct symbols_module *module)
{
    return strcmp(object->path, path) == 0 && object->build_id_bytes == module->build_id_bytes &&
           (module->build_id_bytes == 0 ||
            memcmp(object->build_id, module->build_id, module->build_id_bytes) == 0);
}

static void object_release(struct lazy_object *object)
{
    if (!object || --object->users > 0)
        return;
    symbols_object_close(&object->elf);
    free(object->build_id);
    free(object->path);
    free(object);
}

/* NULL when memory is exhausted. */
static struct lazy_object *object_make(const char *path, const struct symbols_module *module)
{
    struct lazy_object *object = base_calloc(1, sizeof *object);
    if (!object)
        return NULL;
    object->users = 1;
    object->path = base_strdup(path);
    object->build_id_bytes = module->build_id_bytes;
    object->build_id = base_malloc(module->build_id_bytes + 1);
    if (!object->path || !object->build_id) {
        object_release(object);
        return NULL;
    }
    if (module->build_id_bytes > 0)
        memcpy(object->build_id, module->build_id, module->build_id_bytes);
    return object;
}

static struct lazy_object *object_find(const struct symbols *symbols, const char *path,
                                       const struct symbols_module *module, size_t *index)
{
    for (*index = symbols ? symbols->n_objects : 0; (*index)-- > 0;)
        if (same_object(symbols->object[*index], path, module))
            return symbols->object[*index];
    return NULL;
}

/* The index of the module's file, added if it is new; SIZE_MAX when memory is exhausted. */
static size_t object_of(struct symbols *symbols, const struct symbols *beside, const char *path,
                        const struct symbols_module *module)
{
    size_t index;
    if (object_find(symbols, path, module, &index))
        return index;
    struct lazy_object *object = object_find(beside, path, module, &index);
    if (object)
        object->users++;
    else
        object = object_make(path, module);
    if (!object)
        return SIZE_MAX;
    symbols->object[symbols->n_objects] = object;
    return symbols->n_objects++;
}

struct symbols *symbols_open_beside(const struct symbols_module *modules, size_t n,
                                    symbols_warn_fn *warn, void *payload,
                                    const struct symbols *beside)
{
    struct symbols *symbols = base_calloc(1, sizeof *symbols);
    if (!symbols)
        return NULL;
    symbols->warn = warn;
    symbols->payload = payload;
    symbols->mapping = base_calloc(n ? n : 1, sizeof *symbols->mapping);
    symbols->object = base_calloc(n ? n : 1, sizeof *symbols->object);
    symbols->asked = base_calloc(n ? n : 1, sizeof *symbols->asked);
    if (!symbols->mapping || !symbols->object || !symbols->asked) {
        symbols_close(symbols);
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        const char *path = symbols_path_text(&symbols->texts, modules[i].path);
        size_t object = path ? object_of(symbols, beside, path, &modules[i]) : SIZE_MAX;
        if (object == SIZE_MAX) {
            symbols_close(symbols);
            return NULL;
        }
        symbols->mapping[symbols->n_mappings++] =
            (struct mapping){path, modules[i].start, modules[i].end, modules[i].bias, object};
    }
    return symbols;
}

struct symbols *symbols_open(const struct symbols_module *modules, size_t n, symbols_warn_fn *warn,
                             void *payload)
{
    return symbols_open_beside(modules, n, warn, payload, NULL);
}

/* One line, with the end of a path that is long: the reason is never cut. */
static void warn_of(const struct symbols *symbols, const char *path, const char *problem)
{
    enum { MOST_PATH = 512 };
    char message[1024];
    const size_t n = strlen(path);
    const char *end = path;
    if (n > MOST_PATH) {
        end += n - MOST_PATH;
        const char *slash = strchr(end, '/');
        end = slash ? slash : end;
    }
    snprintf(message, sizeof message, "%s%s: no symbols: %s", end > path ? "..." : "", end,
             problem);
    symbols->warn(symbols->payload, message);
}

static struct symbols_object *open_object(struct symbols *symbols, size_t index)
{
    struct lazy_object *object = symbols->object[index];
    if (!object->opened) {
        object->opened = true;
        symbols_object_open(&object->elf, object->path, object->build_id, object->build_id_bytes);
    }
    if (!symbols->asked[index] && object->elf.problem && symbols->warn)
        warn_of(symbols, object->path, object->elf.problem);
    symbols->asked[index] = true;
    return &object->elf;
}

static const struct mapping *mapping_of(const struct symbols *symbols, uint64_t address)
{
    for (size_t i = symbols->n_mappings; i-- > 0;)
        if (symbols->mapping[i].start <= address && address < symbols->mapping[i].end)
            return &symbols->mapping[i];
    return NULL;
}

static void fill_place(struct symbols *symbols, struct symbols_place *place,
                       const struct symbols_found *found)
{
    place->function = found->function;
    place->function_line = found->function_line;
    place->wrapped = found->wrapped;
    if (found->file)
        place->file = symbols_path_add(&symbols->texts, found->directory, found->file);
    symbols->no_memory |= found->file && !place->file;
    if (place->file && place->line == 0)
        place->line = found->line;
}

size_t symbols_chain(struct symbols *symbols, uint64_t pc, uint32_t line,
                     struct symbols_place *place, size_t room)
{
    struct symbols_found found[SYMBOLS_INLINED];
    *place = (struct symbols_place){.line = line, .offset = pc};
    /* A return address may be the first byte after its function, or after its module. */
    const struct mapping *mapping = pc > 0 ? mapping_of(symbols, pc - 1) : NULL;
    if (!mapping)
        return 1;
    uint64_t address = pc - 1 - mapping->bias;
    place->module = mapping->path;
    if (!symbols_is_file(mapping->path)) {
        place->offset = 0;
        return 1;
    }
    place->offset = address + 1;
    struct symbols_object *object = open_object(symbols, mapping->object);
    size_t n = symbols_object_find(object, address, found,
                                   room < SYMBOLS_INLINED ? room : SYMBOLS_INLINED);
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            place[i] = (struct symbols_place){.module = mapping->path, .offset = address + 1};
        fill_place(symbols, &place[i], &found[i]);
    }
    if (!place->function) {
        uint64_t distance;
        place->function = symbols_object_symbol(object, address, &distance);
        if (place->function)
            place->offset = distance + 1;
    }
    symbols->no_memory |= object->no_memory;
    return n > 0 ? n : 1;
}

int symbols_resolve(struct symbols *symbols, uint64_t pc, uint32_t line,
                    struct symbols_place *place)
{
    (void)symbols_chain(symbols, pc, line, place, 1);
    return place->file && place->line ? 0 : 1;
}

const char *symbols_module(const struct symbols *symbols, uint64_t pc)
{
    const struct mapping *mapping = pc > 0 ? mapping_of(symbols, pc - 1) : NULL;
    return mapping ? mapping->path : NULL;
}

bool symbols_no_memory(const struct symbols *symbols)
{
    return symbols->no_memory;
}

uint64_t symbols_units_walked(const struct symbols *symbols)
{
    uint64_t n = 0;
    for (size_t i = 0; i < symbols->n_objects; i++)
        n += symbols_object_walked(&symbols->object[i]->elf);
    return n;
}

void symbols_close(struct symbols *symbols)
{
    if (!symbols)
        return;
    for (size_t i = 0; i < symbols->n_objects; i++)
        object_release(symbols->object[i]); // NOLINT: objects are counted only where there is room
    free(symbols->object);
    free(symbols->asked);
    free(symbols->mapping);
    base_strings_free(&symbols->texts);
    free(symbols);
}
