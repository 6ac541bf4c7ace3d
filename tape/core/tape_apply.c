/* tape_apply.c: one op forward: shapes, outputs, kernel, record.
 *
 * All or nothing: an op that fails leaves no value and no record.
 */
#include "tape_call.h"
#include "tape_disk.h"
#include "tape_guard.h"
#include "tape_nonfinite.h"
#include "tape_now.h"
#include "tape_observer.h"
#include "tape_record_watch.h"
#include "tape_teller.h"

#include <string.h>

/* Into both of the functions at the end. */
#define INLINE __attribute__((always_inline)) inline

/* Runs the kernel with its workspace. */
INLINE static enum tape_status call_run(struct tape *t, struct kernel_call *call, uint32_t row,
                                        struct tape_site site)
{
    size_t n = call->op->workspace ? kernel_workspace(call) : 0;
    call->workspace = KERNEL_NO_WORKSPACE;
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

/* The same where the call is told, and not run. */
static enum tape_status call_tell(struct tape *t, struct kernel_call *call, uint32_t row,
                                  struct tape_site site)
{
    const size_t n = kernel_workspace(call);
    call->workspace = KERNEL_NO_WORKSPACE;
    if (n > 0 && !(call->workspace = tape_arena_buffer(&t->arena, n)))
        return tape_fail_memory(t, site, call->op->name);
    t->teller->call(t->teller, call, row);
    if (n > 0)
        tape_arena_free(&t->arena, call->workspace, n);
    return TAPE_OK;
}

/* The same where the user asked to be told of numbers that are not finite. */
static enum tape_status call_run_checked(struct tape *t, struct kernel_call *call,
                                         const uint32_t *in, uint32_t first_out, uint32_t row,
                                         struct tape_site site)
{
    enum tape_status status = tape_nonfinite_operands(t, call->op->name, call->n_in, in, site);
    if (status == TAPE_OK)
        status = call_run(t, call, row, site);
    if (status == TAPE_OK)
        status = tape_nonfinite_results(t, call->op, call->n_in, in, first_out, site);
    return status;
}

INLINE static struct tape_record *record_make(struct tape *t, const struct kernel_call *call,
                                              const uint32_t *in, uint32_t first_out, uint32_t row)
{
    size_t n = sizeof(struct tape_record) + (size_t)call->n_attr * sizeof(int64_t) +
               (size_t)(call->n_in + call->n_out) * sizeof(uint32_t);
    n = (n + 7) / 8 * 8;
    tape_settle(t);
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
    for (int i = 0; i < call->n_in; i++)
        tape_record_in(r)[i] = in[i];
    for (int o = 0; o < call->n_out; o++)
        tape_record_out(r)[o] = first_out + (uint32_t)o;
    t->last_record = (uint32_t)offset;
    t->n_records++;
    return r;
}

static enum tape_status op_refuse(struct tape *t, int refused, struct tape_site site,
                                  const char *error)
{
    return tape_fail(t,
                     refused == KERNEL_REFUSED_DTYPE       ? TAPE_ERROR_DTYPE
                     : refused == KERNEL_REFUSED_ATTRIBUTE ? TAPE_ERROR_ARGUMENT
                                                           : TAPE_ERROR_SHAPE,
                     site, "%s", error);
}

/* Values of these shapes, which the call writes to. active: floats among them need a gradient. */
INLINE static bool outputs_make(struct tape *t, const struct kernel_call *call,
                                const struct kernel_shape *shape, uint32_t row, bool active,
                                struct kernel_array **output)
{
    for (int o = 0; o < call->n_out; o++) {
        struct tape_value *v = tape_value_make(t, &shape[o], call->in, row);
        if (!v)
            return false;
        if (active && v->array.dtype != KERNEL_I64)
            v->flags |= TAPE_NEEDS_GRADIENT;
        output[o] = &v->array;
    }
    return true;
}

/* hook: that observes, or NULL, which is known where this is compiled in. */
INLINE static enum tape_status op_apply(struct tape *t, const struct kernel_op *op, int n_in,
                                        const uint32_t *in, int n_attr, const int64_t *attr,
                                        struct tape_site site, uint32_t *out,
                                        struct tape_hook *hook)
{
    const uint64_t start = hook ? tape_account_entered(t, site, op->name) : 0;
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
    uint32_t flags = 0; /* of any operand */
    for (int i = 0; i < n_in; i++) {
        operand[i] = &t->entries[in[i]].array;
        flags |= t->entries[in[i]].flags;
    }
    const bool active = (flags & TAPE_NEEDS_GRADIENT) && !t->no_grad && !op->constant;
    const int refused = kernel_infer(&call, shape);
    if (__builtin_expect(refused != 0, 0))
        return op_refuse(t, refused, site, error);
    if (!tape_disk_need_values(t, op->name, n_in, in, site))
        return t->error.code;

    const struct tape_point point = tape_point_take(t);
    const uint32_t row = tape_op_begin(t, hook, &call, shape, site), first_out = t->n_values;
    struct tape_record *record = NULL;
    enum tape_status status = TAPE_OK;
    if (!outputs_make(t, &call, shape, row, active, output))
        status = tape_fail_memory(t, site, op->name);
    if (status == TAPE_OK && shape[0].view_of < 0) /* a view has no new numbers */
        status = __builtin_expect(t->nonfinite != 0, 0)
                     ? call_run_checked(t, &call, in, first_out, row, site)
                     : call_run(t, &call, row, site);
    if (__builtin_expect(t->calls.innermost != NULL, 0) && status == TAPE_OK &&
        !tape_call_op(t, op, n_in, in, n_attr, attr))
        status = tape_fail_memory(t, site, op->name);
    if (status == TAPE_OK && (active || t->replays == TAPE_REPLAYS_RECORDED) && !t->calls.dry) {
        if (!active || !op->saves_in || tape_guard_saved(t, op, n_in, in, row))
            record = record_make(t, &call, in, first_out, row);
        if (!record)
            status = tape_fail_memory(t, site, op->name);
    }
    if (__builtin_expect(status != TAPE_OK, 0)) {
        tape_point_undo(t, point);
        return status;
    }
    const uint64_t end = hook ? hook->clock() : 0; /* what follows is no time of the op's */
    for (int o = 0; o < op->n_out; o++)
        out[o] = first_out + (uint32_t)o;
    if (hook)
        tape_op_end(t, &call,
                    &(struct tape_op_watch){first_out, point.last_guard, row, start, end, in},
                    record);
    if (record && tape_watches(t))
        tape_watch_record(t, record, kernel_results(op), site);
    return TAPE_OK;
}

__attribute__((noinline)) static enum tape_status
op_apply_observed(struct tape *t, const struct kernel_op *op, int n_in, const uint32_t *in,
                  int n_attr, const int64_t *attr, struct tape_site site, uint32_t *out,
                  struct tape_hook *hook)
{
    if (t->activity == TAPE_PHASE_FORWARD) /* ad_create_graph has said what is done */
        return op_apply(t, op, n_in, in, n_attr, attr, site, out, hook);
    TAPE_DOING(t, tape_phase_forward(t), site, op->name);
    return op_apply(t, op, n_in, in, n_attr, attr, site, out, hook);
}

enum tape_status tape_apply(struct tape *t, const struct kernel_op *op, int n_in,
                            const uint32_t *in, int n_attr, const int64_t *attr,
                            struct tape_site site, uint32_t *out)
{
    struct tape_hook *hook = tape_observed(t);
    if (__builtin_expect(hook != NULL || t->now != NULL, 0))
        return op_apply_observed(t, op, n_in, in, n_attr, attr, site, out, hook);
    return op_apply(t, op, n_in, in, n_attr, attr, site, out, NULL);
}

enum tape_status tape_apply_again(struct tape *t, struct tape_record *r)
{
    char error[KERNEL_ERROR_BYTES];
    kernel_ref operand[TAPE_MAX_IN];
    struct kernel_array *output[KERNEL_MAX_OUT];
    const uint32_t *in = tape_record_in(r), first_out = tape_record_out(r)[0];
    struct kernel_call call = {.op = r->op,
                               .in = operand,
                               .out = output,
                               .attr = tape_record_attr(r),
                               .n_in = r->n_in,
                               .n_out = r->n_out,
                               .n_attr = r->n_attr,
                               .error = error};
    enum tape_status status = TAPE_OK;
    for (int i = 0; i < r->n_in; i++)
        operand[i] = &t->entries[in[i]].array;
    for (int o = 0; o < r->n_out; o++)
        output[o] = &t->entries[first_out + (uint32_t)o].array;
    const struct tape_site site = tape_row_site(t, r->row);
    if (t->entries[first_out].root == first_out) /* a view has no new numbers */
        status = __builtin_expect(t->teller != NULL, 0) ? call_tell(t, &call, r->row, site)
                 : __builtin_expect(t->nonfinite != 0, 0)
                     ? call_run_checked(t, &call, in, first_out, r->row, site)
                     : call_run(t, &call, r->row, site);
    if (__builtin_expect(t->hook != NULL, 0) && status == TAPE_OK)
        tape_op_again(t, &call, r);
    return status;
}
