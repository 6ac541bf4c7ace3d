/* tape_apply.c: one op forward: shapes, outputs, kernel, record.
 *
 * May include: tape_call.h, tape_guard.h, tape_now.h, tape_scope.h, tape_shape.h,
 * tape_statement.h, tape_trap.h.
 * All or nothing: an op that fails leaves no value and no record.
 */
#include "tape_call.h"
#include "tape_guard.h"
#include "tape_now.h"
#include "tape_scope.h"
#include "tape_shape.h"
#include "tape_statement.h"
#include "tape_trap.h"

#include <string.h>

/* Into both of the functions at the end. */
#define INLINE __attribute__((always_inline)) inline

/* Runs the kernel with its workspace. */
INLINE static enum tape_status run(struct tape *t, struct kernel_call *call, uint32_t row,
                                   struct tape_site site)
{
    size_t n = call->op->workspace ? kernel_workspace(call) : 0;
    if (n > 0 && !(call->workspace = tape_arena_buffer(&t->arena, n)))
        return tape_fail_memory(t, site, call->op->name);
    if (n > 0)
        tape_account_buffer(t, row, n);
    int refused = kernel_run(call);
    if (n > 0) {
        tape_arena_free(&t->arena, call->workspace, n);
        tape_account_free(t, row, n);
    }
    return refused ? tape_fail(t, TAPE_ERROR_VALUE, site, "%s", call->error) : TAPE_OK;
}

INLINE static struct tape_record *record_make(struct tape *t, const struct kernel_call *call,
                                              const uint32_t *in, uint32_t first_out, uint32_t row)
{
    size_t n = sizeof(struct tape_record) + (size_t)call->n_attr * sizeof(int64_t) +
               (size_t)(call->n_in + call->n_out) * sizeof(uint32_t);
    n = (n + 7) / 8 * 8;
    tape_statement_settle(t);
    size_t offset = (size_t)(t->arena.record_top - t->arena.record_base) / 8;
    if (offset >= UINT32_MAX)
        return NULL;
    struct tape_record *r = tape_arena_record(&t->arena, n);
    if (!r)
        return NULL;
    *r = (struct tape_record){.op = call->op,
                              .previous = t->last_record,
                              .row = row,
                              .n_in = (uint16_t)call->n_in,
                              .n_out = (uint8_t)call->n_out,
                              .n_attr = (uint8_t)call->n_attr,
                              .bytes = (uint32_t)n};
    if (call->n_attr)
        memcpy(tape_record_attr(r), call->attr, (size_t)call->n_attr * sizeof(int64_t));
    memcpy(tape_record_in(r), in, (size_t)call->n_in * sizeof *in);
    for (int o = 0; o < call->n_out; o++)
        tape_record_out(r)[o] = first_out + (uint32_t)o;
    t->last_record = (uint32_t)offset;
    t->n_records++;
    return r;
}

static void account(struct tape *t, const struct kernel_call *call, uint32_t row,
                    const struct tape_record *record, uint64_t start, uint64_t now)
{
    struct tape_row *r = tape_row(t, row);
    const struct kernel_cost cost = kernel_cost_of(call);
    const bool again = t->activity == TAPE_PHASE_RECOMPUTE;
    TAPE_ADD(*(again ? &r->recompute_flops : &r->forward_flops), cost.flops);
    TAPE_ADD(*(again ? &r->recompute_moved : &r->forward_moved), cost.bytes);
    start = tape_account_until(t, row, start, now, 1);
    tape_account_event(t, TAPE_EVENT_FORWARD, row, record, start, now, false);
}

INLINE static bool needs_gradient(const struct tape *t, const struct kernel_op *op, int n_in,
                                  const uint32_t *in)
{
    if (t->no_grad || op->constant)
        return false;
    for (int i = 0; i < n_in; i++)
        if (t->entries[in[i]].flags & TAPE_NEEDS_GRADIENT)
            return true;
    return false;
}

/* hook: that observes, or NULL, which is known where this is compiled in. */
INLINE static enum tape_status apply(struct tape *t, const struct kernel_op *op, int n_in,
                                     const uint32_t *in, int n_attr, const int64_t *attr,
                                     struct tape_site site, uint32_t *out, struct tape_hook *hook)
{
    const uint64_t start = hook ? tape_account_start(t) : 0;
    char error[KERNEL_ERROR_BYTES];
    kernel_ref operand[TAPE_MAX_IN];
    struct kernel_array *output[KERNEL_MAX_OUT];
    struct kernel_shape shape[KERNEL_MAX_OUT];
    struct kernel_call call = {.op = op,
                               .in = operand,
                               .out = output,
                               .attr = attr,
                               .n_in = n_in,
                               .n_out = op->n_out,
                               .n_attr = n_attr,
                               .error = error};
    for (int i = 0; i < n_in; i++)
        operand[i] = &t->entries[in[i]].array;
    int refused = kernel_infer(&call, shape);
    if (__builtin_expect(refused != 0, 0))
        return tape_fail(t,
                         refused == KERNEL_REFUSED_DTYPE       ? TAPE_ERROR_DTYPE
                         : refused == KERNEL_REFUSED_ATTRIBUTE ? TAPE_ERROR_ARGUMENT
                                                               : TAPE_ERROR_SHAPE,
                         site, "%s", error);

    struct tape_point point = tape_point_take(t);
    uint32_t row = hook && hook->shapes ? tape_shape_row(t, site, op->name, shape, n_in, operand)
                                        : tape_account_row(t, site, op->name);
    tape_now_path(t, row);
    uint32_t first_out = t->n_values;
    enum tape_status status = TAPE_OK;
    bool view = shape[0].view_of >= 0;
    for (int o = 0; o < op->n_out && status == TAPE_OK; o++) {
        struct tape_value *v = tape_value_make(t, &shape[o], operand, row);
        if (!v)
            status = tape_fail_memory(t, site, op->name);
        else
            output[o] = &v->array;
    }
    const bool trap = __builtin_expect(t->trap != 0, 0) && !view; /* a view has no new numbers */
    if (trap && status == TAPE_OK)
        status = tape_trap_operands(t, op->name, n_in, in, site);
    if (status == TAPE_OK && !view)
        status = run(t, &call, row, site);
    if (trap && status == TAPE_OK)
        status = tape_trap_results(t, op, n_in, in, first_out, site);
    if (__builtin_expect(t->calls.innermost != NULL, 0) && status == TAPE_OK &&
        !tape_call_op(t, op, n_in, in, n_attr, attr))
        status = tape_fail_memory(t, site, op->name);
    struct tape_record *record = NULL;
    const bool active = status == TAPE_OK && needs_gradient(t, op, n_in, in);
    if (active && !t->calls.dry) {
        if (!op->saves_in || tape_guard_saved(t, op, n_in, in, row))
            record = record_make(t, &call, in, first_out, row);
        if (!record)
            status = tape_fail_memory(t, site, op->name);
    }
    if (__builtin_expect(status != TAPE_OK, 0)) {
        tape_point_undo(t, point);
        return status;
    }
    const uint64_t end = hook ? hook->clock() : 0; /* what follows is no time of the op's */
    for (int o = 0; o < op->n_out; o++) {
        out[o] = first_out + (uint32_t)o;
        struct tape_value *v = &t->entries[out[o]];
        if (active && v->array.dtype != KERNEL_I64)
            v->flags |= TAPE_NEEDS_GRADIENT;
        if (hook)
            tape_account_value(t, v);
    }
    if (hook) {
        if (record) {
            tape_account_guards(t, point.last_guard);
            tape_account_record(t, record);
            tape_account_kept(t, record);
            TAPE_ADD(t->ledger.records, 1);
            tape_scope_records++;
        }
        account(t, &call, row, record, start, end);
    }
    return TAPE_OK;
}

__attribute__((noinline)) static enum tape_status
apply_observed(struct tape *t, const struct kernel_op *op, int n_in, const uint32_t *in, int n_attr,
               const int64_t *attr, struct tape_site site, uint32_t *out, struct tape_hook *hook)
{
    TAPE_DOING(t, tape_phase_forward(t), site, op->name);
    return apply(t, op, n_in, in, n_attr, attr, site, out, hook);
}

enum tape_status tape_apply(struct tape *t, const struct kernel_op *op, int n_in,
                            const uint32_t *in, int n_attr, const int64_t *attr,
                            struct tape_site site, uint32_t *out)
{
    struct tape_hook *hook = tape_observed(t);
    if (__builtin_expect(hook != NULL || t->now != NULL, 0))
        return apply_observed(t, op, n_in, in, n_attr, attr, site, out, hook);
    return apply(t, op, n_in, in, n_attr, attr, site, out, NULL);
}
