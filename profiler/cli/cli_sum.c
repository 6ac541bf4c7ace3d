/* cli_sum.c: see cli_sum.h. */
#include "cli_sum.h"

#include "base_memory.h"
#include "read_merge.h"

#include <stdlib.h>

/* The places of every profile's sites. */
struct places {
    const struct read_profile **profile;
    struct read_symbol **symbol;
    size_t *n;
};

static void find_places(struct places *places, const struct cli_profiles *opened)
{
    *places = (struct places){
        .profile = base_calloc(opened->n, sizeof *places->profile),
        .symbol = base_calloc(opened->n, sizeof *places->symbol),
        .n = base_calloc(opened->n, sizeof *places->n),
    };
    for (size_t i = 0; i < opened->n; i++) {
        places->profile[i] = opened->one[i].profile;
        places->symbol[i] = analyze_symbols(opened->analysis[i], &places->n[i]);
    }
}

static void free_places(struct places *places, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(places->symbol[i]);
    free(places->profile);
    free(places->symbol);
    free(places->n);
}

int cli_sum_profiles(const char *command, const struct cli_profiles *opened, const char *output)
{
    struct places places;
    char error[4096];
    int status = CLI_OK;
    find_places(&places, opened);
    if (read_merge(output, places.profile, (const struct read_symbol *const *)places.symbol,
                   places.n, opened->n, error, sizeof error) != 0) {
        cli_message("%s: %s", command, error);
        status = CLI_FAILED;
    }
    free_places(&places, opened->n);
    return status;
}
