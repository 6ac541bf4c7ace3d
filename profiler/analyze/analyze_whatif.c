/* analyze_whatif.c: a tape's peak if some saved values were computed again instead.
 *
 * The changes of the stretch with the peak are replayed without the bytes of the chosen lines.
 * While a sweep runs, the largest value of theirs that would be live counts in full: it is what is
 * made again at that time.
 */
#include "analyze_space.h"

#include "analyze_merge.h"
#include "analyze_places.h"
#include "base_memory.h"

#include <math.h>
#include <stdlib.h>

/* As many steps of a replay are worth it to try all choices. */
static const double MOST_STEPS = 2e8;
enum { MOST_TRIED = 20 };

/* ---- the replay ---- */

static uint64_t whatif_smaller(uint64_t a, int64_t b)
{
    return b <= 0 ? 0 : a < (uint64_t)b ? a : (uint64_t)b;
}

/* Live bytes with what is left out, change by change. */
struct replay {
    const struct analyze_whatif *whatif;
    int64_t *live; /* [residuals], of those that are left out */
    int64_t total, without;
    uint64_t again; /* the largest value that is made again, while a sweep runs */
};

static bool is_out(const struct analyze_whatif *whatif, uint32_t residual)
{
    const uint32_t option = whatif->of[residual];
    return option > 0 && whatif->option[option - 1].chosen;
}

/* Of a class with so many live bytes: what is never read is never made again. */
static uint64_t again_of(const struct read_residual *r, int64_t live)
{
    return r->read_bytes > 0 ? whatif_smaller(r->largest_bytes, live) : 0;
}

static uint64_t largest_again(const struct replay *replay)
{
    const struct analyze_whatif *whatif = replay->whatif;
    uint64_t most = 0;
    for (size_t k = 0; k < whatif->n; k++)
        for (uint32_t i = whatif->option[k].chosen ? whatif->first[k] : 0; i > 0;
             i = whatif->next[i - 1]) {
            const uint64_t n = again_of(&whatif->tape->residual[i - 1], replay->live[i - 1]);
            most = n > most ? n : most;
        }
    return most;
}

static void whatif_apply(struct replay *replay, const struct read_change *change)
{
    replay->total += change->delta;
    if (!is_out(replay->whatif, change->residual))
        return;
    const struct read_residual *r = &replay->whatif->tape->residual[change->residual];
    int64_t *live = &replay->live[change->residual];
    const uint64_t before = again_of(r, *live);
    replay->without += change->delta;
    *live += change->delta;
    const uint64_t now = again_of(r, *live);
    if (now >= replay->again)
        replay->again = now;
    else if (before == replay->again)
        replay->again = largest_again(replay);
}

uint64_t analyze_whatif_peak(const struct analyze_whatif *whatif)
{
    const struct read_tape *tape = whatif->tape;
    struct replay replay = {.whatif = whatif};
    replay.live = base_calloc(tape->n_residuals + 1, sizeof *replay.live);
    int64_t peak = 0;
    for (size_t i = 0; i < tape->n_changes; i++) {
        const struct read_change *change = &tape->change[i];
        whatif_apply(&replay, change);
        if (!change->ends)
            continue;
        const uint64_t now = (uint64_t)replay.total - (uint64_t)replay.without +
                             (change->backward ? replay.again : 0);
        peak = (int64_t)now > peak ? (int64_t)now : peak;
    }
    free(replay.live);
    return (uint64_t)peak;
}

uint64_t analyze_whatif_cost(const struct analyze_whatif *whatif)
{
    uint64_t cost = 0;
    for (size_t i = 0; i < whatif->n; i++)
        cost += whatif->option[i].chosen ? whatif->option[i].cost_ns : 0;
    return cost;
}

static uint64_t peak_of_one(struct analyze_whatif *whatif, size_t i)
{
    const bool before = whatif->option[i].chosen;
    whatif->option[i].chosen = true;
    const uint64_t peak = analyze_whatif_peak(whatif);
    whatif->option[i].chosen = before;
    return peak;
}

/* ---- the options ---- */

/* Saved values of a row that some pullback reads, as a number of them. */
static double count_again(const struct read_residual *r)
{
    return r->bytes > 0 ? (double)r->count * ((double)r->read_bytes / (double)r->bytes) : 0;
}

/* Part of the row's forward time: of its calls, those whose values are made again. */
static uint64_t cost_of_row(const struct analyze_result *analysis, const struct read_row *row,
                            double count)
{
    if (row->calls == 0)
        return 0;
    const double part = count < (double)row->calls ? count / (double)row->calls : 1;
    const uint64_t forward_ns = read_profile_ns(analysis->profile, row->forward_ticks);
    return read_whole((double)forward_ns * part);
}

/* A row of the tape that saves something. */
struct saver {
    struct analyze_option option;
    uint32_t row; /* plus 1 */
    enum analyze_by by;
};

static int compare_savers(const void *x, const void *y)
{
    const struct saver *a = x, *b = y;
    const int order = analyze_compare(&a->option.line, &b->option.line, a->by);
    return order ? order : a->row < b->row ? -1 : a->row > b->row;
}

/* What lies in the tape's file and has a reader was saved. */
static bool is_saved(const struct read_residual *r)
{
    return r->kind == READ_SAVED || (r->kind == READ_DISK && r->consumer > 0);
}

/* The rows that save values and are kept. Returns how many; saver[n_rows]. */
static size_t find_savers(struct saver *saver, struct analyze_whatif *whatif,
                          const struct analyze_result *analysis, enum analyze_by by)
{
    const struct read_tape *tape = whatif->tape;
    double *again = base_calloc(tape->n_rows + 1, sizeof *again);
    uint64_t *at_peak = base_calloc(tape->n_rows + 1, sizeof *at_peak);
    bool *saves = base_calloc(tape->n_rows + 1, sizeof *saves);
    size_t n = 0;
    for (size_t i = 0; i < tape->n_residuals; i++) {
        const struct read_residual *r = &tape->residual[i];
        if (!is_saved(r) || r->producer == 0 || tape->row[r->producer - 1].pc == 0)
            continue;
        saves[r->producer - 1] = true;
        again[r->producer - 1] += count_again(r);
        at_peak[r->producer - 1] += r->peak_bytes;
    }
    for (size_t i = 0; i < tape->n_rows; i++) {
        if (!saves[i])
            continue;
        saver[n] = (struct saver){.row = (uint32_t)i + 1, .by = by};
        analyze_line_of_row(analysis, &tape->row[i], &saver[n].option.line);
        if (!analyze_keeps(analysis, &saver[n].option.line)) {
            whatif->n_left_out++;
            continue;
        }
        saver[n].option.count = read_whole(again[i]);
        saver[n].option.cost_ns = cost_of_row(analysis, &tape->row[i], again[i]);
        saver[n].option.saved_peak = at_peak[i];
        n++;
    }
    free(again);
    free(at_peak);
    free(saves);
    return n;
}

/* Merges savers into options; of[row] becomes the option plus 1. */
static void merge_savers(struct analyze_whatif *whatif, struct saver *saver, size_t n, uint32_t *of)
{
    qsort(saver, n, sizeof *saver, compare_savers);
    for (size_t i = 0; i < n; i++) {
        const struct analyze_option *from = &saver[i].option;
        struct analyze_option *to = whatif->n > 0 ? &whatif->option[whatif->n - 1] : NULL;
        if (to && analyze_compare(&to->line, &from->line, saver[i].by) == 0) {
            analyze_names_add(&to->line.ops, &from->line.ops);
            analyze_cost_add(&to->line.cost, &from->line.cost);
            to->saved_peak += from->saved_peak;
            to->count += from->count;
            to->cost_ns += from->cost_ns;
        } else {
            whatif->option[whatif->n++] = *from; // NOLINT
        }
        of[saver[i].row - 1] = (uint32_t)whatif->n;
    }
}

static void make_options(struct analyze_whatif *whatif, const struct analyze_result *analysis,
                         enum analyze_by by)
{
    const struct read_tape *tape = whatif->tape;
    struct saver *saver = base_calloc(tape->n_rows + 1, sizeof *saver);
    uint32_t *of = base_calloc(tape->n_rows + 1, sizeof *of);
    whatif->option = base_calloc(tape->n_rows + 1, sizeof *whatif->option);
    whatif->of = base_calloc(tape->n_residuals + 1, sizeof *whatif->of);
    whatif->first = base_calloc(tape->n_rows + 1, sizeof *whatif->first);
    whatif->next = base_calloc(tape->n_residuals + 1, sizeof *whatif->next);
    merge_savers(whatif, saver, find_savers(saver, whatif, analysis, by), of);
    for (size_t i = 0; i < tape->n_residuals; i++) {
        const struct read_residual *r = &tape->residual[i];
        const uint32_t option = is_saved(r) && r->producer > 0 ? of[r->producer - 1] : 0;
        whatif->of[i] = option;
        if (option == 0)
            continue;
        whatif->next[i] = whatif->first[option - 1];
        whatif->first[option - 1] = (uint32_t)i + 1;
    }
    free(saver);
    free(of);
}

/* Each option's own peak. One that has nothing at the peak leaves it as it is. */
static void whatif_weigh(struct analyze_whatif *whatif)
{
    whatif->peak_bytes = analyze_whatif_peak(whatif);
    for (size_t i = 0; i < whatif->n; i++)
        whatif->option[i].peak_bytes =
            whatif->option[i].saved_peak > 0 ? peak_of_one(whatif, i) : whatif->peak_bytes;
}

static bool is_better(const struct analyze_option *a, const struct analyze_option *b)
{
    return a->peak_bytes <= b->peak_bytes && a->cost_ns <= b->cost_ns &&
           (a->peak_bytes < b->peak_bytes || a->cost_ns < b->cost_ns);
}

static void mark_best(struct analyze_whatif *whatif)
{
    for (size_t i = 0; i < whatif->n; i++) {
        struct analyze_option *option = &whatif->option[i];
        option->is_best = option->peak_bytes < whatif->peak_bytes;
        for (size_t j = 0; j < whatif->n && option->is_best; j++)
            option->is_best = !is_better(&whatif->option[j], option);
    }
}

int analyze_whatif_make(struct analyze_whatif *whatif, const struct analyze_result *analysis,
                        bool by_function)
{
    const struct read_profile *profile = analysis->profile;
    *whatif = (struct analyze_whatif){0};
    if (profile->n_tapes == 0)
        return 1;
    const struct read_tape *tape = &profile->tape[analyze_peak_tape(profile)];
    whatif->tape = tape;
    if (tape->n_changes == 0)
        return 1;
    whatif->merged = tape->merged;
    whatif->is_truncated = tape->stretch_is_truncated;
    whatif->run_ns = read_profile_ns(profile, tape->forward_ticks + tape->backward_ticks);
    make_options(whatif, analysis, by_function ? ANALYZE_BY_FUNCTION : ANALYZE_BY_LINE);
    whatif_weigh(whatif);
    mark_best(whatif);
    return 0;
}

void analyze_whatif_free(struct analyze_whatif *whatif)
{
    free(whatif->option);
    free(whatif->of);
    free(whatif->first);
    free(whatif->next);
    *whatif = (struct analyze_whatif){0};
}

/* ---- a budget ---- */

static void whatif_choose(struct analyze_whatif *whatif, uint64_t bits)
{
    for (size_t i = 0; i < whatif->n; i++)
        whatif->option[i].chosen = i < 64 && (bits >> i & 1);
}

/* Every choice: the cheapest that fits, or the one with the least peak. */
static int try_all(struct analyze_whatif *whatif, uint64_t budget)
{
    uint64_t best = 0, best_cost = UINT64_MAX, best_peak = UINT64_MAX;
    for (uint64_t bits = 0; bits < (uint64_t)1 << whatif->n; bits++) {
        whatif_choose(whatif, bits);
        const uint64_t peak = analyze_whatif_peak(whatif), cost = analyze_whatif_cost(whatif);
        const bool fits = peak <= budget, fitted = best_peak <= budget;
        const bool better =
            fits ? !fitted || cost < best_cost || (cost == best_cost && peak < best_peak)
                 : !fitted && (peak < best_peak || (peak == best_peak && cost < best_cost));
        if (!better)
            continue;
        best = bits;
        best_cost = cost;
        best_peak = peak;
    }
    whatif_choose(whatif, best);
    return best_peak <= budget ? 0 : 1;
}

/* Adds the option that lowers the peak most for its cost; where none does, the one that saves most
 * at the peak, since two together may. Returns the new peak; UINT64_MAX: none is left. */
static uint64_t add_one(struct analyze_whatif *whatif, uint64_t peak)
{
    size_t best = whatif->n;
    double best_gain = -1;
    uint64_t best_peak = UINT64_MAX;
    for (size_t i = 0; i < whatif->n; i++) {
        if (whatif->option[i].chosen)
            continue;
        const uint64_t now = peak_of_one(whatif, i);
        const double cost = (double)whatif->option[i].cost_ns + 1;
        const double gain = now < peak ? 1 + (double)(peak - now) / cost
                                       : 1 - 1 / (1 + (double)whatif->option[i].saved_peak / cost);
        if (gain > best_gain) {
            best = i;
            best_gain = gain;
            best_peak = now;
        }
    }
    if (best < whatif->n)
        whatif->option[best].chosen = true;
    return best_peak;
}

/* Takes back, the dearest first, what the peak does not need. */
static void drop_needless(struct analyze_whatif *whatif, uint64_t limit)
{
    uint64_t below = UINT64_MAX;
    for (size_t k = 0; k < whatif->n; k++) {
        size_t dearest = whatif->n;
        for (size_t i = 0; i < whatif->n; i++) {
            const struct analyze_option *option = &whatif->option[i];
            if (option->chosen && option->cost_ns < below &&
                (dearest == whatif->n || option->cost_ns > whatif->option[dearest].cost_ns))
                dearest = i;
        }
        if (dearest == whatif->n)
            return;
        below = whatif->option[dearest].cost_ns;
        whatif->option[dearest].chosen = false;
        const uint64_t peak = analyze_whatif_peak(whatif);
        if (peak > limit)
            whatif->option[dearest].chosen = true;
    }
}

static int be_greedy(struct analyze_whatif *whatif, uint64_t budget)
{
    whatif_choose(whatif, 0);
    uint64_t peak = whatif->peak_bytes, least = peak;
    for (size_t k = 0; k < whatif->n && peak > budget; k++) {
        peak = add_one(whatif, peak);
        least = peak < least ? peak : least;
    }
    drop_needless(whatif, peak <= budget ? budget : least);
    return peak <= budget ? 0 : 1;
}

bool analyze_whatif_tries_all(const struct analyze_whatif *whatif)
{
    return whatif->n <= MOST_TRIED &&
           ldexp((double)whatif->tape->n_changes + 1, (int)whatif->n) <= MOST_STEPS;
}

int analyze_whatif_fit(struct analyze_whatif *whatif, uint64_t budget, bool *is_optimal)
{
    whatif_choose(whatif, 0);
    *is_optimal = true;
    if (whatif->peak_bytes <= budget)
        return 0;
    *is_optimal = analyze_whatif_tries_all(whatif);
    return *is_optimal ? try_all(whatif, budget) : be_greedy(whatif, budget);
}
