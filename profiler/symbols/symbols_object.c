/* symbols_object.c: opening an ELF file through libdwfl, and the addresses of its compilation
 * units.
 *
 * See symbols_object.h for the invariant. libdw 0.188 finds units by .debug_aranges alone, which
 * clang does not write; the ranges of the units themselves are always there, so they are collected
 * and sorted here.
 */
#include "symbols_object.h"

#include "base_array.h"

#include <stdlib.h>
#include <string.h>

#include <dwarf.h>
#include <elfutils/libdwelf.h>

static char *debug_path; /* NULL: libdwfl's default, beside the file and /usr/lib/debug */

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .section_address = dwfl_offline_section_address,
    .debuginfo_path = &debug_path,
};

static int compare_ranges(const void *a, const void *b)
{
    const struct symbols_segment *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static int add_ranges(struct symbols_object *object, size_t *room, Dwarf_Die *die, uint32_t unit)
{
    Dwarf_Addr base, start, end;
    ptrdiff_t offset = 0;
    while ((offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0) {
        if (start == 0 || start >= end)
            continue;
        struct symbols_segment *range =
            base_array_grow(object->range, object->n_ranges, room, sizeof *range);
        if (!range)
            return -1;
        object->range = range;
        object->range[object->n_ranges++] = (struct symbols_segment){start, end, unit};
    }
    return 0;
}

/* Lists the units with code and sorts their ranges. */
static int collect_units(struct symbols_object *object, Dwarf *dwarf)
{
    size_t room_units = 0, room_ranges = 0;
    Dwarf_CU *cu = NULL;
    uint8_t type;
    Dwarf_Die die, split;
    while (dwarf_get_units(dwarf, cu, &cu, NULL, &type, &die, &split) == 0) {
        if (type != DW_UT_compile && type != DW_UT_skeleton)
            continue;
        struct symbols_unit *unit =
            base_array_grow(object->unit, object->n_units, &room_units, sizeof *unit);
        if (!unit)
            return -1;
        object->unit = unit;
        bool has_split = type == DW_UT_skeleton && split.addr != NULL;
        uint32_t index = (uint32_t)object->n_units++;
        object->unit[index] = (struct symbols_unit){.die = die, .tree = has_split ? split : die};
        if (add_ranges(object, &room_ranges, &die, index) != 0)
            return -1;
    }
    if (object->n_ranges > 0)
        qsort(object->range, object->n_ranges, sizeof *object->range, compare_ranges);
    return 0;
}

static bool same_build_id(Dwfl_Module *module, const uint8_t *expected, size_t n)
{
    GElf_Addr bias;
    Elf *elf = dwfl_module_getelf(module, &bias);
    const void *actual = NULL;
    ssize_t length = elf ? dwelf_elf_gnu_build_id(elf, &actual) : -1;
    return length > 0 && (size_t)length == n && memcmp(actual, expected, n) == 0;
}

void symbols_object_open(struct symbols_object *object, const char *path, const uint8_t *build_id,
                         size_t build_id_bytes)
{
    *object = (struct symbols_object){0};
    object->dwfl = dwfl_begin(&callbacks);
    if (!object->dwfl) {
        object->problem = dwfl_errmsg(-1);
        return;
    }
    dwfl_report_begin(object->dwfl);
    object->module = dwfl_report_elf(object->dwfl, path, path, -1, 0, true);
    dwfl_report_end(object->dwfl, NULL, NULL);
    if (!object->module) {
        object->problem = dwfl_errmsg(-1);
        return;
    }
    if (build_id && build_id_bytes > 0 &&
        !same_build_id(object->module, build_id, build_id_bytes)) {
        object->problem = "it was built again since the profile was written";
        return;
    }
    Dwarf *dwarf = dwfl_module_getdwarf(object->module, &object->dwarf_bias);
    if (dwarf && collect_units(object, dwarf) != 0) {
        object->no_memory = true;
        object->problem = "out of memory";
    }
}

size_t symbols_object_find(struct symbols_object *object, uint64_t address,
                           struct symbols_found *found, size_t room)
{
    if (object->problem)
        return 0;
    address -= object->dwarf_bias;
    size_t low = 0, high = object->n_ranges;
    while (low < high) { /* the first range that starts after the address */
        size_t middle = low + (high - low) / 2;
        if (object->range[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || object->range[low - 1].end <= address)
        return 0;
    struct symbols_unit *unit = &object->unit[object->range[low - 1].scope];
    size_t n = symbols_unit_find(unit, address, found, room);
    object->no_memory |= !unit->walked;
    return n;
}

const char *symbols_object_symbol(struct symbols_object *object, uint64_t address, uint64_t *offset)
{
    if (object->problem)
        return NULL;
    if (!object->table.read)
        symbols_table_read(&object->table, object->module);
    object->no_memory |= !object->table.read;
    return symbols_table_find(&object->table, address, offset);
}

uint64_t symbols_object_walked(const struct symbols_object *object)
{
    uint64_t n = 0;
    for (size_t i = 0; i < object->n_units; i++)
        n += object->unit[i].walked;
    return n;
}

void symbols_object_close(struct symbols_object *object)
{
    for (size_t i = 0; i < object->n_units; i++)
        symbols_unit_free(&object->unit[i]);
    free(object->unit);
    free(object->range);
    symbols_table_free(&object->table);
    if (object->dwfl)
        dwfl_end(object->dwfl);
    *object = (struct symbols_object){0};
}
