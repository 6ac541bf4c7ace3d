/* cli_ranks.c: see cli_ranks.h.
 *
 * The sum is written to a file without a name, because events are read from there once more.
 */
#include "cli_ranks.h"

#include "base_memory.h"
#include "base_number.h"
#include "read_merge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void cli_ranks_free(char **of_rank, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(of_rank[i]);
    free(of_rank);
}

static bool ranks_is_file(const char *path)
{
    struct stat file;
    return stat(path, &file) == 0 && S_ISREG(file.st_mode);
}

/* How many ranks rank 0 says that there were; 0: it does not say, or is no rank. */
static size_t ranks_said(const char *path, bool *ranked)
{
    char error[4096];
    struct read_profile *first = read_profile(path, error, sizeof error);
    const size_t n = first ? first->ranks : 0;
    *ranked = first && first->ranked;
    read_profile_free(first);
    return n;
}

/* What an earlier run of more ranks has left beside it is not of the set. */
char **cli_ranks_find(const char *path, size_t *n)
{
    bool ranked;
    *n = 0;
    char *first = base_asprintf("%s.0", path);
    const bool set = ranks_is_file(first);
    const size_t said = set ? ranks_said(first, &ranked) : 0;
    if (!set || !ranked) {
        free(first);
        return NULL;
    }
    size_t room = 16;
    char **of_rank = base_calloc(room, sizeof *of_rank);
    of_rank[(*n)++] = first;
    for (size_t i = 1; said == 0 || i < said; i++) {
        char *name = base_asprintf("%s.%zu", path, i);
        const bool is = ranks_is_file(name);
        if (is && *n == room)
            of_rank = base_reallocarray(of_rank, room *= 2, sizeof *of_rank);
        if (is)
            of_rank[(*n)++] = name;
        else
            free(name);
        if (!is && said == 0)
            break;
    }
    return of_rank;
}

void cli_ranks_tell(const struct read_profile *profile)
{
    char error[4096];
    char *name = base_asprintf("%s.0", profile->path);
    struct read_profile *first =
        ranks_is_file(name) ? read_profile(name, error, sizeof error) : NULL;
    if (first && first->ranked && !profile->ranked && profile->ranks == 0 &&
        first->start_unix_ns > profile->start_unix_ns)
        cli_message("%s is of one process, and older than the ranks' profiles %s.0, ...: move it "
                    "away to read those by this name",
                    profile->path, profile->path);
    read_profile_free(first);
    free(name);
}

bool cli_ranks_are(char *const *path, size_t n)
{
    bool all = true;
    for (size_t i = 0; i < n && all; i++)
        (void)ranks_said(path[i], &all);
    return all;
}

/* Places of profiles, by rank. */
static int ranks_compare(const void *a, const void *b)
{
    const struct read_profile *x = *(struct read_profile *const *)a,
                              *y = *(struct read_profile *const *)b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static bool ranks_fit(const struct read_profile *a, const struct read_profile *b)
{
    if (!read_may_merge(a, b))
        cli_message("%s is of another program than %s, or of another build of it", b->path,
                    a->path);
    else if (a->ranks != b->ranks)
        cli_message("%s is of a run of %u ranks, %s of one of %u", a->path, a->ranks, b->path,
                    b->ranks);
    else if (a->rank == b->rank)
        cli_message("%s and %s are both of rank %u", a->path, b->path, a->rank);
    else if ((a->end_unix_ns > 0 && a->end_unix_ns < b->start_unix_ns) ||
             (b->end_unix_ns > 0 && b->end_unix_ns < a->start_unix_ns))
        cli_message("%s and %s are of two runs: one had ended before the other began", a->path,
                    b->path);
    else if (a->is_sampled != b->is_sampled)
        cli_message("%s has %s and %s has %s: they have no sum", a->path,
                    a->is_sampled ? "samples" : "exact times", b->path,
                    b->is_sampled ? "samples" : "exact times");
    else
        return true;
    return false;
}

/* Of profiles in the order of their ranks. */
static bool ranks_check_order(const struct read_profile *const *part, size_t n)
{
    uint32_t next = 0;
    for (size_t i = 1; i < n; i++)
        if (!ranks_fit(part[i - 1], part[i]))
            return false;
    for (size_t i = 0; i < n; i++) {
        if (part[i]->rank > next)
            cli_message("no profile of rank %u of %u", next, part[i]->ranks);
        next = part[i]->rank + 1;
        if (!part[i]->complete)
            cli_message("rank %u has not ended well: what it wrote until then is used",
                        part[i]->rank);
    }
    if (next < part[0]->ranks)
        cli_message("no profile of rank %u of %u", next, part[0]->ranks);
    return true;
}

bool cli_ranks_check(const struct read_profile *const *part, size_t n)
{
    const struct read_profile **by_rank = base_calloc(n + 1, sizeof *by_rank);
    memcpy(by_rank, part, n * sizeof *by_rank);
    qsort(by_rank, n, sizeof *by_rank, ranks_compare);
    const bool ok = ranks_check_order(by_rank, n);
    free(by_rank);
    return ok;
}

static bool ranks_sum(struct cli_profile *opened, const char *name,
                      struct read_profile *const *part, size_t n)
{
    char error[4096] = "", path[64], *aside;
    const char *folder = getenv("TMPDIR");
    aside = base_asprintf("%s/tapescope.XXXXXX", folder && *folder ? folder : "/tmp");
    const int made = mkstemp(aside);
    const struct read_symbol **symbol = base_calloc(n, sizeof *symbol);
    size_t *n_symbols = base_calloc(n, sizeof *n_symbols);
    for (size_t i = 0; i < n; i++) {
        symbol[i] = part[i]->symbol;
        n_symbols[i] = part[i]->n_symbols;
    }
    if (made < 0)
        snprintf(error, sizeof error, "%s: %s", aside, strerror(errno));
    else if (read_merge(aside, (const struct read_profile *const *)part, symbol, n_symbols, n,
                        error, sizeof error) == 0)
        opened->stored = open(aside, O_RDONLY | O_CLOEXEC);
    if (made >= 0) {
        close(made);
        unlink(aside);
    }
    if (opened->stored > 0) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", opened->stored);
        opened->profile = read_profile(path, error, sizeof error);
    }
    if (opened->profile) {
        free(opened->profile->path);
        opened->profile->path = base_strdup(name);
        opened->profile->stored = base_strdup(path);
    } else {
        cli_message("%s", error);
    }
    free(symbol);
    free(n_symbols);
    free(aside);
    return opened->profile != NULL;
}

bool cli_ranks_read(struct cli_profile *opened, const char *name, char *const *path, size_t n)
{
    char error[4096];
    bool ok = true;
    struct read_profile **part = base_calloc(n + 1, sizeof(struct read_profile *));
    for (size_t i = 0; i < n && ok; i++) {
        part[i] = read_profile(path[i], error, sizeof error);
        ok = part[i] != NULL;
    }
    if (!ok)
        cli_message("%s", error);
    else
        qsort(part, n, sizeof(struct read_profile *), ranks_compare);
    ok = ok && ranks_check_order((const struct read_profile *const *)part, n) &&
         ranks_sum(opened, name, part, n);
    for (size_t i = 0; i < n; i++)
        read_profile_free(part[i]);
    free(part);
    return ok;
}
