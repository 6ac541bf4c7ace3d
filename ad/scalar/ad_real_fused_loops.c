/* ad_real_fused_loops.c: loops over real numbers as one record: arguments checked, operands looked
 * at, values computed, results handed out.
 */
#include <tapescope/ad_plain.h>

#include "ad_internal.h"

#include "tape_nonfinite_scalars.h"
#include "tape_record_watch.h"

#include <math.h>
#include <string.h>

_Static_assert(sizeof(ad_real) == sizeof(struct kernel_real), "one layout");
_Static_assert(offsetof(ad_real, index) == offsetof(struct kernel_real, key), "one layout");

enum { CHUNK = 128 };

/* A call: what is to be recorded, and where results go. Small ones are frequent, so nothing is set
 * that its kind does not use. */
struct call {
    struct tape_fused_loop_plan plan;
    struct tape *t; /* that is recorded on, or NULL */
    ad_real *y;
    bool in_place;        /* operands may be y */
    ad_map_callback *map; /* map alone has these, */
    void *payload;
    struct tape_custom custom; /* and custom these */
    const double *values;
    const void *data;
    size_t data_bytes;
    const void *own; /* some kinds: what their values are told */
    struct tape_operand in[KERNEL_FUSED_LOOP_IN];
};

static void begin(struct call *c, enum kernel_fused_loop_kind kind, int64_t m, ad_real *y,
                  struct tape_site site)
{
    c->plan = (struct tape_fused_loop_plan){
        .kind = kind, .name = kernel_fused_loop_name[kind], .m = m, .site = site};
    c->t = ad_real_recording();
    c->y = y;
    c->in_place = false;
    c->map = NULL;
    c->custom.pullback = NULL;
    c->values = NULL;
    c->own = NULL;
}

/* Results of a call that failed. There may be too many to be an array's. */
static void poison_results(const struct call *c, uint32_t tag)
{
    for (int64_t i = 0; c->y && c->plan.m < UINT32_MAX && i < c->plan.m; i++)
        c->y[i] = (ad_real){(double)NAN, 0, tag};
}

static ad_status fail(const struct call *c, ad_status code, const char *why)
{
    if (c->t)
        return (ad_status)tape_fail(c->t, (enum tape_status)code, c->plan.site, "%s: %s",
                                    c->plan.name, why);
    return ad_fail(code, c->plan.site, "%s: %s", c->plan.name, why);
}

/* The call is not made. */
static ad_status refuse(const struct call *c, ad_status code, const char *why)
{
    fail(c, code, why);
    poison_results(c, ad_poison(c->t));
    return code;
}

static void operand(struct call *c, int64_t n, ad_array x)
{
    c->in[c->plan.n_in++] = (struct tape_operand){
        .n = n, .real = (const struct kernel_real *)(const void *)x.real, .number = x.number};
}

/* m n, or -1: negative, or beyond what there can be. */
static int64_t product(int64_t m, int64_t n)
{
    int64_t result;
    return m < 0 || n < 0 || __builtin_mul_overflow(m, n, &result) ? -1 : result;
}

/* Whether results lie on an operand that is not the same array. */
static bool overlaps(const struct call *c, const struct tape_operand *o)
{
    const uintptr_t x = (uintptr_t)o->real, y = (uintptr_t)c->y;
    /* A number that map reads for all results is not one of them. */
    const bool same = x == y && !(c->map && o->n != c->plan.m);
    if (!o->real || (c->in_place && same) || o->n == 0)
        return false;
    return x < y + (uintptr_t)c->plan.m * sizeof(ad_real) &&
           y < x + (uintptr_t)o->n * sizeof(ad_real);
}

static ad_status check_arguments(const struct call *c)
{
    if (c->plan.m < 0)
        return fail(c, AD_ERROR_ARGUMENT, "an extent is negative, or beyond all numbers");
    if (c->plan.m > 0 && !c->y)
        return fail(c, AD_ERROR_ARGUMENT, "a null pointer for the results");
    for (int k = 0; k < c->plan.n_in; k++) {
        const struct tape_operand *o = &c->in[k];
        if (o->n < 0)
            return fail(c, AD_ERROR_ARGUMENT, "an extent is negative, or beyond all numbers");
        if (o->n > 0 && !o->real && !o->number)
            return fail(c, AD_ERROR_ARGUMENT, "a null pointer for an operand");
        if (o->n >= UINT32_MAX || c->plan.m >= UINT32_MAX)
            return fail(c, AD_ERROR_LIMIT, "an array of 2^32 numbers or more");
        if (overlaps(c, o))
            return fail(c, AD_ERROR_ARGUMENT, "the results overlap an operand");
    }
    return AD_OK;
}

/* Which values the pullback reads: those that stand beside what is active. */
static void choose(struct call *c)
{
    struct tape_operand *in = c->in;
    switch (c->plan.kind) {
    case KERNEL_FUSED_LOOP_dot:
    case KERNEL_FUSED_LOOP_axpy:
    case KERNEL_FUSED_LOOP_gemv:
    case KERNEL_FUSED_LOOP_stencil:
    case KERNEL_FUSED_LOOP_grid_stencil:
        in[0].keep = in[1].active;
        in[1].keep = in[0].active;
        break;
    case KERNEL_FUSED_LOOP_sum_of_squares:
        in[0].keep = true;
        break;
    case KERNEL_FUSED_LOOP_trmv:
        in[0].keep = in[1].keep = in[2].active || in[3].active;
        in[2].keep = in[3].keep = in[0].active || in[1].active;
        break;
    default:
        break;
    }
}

/* Whether all operands are values of the tape. The first that is none becomes the tape's error, and
 * *poison the tag of what stems from it. */
static bool survey(struct call *c, uint32_t *poison)
{
    bool held = true;
    for (int k = 0; k < c->plan.n_in; k++) {
        int64_t refused;
        if (tape_fused_loop_survey(c->t, &c->in[k], &refused) || !held)
            continue;
        const ad_real *x = (const ad_real *)(const void *)c->in[k].real;
        while (!c->t && (x[refused].index | x[refused].tag) == 0)
            refused++;
        *poison = ad_real_refuse(x[refused].index, x[refused].tag, c->plan.name, c->plan.site);
        held = false;
    }
    return held;
}

/* y and partials by the callback, a part at a time. */
static void map_values(const struct call *c, const struct kernel_fused_loop *s)
{
    double x[KERNEL_FUSED_LOOP_IN][CHUNK], y[CHUNK];
    const double *in[KERNEL_FUSED_LOOP_IN];
    double *partial[KERNEL_FUSED_LOOP_IN];
    for (int64_t i = 0; i < s->m; i += CHUNK) {
        const int64_t n = s->m - i < CHUNK ? s->m - i : CHUNK;
        double *saved = s->saved;
        for (int k = 0; k < s->n_in; k++) {
            for (int64_t j = 0; j < n; j++)
                x[k][j] = s->x[k][(i + j) * s->stride[k]];
            in[k] = x[k];
            partial[k] = saved && c->in[k].active ? saved + i : NULL;
            if (partial[k])
                saved += s->m;
        }
        c->map(c->payload, n, in, y, partial);
        for (int64_t j = 0; j < n; j++)
            s->y[(i + j) * s->y_stride] = y[j];
    }
}

/* Calls the callback of map. No thread may add to the run meanwhile, since the record that is being
 * made lies behind its end. */
static void call_map(const struct call *c, const struct kernel_fused_loop *s)
{
    if (!c->t) {
        map_values(c, s);
        return;
    }
    struct tape_statements *on = c->t->statements;
    const bool calling = on->calling;
    const uint32_t open = c->t->open;
    const struct tape_cursor cursor = *on->cursor;
    const uint64_t owner = ad_real_calls_begin(c->t);
    *on->cursor = (struct tape_cursor){.result = cursor.result};
    c->t->open = UINT32_MAX;
    on->calling = true;
    map_values(c, s);
    on->calling = calling;
    c->t->open = open;
    *on->cursor = cursor;
    ad_real_calls_end(c->t, owner);
}

static void compute(const struct call *c)
{
    struct kernel_fused_loop s; /* the rest is of pullbacks */
    s.m = c->plan.m;
    s.n_in = c->plan.n_in;
    s.y = &c->y->value;
    s.y_stride = sizeof(ad_real) / sizeof(double);
    s.saved = c->plan.saved;
    s.own = c->own;
    for (int k = 0; k < s.n_in; k++) {
        s.n[k] = c->in[k].n;
        s.x[k] = c->in[k].values;
        s.stride[k] = c->in[k].stride;
    }
    if (c->map) {
        for (int k = 0; k < s.n_in; k++)
            if (s.n[k] != s.m)
                s.stride[k] = 0;
        call_map(c, &s);
    } else if (c->values) {
        for (int64_t i = 0; i < c->plan.m; i++)
            c->y[i].value = c->values[i];
    } else {
        kernel_fused_loop_loops_get()->value[c->plan.kind](&s);
    }
}

/* The record's own numbers of a custom one. */
static void write_custom(const struct call *c)
{
    char *to = (char *)c->plan.saved;
    memset(c->plan.saved + c->plan.n_saved - 1, 0, sizeof(double)); /* its end may be padding */
    memcpy(to, &c->custom, sizeof c->custom);
    if (c->data_bytes)
        memcpy(to + sizeof c->custom, c->data, c->data_bytes);
}

/* Results of a call that was recorded, from `first` on, or of constants: 0. */
static void results_name(const struct call *c, uint64_t first)
{
    struct kernel_real *y = (struct kernel_real *)(void *)c->y;
    const uint64_t step = first != 0;
    for (int64_t i = 0, m = c->plan.m; i < m; i++, first += step)
        y[i].key = first;
}

/* A statement for each result, where they are few; false: nothing was done. Where the kind's own
 * numbers are derivatives they are computed first; else what results may overwrite is read
 * first. */
__attribute__((noinline)) static bool record_statements(struct call *c)
{
    struct tape_few few;
    if (!tape_fused_loop_few(c->t, &c->plan, &few))
        return false;
    const bool own = c->plan.kind == KERNEL_FUSED_LOOP_map ||
                     c->plan.kind == KERNEL_FUSED_LOOP_log_sum_exp ||
                     c->plan.kind == KERNEL_FUSED_LOOP_polynomial;
    c->plan.saved = own ? few.saved : NULL;
    if (!own)
        tape_fused_loop_statements(c->t, &c->plan, &few);
    compute(c);
    if (c->t->error.code != TAPE_OK) { /* a callback's */
        poison_results(c, ad_poison(c->t));
        return true;
    }
    if (own)
        tape_fused_loop_statements(c->t, &c->plan, &few);
    results_name(c, c->plan.first);
    return true;
}

static ad_status record(struct call *c)
{
    ad_status status = check_arguments(c);
    if (status != AD_OK) {
        poison_results(c, ad_poison(c->t));
        return status;
    }
    const bool timed = c->t && tape_observed(c->t);
    const uint64_t start = timed ? tape_account_start(c->t) : 0;
    c->plan.in = c->in;
    if (c->t && record_statements(c))
        return (ad_status)c->t->error.code;
    uint32_t poison = 0;
    const bool held = survey(c, &poison);
    choose(c);
    for (int k = 0; c->map && k < c->plan.n_in; k++)
        c->plan.n_saved += c->in[k].active ? c->plan.m : 0;
    const bool open = held && c->t && tape_fused_loop_open(c->t, &c->plan);
    if (open && c->custom.pullback)
        write_custom(c);
    if (c->plan.m > 0 && held && !(c->t && c->t->error.code != TAPE_OK))
        compute(c);
    for (int64_t i = 0; open && c->t->nonfinite && i < c->plan.m; i++)
        if (!tape_nonfinite_result(c->t, c->plan.name, i, c->y[i].value, c->plan.site))
            break;
    const bool done = open && c->t->error.code == TAPE_OK;
    const uint64_t first = done ? c->plan.first : 0;
    /* Operands may be in place: the commit looks at them. */
    if (done)
        tape_fused_loop_commit(c->t, &c->plan);
    if (done && timed)
        tape_fused_loop_ran(c->t, &c->plan, start);
    status = c->t ? (ad_status)c->t->error.code : held ? AD_OK : ad_failed();
    if (status != AD_OK) {
        poison_results(c, held ? ad_poison(c->t) : poison);
        return status;
    }
    results_name(c, first);
    if (done && c->plan.m > 0)
        tape_watch_numbers(c->t, c->plan.name, c->plan.site, (uint32_t)first, (uint32_t)c->plan.m,
                           c->y[0].value);
    return AD_OK;
}

/* ---- the kinds ---- */

ad_real ad_real_dot__site(int64_t n, ad_array x, ad_array y, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    ad_real result = {0};
    struct call c;
    begin(&c, KERNEL_FUSED_LOOP_dot, 1, &result, site);
    operand(&c, n, x);
    operand(&c, n, y);
    record(&c);
    return result;
}

ad_real ad_real_sum__site(int64_t n, ad_array x, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    ad_real result = {0};
    struct call c;
    begin(&c, KERNEL_FUSED_LOOP_sum, 1, &result, site);
    operand(&c, n, x);
    record(&c);
    return result;
}

ad_status ad_real_sums_of_squares__site(int64_t m, int64_t n, ad_array x, ad_real *y,
                                        unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct call c;
    begin(&c, KERNEL_FUSED_LOOP_sum_of_squares, m, y, site);
    operand(&c, product(m, n), x);
    return record(&c);
}

ad_real ad_real_sum_of_squares__site(int64_t n, ad_array x, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    ad_real result = {0};
    struct call c;
    begin(&c, KERNEL_FUSED_LOOP_sum_of_squares, 1, &result, site);
    operand(&c, n, x);
    record(&c);
    return result;
}

ad_real ad_real_log_sum_exp__site(int64_t n, ad_array x, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    ad_real result = {0};
    struct call c;
    begin(&c, KERNEL_FUSED_LOOP_log_sum_exp, 1, &result, site);
    operand(&c, n, x);
    c.plan.n_saved = n;
    record(&c);
    return result;
}

ad_status ad_real_axpy__site(int64_t n, ad_real a, ad_array x, ad_real *y, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct call c;
    begin(&c, KERNEL_FUSED_LOOP_axpy, n, y, site);
    c.in_place = true;
    operand(&c, 1, ad_array_real_(&a));
    operand(&c, n, x);
    operand(&c, n, ad_array_real_(y));
    return record(&c);
}

ad_status ad_real_gemv__site(int64_t m, int64_t n, ad_array a, ad_array x, ad_real *y,
                             unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct call c;
    begin(&c, KERNEL_FUSED_LOOP_gemv, m, y, site);
    operand(&c, product(m, n), a);
    operand(&c, n, x);
    return record(&c);
}

static ad_status triangle(struct call *c, int64_t k, int64_t n, ad_array diagonal, ad_array below,
                          ad_array shift, ad_array x)
{
    const int64_t square = product(n, n - (n > 0));
    c->plan.m = product(k, n);
    operand(c, n, diagonal);
    operand(c, square < 0 ? -1 : square / 2, below);
    operand(c, shift.real || shift.number ? n : 0, shift);
    operand(c, c->plan.m, x);
    return record(c);
}

ad_status ad_real_trmv__site(int64_t n, ad_array diagonal, ad_array below, ad_array x, ad_real *y,
                             unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct call c;
    begin(&c, KERNEL_FUSED_LOOP_trmv, 0, y, site);
    return triangle(&c, 1, n, diagonal, below, ad_array_number_(NULL), x);
}

ad_status ad_real_trmm__site(int64_t k, int64_t n, ad_array diagonal, ad_array below,
                             ad_array shift, ad_array x, ad_real *y, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct call c;
    begin(&c, KERNEL_FUSED_LOOP_trmv, 0, y, site);
    return triangle(&c, k, n, diagonal, below, shift, x);
}

ad_real ad_real_polynomial__site(int64_t n, ad_array coefficients, ad_real x, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    ad_real result = {0};
    struct call c;
    begin(&c, KERNEL_FUSED_LOOP_polynomial, 1, &result, site);
    operand(&c, n, coefficients);
    operand(&c, n > 0, ad_array_real_(&x));
    c.plan.n_saved = 2;
    record(&c);
    return result;
}

ad_status ad_real_stencil__site(int64_t n, ad_array x, int64_t k, ad_array w, ad_real *y,
                                unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct call c;
    begin(&c, KERNEL_FUSED_LOOP_stencil, n, y, site);
    int64_t extent = 0;
    if (n > 0 && k > 0 && __builtin_add_overflow(n, k - 1, &extent))
        extent = -1;
    operand(&c, extent, x);
    operand(&c, k, w);
    return record(&c);
}

/* ---- stencils on more dimensions ---- */

_Static_assert((int)AD_EDGE_SHRINK == KERNEL_EDGE_SHRINK && (int)AD_EDGE_KEEP == KERNEL_EDGE_KEEP &&
                   (int)AD_EDGE_ZERO == KERNEL_EDGE_ZERO && (int)AD_EDGE_WRAP == KERNEL_EDGE_WRAP,
               "one list");

/* Points, or -1. */
static int64_t volume(const int64_t *n)
{
    return n[0] < 0 ? -1 : product(product(n[0], n[1]), n[2]);
}

static ad_status grid_stencil(const struct kernel_grid *g, ad_array x, ad_array w, ad_real *y,
                              struct tape_site site)
{
    struct call c;
    int64_t m[3];
    begin(&c, KERNEL_FUSED_LOOP_grid_stencil, 0, y, site);
    for (int d = 0; d < 3; d++) {
        m[d] = g->n[d];
        if (g->edge == AD_EDGE_SHRINK && m[d] >= 0)
            m[d] = m[d] < g->k[d] ? 0 : m[d] - g->k[d] + 1;
        if (g->k[d] < 1)
            return refuse(&c, AD_ERROR_ARGUMENT, "a stencil without taps");
    }
    c.plan.m = volume(m);
    for (int d = 0; d < 3; d++)
        if (g->edge == AD_EDGE_WRAP && c.plan.m > 0 && m[d] < g->k[d])
            return refuse(&c, AD_ERROR_ARGUMENT, "more taps than points to go around");
    if (g->edge < 0 || g->edge >= KERNEL_EDGES)
        return refuse(&c, AD_ERROR_ARGUMENT, "no such edge");
    operand(&c, volume(g->n), x);
    operand(&c, volume(g->k), w);
    c.own = g;
    c.plan.n_saved = KERNEL_GRID_DOUBLES;
    return record(&c);
}

ad_status ad_real_stencil_2d__site(int64_t n0, int64_t n1, ad_array x, int64_t k0, int64_t k1,
                                   ad_array w, ad_edge edge, ad_real *y, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    const struct kernel_grid g = {{1, n0, n1}, {1, k0, k1}, edge};
    return grid_stencil(&g, x, w, y, site);
}

/* As many as the dimensions need. NOLINTNEXTLINE(readability-function-size) */
ad_status ad_real_stencil_3d__site(int64_t n0, int64_t n1, int64_t n2, ad_array x, int64_t k0,
                                   int64_t k1, int64_t k2, ad_array w, ad_edge edge, ad_real *y,
                                   unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    const struct kernel_grid g = {{n0, n1, n2}, {k0, k1, k2}, edge};
    return grid_stencil(&g, x, w, y, site);
}

/* ---- functions of the user's ---- */

static ad_status map(int64_t n, int n_in, const ad_array *x, int n_scalars, const ad_real *scalar,
                     ad_real *y, ad_map_callback *callback, void *payload, struct tape_site site)
{
    struct call c;
    begin(&c, KERNEL_FUSED_LOOP_map, n, y, site);
    c.in_place = true;
    c.map = callback;
    c.payload = payload;
    const bool too_many = n_in > KERNEL_FUSED_LOOP_IN || n_scalars > KERNEL_FUSED_LOOP_IN ||
                          n_in + n_scalars > KERNEL_FUSED_LOOP_IN;
    if (n_in < 0 || n_scalars < 0 || too_many || n_in + n_scalars == 0 || (n_in > 0 && !x) ||
        (n_scalars > 0 && !scalar) || !callback)
        return refuse(&c, AD_ERROR_ARGUMENT, "1 to 16 operands and a callback are wanted");
    for (int k = 0; k < n_in; k++)
        operand(&c, n, x[k]);
    for (int k = 0; k < n_scalars; k++)
        operand(&c, 1, ad_array_real_(scalar + k));
    return record(&c);
}

ad_status ad_real_map__site(int64_t n, int n_in, const ad_array *x, ad_real *y,
                            ad_map_callback *callback, void *payload, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    return map(n, n_in, x, 0, NULL, y, callback, payload, site);
}

ad_status ad_real_map_with__site(int64_t n, int n_in, const ad_array *x, int n_scalars,
                                 const ad_real *scalar, ad_real *y, ad_map_callback *callback,
                                 void *payload, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    return map(n, n_in, x, n_scalars, scalar, y, callback, payload, site);
}

ad_status ad_real_collect__site(int64_t n, ad_array x, ad_real *y, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct call c;
    begin(&c, KERNEL_FUSED_LOOP_collect, n, y, site);
    c.in_place = true;
    operand(&c, n, x);
    return record(&c);
}

/* ---- by index ---- */

/* Elements of a record: as many as fit on the stack. */
enum { PART = 512, SLOTS = 2 * PART };

/* The first checks of a call that is made of several records. */
static ad_status check_indices(const struct call *c, int64_t n, int64_t m, const int *index)
{
    if (m < 0 || n < 0)
        return fail(c, AD_ERROR_ARGUMENT, "an extent is negative, or beyond all numbers");
    if (m >= UINT32_MAX || n > INT32_MAX)
        return fail(c, AD_ERROR_LIMIT, "an array of 2^31 numbers or more");
    if (m > 0 && !index)
        return fail(c, AD_ERROR_ARGUMENT, "a null pointer for the indices");
    for (int64_t i = 0; i < m; i++)
        if (index[i] < 0 || index[i] >= n)
            return fail(c, AD_ERROR_ARGUMENT, "an index beyond the array");
    return AD_OK;
}

/* Of an operand that is another array than the call's records take, since those have copies. */
static ad_status check_whole(const struct call *c, int64_t n, ad_array x)
{
    struct call whole = *c;
    whole.plan.n_in = 0;
    operand(&whole, n, x);
    return check_arguments(&whole);
}

ad_status ad_real_gather__site(int64_t m, int64_t n, ad_array x, const int *index, ad_real *y,
                               unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    ad_real part[PART];
    struct call c;
    begin(&c, KERNEL_FUSED_LOOP_gather, m, y, site);
    ad_status status = check_indices(&c, n, m, index);
    if (status == AD_OK)
        status = check_whole(&c, n, x);
    for (int64_t i = 0; status == AD_OK && i < m; i += PART) {
        const int64_t count = m - i < PART ? m - i : PART;
        for (int64_t j = 0; j < count; j++)
            part[j] = x.real ? x.real[index[i + j]] : (ad_real){.value = x.number[index[i + j]]};
        begin(&c, KERNEL_FUSED_LOOP_gather, count, y + i, site);
        operand(&c, count, ad_array_real_(part));
        status = record(&c);
    }
    if (status != AD_OK) {
        begin(&c, KERNEL_FUSED_LOOP_gather, m, y, site);
        poison_results(&c, ad_poison(c.t));
    }
    return status;
}

/* Elements of y that a part adds to: each once. */
struct touched {
    int at[PART], n;
    int32_t of[PART];    /* each index of the part: which of them */
    int16_t slot[SLOTS]; /* one more than which, by a hash of the index; 0: free */
};

static void touch(struct touched *t, int64_t count, const int *index)
{
    t->n = 0;
    memset(t->slot, 0, sizeof t->slot);
    for (int64_t i = 0; i < count; i++) {
        uint32_t h = (uint32_t)index[i] * 0x9e3779b1u >> 22;
        while (t->slot[h] && t->at[t->slot[h] - 1] != index[i])
            h = (h + 1) & (SLOTS - 1);
        if (!t->slot[h]) {
            t->at[t->n++] = index[i];
            t->slot[h] = (int16_t)t->n;
        }
        t->of[i] = t->slot[h] - 1;
    }
}

static ad_array array_from(ad_array x, int64_t i)
{
    return x.real ? ad_array_real_(x.real + i) : ad_array_number_(x.number + i);
}

ad_status ad_real_scatter_add__site(int64_t m, ad_array x, const int *index, int64_t n, ad_real *y,
                                    unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    ad_real part[PART];
    struct touched t;
    struct call c;
    begin(&c, KERNEL_FUSED_LOOP_scatter_add, n, y, site);
    ad_status status = check_indices(&c, n, m, index);
    if (status == AD_OK)
        status = check_whole(&c, m, x);
    for (int64_t i = 0; status == AD_OK && i < m; i += PART) {
        const int64_t count = m - i < PART ? m - i : PART;
        /* Where few elements are added to twice, a record has no fewer bytes than statements. */
        if (c.t && x.real && m < 2 * n &&
            tape_fused_loop_sums(c.t, &c.plan, count,
                                 (const struct kernel_real *)(const void *)(x.real + i), index + i,
                                 (struct kernel_real *)(void *)y))
            continue;
        touch(&t, count, index + i);
        for (int k = 0; k < t.n; k++)
            part[k] = y[t.at[k]];
        begin(&c, KERNEL_FUSED_LOOP_scatter_add, t.n, part, site);
        c.in_place = true;
        c.own = t.of;
        c.plan.n_saved = (count + 1) / 2;
        operand(&c, t.n, ad_array_real_(part));
        operand(&c, count, array_from(x, i));
        status = record(&c);
        for (int k = 0; k < t.n; k++)
            y[t.at[k]] = part[k];
    }
    if (status != AD_OK) {
        begin(&c, KERNEL_FUSED_LOOP_scatter_add, n, y, site);
        poison_results(&c, ad_poison(c.t));
    }
    return status;
}

static ad_status custom_record(int64_t n, ad_array x, int64_t m, const double *values, ad_real *y,
                               struct ad_custom_ custom, struct tape_site site)
{
    struct call c;
    begin(&c, KERNEL_FUSED_LOOP_custom, m, y, site);
    if (!custom.name || !custom.pullback || (m > 0 && !values) ||
        (custom.bytes > 0 && !custom.data))
        return refuse(&c, AD_ERROR_ARGUMENT, "a null pointer");
    if (custom.bytes / sizeof(double) >= UINT32_MAX)
        return refuse(&c, AD_ERROR_LIMIT, "32 GiB of data or more");
    c.custom = (struct tape_custom){custom.name, custom.pullback};
    c.plan.name = custom.name;
    c.plan.n_saved =
        (int64_t)((sizeof c.custom + custom.bytes + sizeof(double) - 1) / sizeof(double));
    c.data = custom.data;
    c.data_bytes = custom.bytes;
    c.values = values;
    c.in_place = true;
    operand(&c, n, x);
    return record(&c);
}

ad_status ad_real_custom__site(int64_t n, ad_array x, int64_t m, const double *values, ad_real *y,
                               struct ad_custom_ custom, unsigned ad_line_)
{
    return custom_record(n, x, m, values, y, custom, AD_HERE);
}

ad_status ad_plain_custom_(uintptr_t pc, int64_t n, const ad_real *x, int64_t m,
                           const double *values, ad_real *y, struct ad_custom_ custom)
{
    const struct tape_site site = {pc, 0};
    return custom_record(n, ad_array_real_(x), m, values, y, custom, site);
}
