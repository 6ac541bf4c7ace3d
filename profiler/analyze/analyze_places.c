/* analyze_places.c: see analyze_places.h; and the places of all addresses that reports ask for. */
#include "analyze_places.h"

#include "analyze_map.h"
#include "base_memory.h"

#include <stdlib.h>

static struct symbols_place known_place(const struct read_symbol *known)
{
    return (struct symbols_place){
        .function = known->function,
        .file = known->file,
        .line = known->source_line,
        .function_line = known->function_line,
        .module = known->module,
        .wrapped = known->wrapped,
        .offset = known->offset,
    };
}

/* What the profile knows of an address; *whole: up to the function that has the code. */
static size_t known_places(const struct read_profile *profile, uint64_t pc, uint32_t line,
                           struct symbols_place *place, size_t room, bool *whole)
{
    size_t n = 0;
    *whole = false;
    while (n < room && !*whole) {
        const struct read_symbol *known = read_profile_symbol(profile, pc, line, (uint32_t)n);
        if (!known)
            break;
        place[n++] = known_place(known);
        *whole = known->outermost;
    }
    return n;
}

static size_t places_find(const struct analyze_result *analysis, uint64_t pc, uint32_t line,
                          struct symbols_place *place, size_t room)
{
    bool whole;
    *place = (struct symbols_place){0};
    if (pc == 0)
        return 1;
    const size_t n = known_places(analysis->profile, pc, line, place, room, &whole);
    if (whole || n == room)
        return n;
    if (n == 0)
        return symbols_chain(analysis->symbols, pc, line, place, room);
    /* Older profiles know the innermost function alone: the program, if it is there, has more. */
    const struct symbols_place known = place[0];
    size_t found = symbols_chain(analysis->symbols, pc, line, place, room);
    place[0] = known;
    return found;
}

size_t analyze_places(const struct analyze_result *analysis, uint64_t pc, uint32_t line,
                      struct symbols_place *place, size_t room)
{
    const size_t n = places_find(analysis, pc, line, place, room);
    for (size_t i = 0; i < n; i++)
        place[i].file = analyze_map_file(analysis->map, place[i].file);
    return n;
}

struct symbols_place analyze_place(const struct analyze_result *analysis, uint64_t pc,
                                   uint32_t line)
{
    struct symbols_place place;
    analyze_places(analysis, pc, line, &place, 1);
    return place;
}

static int places_compare_sites(const void *x, const void *y)
{
    const struct read_symbol *a = x, *b = y;
    if (a->pc != b->pc)
        return a->pc < b->pc ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

/* How many addresses of all kinds there are, and, if there is a list, which. */
static size_t list_sites(const struct read_profile *profile, struct read_symbol *list)
{
    size_t n = 0;
#define SITE(address, of_line)                                                                     \
    do {                                                                                           \
        if (list)                                                                                  \
            list[n] = (struct read_symbol){.pc = (address), .line = (of_line)};                    \
        n++;                                                                                       \
    } while (0)
    for (size_t i = 0; i < profile->n_tapes; i++)
        for (size_t j = 0; j < profile->tape[i].n_rows; j++)
            SITE(profile->tape[i].row[j].pc, profile->tape[i].row[j].line);
    for (size_t i = 0; i < profile->n_call_paths; i++)
        SITE(profile->call_path[i].pc, 0);
    for (size_t i = 0; i < profile->n_expectations; i++)
        SITE(profile->expectation[i].pc, profile->expectation[i].line);
    for (size_t i = 0; i < profile->n_patterns; i++)
        SITE(profile->pattern[i].pc, profile->pattern[i].line);
    for (size_t i = 0; i < profile->n_samples; i++) {
        const struct read_sample *sample = &profile->sample[i];
        SITE(sample->pc, sample->line);
        for (size_t j = 0; j < sample->n_stack; j++) /* the interrupted one is no return address */
            SITE(sample->stack[j] + (j == 0), 0);
    }
#undef SITE
    return n;
}

/* Each once, and those that are none left out. Returns how many remain. */
static size_t places_unite_sites(struct read_symbol *list, size_t n)
{
    size_t kept = 0;
    qsort(list, n, sizeof *list, places_compare_sites);
    for (size_t i = 0; i < n; i++)
        if (list[i].pc != 0 && (kept == 0 || places_compare_sites(&list[kept - 1], &list[i]) != 0))
            list[kept++] = list[i];
    return kept;
}

struct read_symbol *analyze_symbols(const struct analyze_result *analysis, size_t *n)
{
    const size_t most = list_sites(analysis->profile, NULL);
    struct read_symbol *site = base_calloc(most + 1, sizeof *site), *symbol = NULL;
    size_t n_sites, room = 0;
    *n = 0;
    list_sites(analysis->profile, site);
    n_sites = places_unite_sites(site, most);
    for (size_t i = 0; i <= n_sites; i++) { /* once more than needed: an array that is empty */
        struct symbols_place place[SYMBOLS_INLINED];
        if (*n + SYMBOLS_INLINED > room) {
            room = 2 * room + 2 * SYMBOLS_INLINED;
            symbol = base_reallocarray(symbol, room, sizeof *symbol);
        }
        const size_t found =
            i < n_sites ? analyze_places(analysis, site[i].pc, site[i].line, place, SYMBOLS_INLINED)
                        : 0;
        for (size_t j = 0; j < found; j++)
            symbol[(*n)++] = (struct read_symbol){
                .pc = site[i].pc,
                .line = site[i].line,
                .depth = (uint32_t)j,
                .outermost = j + 1 == found,
                .wrapped = place[j].wrapped,
                .function = (char *)place[j].function,
                .file = (char *)place[j].file,
                .module = (char *)place[j].module,
                .source_line = place[j].line,
                .function_line = place[j].function_line,
                .offset = place[j].offset,
            };
    }
    free(site);
    return symbol;
}
