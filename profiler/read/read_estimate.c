/* read_estimate.c: how long statements were swept, by line.
 *
 * A sweep of a run of statements has one exact time. The tape divides it among the run's lines by
 * their bytes, which is a model: a line whose adjoints miss the cache takes longer. Looks at what
 * is being swept (tape_hook.watch) correct it. A line that the model gives m ticks of G is expected
 * in e = N m / G of N looks and was found in n: its time is m (n + k) / (e + k), scaled so that all
 * add up to G. That is the mean of a line's true factor, if factors are distributed about 1 as a
 * gamma distribution of shape k says (Gelman et al., Bayesian Data Analysis, section 2.6): few
 * looks leave the model as it is, many replace it.
 */
#include "read_state.h"

#include <stdlib.h>

static double estimate_corrected(const struct read_row *row, double looks_per_tick)
{
    const double model = (double)row->estimated_backward_ticks;
    return read_corrected(model, (double)row->backward_looks, model * looks_per_tick);
}

void read_estimate(const struct read_profile *profile, struct read_tape *tape)
{
    uint64_t all = 0, looks = 0;
    double sum = 0, before = 0;
    for (size_t i = 0; i < tape->n_rows; i++) {
        all += tape->row[i].estimated_backward_ticks;
        looks += tape->row[i].backward_looks;
    }
    if (looks == 0 || all == 0 || profile->runs > 1) /* a sum is of rows that are corrected */
        return;
    const double looks_per_tick = (double)looks / (double)all;
    for (size_t i = 0; i < tape->n_rows; i++)
        sum += estimate_corrected(&tape->row[i], looks_per_tick);
    /* Rounded as sums from the first row on, so that no tick is lost. */
    uint64_t given = 0;
    for (size_t i = 0; i < tape->n_rows; i++) {
        struct read_row *row = &tape->row[i];
        if (row->estimated_backward_ticks == 0)
            continue;
        before += estimate_corrected(row, looks_per_tick);
        const double part = before / sum;
        uint64_t to = part < 1 ? (uint64_t)(part * (double)all) : all;
        to = to > given ? to : given;
        const uint64_t exact = row->backward_ticks > row->estimated_backward_ticks
                                   ? row->backward_ticks - row->estimated_backward_ticks
                                   : 0;
        row->estimated_backward_ticks = to - given;
        row->backward_ticks = exact + row->estimated_backward_ticks;
        given = to;
    }
}
