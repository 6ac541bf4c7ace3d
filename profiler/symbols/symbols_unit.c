/* symbols_unit.c: the walk over one compilation unit and the look-up in its intervals.
 *
 * See symbols_unit.h for the invariant. libdw's own scope search walks the tree for every address
 * (seconds for 10 000); here the tree is walked once, its ranges are sorted by nesting and
 * flattened, and a look-up is a binary search.
 */
#include "symbols_unit.h"

#include "base_array.h"
#include "base_memory.h"

#include <stdlib.h>
#include <string.h>

#include <dwarf.h>

enum { MAX_DEPTH = 256 };

/* A range of a scope as it stands in the tree, before flattening. */
struct unit_span {
    uint64_t start, end;
    uint32_t scope, depth;
};

struct unit_walk {
    Dwarf_Die *unit; /* has the line table */
    struct symbols_scope *scope;
    struct unit_span *span;
    size_t n_scopes, n_spans, room_scopes, room_spans;
};

/* The entry of a unit's file table, or NULL. */
static const char *file_in_table(Dwarf_Die *unit, Dwarf_Word index)
{
    Dwarf_Files *files;
    size_t n;
    if (dwarf_getsrcfiles(unit, &files, &n) != 0 || index >= n)
        return NULL;
    return dwarf_filesrc(files, (size_t)index, NULL, NULL);
}

/* The file of a declaration. libdw's dwarf_decl_file ends the process by an assertion where the
 * unit is a split one (0.188), so its table is read here. */
static const char *file_of_declaration(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    Dwarf_Word index;
    Dwarf_Die unit;
    if (!dwarf_attr_integrate(die, DW_AT_decl_file, &attribute) ||
        dwarf_formudata(&attribute, &index) != 0 ||
        !dwarf_cu_die(attribute.cu, &unit, NULL, NULL, NULL, NULL, NULL, NULL))
        return NULL;
    return file_in_table(&unit, index);
}

/* tapescope/ad.h or tapescope/ad_NAME.h; for C++ tapescope/ad_NAME.hpp. */
static bool is_public_header(const char *file, const char *ending)
{
    static const char folder[] = "tapescope";
    const size_t n = sizeof folder - 1;
    const char *name = strrchr(file, '/');
    if (!name || (size_t)(name - file) < n || memcmp(name - n, folder, n) != 0)
        return false;
    const char *dot = strrchr(name, '.');
    return dot && strcmp(dot, ending) == 0 &&
           (strncmp(name, "/ad_", 4) == 0 || strncmp(name, "/ad.", 4) == 0);
}

/* A wrapper is named ad_* and declared in one of tapescope's public headers; in those for C++ it
 * may be a template of another name, which has ad_real or ad_exprN for an argument. With line
 * tables alone (clang -g1) nothing is declared anywhere: its code must lie in such a header then.
 */
static bool is_wrapper(Dwarf_Die *unit, Dwarf_Die *die, const char *name, Dwarf_Addr start)
{
    if (!name || !strstr(name, "ad_"))
        return false;
    const char *file = file_of_declaration(die);
    Dwarf_Line *line = file ? NULL : dwarf_getsrc_die(unit, start);
    if (line)
        file = dwarf_linesrc(line, NULL, NULL);
    return file && (is_public_header(file, ".hpp") ||
                    (strncmp(name, "ad_", 3) == 0 && is_public_header(file, ".h")));
}

static uint32_t attribute_u32(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value;
    if (!dwarf_attr(die, name, &attribute) || dwarf_formudata(&attribute, &value) != 0)
        return 0;
    return value <= UINT32_MAX ? (uint32_t)value : 0;
}

static int add_span(struct unit_walk *walk, uint64_t start, uint64_t end, uint32_t scope,
                    uint32_t depth)
{
    /* Sections that the linker dropped leave ranges at address 0. */
    if (start == 0 || start >= end)
        return 0;
    struct unit_span *span =
        base_array_grow(walk->span, walk->n_spans, &walk->room_spans, sizeof *span);
    if (!span)
        return -1;
    walk->span = span;
    span[walk->n_spans++] = (struct unit_span){start, end, scope, depth};
    return 0;
}

/* Adds a function with its ranges; *index is its scope, or the parent's if it has no code. */
static int unit_add_scope(struct unit_walk *walk, Dwarf_Die *die, bool inlined, uint32_t parent,
                          uint32_t depth, uint32_t *index)
{
    Dwarf_Addr base, start, end;
    ptrdiff_t offset = dwarf_ranges(die, 0, &base, &start, &end);
    *index = parent;
    if (offset <= 0 || walk->n_scopes >= SYMBOLS_NO_SCOPE)
        return 0;
    struct symbols_scope *scope =
        base_array_grow(walk->scope, walk->n_scopes, &walk->room_scopes, sizeof *scope);
    if (!scope)
        return -1;
    walk->scope = scope;
    *index = (uint32_t)walk->n_scopes++;
    int decl_line = 0;
    if (dwarf_decl_line(die, &decl_line) != 0 || decl_line < 0)
        decl_line = 0;
    const char *name = dwarf_diename(die);
    scope[*index] = (struct symbols_scope){
        .name = name,
        .parent = parent,
        .call_file = inlined ? attribute_u32(die, DW_AT_call_file) : 0,
        .call_line = inlined ? attribute_u32(die, DW_AT_call_line) : 0,
        .decl_line = (uint32_t)decl_line,
        .die = dwarf_dieoffset(die),
        .inlined = inlined,
        .wrapper = is_wrapper(walk->unit, die, name, start),
    };
    for (; offset > 0; offset = dwarf_ranges(die, offset, &base, &start, &end))
        if (add_span(walk, start, end, *index, depth) != 0)
            return -1;
    return 0;
}

static int walk_children(struct unit_walk *walk, Dwarf_Die *die, uint32_t parent, uint32_t depth)
{
    Dwarf_Die child;
    if (depth >= MAX_DEPTH || dwarf_child(die, &child) != 0)
        return 0;
    do {
        int tag = dwarf_tag(&child);
        uint32_t scope = parent;
        if ((tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine) &&
            unit_add_scope(walk, &child, tag == DW_TAG_inlined_subroutine, parent, depth, &scope) !=
                0)
            return -1;
        if (dwarf_haschildren(&child) == 1 && walk_children(walk, &child, scope, depth + 1) != 0)
            return -1;
    } while (dwarf_siblingof(&child, &child) == 0);
    return 0;
}

/* Outer spans before the inner ones that start at the same address. */
static int compare_spans(const void *a, const void *b)
{
    const struct unit_span *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->depth != y->depth)
        return x->depth < y->depth ? -1 : 1;
    if (x->end != y->end)
        return x->end > y->end ? -1 : 1;
    return x->scope < y->scope ? -1 : x->scope > y->scope;
}

static void unit_emit(struct symbols_unit *unit, uint64_t start, uint64_t end, uint32_t scope)
{
    if (start < end)
        unit->segment[unit->n_segments++] = (struct symbols_segment){start, end, scope};
}

/* Turns nested spans into disjoint segments: each span gives at most one segment before it and
 * one after it, hence the room. Spans that are not properly nested are cut at the end of the
 * outer one. */
static int unit_flatten(struct symbols_unit *unit, struct unit_walk *walk)
{
    if (walk->n_spans == 0)
        return 0;
    uint32_t *stack = base_malloc(walk->n_spans * sizeof *stack);
    unit->segment = base_malloc(2 * walk->n_spans * sizeof *unit->segment);
    if (!stack || !unit->segment) {
        free(stack);
        free(unit->segment);
        unit->segment = NULL;
        return -1;
    }
    qsort(walk->span, walk->n_spans, sizeof *walk->span, compare_spans);
    uint64_t at = 0;
    size_t top = 0;
    for (size_t i = 0; i <= walk->n_spans; i++) {
        uint64_t start = i < walk->n_spans ? walk->span[i].start : UINT64_MAX;
        while (top > 0 && walk->span[stack[top - 1]].end <= start) {
            struct unit_span *ended = &walk->span[stack[--top]];
            unit_emit(unit, at, ended->end, ended->scope);
            at = ended->end > at ? ended->end : at;
        }
        if (i == walk->n_spans)
            break;
        if (top > 0) {
            struct unit_span *outer = &walk->span[stack[top - 1]];
            unit_emit(unit, at, start, outer->scope);
            if (walk->span[i].end > outer->end)
                walk->span[i].end = outer->end;
        }
        at = start;
        stack[top++] = (uint32_t)i;
    }
    free(stack);
    return 0;
}

/* Walks the unit's tree. Returns 0, or -1 when memory is exhausted: it is then not walked. */
static int walk_unit(struct symbols_unit *unit)
{
    struct unit_walk walk = {.unit = &unit->die};
    int status = walk_children(&walk, &unit->tree, SYMBOLS_NO_SCOPE, 0);
    if (status == 0 && walk.n_spans >= UINT32_MAX)
        status = -1;
    if (status == 0)
        status = unit_flatten(unit, &walk);
    free(walk.span);
    if (status != 0) {
        free(walk.scope);
        return -1;
    }
    unit->walked = true;
    unit->scope = walk.scope;
    unit->n_scopes = walk.n_scopes;
    return 0;
}

static uint32_t scope_at(const struct symbols_unit *unit, uint64_t address)
{
    size_t low = 0, high = unit->n_segments;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (unit->segment[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < unit->n_segments && unit->segment[low].start <= address)
        return unit->segment[low].scope;
    return SYMBOLS_NO_SCOPE;
}

/* gcc's file table keeps "src/f.c" as it was given; libdw joins no directory to it. */
static const char *directory_of(struct symbols_unit *unit, const char *file)
{
    Dwarf_Attribute attribute;
    if (file && file[0] != '/' && dwarf_attr(&unit->die, DW_AT_comp_dir, &attribute))
        return dwarf_formstring(&attribute);
    return NULL;
}

/* Goes on to where the scope's caller has the call that was inlined. */
static uint32_t unit_leave(struct symbols_unit *unit, uint32_t at, struct symbols_found *found)
{
    found->file = file_in_table(&unit->tree, unit->scope[at].call_file);
    found->line = unit->scope[at].call_line;
    return unit->scope[at].parent;
}

/* Where the function is declared. */
static void unit_line_of_function(struct symbols_unit *unit, uint32_t at,
                                  struct symbols_found *found)
{
    Dwarf_Die die;
    const char *file = NULL;
    if (dwarf_offdie(dwarf_cu_getdwarf(unit->tree.cu), unit->scope[at].die, &die))
        file = file_of_declaration(&die);
    if (file)
        found->file = file;
    found->line = unit->scope[at].decl_line;
}

size_t symbols_unit_find(struct symbols_unit *unit, uint64_t address, struct symbols_found *found,
                         size_t room)
{
    if (!unit->walked && walk_unit(unit) != 0)
        return 0;
    struct symbols_found here = {0};
    Dwarf_Line *entry = dwarf_getsrc_die(&unit->die, address);
    int line = 0;
    if (entry && dwarf_lineno(entry, &line) == 0 && line >= 0) {
        here.file = dwarf_linesrc(entry, NULL, NULL);
        here.line = (uint32_t)line;
    }
    size_t n = 0;
    for (uint32_t at = scope_at(unit, address); n < room;) {
        here.wrapped = false;
        while (at != SYMBOLS_NO_SCOPE && unit->scope[at].wrapper && unit->scope[at].inlined) {
            at = unit_leave(unit, at, &here);
            here.wrapped = true;
        }
        here.function = NULL;
        here.function_line = 0;
        if (at != SYMBOLS_NO_SCOPE) {
            here.function = unit->scope[at].name;
            here.function_line = unit->scope[at].decl_line;
            if (here.line == 0) /* no line's code; the file is that of the line before */
                unit_line_of_function(unit, at, &here);
        }
        here.directory = directory_of(unit, here.file);
        if (here.file || here.function)
            found[n++] = here;
        if (at == SYMBOLS_NO_SCOPE || !unit->scope[at].inlined)
            break;
        at = unit_leave(unit, at, &here);
        if (at == SYMBOLS_NO_SCOPE) /* inlined into nothing: the debug information is wrong */
            break;
    }
    return n;
}

void symbols_unit_free(struct symbols_unit *unit)
{
    free(unit->scope);
    free(unit->segment);
    unit->scope = NULL;
    unit->segment = NULL;
    unit->n_scopes = unit->n_segments = 0;
}
