/* real.h: the problems of problems/ once more, in C over ad_real, and their gradients by a tape.
 *
 * Invariant: an objective here computes what the one there does, term by term; a statement may
 * have several terms of a sum.
 */
#ifndef REAL_H
#define REAL_H

#include "problem.h"

#include <tapescope/ad.h>
#include <tapescope/ad_real.h>

/* An objective: as problem_kind's value, with room for so many numbers in between. */
struct real_objective {
    size_t (*room)(const struct problem *problem);
    void (*value)(const struct problem *problem, const ad_real *x, ad_real *work, ad_real *y);
};

extern const struct real_objective real_gmm, real_gmm_loop, real_gmm_fused_loops, real_lstm,
    real_hand, real_lorenz, real_burgers, real_mulchain, real_heston, real_heat,
    real_heat_fused_loops, real_bodies;

/* Bundle adjustment: the residuals of one observation by a camera, a point and a weight (x [15]):
 * two of the observation and that of the weight (y [3]). */
void real_bundle_residuals(const ad_real *x, const double *feature, ad_real *y);

/* Rosenbrock's function of a chain of n numbers, as statements and as steps of a program. */
ad_real real_rosenbrock(int n, const ad_real *x), real_rosenbrock_steps(int n, const ad_real *x);

/* What is measured: a case of problem_cases, and how it is recorded. */
struct real_case {
    const char *name, *problem;
    const struct real_objective *objective; /* NULL: bundle adjustment, a tape an observation */
    double
        codipack_bytes; /* of CoDiPack 3.1's tape, measured once, since no package has it; or 0 */
};

/* All of them, ended by one without a name. */
extern const struct real_case real_cases[];

/* A problem with a tape. */
struct real {
    const struct problem *problem;
    const struct real_objective *objective;
    ad_tape tape;
    ad_real *x, *work;
    double *gradient;         /* n_gradient numbers, by the last step */
    double value;             /* of the last step, if there is one output */
    double record;            /* ns of the last step, if it was clocked */
    double bytes, statements; /* on the tape when it had been recorded; of one observation */
};

/* Opens it, with a tape of these options. The problem must outlive it. False, having said why on
 * standard error, leaves nothing open. */
bool real_open(struct real *real, const struct problem *problem,
               const struct real_objective *objective, const ad_tape_options *options);
void real_close(struct real *real);

/* Records, sweeps, reads the gradient and resets. now: a clock in ns, or NULL: not clocked. False,
 * having said why on standard error, if something failed. */
bool real_step(struct real *real, double (*now)(void));

#endif
