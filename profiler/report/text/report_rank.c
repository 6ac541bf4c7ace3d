/* report_rank.c: see report_rank.h. */
#include "report_rank.h"

#include "base_memory.h"

#include <math.h>
#include <stdlib.h>

bool report_ranking_has_phase(const struct report_style *style, enum report_phase phase)
{
    return style->phases == 0 || (style->phases & phase);
}

uint64_t report_ranking_time(const struct analyze_cost *cost, const struct report_style *style)
{
    uint64_t ns = style->phases == 0 ? cost->other_ns : 0;
#define ROW(X, NAME, name, ...)                                                                    \
    ns += report_ranking_has_phase(style, REPORT_##NAME) ? cost->name##_ns : 0;
    PHASE_LIST(ROW, )
#undef ROW
    return ns;
}

bool report_ranking_is_time(enum report_sort sort)
{
    return sort == REPORT_SORT_TOTAL || sort == REPORT_SORT_FORWARD ||
           sort == REPORT_SORT_BACKWARD || sort == REPORT_SORT_RATIO;
}

bool report_ranking_knows(const struct read_profile *profile, enum report_sort sort)
{
    if (sort == REPORT_SORT_LIFETIME)
        return !profile->without_times && !profile->is_sampled;
    return report_ranking_is_time(sort) ? !profile->without_times : read_profile_has_bytes(profile);
}

enum report_sort report_ranking_known(const struct read_profile *profile, enum report_sort sort)
{
    if (report_ranking_knows(profile, sort))
        return sort;
    return read_profile_has_bytes(profile) ? REPORT_SORT_TAPE : REPORT_SORT_TOTAL;
}

uint64_t report_ranking_key(const struct analyze_cost *cost, enum report_sort sort,
                            const struct report_style *style)
{
    switch (sort) {
    case REPORT_SORT_FORWARD:
        return cost->forward_ns;
    case REPORT_SORT_BACKWARD:
        return cost->backward_ns;
    case REPORT_SORT_TAPE:
        return analyze_cost_tape_bytes(cost);
    case REPORT_SORT_PEAK:
        return cost->peak_bytes;
    case REPORT_SORT_CALLS:
        return cost->calls;
    case REPORT_SORT_LIFETIME:
        return read_whole(cost->byte_ns / 1e3);
    case REPORT_SORT_TOTAL:
    case REPORT_SORT_RATIO:
        break;
    }
    return report_ranking_time(cost, style);
}

bool report_ranking_is_estimate(const struct analyze_cost *cost, enum report_sort sort,
                                const struct report_style *style)
{
    const bool total = sort == REPORT_SORT_TOTAL;
    return (cost->estimated_forward_ns > 0 &&
            (sort == REPORT_SORT_FORWARD ||
             (total && report_ranking_has_phase(style, REPORT_FORWARD)))) ||
           (cost->estimated_backward_ns > 0 &&
            (sort == REPORT_SORT_BACKWARD ||
             (total && report_ranking_has_phase(style, REPORT_BACKWARD))));
}

bool report_ranking_is_known(const struct analyze_cost *cost, enum report_sort sort)
{
    return sort != REPORT_SORT_FORWARD || !analyze_cost_is_untimed(cost);
}

char *report_ranking_share(char buf[REPORT_UNITS_ROOM], const struct analyze_cost *part,
                           const struct analyze_cost *whole, enum report_sort sort,
                           const struct report_style *style)
{
    if (sort == REPORT_SORT_LIFETIME)
        return report_units_part(buf, part->byte_ns, whole->byte_ns);
    return report_units_share(buf, report_ranking_key(part, sort, style),
                              report_ranking_key(whole, sort, style));
}

/* What is swept alone, such as a seed, has no ratio and comes last; before it what takes less than
 * 1 % of all time, since nobody would want it faster. */
static double ratio_order(const struct analyze_cost *cost, const struct analyze_cost *total)
{
    uint64_t time = cost->forward_ns + cost->backward_ns;
    uint64_t all = total->forward_ns + total->backward_ns;
    double ratio = cost->forward_ns > 0 ? (double)cost->backward_ns / (double)cost->forward_ns : -1;
    return ratio < 0 ? -1 : time >= all / 100 ? 1 + ratio : ratio / (1 + ratio);
}

static int rank_compare_ranked(const void *x, const void *y)
{
    const struct report_ranked *a = x, *b = y;
    if (a->order != b->order)
        return a->order > b->order ? -1 : 1;
    if (a->key != b->key)
        return a->key > b->key ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

void report_ranking_make(struct report_ranking *ranking, const struct analyze_result *analysis,
                         enum analyze_by by, enum report_sort sort, size_t limit,
                         const struct report_style *style)
{
    *ranking = (struct report_ranking){.total = analyze_total(analysis)};
    ranking->line = analyze_group(analysis, by, &ranking->n);
    ranking->row = base_calloc(ranking->n + 1, sizeof *ranking->row);
    for (size_t i = 0; i < ranking->n; i++) {
        const struct analyze_cost *cost = &ranking->line[i].cost;
        uint64_t key = report_ranking_key(cost, sort, style);
        ranking->row[i] = (struct report_ranked){
            .line = &ranking->line[i],
            .key = key,
            .order = sort == REPORT_SORT_RATIO      ? ratio_order(cost, &ranking->total)
                     : sort == REPORT_SORT_LIFETIME ? cost->byte_ns
                                                    : 0,
        };
    }
    qsort(ranking->row, ranking->n, sizeof *ranking->row, rank_compare_ranked);
    ranking->shown = limit > 0 && limit < ranking->n ? limit : ranking->n;
}

void report_ranking_free(struct report_ranking *ranking)
{
    free(ranking->row);
    free(ranking->line);
    *ranking = (struct report_ranking){0};
}

const char *report_ranking_noun(enum analyze_by by)
{
#define X(NAME, word, where) word,
    static const char *const noun[] = {ANALYZE_VIEWS(X)};
#undef X
    return noun[by];
}
