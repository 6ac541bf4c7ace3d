/* reader_symbols.c: places that a packed profile brings along.
 *
 * May include: profiler/file, protobuf-c. See reader_state.h for the invariant.
 */
#include "reader_state.h"

#include <stdlib.h>
#include <string.h>

/* NULL for "", and where memory is exhausted, which `*failed` says then. */
static char *copy(const char *text, bool *failed)
{
    char *made = *text ? strdup(text) : NULL;
    *failed |= *text && !made;
    return made;
}

enum reader_status reader_apply_symbols(struct reader_state *state,
                                        const Tapescope__Symbols *symbols)
{
    struct prof_profile *profile = state->profile;
    for (size_t i = 0; i < symbols->n_symbol; i++) {
        const Tapescope__Symbol *from = symbols->symbol[i];
        struct prof_symbol *symbol =
            reader_grow(profile->symbol, profile->n_symbols, &state->room_symbols, sizeof *symbol);
        if (!symbol)
            return READER_NO_MEMORY;
        profile->symbol = symbol;
        bool failed = false;
        symbol[profile->n_symbols++] = (struct prof_symbol){
            .pc = from->pc,
            .line = from->line,
            .depth = from->depth,
            .outermost = from->outermost,
            .wrapped = from->wrapped,
            .function = copy(from->function, &failed),
            .file = copy(from->file, &failed),
            .module = copy(from->module, &failed),
            .source_line = from->source_line,
            .function_line = from->function_line,
            .offset = from->offset,
        };
        if (failed)
            return READER_NO_MEMORY;
    }
    return READER_OK;
}

static int compare(const void *x, const void *y)
{
    const struct prof_symbol *a = x, *b = y;
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

static enum reader_status unite_texts(struct prof_profile *profile)
{
    size_t n = 0;
    struct text *text = calloc(3 * profile->n_symbols + 1, sizeof *text);
    profile->symbol_text = calloc(3 * profile->n_symbols + 1, sizeof *profile->symbol_text);
    if (!text || !profile->symbol_text) {
        free(text);
        free(profile->symbol_text);
        profile->symbol_text = NULL; /* the symbols have their texts yet */
        return READER_NO_MEMORY;
    }
    for (size_t i = 0; i < profile->n_symbols; i++) {
        struct prof_symbol *symbol = &profile->symbol[i];
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
    return READER_OK;
}

enum reader_status reader_finish_symbols(struct prof_profile *profile)
{
    if (profile->n_symbols == 0)
        return READER_OK;
    qsort(profile->symbol, profile->n_symbols, sizeof *profile->symbol, compare);
    return unite_texts(profile);
}

const struct prof_symbol *prof_profile_symbol(const struct prof_profile *profile, uint64_t pc,
                                              uint32_t line, uint32_t depth)
{
    const struct prof_symbol key = {.pc = pc, .line = line, .depth = depth};
    return profile->n_symbols > 0 ? bsearch(&key, profile->symbol, profile->n_symbols,
                                            sizeof *profile->symbol, compare)
                                  : NULL;
}

void reader_free_symbols(struct prof_profile *profile)
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
