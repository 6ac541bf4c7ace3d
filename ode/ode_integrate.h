/* ode_integrate.h: the integration forward, and the adjoint's back, by CVODES.
 *
 * Everything that CVODES has exists during one call, so nothing of it is on the tape and nothing is
 * left behind.
 */
#ifndef ODE_INTEGRATE_H
#define ODE_INTEGRATE_H

#include <tapescope/ad_ode.h>

/* What an op keeps: its own bytes begin as this. */
struct ode_head {
    ad_ode_function *f;
    ad_tape tape;
    double relative, absolute, adjoint_relative, adjoint_absolute;
    int64_t most, interval;
    int64_t steps; /* that the integration forward took */
    int32_t stiff;
    int32_t each; /* the last operand is the absolute tolerances */
};

/* y at all times. report: NULL if nobody asks. Functions of a rule (ad_custom.h). */
ad_status ode_forward(ad_custom_call *c, void *payload, ad_ode_report *report);
ad_status ode_backward(ad_custom_call *c, void *payload);

#endif
