/* cli_written.c: see cli_written.h. */
#include "cli_written.h"

#include "base_memory.h"
#include "read_merge.h"
#include "read_pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int cli_pack_profile(const char *command, const struct analyze_result *analysis, const char *from,
                     const char *to)
{
    size_t n;
    char error[4096];
    struct read_symbol *symbol = analyze_symbols(analysis, &n);
    int failed = read_pack(from, to, symbol, n, error, sizeof error);
    free(symbol);
    if (failed)
        cli_message("%s: %s", command, error);
    return failed ? CLI_FAILED : CLI_OK;
}

int cli_say_written(const struct cli_args *args, const char *command, const char *path,
                    const struct read_profile *const *from, size_t n)
{
    char error[4096];
    struct stat file;
    if (!args->style.json)
        return CLI_OK;
    struct read_profile *written = read_profile(path, error, sizeof error);
    if (!written || stat(path, &file) != 0) {
        cli_message("%s: %s", command, written ? strerror(errno) : error);
        read_profile_free(written);
        return CLI_FAILED;
    }
    report_written(written, (uint64_t)file.st_size, command, from, n, &args->style);
    read_profile_free(written);
    return cli_finish();
}

/* The places of every profile's sites. */
struct places {
    const struct read_profile **profile;
    struct read_symbol **symbol;
    size_t *n;
};

static void find_places(struct places *places, const struct analyze_result *const *analysis,
                        size_t n)
{
    *places = (struct places){
        .profile = base_calloc(n, sizeof *places->profile),
        .symbol = base_calloc(n, sizeof *places->symbol),
        .n = base_calloc(n, sizeof *places->n),
    };
    for (size_t i = 0; i < n; i++) {
        places->profile[i] = analysis[i]->profile;
        places->symbol[i] = analyze_symbols(analysis[i], &places->n[i]);
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

/* sum: read_merge, or read_merge_ranks. */
static int written_sum(const char *command, const struct analyze_result *const *analysis, size_t n,
                       const char *output, __typeof__(read_merge) *sum)
{
    struct places places;
    char error[4096];
    int status = CLI_OK;
    find_places(&places, analysis, n);
    if (sum(output, places.profile, (const struct read_symbol *const *)places.symbol, places.n, n,
            error, sizeof error) != 0) {
        cli_message("%s: %s", command, error);
        status = CLI_FAILED;
    }
    free_places(&places, n);
    return status;
}

int cli_sum_profiles(const char *command, const struct cli_profiles *opened, const char *output)
{
    return written_sum(command, opened->analysis, opened->n, output, read_merge);
}

int cli_sum_ranks(const char *command, const struct analyze_result *const *analysis, size_t n,
                  const char *output)
{
    return written_sum(command, analysis, n, output, read_merge_ranks);
}

char *cli_summarize(const struct analyze_result *analysis, bool utf8)
{
    char *text = NULL;
    size_t n = 0;
    struct report_style style = {.out = base_memstream_open(&text, &n), .utf8 = utf8};
    report_summary(analysis, &style);
    base_memstream_close(style.out, &text);
    return text;
}
