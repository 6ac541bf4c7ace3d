/* ode_integrate.c: see ode_integrate.h. */
#include "ode_integrate.h"

#include "ode_system.h"

#include <cvodes/cvodes.h>
#include <nvector/nvector_serial.h>
#include <sunlinsol/sunlinsol_dense.h>
#include <sunmatrix/sunmatrix_dense.h>
#include <sunnonlinsol/sunnonlinsol_fixedpoint.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

/* LONGEST: steps that interpolation of the highest order, 12, wants. */
enum { REASON = 128, HELD_BYTES = 64 << 20, STATE_BYTES = 256, LONGEST = 13 };

struct ode_run {
    struct ode_system system;
    const struct ode_head *head;
    ad_custom_call *call;
    int64_t size, n_times;
    const double *times;
    double sign; /* CVODES' time is sign t, which grows: its adjoints are for such times alone */
    SUNContext context;
    void *cvode;
    int which; /* the problem backward */
    N_Vector y, tolerance, adjoint, derivative;
    /* [0] forward, [1] backward: Newton's method where stiff, else functional iteration */
    SUNMatrix matrix[2];
    SUNLinearSolver linear[2];
    SUNNonlinearSolver functional[2];
    char reason[REASON];
};

static double *numbers(N_Vector v)
{
    return N_VGetArrayPointer(v);
}

/* ---- what goes wrong ---- */

static void run_hears(int code, const char *module, const char *function, char *message,
                      void *payload)
{
    struct ode_run *r = payload;
    (void)module;
    (void)function;
    if (code == CV_WARNING)
        return;
    (void)snprintf(r->reason, sizeof r->reason, "%s", message);
    r->reason[strcspn(r->reason, "\n")] = 0;
}

static ad_status run_refuse(const struct ode_run *r, const char *why)
{
    (void)snprintf(r->call->message, AD_CUSTOM_MESSAGE, "%s", why);
    return AD_ERROR_VALUE;
}

/* A step of CVODES has returned this. What it does before all steps fails without memory alone. */
static ad_status run_ended(struct ode_run *r, int flag, const char *which)
{
    if (flag >= 0)
        return AD_OK;
    if (r->system.status != AD_OK)
        return r->system.status;
    if (flag == CV_MEM_FAIL)
        return AD_ERROR_MEMORY;
    char where[64] = "";
    const bool stuck =
        flag == CV_TOO_MUCH_WORK || flag == CV_CONV_FAILURE || flag == CV_ERR_FAILURE;
    if (r->system.not_finite)
        (void)snprintf(where, sizeof where, "f or its derivative was not finite at t = %g; ",
                       r->system.not_finite_at);
    (void)snprintf(r->call->message, AD_CUSTOM_MESSAGE, "%sCVODES, %s: %s%s%s", where, which,
                   r->reason[0] ? r->reason : "no reason",
                   r->sign < 0 ? " (its t is minus ours)" : "",
                   stuck && !r->head->stiff ? " (is it `stiff`?)" : "");
    return AD_ERROR_VALUE;
}

/* ---- CVODES' view of f ---- */

static int run_f(realtype t, N_Vector y, N_Vector to, void *payload)
{
    struct ode_run *r = payload;
    double *d = numbers(to);
    const int outcome = ode_system_value(&r->system, r->sign * t, numbers(y), d);
    for (int64_t i = 0; i < r->size; i++)
        d[i] *= r->sign;
    return outcome;
}

static int run_f_back(realtype t, N_Vector y, N_Vector l, N_Vector to, void *payload)
{
    struct ode_run *r = payload;
    double *d = numbers(to);
    const int outcome = ode_system_pull(&r->system, r->sign * t, numbers(y), numbers(l), d);
    for (int64_t i = 0; i < r->size; i++)
        d[i] *= -r->sign;
    return outcome;
}

static int run_x_back(realtype t, N_Vector y, N_Vector l, N_Vector to, void *payload)
{
    struct ode_run *r = payload;
    double *d = numbers(to);
    const int outcome = ode_system_pull_x(&r->system, r->sign * t, numbers(y), numbers(l), d);
    for (int64_t i = 0; i < r->system.n_derivatives; i++)
        d[i] *= -r->sign;
    return outcome;
}

/* Where a row of df/dy goes: into sign df/dy or, for the adjoint, into its negative transpose. */
struct ode_matrix {
    SUNMatrix to;
    double sign;
    bool back;
};

static void put_row(void *matrix, int64_t row, int64_t size, const double *of)
{
    const struct ode_matrix *m = matrix;
    for (int64_t j = 0; j < size; j++) {
        if (m->back)
            SM_ELEMENT_D(m->to, j, row) = -m->sign * of[j];
        else
            SM_ELEMENT_D(m->to, row, j) = m->sign * of[j];
    }
}

static int run_jacobian(realtype t, N_Vector y, N_Vector f, SUNMatrix to, void *payload, N_Vector a,
                        N_Vector b, N_Vector c)
{
    struct ode_run *r = payload;
    (void)f;
    (void)a;
    (void)b;
    (void)c;
    struct ode_matrix m = {to, r->sign, false};
    return ode_system_jacobian(&r->system, r->sign * t, numbers(y), put_row, &m);
}

static int run_jacobian_back(realtype t, N_Vector y, N_Vector l, N_Vector f, SUNMatrix to,
                             void *payload, N_Vector a, N_Vector b, N_Vector c)
{
    struct ode_run *r = payload;
    (void)l;
    (void)f;
    (void)a;
    (void)b;
    (void)c;
    struct ode_matrix m = {to, r->sign, true};
    return ode_system_jacobian(&r->system, r->sign * t, numbers(y), put_row, &m);
}

/* ---- begin and end ---- */

static void run_end(struct ode_run *r)
{
    if (r->cvode)
        CVodeFree(&r->cvode);
    for (int i = 0; i < 2; i++) {
        if (r->functional[i])
            SUNNonlinSolFree(r->functional[i]);
        if (r->linear[i])
            SUNLinSolFree(r->linear[i]);
        if (r->matrix[i])
            SUNMatDestroy(r->matrix[i]);
    }
    N_Vector vector[] = {r->y, r->tolerance, r->adjoint, r->derivative};
    for (size_t i = 0; i < sizeof vector / sizeof *vector; i++)
        if (vector[i])
            N_VDestroy(vector[i]);
    if (r->context)
        (void)SUNContext_Free(&r->context);
    ode_system_end(&r->system);
}

/* What solves the equations of an implicit step. */
static bool run_make_solver(struct ode_run *r, int back)
{
    if (!r->head->stiff)
        return (r->functional[back] = SUNNonlinSol_FixedPoint(r->y, 0, r->context)) != NULL;
    r->matrix[back] = SUNDenseMatrix(r->size, r->size, r->context);
    return r->matrix[back] &&
           (r->linear[back] = SUNLinSol_Dense(r->y, r->matrix[back], r->context)) != NULL;
}

static bool run_init(struct ode_run *r)
{
    const struct ode_head *head = r->head;
    void *m = r->cvode;
    if (CVodeSetErrHandlerFn(m, run_hears, r) != CV_SUCCESS ||
        CVodeInit(m, run_f, r->sign * r->times[0], r->y) != CV_SUCCESS ||
        CVodeSetUserData(m, r) != CV_SUCCESS ||
        CVodeSetMaxNumSteps(m, (long)head->most) != CV_SUCCESS)
        return false;
    if ((head->each ? CVodeSVtolerances(m, head->relative, r->tolerance)
                    : CVodeSStolerances(m, head->relative, head->absolute)) != CV_SUCCESS)
        return false;
    if (!head->stiff)
        return CVodeSetNonlinearSolver(m, r->functional[0]) == CV_SUCCESS;
    return CVodeSetLinearSolver(m, r->linear[0], r->matrix[0]) == CV_SUCCESS &&
           CVodeSetJacFn(m, run_jacobian) == CV_SUCCESS;
}

static ad_status run_begin(struct ode_run *r, ad_custom_call *c, void *payload)
{
    const struct ode_head *head = c->own;
    *r = (struct ode_run){.head = head,
                          .call = c,
                          .size = c->in[0].size,
                          .n_times = c->in[1].size,
                          .times = c->in[1].data,
                          .sign = 1,
                          .system = {.f = head->f, .payload = payload, .message = c->message}};
    if (r->n_times > 1 && r->times[1] < r->times[0])
        r->sign = -1;
    const ad_status status =
        ode_system_begin(&r->system, head->tape, &c->in[0], c->n_in - 2 - head->each, c->in + 2,
                         c->in_adjoint ? c->in_adjoint + 2 : NULL);
    if (status != AD_OK)
        return status;
    if (SUNContext_Create(NULL, &r->context) != 0 || !(r->y = N_VNew_Serial(r->size, r->context)))
        return AD_ERROR_MEMORY;
    memcpy(numbers(r->y), c->in[0].data, (size_t)r->size * sizeof(double));
    if (head->each) {
        if (!(r->tolerance = N_VNew_Serial(r->size, r->context)))
            return AD_ERROR_MEMORY;
        memcpy(numbers(r->tolerance), c->in[c->n_in - 1].data, (size_t)r->size * sizeof(double));
    }
    r->cvode = CVodeCreate(head->stiff ? CV_BDF : CV_ADAMS, r->context);
    return r->cvode && run_make_solver(r, 0) && run_init(r) ? AD_OK : AD_ERROR_MEMORY;
}

/* ---- forward ---- */

/* What CVODES would take, and never come to an end or to a result with. */
static ad_status run_check(struct ode_run *r)
{
    const double *t = r->times, *y = r->call->in[0].data;
    char why[AD_CUSTOM_MESSAGE];
    for (int64_t i = 0; i < r->n_times; i++) {
        const bool later = r->n_times > 1 && t[1] > t[0];
        if (!isfinite(t[i]) || (i > 0 && !(later ? t[i] > t[i - 1] : t[i] < t[i - 1]))) {
            (void)snprintf(why, sizeof why,
                           "times[%lld] is %.17g after %.17g: each must be later than the one "
                           "before, or each earlier",
                           (long long)i, t[i], i > 0 ? t[i - 1] : (double)NAN);
            if (!isfinite(t[i]))
                (void)snprintf(why, sizeof why, "times[%lld] is not finite", (long long)i);
            return run_refuse(r, why);
        }
    }
    for (int64_t i = 0; i < r->size; i++)
        if (!isfinite(y[i])) {
            (void)snprintf(why, sizeof why, "element %lld of y0 is not finite", (long long)i);
            return run_refuse(r, why);
        }
    const double *each = r->head->each ? r->call->in[r->call->n_in - 1].data : NULL;
    for (int64_t i = 0; i < r->size && each; i++)
        if (!(each[i] >= 0)) {
            (void)snprintf(why, sizeof why, "element %lld of absolute_each is %g", (long long)i,
                           each[i]);
            return run_refuse(r, why);
        }
    return AD_OK;
}

static ad_status run_to_times(struct ode_run *r, double *reached)
{
    double *to = r->call->out[0].data;
    const int64_t last = r->n_times - 1;
    int flag = CVodeSetStopTime(r->cvode, r->sign * r->times[last]);
    for (int64_t i = 1; i <= last && flag >= 0; i++) {
        flag = CVode(r->cvode, r->sign * r->times[i], r->y, reached, CV_NORMAL);
        if (flag >= 0)
            memcpy(to + i * r->size, numbers(r->y), (size_t)r->size * sizeof *to);
    }
    if (flag < 0)
        (void)CVodeGetCurrentTime(r->cvode, reached);
    *reached *= r->sign;
    return run_ended(r, flag, "forward");
}

ad_status ode_forward(ad_custom_call *c, void *payload, ad_ode_report *report)
{
    struct ode_run r = {.call = c,
                        .head = c->own,
                        .size = c->in[0].size,
                        .n_times = c->in[1].size,
                        .times = c->in[1].data};
    ad_status status = run_check(&r);
    if (status != AD_OK)
        return status;
    if (r.size > 0)
        memcpy(c->out[0].data, c->in[0].data, (size_t)r.size * sizeof(double));
    double reached = r.times[0];
    long steps = 0;
    if (r.size > 0 && r.n_times > 1) {
        status = run_begin(&r, c, payload);
        if (status == AD_OK) {
            status = run_to_times(&r, &reached);
            (void)CVodeGetNumSteps(r.cvode, &steps);
        }
        run_end(&r);
    }
    ((struct ode_head *)c->own)->steps = steps;
    if (report)
        *report = (ad_ode_report){steps, r.system.evaluations, r.system.jacobians, reached};
    return status;
}

/* ---- backward ---- */

/* The largest adjoint of a result, and of which time the last is that is not zero. */
static ad_status run_adjoints(const struct ode_run *r, double *largest, int64_t *last)
{
    const double *g = r->call->out_adjoint[0].data;
    *largest = 0;
    *last = -1;
    for (int64_t i = 0; i < r->n_times * r->size; i++) {
        if (!isfinite(g[i]))
            return run_refuse(r, "an adjoint of the result is not finite");
        if (g[i] != 0)
            *last = i / r->size;
        *largest = fmax(*largest, fabs(g[i]));
    }
    return AD_OK;
}

/* CVODES interpolates y between its steps by as many of them as the order of the method wants. It
 * looks for them behind the end of what it holds where the last stretch between checkpoints is
 * shorter. So that has to be longer, or the only one. */
static bool run_is_held(int64_t steps, int64_t interval)
{
    return steps < interval || steps % interval >= LONGEST;
}

static int64_t run_interval(const struct ode_run *r, int64_t least)
{
    const int64_t steps = r->head->steps;
    int64_t n = r->head->interval;
    if (n == 0)
        n = HELD_BYTES / (r->size * (int64_t)sizeof(double) + STATE_BYTES);
    n = n < 2 * LONGEST ? 2 * LONGEST : n;
    n = n < least ? least : n;
    while (!run_is_held(steps, n))
        n++;
    return n <= steps ? n : steps + 1;
}

/* Forward once more, with checkpoints. Where stiff these can change the steps behind them, so it is
 * tried again until the last stretch is long enough. */
static ad_status run_again(struct ode_run *r)
{
    const double end = r->sign * r->times[r->n_times - 1];
    double reached;
    int checkpoints;
    for (int64_t interval = 0;;) {
        long steps = 0;
        interval = run_interval(r, interval + 1);
        memcpy(numbers(r->y), r->call->in[0].data, (size_t)r->size * sizeof(double));
        if (CVodeReInit(r->cvode, r->sign * r->times[0], r->y) != CV_SUCCESS ||
            CVodeAdjInit(r->cvode, (long)interval, CV_POLYNOMIAL) != CV_SUCCESS ||
            CVodeSetStopTime(r->cvode, end) != CV_SUCCESS)
            return AD_ERROR_MEMORY;
        int flag = CV_SUCCESS; /* by the same calls: the first step depends on the first stretch */
        for (int64_t i = 1; i < r->n_times && flag >= 0; i++)
            flag = CVodeF(r->cvode, r->sign * r->times[i], r->y, &reached, CV_NORMAL, &checkpoints);
        (void)CVodeGetNumSteps(r->cvode, &steps);
        if (flag < 0 || run_is_held(steps, interval))
            return run_ended(r, flag, "forward again");
        CVodeAdjFree(r->cvode);
    }
}

/* The problem backward, from time `last` on. */
static bool run_init_back(struct ode_run *r, int64_t last)
{
    const struct ode_head *head = r->head;
    void *m = r->cvode;
    if (!run_make_solver(r, 1) ||
        CVodeCreateB(m, head->stiff ? CV_BDF : CV_ADAMS, &r->which) != CV_SUCCESS ||
        CVodeInitB(m, r->which, run_f_back, r->sign * r->times[last], r->adjoint) != CV_SUCCESS ||
        CVodeSetUserDataB(m, r->which, r) != CV_SUCCESS ||
        CVodeSStolerancesB(m, r->which, head->adjoint_relative, head->adjoint_absolute) !=
            CV_SUCCESS ||
        CVodeSetMaxNumStepsB(m, r->which, (long)head->most) != CV_SUCCESS)
        return false;
    if (r->derivative && (CVodeQuadInitB(m, r->which, run_x_back, r->derivative) != CV_SUCCESS ||
                          CVodeSetQuadErrConB(m, r->which, SUNTRUE) != CV_SUCCESS ||
                          CVodeQuadSStolerancesB(m, r->which, head->adjoint_relative,
                                                 head->adjoint_absolute) != CV_SUCCESS))
        return false;
    if (!head->stiff)
        return CVodeSetNonlinearSolverB(m, r->which, r->functional[1]) == CV_SUCCESS;
    return CVodeSetLinearSolverB(m, r->which, r->linear[1], r->matrix[1]) == CV_SUCCESS &&
           CVodeSetJacFnB(m, r->which, run_jacobian_back) == CV_SUCCESS;
}

/* The adjoint from time i to the one before, and with it the derivatives by x. */
static ad_status run_back(struct ode_run *r, int64_t i, bool first)
{
    double reached;
    int flag = CV_SUCCESS;
    if (first && !run_init_back(r, i))
        return AD_ERROR_MEMORY;
    if (!first)
        flag = CVodeReInitB(r->cvode, r->which, r->sign * r->times[i], r->adjoint);
    if (!first && flag >= 0 && r->derivative)
        flag = CVodeQuadReInitB(r->cvode, r->which, r->derivative);
    if (flag >= 0)
        flag = CVodeB(r->cvode, r->sign * r->times[i - 1], CV_NORMAL);
    if (flag >= 0)
        flag = CVodeGetB(r->cvode, r->which, &reached, r->adjoint);
    if (flag >= 0 && r->derivative)
        flag = CVodeGetQuadB(r->cvode, r->which, &reached, r->derivative);
    return run_ended(r, flag, "backward");
}

/* times'[i] += factor l . f at time i. */
static ad_status run_pull_time(struct ode_run *r, int64_t i, const double *l, double factor)
{
    double *to = r->call->in_adjoint[1].data, *f = numbers(r->y), sum = 0;
    if (!to)
        return AD_OK;
    const double *y = (const double *)r->call->out[0].data + i * r->size;
    const enum ode_outcome outcome = ode_system_value(&r->system, r->times[i], y, f);
    if (outcome == ODE_FAILED)
        return r->system.status;
    if (outcome == ODE_NOT_FINITE)
        return run_refuse(r, "f is not finite at one of the times");
    for (int64_t k = 0; k < r->size; k++)
        sum += l[k] * f[k];
    to[i] += factor * sum;
    return AD_OK;
}

static ad_status run_pull(struct ode_run *r, double scale, int64_t last)
{
    const double *g = r->call->out_adjoint[0].data;
    if (!(r->adjoint = N_VNew_Serial(r->size, r->context)) ||
        (r->system.n_derivatives > 0 &&
         !(r->derivative = N_VNew_Serial(r->system.n_derivatives, r->context))))
        return AD_ERROR_MEMORY;
    double *l = numbers(r->adjoint);
    N_VConst(0, r->adjoint);
    if (r->derivative)
        N_VConst(0, r->derivative);
    ad_status status = run_again(r);
    for (int64_t i = last; i > 0 && status == AD_OK; i--) {
        for (int64_t k = 0; k < r->size; k++)
            l[k] += g[i * r->size + k] / scale;
        status = run_pull_time(r, i, g + i * r->size, 1);
        if (status == AD_OK)
            status = run_back(r, i, i == last);
    }
    return status == AD_OK ? run_pull_time(r, 0, l, -scale) : status;
}

/* To the adjoints of y0 and x, which are added to. */
static void run_give(const struct ode_run *r, double scale)
{
    const ad_custom_call *c = r->call;
    const double *l = numbers(r->adjoint);
    const double *d = r->derivative ? numbers(r->derivative) : NULL;
    double *y0 = c->in_adjoint[0].data;
    for (int64_t k = 0; k < r->size && y0; k++)
        y0[k] += scale * l[k];
    for (int i = 0; i < r->system.n; i++) {
        const ad_custom_array *to = &c->in_adjoint[i + 2];
        if (!d || !r->system.leaf[i].tape)
            continue;
        for (int64_t k = 0; k < to->size; k++)
            ((double *)to->data)[k] += scale * d[k];
        d += to->size;
    }
}

ad_status ode_backward(ad_custom_call *c, void *payload)
{
    struct ode_run r = {.call = c,
                        .head = c->own,
                        .size = c->in[0].size,
                        .n_times = c->in[1].size,
                        .times = c->in[1].data};
    const double *g = c->out_adjoint[0].data;
    double *y0 = c->in_adjoint[0].data, scale;
    int64_t last;
    ad_status status = g ? run_adjoints(&r, &scale, &last) : AD_OK;
    if (!g || status != AD_OK || last < 0)
        return status;
    if (last > 0) {
        status = run_begin(&r, c, payload);
        if (status == AD_OK)
            status = run_pull(&r, scale, last);
        if (status == AD_OK)
            run_give(&r, scale);
        run_end(&r);
    }
    for (int64_t k = 0; k < r.size && y0 && status == AD_OK; k++)
        y0[k] += g[k];
    return status;
}
