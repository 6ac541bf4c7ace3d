/* common_scalar.c: steps timed in processes of their own.
 *
 * Invariant: the process that asks takes no step itself.
 */
#include "common_scalar.h"

#include "common_forked.h"
#include "common_rounds.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_UP = 2, MAX_STEPS = 1 << 16, CLOCKED_SHARE = 4 };

struct measurement {
    const struct scalar_way *way;
    double seconds;
};

static bool cold(void *context, double *figures)
{
    const struct measurement *m = context;
    struct scalar_step step = {NAN, NAN, NAN, NAN};
    const double start = rounds_now();
    if (!m->way->step(m->way->context, false, &step))
        return false;
    figures[0] = rounds_now() - start;
    figures[1] = step.record;
    return true;
}

/* Of four steps one reads clocks within, and the others give the total. */
static bool warm(void *context, double *figures)
{
    static double total[MAX_STEPS], record[MAX_STEPS];
    const struct measurement *m = context;
    struct scalar_step step = {NAN, NAN, NAN, NAN};
    size_t n_total = 0, n_record = 0;
    for (int i = 0; i < WARM_UP; ++i)
        if (!m->way->step(m->way->context, false, &step))
            return false;
    double now = rounds_now();
    const double end = now + 1e9 * m->seconds;
    for (size_t i = 0; now < end || i < CLOCKED_SHARE; ++i) {
        const bool clocked = i % CLOCKED_SHARE == 1;
        const double start = now;
        step.record = step.reverse = NAN;
        if (!m->way->step(m->way->context, clocked, &step))
            return false;
        now = rounds_now();
        if (!clocked && n_total < MAX_STEPS)
            total[n_total++] = now - start;
        if (!isnan(step.record) && n_record < MAX_STEPS)
            record[n_record++] = step.record;
    }
    figures[SCALAR_TOTAL_WARM] = rounds_median(total, n_total);
    figures[SCALAR_RECORD_WARM] = rounds_median(record, n_record);
    figures[SCALAR_REVERSE_WARM] = figures[SCALAR_TOTAL_WARM] - figures[SCALAR_RECORD_WARM];
    figures[SCALAR_TAPE_BYTES] = step.bytes;
    figures[SCALAR_STATEMENTS] = step.statements;
    return true;
}

bool scalar_measure(const struct scalar_way *way, double seconds, double *figures)
{
    struct measurement m = {way, seconds};
    double first[2];
    if (!forked(cold, &m, 2, first) || !forked(warm, &m, SCALAR_FIGURES, figures))
        return false;
    figures[SCALAR_TOTAL_COLD] = first[0];
    figures[SCALAR_RECORD_COLD] = first[1];
    return true;
}

bool scalar_answer(const char *answer, double *result, double *bytes)
{
    if (!answer || strncmp(answer, "ok", 2) != 0)
        return false;
    const char *at = answer + 2;
    for (int m = 0; m < SCALAR_FIGURES; ++m) {
        char *end;
        const double figure = strtod(at, &end);
        if (end == at)
            return false;
        at = end;
        if (m < SCALAR_TIMES)
            result[m] = figure;
        if (m == SCALAR_TAPE_BYTES)
            *bytes = figure;
    }
    return true;
}
