/* ad_check.h: the parts of ad_check_gradient: its vector, the check of one record. */
#ifndef AD_CHECK_H
#define AD_CHECK_H

#include "ad_internal.h"
#include "ad_scratch.h"

/* The vector by which results of more than one element are multiplied; 1 for a single one. */
void ad_check_vector(double *u, int64_t n);

/* The points x - h and x + h of a central difference. */
struct ad_check_step {
    double below, above;
};
struct ad_check_step ad_check_step(double x);

/* What a difference is made of: the slopes of its halves, which tell a kink between them. */
struct ad_check_slope {
    double below, above; /* from x - h to x, from x to x + h */
};

/* " (0 from below, 1 from above: a kink …)" where that explains why `swept` is not what was
 * measured, as it lies between the two; else "". */
const char *ad_check_kink(struct ad_check_slope slope, double swept, double tolerance, char *buf,
                          size_t n);

/* A number as it is printed: NaN without a sign, which would differ between machines. */
double ad_check_shown(double x);

/* |swept - measured| / (1 + |measured|); inf for NaN. */
double ad_check_difference(double swept, double measured);

/* ad_check_gradient; what: begins the message of a disagreement. report: not NULL. */
ad_status ad_check_run(ad_tape tape, ad_function *function, int n, const ad_tensor *x,
                       double tolerance, void *payload, ad_gradient_report *report,
                       const char *what, struct tape_site site);

/* How a record disagrees. */
struct ad_check_fault {
    bool changed; /* its operands no longer give its result; else its pullback is wrong */
    int operand;  /* from 1 */
    int64_t element;
    double swept, measured;
    struct ad_check_slope slope;
};

/* Compares the pullback of a record, run as it stands on the tape, with differences of its op.
 * Returns 1 with *fault if it disagrees, 0 if it does not or holds an array other than f64 and
 * i64, -1 if the tape's error is set or memory ran out. No sweep may be under way; adjoints of
 * leaves that need a gradient are overwritten. */
int ad_check_record(struct tape *t, struct tape_record *r, double tolerance,
                    struct ad_check_fault *fault);

#endif
