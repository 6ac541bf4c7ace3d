/* cli_ranks.c: see cli_ranks.h.
 *
 * The sum is written to a file without a name, because events are read from there once more.
 */
#include "cli_ranks.h"

#include "analyze_ranks.h"
#include "base_memory.h"
#include "ranks.h"
#include "read_merge.h"
#include "read_range.h"

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

/* How many ranks a profile says that there were; 0: it does not say, or is no rank's. */
static size_t ranks_said(const char *path, bool *ranked)
{
    char error[4096];
    struct read_profile *first = read_profile_header(path, error, sizeof error);
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
    if (set && ranked && said > RANKS_MOST)
        cli_message("%s says that it is of %zu ranks: more than %d are none", first, said,
                    RANKS_MOST);
    if (!set || !ranked || said > RANKS_MOST) {
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
        ranks_is_file(name) ? read_profile_header(name, error, sizeof error) : NULL;
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

bool cli_ranks_differ(char *const *path, size_t n)
{
    char error[4096];
    bool ok = true;
    struct read_profile **of = base_calloc(n + 1, sizeof(struct read_profile *));
    for (size_t i = 0; i < n && ok; i++) {
        of[i] = read_profile_header(path[i], error, sizeof error);
        ok = of[i] && of[i]->ranked && of[i]->ranks == of[0]->ranks;
        for (size_t k = 0; k < i && ok; k++)
            ok = of[k]->rank != of[i]->rank;
    }
    for (size_t i = 0; i < n; i++)
        read_profile_free(of[i]);
    free(of);
    return ok;
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

/* Of profiles in the order of their ranks; all: whether those that are missing are missed. */
static bool ranks_check_order(const struct read_profile *const *part, size_t n, bool all)
{
    uint32_t next = 0;
    for (size_t i = 1; i < n; i++)
        if (!ranks_fit(part[i - 1], part[i]))
            return false;
    for (size_t i = 0; i < n; i++) {
        if (all && part[i]->rank > next)
            cli_message("no profile of rank %u of %u", next, part[i]->ranks);
        next = part[i]->rank + 1;
        if (!part[i]->complete)
            cli_message("rank %u has not ended well: what it wrote until then is used",
                        part[i]->rank);
    }
    if (all && next < part[0]->ranks)
        cli_message("no profile of rank %u of %u", next, part[0]->ranks);
    return true;
}

bool cli_ranks_check(const struct read_profile *const *part, size_t n, bool all)
{
    const struct read_profile **by_rank = base_calloc(n + 1, sizeof *by_rank);
    memcpy(by_rank, part, n * sizeof *by_rank);
    qsort(by_rank, n, sizeof *by_rank, ranks_compare);
    const bool ok = ranks_check_order(by_rank, n, all);
    free(by_rank);
    return ok;
}

/* The name of a new empty file, open as *fd, which is -1 if there is none; to be freed. */
static char *ranks_aside(int *fd)
{
    const char *folder = getenv("TMPDIR");
    char *aside = base_asprintf("%s/tapescope.XXXXXX", folder && *folder ? folder : "/tmp");
    *fd = mkstemp(aside);
    return aside;
}

/* Reads from the open file, which is called `name`, what is stored there under `stored`, which is
 * the profile's from then on. */
static struct read_profile *ranks_read_open(char *stored, const char *name, char *error, size_t n)
{
    struct read_profile *profile = read_profile(stored, error, n);
    if (!profile) {
        free(stored);
        return NULL;
    }
    free(profile->path);
    profile->path = base_strdup(name);
    profile->stored = stored;
    return profile;
}

static bool ranks_sum(struct cli_profile *opened, const char *name,
                      struct read_profile *const *part, size_t n)
{
    char error[4096] = "";
    int made;
    char *aside = ranks_aside(&made);
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
    if (opened->stored > 0)
        opened->profile = ranks_read_open(base_asprintf("/proc/self/fd/%d", opened->stored), name,
                                          error, sizeof error);
    if (!opened->profile)
        cli_message("%s", error);
    free(symbol);
    free(n_symbols);
    free(aside);
    return opened->profile != NULL;
}

/* The next of "0,2"; false: what is there is no rank. */
static bool ranks_next(const char **text, uint32_t *rank)
{
    char number[16];
    const size_t n = strcspn(*text, ",");
    if (n >= sizeof number)
        return false;
    memcpy(number, *text, n);
    number[n] = '\0';
    *text += n + ((*text)[n] != '\0');
    return ranks_number(number, rank);
}

/* The place of the file of a rank; n: there is none. */
static size_t ranks_place(const uint32_t *rank, const bool *ranked, size_t n, uint32_t wanted)
{
    size_t i = 0;
    while (i < n && (!ranked[i] || rank[i] != wanted))
        i++;
    return i;
}

static void ranks_refuse(const uint32_t *rank, const bool *ranked, size_t n, uint32_t wanted)
{
    uint32_t least = UINT32_MAX, most = 0;
    size_t known = 0;
    for (size_t i = 0; i < n; i++) {
        if (!ranked[i])
            continue;
        known++;
        least = rank[i] < least ? rank[i] : least;
        most = rank[i] > most ? rank[i] : most;
    }
    if (known > 0)
        cli_message("--rank: there is no profile of rank %u; there are %zu, of ranks %u to %u",
                    wanted, known, least, most);
    else
        cli_message("--rank: there is no profile of rank %u", wanted);
}

static bool ranks_mark(const char *list, const uint32_t *rank, const bool *ranked, size_t n,
                       bool *take)
{
    uint32_t wanted;
    const char *text = list;
    do {
        if (!ranks_next(&text, &wanted)) {
            cli_message("--rank: '%s' is not ranks separated by commas, as in 0,2", list);
            return false;
        }
        const size_t at = ranks_place(rank, ranked, n, wanted);
        if (at == n) {
            ranks_refuse(rank, ranked, n, wanted);
            return false;
        }
        take[at] = true;
    } while (*text);
    return true;
}

char **cli_ranks_choose(const struct cli_args *args, char *const *path, size_t *n)
{
    char error[4096];
    bool *take = base_calloc(*n + 1, sizeof *take), *ranked = base_calloc(*n + 1, sizeof *ranked);
    uint32_t *rank = base_calloc(*n + 1, sizeof *rank);
    for (size_t i = 0; i < *n; i++) {
        struct read_profile *header =
            args->rank ? read_profile_header(path[i], error, sizeof error) : NULL;
        take[i] = !args->rank;
        ranked[i] = header && header->ranked;
        rank[i] = header ? header->rank : 0;
        read_profile_free(header);
    }
    const bool ok = !args->rank || ranks_mark(args->rank, rank, ranked, *n, take);
    char **chosen = ok ? base_calloc(*n + 1, sizeof *chosen) : NULL;
    size_t n_chosen = 0;
    for (size_t i = 0; i < *n && ok; i++)
        if (take[i])
            chosen[n_chosen++] = path[i];
    *n = n_chosen;
    free(take);
    free(ranked);
    free(rank);
    return chosen;
}

bool cli_ranks_chosen(const struct cli_args *args, const struct read_profile *profile)
{
    bool take;
    if (args->rank && !profile->ranked)
        cli_message("--rank: %s is not apart by ranks", profile->path);
    return !args->rank ||
           (profile->ranked && ranks_mark(args->rank, &profile->rank, &profile->ranked, 1, &take));
}

static bool ranks_join(struct cli_profile *opened, const char *name, struct read_profile **part,
                       size_t n, bool all)
{
    qsort(part, n, sizeof(struct read_profile *), ranks_compare);
    if (!ranks_check_order((const struct read_profile *const *)part, n, all))
        return false;
    if (n == 1 && !all) {
        opened->profile = part[0];
        part[0] = NULL;
        return true;
    }
    if (!ranks_sum(opened, name, part, n))
        return false;
    opened->part = base_calloc(n + 1, sizeof *opened->part);
    opened->n_parts = n;
    for (size_t i = 0; i < n; i++) {
        opened->part[i].profile = part[i];
        part[i] = NULL;
    }
    return true;
}

bool cli_ranks_read(struct cli_profile *opened, const struct cli_args *args, const char *name,
                    char *const *path, size_t n)
{
    char error[4096];
    char **chosen = cli_ranks_choose(args, path, &n);
    bool ok = chosen != NULL;
    struct read_profile **part = base_calloc(n + 1, sizeof(struct read_profile *));
    for (size_t i = 0; i < n && ok; i++) {
        part[i] = read_profile(chosen[i], error, sizeof error);
        ok = part[i] != NULL;
        if (!ok)
            cli_message("%s", error);
    }
    ok = ok && n > 0 && ranks_join(opened, name, part, n, !args->rank);
    for (size_t i = 0; i < n; i++)
        read_profile_free(part[i]);
    free(part);
    free(chosen);
    return ok;
}

/* ---- profiles that a sum keeps ----
 *
 * They are put into one file without a name, because their events are read from there once more. */

struct ranks_kept {
    int fd;
    uint64_t *at; /* [n + 1] where each begins; that of the next is its end */
    size_t n, begun;
    int error; /* an errno; 0: all is well */
};

/* Pieces come in the order of the ranks, those of one rank one behind the other. */
static void kept_take(void *payload, uint32_t place, const uint8_t *data, size_t n)
{
    struct ranks_kept *kept = payload;
    if (place >= kept->n || place + (size_t)1 < kept->begun)
        return;
    while (kept->begun <= place) {
        kept->begun++;
        kept->at[kept->begun] = kept->at[kept->begun - 1];
    }
    for (size_t done = 0; done < n && kept->error == 0;) {
        const ssize_t wrote = write(kept->fd, data + done, n - done);
        if (wrote >= 0)
            done += (size_t)wrote;
        else if (errno != EINTR)
            kept->error = errno;
    }
    kept->at[place + 1] += n;
}

static void kept_open(struct ranks_kept *kept)
{
    char *aside = ranks_aside(&kept->fd);
    kept->error = kept->fd < 0 ? errno : 0;
    if (kept->fd >= 0)
        unlink(aside);
    free(aside);
}

bool cli_ranks_unpack(struct cli_profile *opened)
{
    const struct read_profile *sum = opened->profile;
    if (opened->n_parts > 0 || sum->n_parts == 0)
        return true;
    char error[4096] = "";
    struct ranks_kept kept = {.at = base_calloc(sum->n_parts + 1, sizeof *kept.at),
                              .n = sum->n_parts};
    kept_open(&kept);
    if (kept.error == 0)
        read_profile_free(
            read_profile_parts(read_profile_stored(sum), kept_take, &kept, error, sizeof error));
    opened->part = base_calloc(kept.n, sizeof *opened->part);
    opened->n_parts = kept.n;
    opened->kept = kept.fd > 0 ? kept.fd : 0;
    bool ok = kept.error == 0 && !*error && kept.begun == kept.n;
    for (size_t i = 0; i < kept.n && ok; i++) {
        opened->part[i].profile =
            ranks_read_open(read_range_name(kept.fd, kept.at[i], kept.at[i + 1] - kept.at[i]),
                            sum->path, error, sizeof error);
        ok = opened->part[i].profile && opened->part[i].profile->ranked;
    }
    if (!ok)
        cli_message("%s: the profiles of its ranks: %s", sum->path,
                    kept.error ? strerror(kept.error)
                    : *error   ? error
                               : "they are none");
    free(kept.at);
    return ok;
}

/* Of profiles that were read: those that `list` asks for come first; how many, or 0 and it has said
 * why not. */
static size_t kept_choose(const char *list, struct cli_profile *part, size_t n)
{
    bool *take = base_calloc(n + 1, sizeof *take), *ranked = base_calloc(n + 1, sizeof *ranked);
    uint32_t *rank = base_calloc(n + 1, sizeof *rank);
    for (size_t i = 0; i < n; i++) {
        ranked[i] = true;
        rank[i] = part[i].profile->rank;
    }
    size_t chosen = 0;
    const bool ok = ranks_mark(list, rank, ranked, n, take);
    for (size_t i = 0; i < n && ok; i++)
        if (take[i]) {
            const struct cli_profile other = part[chosen];
            part[chosen++] = part[i];
            part[i] = other;
        }
    free(take);
    free(ranked);
    free(rank);
    return chosen;
}

bool cli_ranks_kept(struct cli_profile *opened, const struct cli_args *args)
{
    struct cli_profile sum = *opened;
    const bool ok = cli_ranks_unpack(&sum);
    const size_t n = ok ? kept_choose(args->rank, sum.part, sum.n_parts) : 0;
    struct read_profile **part = base_calloc(n + 1, sizeof(struct read_profile *));
    *opened = (struct cli_profile){0};
    for (size_t i = 0; i < n; i++)
        part[i] = sum.part[i].profile;
    if (n == 1) {
        *opened = sum.part[0];
        sum.part[0] = (struct cli_profile){0};
        opened->kept = sum.kept;
        sum.kept = 0;
    } else if (n > 1 && ranks_sum(opened, sum.profile->path, part, n)) {
        opened->part = base_calloc(n, sizeof *opened->part);
        opened->n_parts = n;
        for (size_t i = 0; i < n; i++) {
            opened->part[i] = sum.part[i];
            sum.part[i] = (struct cli_profile){0};
        }
        opened->kept = sum.kept;
        sum.kept = 0;
    }
    free(part);
    cli_close(&sum);
    return opened->profile != NULL;
}

int cli_ranks_apart(const char *command, struct cli_profile *opened, const struct cli_args *args)
{
    if (opened->n_parts > 0 || opened->profile->n_parts > 0)
        return cli_open_apart(opened, args);
    cli_message(
        "%s: %s is not the profiles of several ranks, but one: there is nothing to lay side "
        "by side",
        command, opened->profile->path);
    return CLI_BAD_PROFILE;
}

void cli_ranks_tell_clocks(const struct cli_profile *opened)
{
    size_t n = 0;
    for (size_t i = 0; opened->ranks && i < opened->ranks->n; i++) {
        const struct read_profile *profile = opened->part[i].profile;
        n += !opened->ranks->rank[i].offset.known &&
             (profile->n_messages > 0 || profile->n_events > 0);
    }
    if (n > 0)
        cli_message(
            "%s: clocks of %zu of %zu ranks have not met rank 0's: they are laid together by the "
            "systems' clocks",
            opened->profile->path, n, opened->ranks->n);
}
