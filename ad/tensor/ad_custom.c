/* ad_custom.c: ops of the user's by handles: his functions are called here, for results, in sweeps,
 * and to record derivatives.
 */
#include "ad_internal.h"

#include "kernel_ops.h"
#include "tape_account.h"
#include "tape_custom.h"
#include "tape_fork.h"
#include "tape_value.h"

#include <stdio.h>
#include <string.h>

_Static_assert((int)AD_CUSTOM_MAX_RESULTS == (int)TAPE_CUSTOM_MAX_OUT, "results");
_Static_assert((int)AD_SAVES_OPERANDS == (int)TAPE_SAVES_OPERANDS, "saves");
_Static_assert((int)AD_SAVES_RESULTS == (int)TAPE_SAVES_RESULTS, "saves");
_Static_assert((int)AD_WRITES_FRESH == (int)TAPE_WRITES_FRESH, "saves");
_Static_assert((int)AD_SWEPT_COMPLETE == (int)TAPE_SWEPT_COMPLETE, "saves");
_Static_assert((int)AD_SWEPT_ALWAYS == (int)TAPE_SWEPT_ALWAYS, "saves");
_Static_assert(sizeof(struct tape_custom) % sizeof(int64_t) == 0, "attributes are words");

/* ---- the user's functions ---- */

/* One of them has returned. */
static bool custom_ended(struct tape *t, const char *name, const char *which, ad_status status,
                         const char *message, struct tape_site site)
{
    if (status == AD_OK)
        return true;
    if ((unsigned)status > AD_ERROR_NONFINITE)
        status = AD_ERROR_STATE;
    tape_fail(t, (enum tape_status)status, site, "%s: its %s failed: %s; the call is", name, which,
              message[0] ? message : ad_status_text(status));
    return false;
}

static void custom_array(const struct kernel_array *from, ad_custom_array *to)
{
    *to = (ad_custom_array){
        .data = from->data, .size = from->size, .dtype = (ad_dtype)from->dtype, .rank = from->rank};
    memcpy(to->shape, from->shape, from->rank * sizeof *to->shape);
}

static bool custom_call(struct tape *t, const struct tape_custom *c, ad_custom_function *function,
                        const char *which, ad_custom_call *call, struct tape_site site)
{
    char message[AD_CUSTOM_MESSAGE] = "";
    call->message = message;
    const uint64_t owner = ad_calls_begin(c->slot);
    const ad_status status = function(call, c->payload);
    ad_calls_end(c->slot, owner);
    message[sizeof message - 1] = 0;
    return custom_ended(t, c->name, which, status, message, site);
}

static bool run_forward(struct tape *t, const struct tape_custom *c, struct tape_custom_call *call,
                        struct tape_site site)
{
    ad_custom_array in[TAPE_MAX_IN], out[TAPE_CUSTOM_MAX_OUT];
    ad_custom_call of = {.n_in = call->n_in,
                         .n_out = call->n_out,
                         .in = in,
                         .out = out,
                         .own = call->own,
                         .own_bytes = (size_t)c->own_bytes};
    for (int i = 0; i < call->n_in; i++)
        custom_array(&call->in[i], &in[i]);
    for (int o = 0; o < call->n_out; o++)
        custom_array(&call->out[o], &out[o]);
    return custom_call(t, c, (ad_custom_function *)c->forward, "forward", &of, site);
}

static bool run_pullback(struct tape *t, const struct tape_custom *c, struct tape_custom_call *call,
                         struct tape_site site)
{
    ad_custom_array in[TAPE_MAX_IN], in_adjoint[TAPE_MAX_IN], out[TAPE_CUSTOM_MAX_OUT],
        out_adjoint[TAPE_CUSTOM_MAX_OUT];
    ad_custom_call of = {.n_in = call->n_in,
                         .n_out = call->n_out,
                         .in = in,
                         .out = out,
                         .in_adjoint = in_adjoint,
                         .out_adjoint = out_adjoint,
                         .in_fresh = call->in_fresh,
                         .own = call->own,
                         .own_bytes = (size_t)c->own_bytes};
    for (int i = 0; i < call->n_in; i++) {
        custom_array(&call->in[i], &in[i]);
        custom_array(&call->in_adjoint[i], &in_adjoint[i]);
    }
    for (int o = 0; o < call->n_out; o++) {
        custom_array(&call->out[o], &out[o]);
        custom_array(&call->out_adjoint[o], &out_adjoint[o]);
    }
    const bool done = custom_call(t, c, (ad_custom_function *)c->pullback, "pullback", &of, site);
    call->held = of.held_bytes;
    return done;
}

/* What `graph` has said is the adjoint of operand i is one. */
static bool graph_take(struct tape *t, const struct tape_custom *c, int i, uint32_t operand,
                       ad_tensor adjoint, uint32_t *value, struct tape_site site)
{
    char got[96], wanted[96];
    if (adjoint.tape == 0)
        return true;
    *value = ad_value_on(t, adjoint, site, "%s: in_adjoint[%d] of its graph", c->name, i);
    if (!*value)
        return false;
    const struct kernel_array *a = &t->entries[*value].array, *x = &t->entries[operand].array;
    const bool shaped =
        a->rank == x->rank && memcmp(a->shape, x->shape, x->rank * sizeof *x->shape) == 0;
    if (shaped && a->dtype == x->dtype)
        return true;
    tape_fail(t, shaped ? TAPE_ERROR_DTYPE : TAPE_ERROR_SHAPE, site,
              "%s: in_adjoint[%d] of its graph is %s, the operand is %s; the call is", c->name, i,
              kernel_describe(a, got, sizeof got), kernel_describe(x, wanted, sizeof wanted));
    return false;
}

static bool run_graph(struct tape *t, const struct tape_custom *c, struct tape_custom_graph *g,
                      struct tape_site site)
{
    ad_tensor in[TAPE_MAX_IN], in_adjoint[TAPE_MAX_IN], out[TAPE_CUSTOM_MAX_OUT],
        out_adjoint[TAPE_CUSTOM_MAX_OUT];
    char message[AD_CUSTOM_MESSAGE] = "";
    ad_custom_graph_call of = {.tape = {c->slot, c->generation},
                               .n_in = g->n_in,
                               .n_out = g->n_out,
                               .in = in,
                               .out = out,
                               .out_adjoint = out_adjoint,
                               .in_adjoint = in_adjoint,
                               .own = g->own,
                               .message = message};
    const ad_tensor none = {0, 0, 0, 0};
    for (int i = 0; i < g->n_in; i++) {
        in[i] = g->in[i] ? ad_handle_of(t, c->slot, c->generation, g->in[i]) : none;
        in_adjoint[i] = none;
    }
    for (int o = 0; o < g->n_out; o++) {
        out[o] = g->out[o] ? ad_handle_of(t, c->slot, c->generation, g->out[o]) : none;
        out_adjoint[o] =
            g->out_adjoint[o] ? ad_handle_of(t, c->slot, c->generation, g->out_adjoint[o]) : none;
    }
    const ad_status status = ((ad_custom_graph_function *)c->graph)(&of, c->payload);
    message[sizeof message - 1] = 0;
    if (t->error.code != TAPE_OK || !custom_ended(t, c->name, "graph", status, message, site))
        return false;
    for (int i = 0; i < g->n_in; i++)
        if (!graph_take(t, c, i, g->operand[i], in_adjoint[i], &g->in_adjoint[i], site))
            return false;
    return true;
}

static const struct tape_custom_face face = {run_forward, run_pullback, run_graph, true},
                                     face_fixed = {run_forward, run_pullback, run_graph, false};

/* ---- the call ---- */

struct custom_args {
    struct tape *t;
    ad_tape tape;
    const ad_custom_rule *rule;
    int n_in, n_out;
    const ad_tensor *in;
    struct tape_site site;
    bool fixed; /* no replay calls it again */
    struct tape_custom custom;
    uint32_t value[TAPE_MAX_IN], made[TAPE_CUSTOM_MAX_OUT];
    struct kernel_shape shape[TAPE_CUSTOM_MAX_OUT];
};

/* False: the tape's error says what is not right. */
static bool custom_check_rule(const struct custom_args *j, const ad_tensor *out)
{
    const ad_custom_rule *rule = j->rule;
    const unsigned flags = AD_SAVES_OPERANDS | AD_SAVES_RESULTS | AD_SWEPT_ALWAYS |
                           AD_WRITES_FRESH | AD_SWEPT_COMPLETE;
    const unsigned both = AD_SWEPT_ALWAYS | AD_SWEPT_COMPLETE;
    const int least = rule && (rule->saves & both) == AD_SWEPT_ALWAYS ? 0 : 1;
    const char *lacks = !rule                    ? "rule"
                        : !rule->name            ? "the rule's name"
                        : !rule->forward         ? "the rule's forward"
                        : !rule->pullback        ? "the rule's pullback"
                        : !j->in && j->n_in != 0 ? "in"
                        : !out                   ? "out"
                                                 : NULL;
    if (lacks)
        tape_fail(j->t, TAPE_ERROR_ARGUMENT, j->site, "%s: %s is a null pointer",
                  rule && rule->name ? rule->name : "custom", lacks);
    else if (j->n_in < least || j->n_in > TAPE_MAX_IN || j->n_out < 1 ||
             j->n_out > TAPE_CUSTOM_MAX_OUT)
        tape_fail(j->t, TAPE_ERROR_ARGUMENT, j->site,
                  "%s: %d operands and %d results, from %d to %d and from 1 to %d are possible",
                  rule->name, j->n_in, j->n_out, least, (int)TAPE_MAX_IN, (int)TAPE_CUSTOM_MAX_OUT);
    else if (rule->saves & ~flags)
        tape_fail(j->t, TAPE_ERROR_ARGUMENT, j->site,
                  "%s: %#x in `saves` is no flag: those are AD_SAVES_OPERANDS, AD_SAVES_RESULTS, "
                  "AD_SWEPT_ALWAYS, AD_WRITES_FRESH and AD_SWEPT_COMPLETE",
                  rule->name, rule->saves & ~flags);
    else if ((rule->saves & both) == AD_SWEPT_COMPLETE)
        tape_fail(j->t, TAPE_ERROR_ARGUMENT, j->site,
                  "%s: AD_SWEPT_COMPLETE in `saves` goes with AD_SWEPT_ALWAYS", rule->name);
    else if (j->t->fork->base)
        tape_fail(j->t, TAPE_ERROR_STATE, j->site, "%s: a fork records statements alone",
                  rule->name);
    else
        return true;
    return false;
}

static bool custom_find_operands(struct custom_args *j)
{
    bool found = true;
    for (int i = 0; i < j->n_in && found; i++) {
        j->value[i] = ad_value_on(j->t, j->in[i], j->site, "%s: in[%d]", j->rule->name, i);
        found = j->value[i] != 0;
        if (found && j->rule->saves & AD_SWEPT_COMPLETE &&
            !(j->t->entries[j->value[i]].flags & TAPE_LEAF)) {
            tape_fail(j->t, TAPE_ERROR_ARGUMENT, j->site,
                      "%s: in[%d] is no leaf, whose gradient it waits for; the call is",
                      j->rule->name, i);
            found = false;
        }
    }
    return found;
}

/* Operands without gaps: what has gaps has axes, and joined with nothing it is a copy of any
 * dtype. */
static enum tape_status custom_fill_gaps(struct custom_args *j)
{
    const int64_t axis = 0;
    enum tape_status status = TAPE_OK;
    for (int i = 0; i < j->n_in && status == TAPE_OK; i++)
        if (!j->t->entries[j->value[i]].array.contiguous)
            status = tape_apply(j->t, &kernel_op_concat, 1, &j->value[i], 1, &axis, j->site,
                                &j->value[i]);
    return status;
}

/* What was said of result o becomes its shape. */
static enum tape_status custom_shape(struct custom_args *j, int o, const ad_custom_array *said)
{
    struct tape *t = j->t;
    char what[96];
    int64_t stride[KERNEL_MAX_RANK];
    (void)snprintf(what, sizeof what, "%s: result %d", j->rule->name, o);
    if ((unsigned)said->dtype >= KERNEL_DTYPES)
        return tape_fail(t, TAPE_ERROR_DTYPE, j->site, "%s: %d is no dtype", what,
                         (int)said->dtype);
    if (tape_extents_check(t, what, said->rank, said->shape, j->site) != TAPE_OK)
        return t->error.code;
    if (kernel_strides(said->rank, said->shape, kernel_dtype_bytes((int)said->dtype), stride) < 0)
        return tape_fail(t, TAPE_ERROR_SHAPE, j->site, "%s: the size of the shape overflows", what);
    j->shape[o] = (struct kernel_shape){
        .dtype = (uint8_t)said->dtype, .rank = (uint8_t)said->rank, .same_as = -1, .view_of = -1};
    memcpy(j->shape[o].extent, said->shape, (size_t)said->rank * sizeof *said->shape);
    return TAPE_OK;
}

static enum tape_status custom_shapes(struct custom_args *j)
{
    ad_custom_array in[TAPE_MAX_IN], out[TAPE_CUSTOM_MAX_OUT];
    const ad_custom_rule *rule = j->rule;
    in[0] = (ad_custom_array){.dtype = AD_F64}; /* what results are like where there is none */
    ad_custom_call call = {
        .n_in = j->n_in, .n_out = j->n_out, .in = in, .out = out, .own_bytes = rule->own_bytes};
    for (int i = 0; i < j->n_in; i++) {
        custom_array(&j->t->entries[j->value[i]].array, &in[i]);
        in[i].data = NULL;
    }
    for (int o = 0; o < j->n_out; o++) {
        out[o] = rule->results ? rule->results[o] : in[0];
        out[o].data = NULL;
    }
    if (rule->shape && !custom_call(j->t, &j->custom, rule->shape, "shape", &call, j->site))
        return j->t->error.code;
    if (rule->own && call.own_bytes < rule->own_bytes)
        return tape_fail(j->t, TAPE_ERROR_ARGUMENT, j->site,
                         "%s: its shape asks for %zu bytes of its own, `own` has %zu", rule->name,
                         call.own_bytes, rule->own_bytes);
    j->custom.own_bytes = call.own_bytes;
    enum tape_status status = TAPE_OK;
    for (int o = 0; o < j->n_out && status == TAPE_OK; o++)
        status = custom_shape(j, o, &out[o]);
    return status;
}

static enum tape_status custom_make(struct custom_args *j, void *payload, const ad_tensor *out)
{
    struct tape *t = j->t;
    const ad_custom_rule *rule = j->rule;
    if (t->error.code != TAPE_OK)
        return t->error.code;
    if (!custom_check_rule(j, out) || !custom_find_operands(j))
        return t->error.code;
    j->custom = (struct tape_custom){.face = j->fixed ? &face_fixed : &face,
                                     .name = rule->name,
                                     .forward = (void (*)(void))rule->forward,
                                     .pullback = (void (*)(void))rule->pullback,
                                     .graph = (void (*)(void))rule->graph,
                                     .payload = payload,
                                     .slot = j->tape.slot,
                                     .generation = j->tape.generation,
                                     .n_results = (uint32_t)j->n_out,
                                     .saves = rule->saves};
    const struct tape_mark before = tape_mark_here(t);
    enum tape_status status = custom_fill_gaps(j);
    if (status == TAPE_OK) {
        tape_account_enter(t, j->site, rule->name);
        status = custom_shapes(j);
        if (status == TAPE_OK)
            status =
                tape_custom(t, &j->custom, j->n_in, j->value, j->shape,
                            (struct tape_custom_own){rule->own, rule->own ? rule->own_bytes : 0},
                            j->site, j->made);
        t->entered.is = false;
    }
    if (status != TAPE_OK)
        tape_drop_behind(t, &before);
    return status;
}

static ad_status custom_enter(ad_tape tape, const ad_custom_rule *rule, void *payload, int n_in,
                              const ad_tensor *in, int n_out, ad_tensor *out, bool fixed,
                              struct tape_site site)
{
    const char *name = rule && rule->name ? rule->name : "custom";
    struct tape *t = ad_tape_find(tape.slot, tape.generation, name, site);
    struct custom_args j = {.t = t,
                            .tape = tape,
                            .rule = rule,
                            .n_in = n_in,
                            .n_out = n_out,
                            .in = in,
                            .site = site,
                            .fixed = fixed};
    const ad_status status = t ? (ad_status)custom_make(&j, payload, out) : ad_failed();
    for (int o = 0; o < n_out && out; o++)
        out[o] = status == AD_OK ? ad_handle_of(t, tape.slot, tape.generation, j.made[o])
                 : t             ? (ad_tensor){tape.slot, tape.generation, 0, 0}
                                 : (ad_tensor){0, 0, 0, 0};
    return status;
}

ad_status ad_custom_run(ad_tape tape, const ad_custom_rule *rule, void *payload, int n_in,
                        const ad_tensor *in, int n_out, ad_tensor *out, struct tape_site site)
{
    return custom_enter(tape, rule, payload, n_in, in, n_out, out, true, site);
}

ad_status ad_custom_site(ad_tape tape, const ad_custom_rule *rule, void *payload, int n_in,
                         const ad_tensor *in, int n_out, ad_tensor *out, unsigned ad_line_)
{
    return custom_enter(tape, rule, payload, n_in, in, n_out, out, false, AD_HERE);
}

ad_status ad_custom_from(ad_tape tape, const ad_custom_rule *rule, void *payload, int n_in,
                         const ad_tensor *in, int n_out, ad_tensor *out, const void *caller,
                         unsigned line)
{
    return custom_enter(tape, rule, payload, n_in, in, n_out, out, false,
                        (struct tape_site){(uintptr_t)caller, line});
}

void ad_custom_where(const void *caller, unsigned line, char *text, size_t n)
{
    if (text && n > 0)
        ad_describe((struct tape_site){(uintptr_t)caller, line}, text, n);
}
