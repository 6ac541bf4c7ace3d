/* read_symbols.c: places that a packed profile brings along.
 *
 * See read_state.h for the invariant.
 */
#include "read_state.h"

#include <stdlib.h>
#include <string.h>

/* NULL for "". */
static char *symbols_copy(const char *text)
{
    return *text ? base_strdup(text) : NULL;
}

void read_apply_symbols(struct read_state *state, const Tapescope__Symbols *symbols)
{
    struct read_profile *profile = state->profile;
    for (size_t i = 0; i < symbols->n_symbol; i++) {
        const Tapescope__Symbol *from = symbols->symbol[i];
        BASE_ARRAY_GROW(profile->symbol, profile->n_symbols, &state->room_symbols);
        profile->symbol[profile->n_symbols++] = (struct read_symbol){
            .pc = from->pc,
            .line = from->line,
            .depth = from->depth,
            .outermost = from->outermost,
            .wrapped = from->wrapped,
            .function = symbols_copy(from->function),
            .file = symbols_copy(from->file),
            .module = symbols_copy(from->module),
            .source_line = from->source_line,
            .function_line = from->function_line,
            .offset = from->offset,
        };
    }
}

static int symbols_compare(const void *x, const void *y)
{
    const struct read_symbol *a = x, *b = y;
    if (a->pc != b->pc)
        return a->pc < b->pc ? -1 : 1;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    return a->depth < b->depth ? -1 : a->depth > b->depth;
}

/* One pointer for each text: equal files must be equal pointers. Texts are sorted, those that are
 * there twice are freed. */
struct text {
    char *text;
    char **place;
};

static int compare_texts(const void *x, const void *y)
{
    const struct text *a = x, *b = y;
    return strcmp(a->text, b->text);
}

static void unite_texts(struct read_profile *profile)
{
    size_t n = 0;
    struct text *text = base_calloc(3 * profile->n_symbols + 1, sizeof *text);
    profile->symbol_text = base_calloc(3 * profile->n_symbols + 1, sizeof *profile->symbol_text);
    for (size_t i = 0; i < profile->n_symbols; i++) {
        struct read_symbol *symbol = &profile->symbol[i];
        char **const places[] = {&symbol->function, &symbol->file, &symbol->module};
        for (size_t j = 0; j < 3; j++)
            if (*places[j])
                text[n++] = (struct text){*places[j], places[j]};
    }
    qsort(text, n, sizeof *text, compare_texts);
    for (size_t i = 0; i < n; i++) {
        char *known =
            profile->n_symbol_texts ? profile->symbol_text[profile->n_symbol_texts - 1] : NULL;
        if (known && strcmp(known, text[i].text) == 0) {
            free(text[i].text);
            *text[i].place = known;
        } else {
            profile->symbol_text[profile->n_symbol_texts++] = text[i].text;
        }
    }
    free(text);
}

void read_finish_symbols(struct read_profile *profile)
{
    if (profile->n_symbols == 0)
        return;
    qsort(profile->symbol, profile->n_symbols, sizeof *profile->symbol, symbols_compare);
    unite_texts(profile);
}

const struct read_symbol *read_profile_symbol(const struct read_profile *profile, uint64_t pc,
                                              uint32_t line, uint32_t depth)
{
    const struct read_symbol key = {.pc = pc, .line = line, .depth = depth};
    return profile->n_symbols > 0 ? bsearch(&key, profile->symbol, profile->n_symbols,
                                            sizeof *profile->symbol, symbols_compare)
                                  : NULL;
}

void read_free_symbols(struct read_profile *profile)
{
    for (size_t i = 0; i < profile->n_symbols && !profile->symbol_text; i++) {
        free(profile->symbol[i].function);
        free(profile->symbol[i].file);
        free(profile->symbol[i].module);
    }
    for (size_t i = 0; profile->symbol_text && i < profile->n_symbol_texts; i++)
        free(profile->symbol_text[i]);
    free(profile->symbol_text);
    free(profile->symbol);
}
