/* fault_workloads_functional.c: workloads of derivatives of functions as a whole: each call leaves
 * nothing on the tape, whether it fails or not.
 */
#include "fault_workloads.h"

#include <tapescope/ad_tensor_sparse.h>

#include <string.h>

enum { N = 4 };

/* The rows of x times w, [N,N]. */
static ad_tensor several(ad_tape tape, const ad_tensor *x, int n, void *payload)
{
    (void)tape;
    (void)n;
    (void)payload;
    return ad_tanh(ad_matmul(x[0], ad_square(x[1])));
}

static ad_tensor energy(ad_tape tape, const ad_tensor *x, int n, void *payload)
{
    return ad_sum(ad_square(several(tape, x, n, payload)));
}

/* n numbers are results. */
static void note(struct fault_results *out, ad_status status, const double *number, int n)
{
    for (int i = 0; i < n && status == AD_OK; i++)
        out->number[out->n++] = number[i];
}

void fault_value_and_gradient(ad_tape tape, struct fault_results *out)
{
    double value = 0, g[2][N * N];
    const ad_tensor x[] = {fault_leaf(tape, N, N), fault_leaf(tape, N, N)};
    void *const to[] = {g[0], g[1]};
    const int64_t counts[] = {N * N, N * N};
    note(out, DO(ad_value_and_gradient(tape, energy, 2, x, NULL, &value, to, counts)), &value, 1);
    note(out, ad_tape_status(tape), &g[0][0], 2 * N * N);
    note(out, DO(ad_value_and_gradient(tape, energy, 2, x, NULL, NULL, to, counts)), &g[0][0], 1);
}

void fault_pullbacks(ad_tape tape, struct fault_results *out)
{
    double g[2][N * N];
    const ad_tensor x[] = {fault_leaf(tape, N, N), fault_leaf(tape, N, N)};
    void *const to[] = {g[0], g[1]};
    const int64_t counts[] = {N * N, N * N};
    fault_look();
    const ad_pullback pullback = ad_pullback_begin(tape, several, 2, x, NULL);
    if (pullback.generation == 0)
        fault_status_done(ad_tape_status(tape));
    for (int i = 0; i < 2; i++) {
        const double *seed = fault_data + i;
        note(out, DO(ad_pullback_call(pullback, seed, N * N, to, counts)), &g[0][0], 2 * N * N);
    }
    ad_pullback_end(pullback);
}

void fault_directional(ad_tape tape, struct fault_results *out)
{
    double derivative[N * N], product[2][N * N];
    const ad_tensor x[] = {fault_leaf(tape, N, N), fault_leaf(tape, N, N)};
    const void *const along[] = {fault_data + 3, fault_data + 5};
    void *const to[] = {product[0], product[1]};
    const int64_t counts[] = {N * N, N * N};
    note(out, DO(ad_jvp(tape, several, 2, x, NULL, along, counts, NULL, derivative, N * N)),
         derivative, N * N);
    note(out, DO(ad_hvp(tape, energy, 2, x, NULL, along, to, counts)), &product[0][0], 2 * N * N);
}

/* Of two rows of the above and one column: two results, of six numbers. */
void fault_matrices(ad_tape tape, struct fault_results *out)
{
    double matrix[36], diagonal[6];
    const ad_tensor x[] = {fault_leaf(tape, 2, 2), fault_leaf(tape, 2, 1)};
    void *const parts[] = {matrix, matrix + 8}, *const to[] = {diagonal, diagonal + 4};
    const int64_t counts[] = {8, 4}, own[] = {4, 2};
    for (int order = AD_JACOBIAN_ROWS; order <= AD_JACOBIAN_COLUMNS; order++)
        note(out,
             DO(ad_jacobian(tape, several, 2, x, NULL, (ad_jacobian_order)order, parts, counts)),
             matrix, 12);
    note(out, DO(ad_hessian(tape, energy, 2, x, NULL, matrix, 36)), matrix, 36);
    note(out, DO(ad_hessian_diagonal(tape, energy, 2, x, NULL, to, own)), diagonal, 6);
}

/* One row of two, or its square. */
static ad_tensor taken(ad_tape tape, const ad_tensor *x, int n, void *payload)
{
    static const int64_t index[] = {1};
    const ad_tensor rows = ad_index_select(several(tape, x, n, payload),
                                           ad_constant(tape, AD_I64, 1, SHAPE(1), index), 0);
    return payload ? ad_sum(ad_square(rows)) : rows;
}

void fault_sparse_tensors(ad_tape tape, struct fault_results *out)
{
    double values[36];
    const ad_tensor x[] = {fault_leaf(tape, 2, 2), fault_leaf(tape, 2, 1)};
    ad_sparse_pattern p;
    if (DO(ad_jacobian_pattern(tape, taken, 2, x, NULL, &p)) == AD_OK) {
        note(out, DO(ad_jacobian_sparse(tape, taken, 2, x, NULL, &p, values, p.n_values)), values,
             4);
        ad_sparse_free(&p);
    }
    if (DO(ad_hessian_pattern(tape, taken, 2, x, &p, &p)) == AD_OK) {
        note(out, DO(ad_hessian_sparse(tape, taken, 2, x, &p, &p, values, p.n_values)), values, 4);
        ad_sparse_free(&p);
    }
}

struct model {
    double w[N * N], b[N];
    ad_tensor w_leaf, b_leaf;
};

static void visit(void *of, ad_visitor *v)
{
    struct model *m = of;
    ad_visit(v, "w", &m->w_leaf, AD_F64, 2, SHAPE(N, N), m->w);
    ad_visit(v, "b", &m->b_leaf, AD_F64, 1, SHAPE(N), m->b);
}

void fault_visits(ad_tape tape, struct fault_results *out)
{
    struct model model, gradients;
    memset(&model, 0, sizeof model);
    memset(&gradients, 0, sizeof gradients);
    memcpy(model.w, fault_data, sizeof model.w);
    memcpy(model.b, fault_data + N, sizeof model.b);
    DO(ad_visit_leaves(tape, visit, &model));
    ad_tensor y = OP(ad_add(model.w_leaf, model.b_leaf));
    y = OP(ad_square(y));
    y = OP(ad_sum(y));
    DO(ad_backward(y));
    if (DO(ad_visit_gradients(tape, visit, &model, &gradients)) == AD_OK) {
        note(out, AD_OK, gradients.w, N * N);
        note(out, AD_OK, gradients.b, N);
    }
}
