/* test_kernel_rules.c: pullbacks of all ops against central differences, first and second order.
 *
 * A pullback is run in both rule contexts: in place, and recorded on a list of nodes that is then
 * swept, which gives second derivatives. Seeds are fixed.
 */
#include "kernel.h"
#include "kernel_ops.h"
#include "run_cases.h"
#include "sample_raise.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NODES = 256 };

/* A value of the list; a kernel_ref of it is a pointer to it. */
struct value {
    struct kernel_array array;
    struct kernel_array adjoint; /* dense, no data until something arrives */
    int64_t shape[KERNEL_MAX_RANK], strides[KERNEL_MAX_RANK], adjoint_strides[KERNEL_MAX_RANK];
    void *owned;
    bool fixed; /* no derivative in it is asked for */
};

struct node {
    const struct kernel_op *op;
    struct value *in[KERNEL_MAX_IN], *out[KERNEL_MAX_OUT];
    int64_t attr[KERNEL_MAX_ATTR];
    int n_in, n_attr;
};

static struct node nodes[MAX_NODES];
static int n_nodes;
static struct value *values[16 * MAX_NODES];
static int n_values;
static struct value *gradients[KERNEL_MAX_IN]; /* what a recorded pullback has accumulated */

static struct value *value_new(int dtype, int rank, const int64_t *shape)
{
    struct value *v = calloc(1, sizeof *v);
    ck_assert_msg(n_values < (int)(sizeof values / sizeof *values), "too many values");
    values[n_values++] = v;
    memcpy(v->shape, shape, sizeof *shape * (size_t)rank);
    v->array = (struct kernel_array){.shape = v->shape,
                                     .strides = v->strides,
                                     .size = kernel_strides(rank, shape, 8, v->strides),
                                     .dtype = (uint8_t)dtype,
                                     .rank = (uint8_t)rank,
                                     .contiguous = true};
    memcpy(v->adjoint_strides, v->strides, sizeof v->strides);
    v->adjoint = v->array;
    v->adjoint.strides = v->adjoint_strides;
    return v;
}

static void value_allocate(struct value *v)
{
    v->owned = calloc((size_t)v->array.size + 1, 8);
    v->array.data = v->owned;
}

static void list_clear(void)
{
    for (int i = 0; i < n_values; i++) {
        free(values[i]->owned);
        free(values[i]->adjoint.data);
        free(values[i]);
    }
    n_values = n_nodes = 0;
    memset(gradients, 0, sizeof gradients);
}

static void run_call(struct kernel_call *call)
{
    const size_t bytes = kernel_workspace(call);
    void *const space = bytes > 0 ? aligned_alloc(64, (bytes + 63) & ~(size_t)63) : NULL;
    call->workspace = bytes > 0 ? space : KERNEL_NO_WORKSPACE;
    ck_assert_msg(kernel_run(call) == 0, "%s", call->error);
    free(space);
}

/* Runs an op on values and puts it on the list. */
static struct value *apply(const struct kernel_op *op, int n_in, const kernel_ref *in, int n_attr,
                           const int64_t *attr)
{
    char error[KERNEL_ERROR_BYTES] = "";
    struct kernel_shape shapes[KERNEL_MAX_OUT];
    struct kernel_array *out[KERNEL_MAX_OUT];
    struct kernel_call call = {.op = op,
                               .in = in,
                               .attr = attr,
                               .n_in = n_in,
                               .n_out = op->n_out,
                               .n_attr = n_attr,
                               .out = out,
                               .error = error};
    ck_assert_msg(n_nodes < MAX_NODES, "too many ops");
    struct node *node = &nodes[n_nodes++];
    *node = (struct node){.op = op, .n_in = n_in, .n_attr = n_attr};
    for (int i = 0; i < n_attr; i++)
        node->attr[i] = attr[i];
    for (int i = 0; i < n_in; i++)
        node->in[i] = (struct value *)(uintptr_t)in[i];
    ck_assert_msg(kernel_infer(&call, shapes) == 0, "%s", error);
    for (int o = 0; o < op->n_out; o++) {
        const struct kernel_shape *s = &shapes[o];
        if (s->same_as >= 0)
            node->out[o] = value_new(s->dtype, in[s->same_as]->rank, in[s->same_as]->shape);
        else
            node->out[o] = value_new(s->dtype, s->rank, s->extent);
        out[o] = &node->out[o]->array;
        if (s->view_of < 0) {
            value_allocate(node->out[o]);
            continue;
        }
        memcpy(node->out[o]->strides, s->stride, sizeof s->stride);
        out[o]->data = (char *)in[s->view_of]->data + (size_t)s->offset * 8;
        int64_t dense[KERNEL_MAX_RANK];
        (void)kernel_strides(s->rank, s->extent, 8, dense);
        out[o]->contiguous = memcmp(dense, s->stride, sizeof *dense * s->rank) == 0;
    }
    if (shapes[0].view_of < 0)
        run_call(&call);
    return node->out[0];
}

static void list_emit(struct kernel_rule *rule, const struct kernel_op *op, int n_in,
                      const kernel_ref *in, int n_attr, const int64_t *attr, kernel_ref *results)
{
    (void)rule;
    for (int o = 0; o < op->n_out; o++)
        results[o] = NULL;
    for (int i = 0; i < n_in; i++)
        if (in[i] == NULL)
            return;
    apply(op, n_in, in, n_attr, attr);
    for (int o = 0; o < op->n_out; o++)
        results[o] = &nodes[n_nodes - 1].out[o]->array;
}

/* The sweep's inner emissions are no part of the list. */
static void place_emit(struct kernel_rule *rule, const struct kernel_op *op, int n_in,
                       const kernel_ref *in, int n_attr, const int64_t *attr, kernel_ref *results)
{
    const int before = n_nodes;
    list_emit(rule, op, n_in, in, n_attr, attr, results);
    n_nodes = before;
}

static void place_add(struct value *to, const struct kernel_op *op, int n_in, const kernel_ref *in,
                      int n_attr, const int64_t *attr)
{
    if (to->adjoint.data == NULL)
        to->adjoint.data = calloc((size_t)to->adjoint.size + 1, 8);
    struct kernel_array *out[] = {&to->adjoint};
    char error[KERNEL_ERROR_BYTES];
    struct kernel_call call = {.op = op,
                               .in = in,
                               .out = out,
                               .attr = attr,
                               .n_in = n_in,
                               .n_out = 1,
                               .n_attr = n_attr,
                               .accumulate = true,
                               .error = error};
    run_call(&call);
}

static const struct node *pulled;

static void place_accumulate(struct kernel_rule *rule, int input, const struct kernel_op *op,
                             int n_in, const kernel_ref *in, int n_attr, const int64_t *attr)
{
    struct value *to = pulled->in[input];
    for (int i = 0; i < n_in; i++)
        if (in[i] == NULL)
            return;
    if (!op->accumulates) { /* it is run apart, and its result is added */
        const kernel_ref result = kernel_emit(rule, op, n_in, in, n_attr, attr);
        place_add(to, &kernel_op_copy, 1, &result, 0, NULL);
        return;
    }
    place_add(to, op, n_in, in, n_attr, attr);
}

static void list_accumulate(struct kernel_rule *rule, int input, const struct kernel_op *op,
                            int n_in, const kernel_ref *in, int n_attr, const int64_t *attr)
{
    kernel_ref value = kernel_emit(rule, op, n_in, in, n_attr, attr);
    const kernel_ref x = rule->in[input];
    if (value->rank != x->rank || memcmp(value->shape, x->shape, x->rank * sizeof *x->shape) != 0)
        value = &apply(&kernel_op_sum_to, 1, &value, x->rank, x->shape)->array;
    if (gradients[input] != NULL) {
        const kernel_ref both[] = {&gradients[input]->array, value};
        value = &apply(&kernel_op_add, 2, both, 0, NULL)->array;
    }
    gradients[input] = (struct value *)(uintptr_t)value;
}

static const struct kernel_rule_class in_place = {false, place_emit, place_accumulate, NULL};
static const struct kernel_rule_class recorded = {true, list_emit, list_accumulate, NULL};

/* Runs a node's pullback with these adjoints of its outputs. In place it sees no data but what the
 * op says that it saves. */
static void pull(const struct node *node, const struct kernel_rule_class *class_,
                 const kernel_ref *adjoint)
{
    kernel_ref in[KERNEL_MAX_IN], out[KERNEL_MAX_OUT];
    struct kernel_array bare[KERNEL_MAX_IN + KERNEL_MAX_OUT];
    struct kernel_rule rule = {.class_ = class_,
                               .op = node->op,
                               .in = in,
                               .out = out,
                               .adjoint = adjoint,
                               .attr = node->attr,
                               .n_in = node->n_in,
                               .n_out = node->op->n_out,
                               .n_attr = node->n_attr};
    for (int i = 0; i < node->n_in; i++) {
        in[i] = &node->in[i]->array;
        if (in[i]->dtype != KERNEL_I64 && !node->in[i]->fixed)
            rule.needs |= UINT64_C(1) << i;
    }
    for (int o = 0; o < node->op->n_out; o++)
        out[o] = &node->out[o]->array;
    for (int k = 0; !class_->records && k < node->n_in + node->op->n_out; k++) {
        const int o = k - node->n_in;
        kernel_ref *const ref = o < 0 ? &in[k] : &out[o];
        bare[k] = **ref;
        if (!((o < 0 ? node->op->saves_in >> k : node->op->saves_out >> o) & 1))
            bare[k].data = NULL;
        *ref = &bare[k];
    }
    pulled = node;
    node->op->pullback(&rule);
}

static void sweep(void)
{
    const int n = n_nodes;
    for (int i = n - 1; i >= 0; i--) {
        const struct node node = nodes[i];
        kernel_ref adjoint[KERNEL_MAX_OUT];
        bool any = false;
        for (int o = 0; o < node.op->n_out; o++) {
            adjoint[o] = node.out[o]->adjoint.data != NULL ? &node.out[o]->adjoint : NULL;
            any = any || adjoint[o] != NULL;
        }
        if (any)
            pull(&node, &in_place, adjoint);
    }
}

static uint64_t random_state;

static double uniform(double low, double high)
{
    random_state = random_state * 6364136223846793005U + 1442695040888963407U;
    return low + (high - low) * (double)(random_state >> 11) / 9007199254740992.0;
}

/* What a test case starts from, so that it can be built again with one element moved. */
struct start {
    const struct kernel_op *op;
    struct kernel_sample sample;
    double x[KERNEL_MAX_IN][512], seed[KERNEL_MAX_OUT][512], second[KERNEL_MAX_IN][512];
};

/* Drawn as whole numbers: integers, and floats between which an op switches. */
static bool is_whole(const struct start *s, int i)
{
    return s->sample.dtype[i] == KERNEL_I64 || (s->sample.switches >> i & 1) != 0;
}

/* Integers count as nothing: no gradient is asked of them. */
static double inner(const struct value *v, const double *weight)
{
    double sum = 0;
    ck_assert_msg(v->array.contiguous || v->array.size <= 512, "too large");
    for (int64_t i = 0; v->array.dtype != KERNEL_I64 && i < v->array.size; i++) {
        int64_t offset = 0, rest = i;
        for (int axis = v->array.rank - 1; axis >= 0; axis--) {
            offset += rest % v->shape[axis] * v->strides[axis];
            rest /= v->shape[axis];
        }
        sum += weight[i] * ((const double *)v->array.data)[offset];
    }
    return sum;
}

/* What has arrived at each input's adjoint. */
static void read_adjoints(double (*to)[512], int64_t *size)
{
    for (int i = 0; i < nodes[0].n_in; i++) {
        const struct value *x = nodes[0].in[i];
        size[i] = x->array.size;
        memset(to[i], 0, sizeof to[i]);
        if (x->adjoint.data != NULL)
            memcpy(to[i], x->adjoint.data, sizeof(double) * (size_t)size[i]);
    }
}

static struct value *value_of(kernel_ref like, const double *data)
{
    struct value *v = value_new(KERNEL_F64, like->rank, like->shape);
    value_allocate(v);
    memcpy(v->owned, data, sizeof(double) * (size_t)v->array.size);
    return v;
}

/* Builds the op on its inputs: values 0..n_in-1, then the outputs. */
static struct node *build(const struct start *s)
{
    kernel_ref in[KERNEL_MAX_IN];
    list_clear();
    for (int i = 0; i < s->sample.n_in; i++) {
        struct value *v = value_new(s->sample.dtype[i], s->sample.rank[i], s->sample.shape[i]);
        value_allocate(v);
        v->fixed = is_whole(s, i);
        for (int64_t k = 0; k < v->array.size; k++) {
            if (s->sample.dtype[i] == KERNEL_I64)
                ((int64_t *)v->owned)[k] = (int64_t)s->x[i][k];
            else
                ((double *)v->owned)[k] = s->x[i][k];
        }
        in[i] = &v->array;
    }
    (void)apply(s->op, s->sample.n_in, in, s->sample.n_attr, s->sample.attr);
    return &nodes[0];
}

/* sum over outputs of <seed, out> */
static double first_value(const struct start *s)
{
    const struct node *node = build(s);
    double sum = 0;
    for (int o = 0; o < s->op->n_out; o++)
        sum += inner(node->out[o], s->seed[o]);
    return sum;
}

static struct value *seeds[KERNEL_MAX_OUT];

/* Records the pullback with the seeds as adjoints; the sum over inputs of <second, gradient>. */
static double second_value(const struct start *s)
{
    const struct node node = *build(s);
    kernel_ref adjoint[KERNEL_MAX_OUT];
    for (int o = 0; o < s->op->n_out; o++) {
        seeds[o] = value_of(&node.out[o]->array, s->seed[o]);
        adjoint[o] = &seeds[o]->array;
    }
    pull(&node, &recorded, adjoint);
    double sum = 0;
    for (int i = 0; i < s->sample.n_in; i++)
        if (gradients[i] != NULL)
            sum += inner(gradients[i], s->second[i]);
    return sum;
}

static double central(struct start *s, double *element, double (*f)(const struct start *))
{
    const double h = 1e-5, old = *element;
    *element = old + h;
    const double above = f(s);
    *element = old - h;
    const double below = f(s);
    *element = old;
    return (above - below) / (2 * h);
}

static void check_close(double ours, double numeric, const struct start *s, const char *what, int i,
                        int64_t k)
{
    ck_assert_msg(fabs(ours - numeric) <= 2e-7 * (1 + fabs(numeric)),
                  "%s: %s of input %d element %lld is %.12g, central difference %.12g", s->op->name,
                  what, i, (long long)k, ours, numeric);
}

static void start_make(struct start *s, const struct kernel_op *op)
{
    s->op = op;
    for (int i = 0; i < s->sample.n_in; i++)
        for (int k = 0; k < 512; k++) {
            double x = uniform(s->sample.low[i], s->sample.high[i]);
            /* Operands on lattices of their own: differences reach no kink at zero or at a tie. */
            const double on_lattice = (floor(x * 1000) + (i + 0.5) / s->sample.n_in) / 1000;
            s->x[i][k] = is_whole(s, i) ? floor(x) : on_lattice;
            s->second[i][k] = uniform(-1, 1);
        }
    for (int i = 0; i < s->sample.n_in; i++)
        sample_raise(s->sample.diagonal[i], s->sample.rank[i], s->sample.shape[i], s->x[i]);
    for (int o = 0; o < KERNEL_MAX_OUT; o++)
        for (int k = 0; k < 512; k++)
            s->seed[o][k] = uniform(-1, 1);
}

static void first_order(struct start *s)
{
    static double ours[KERNEL_MAX_IN][512];
    int64_t size[KERNEL_MAX_IN];
    (void)build(s);
    const struct node node = nodes[0];
    kernel_ref adjoint[KERNEL_MAX_OUT];
    for (int o = 0; o < s->op->n_out; o++)
        adjoint[o] = &value_of(&node.out[o]->array, s->seed[o])->array;
    pull(&node, &in_place, adjoint);
    read_adjoints(ours, size);
    pull(&node, &recorded, adjoint);
    for (int i = 0; i < s->sample.n_in; i++)
        for (int64_t k = 0; gradients[i] != NULL && k < size[i]; k++) {
            double pick[512] = {0};
            pick[k] = 1;
            const double other = inner(gradients[i], pick);
            ck_assert_msg(fabs(ours[i][k] - other) <= 1e-12 * (1 + fabs(other)),
                          "%s: in place %.17g, recorded %.17g", s->op->name, ours[i][k], other);
        }
    for (int i = 0; i < s->sample.n_in; i++)
        for (int64_t k = 0; !is_whole(s, i) && k < size[i]; k++)
            check_close(ours[i][k], central(s, &s->x[i][k], first_value), s, "gradient", i, k);
}

static void second_order(struct start *s)
{
    static double ours[KERNEL_MAX_IN][512], ours_seed[KERNEL_MAX_OUT][512];
    int64_t size[KERNEL_MAX_IN], seed_size[KERNEL_MAX_OUT];
    (void)second_value(s);
    memset(ours_seed, 0, sizeof ours_seed);
    for (int i = 0; i < s->sample.n_in; i++) {
        if (gradients[i] == NULL)
            continue;
        const kernel_ref in = &value_of(&gradients[i]->array, s->second[i])->array;
        place_add(gradients[i], &kernel_op_copy, 1, &in, 0, NULL);
    }
    sweep();
    read_adjoints(ours, size);
    for (int o = 0; o < s->op->n_out; o++) {
        seed_size[o] = seeds[o]->array.size;
        if (seeds[o]->adjoint.data != NULL)
            memcpy(ours_seed[o], seeds[o]->adjoint.data, sizeof(double) * (size_t)seed_size[o]);
    }
    for (int i = 0; i < s->sample.n_in; i++)
        for (int64_t k = 0; !is_whole(s, i) && k < size[i]; k++)
            check_close(ours[i][k], central(s, &s->x[i][k], second_value), s, "second order", i, k);
    for (int o = 0; o < s->op->n_out; o++)
        for (int64_t k = 0; k < seed_size[o]; k++)
            check_close(ours_seed[o][k], central(s, &s->seed[o][k], second_value), s, "of the seed",
                        o, k);
}

static void every_sample(void (*check)(struct start *))
{
    static struct start s;
    int n;
    const struct kernel_op *const *ops = kernel_ops(&n);
    for (int i = 0; i < n; i++)
        for (int k = 0; ops[i]->sample(k, &s.sample); k++) {
            /* Of this op and sample alone, or another op would move maxima towards each other. */
            random_state = 20240501 + (uint64_t)k;
            for (const char *c = ops[i]->name; *c; c++)
                random_state = random_state * 31 + (uint64_t)(unsigned char)*c;
            start_make(&s, ops[i]);
            check(&s);
        }
    list_clear();
}

TEST(pullbacks_agree_with_central_differences)
{
    every_sample(first_order);
}

TEST(recorded_pullbacks_have_right_derivatives)
{
    every_sample(second_order);
}

RUN_TESTS(NULL, NULL)
