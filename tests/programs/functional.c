/* functional.c: derivatives of functions as a whole, whose costs test_functional_lines finds on
 * their lines. Lines are marked.
 */
#include <tapescope/ad.h>
#include <tapescope/ad_file.h>
#include <tapescope/ad_tensor_sparse.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 8 };

static double data[N] = {1, 2, 3, 4, 5, 6, 7, 8}, weights[N] = {8, 7, 6, 5, 4, 3, 2, 1};
static double gradient[2][N];
static void *const gradients[] = {gradient[0], gradient[1]};
static const int64_t shape[] = {N}, counts[] = {N, N};

/* tanh(x w): two values, [N] each. */
static ad_tensor several(ad_tape tape, const ad_tensor *x, int n, void *payload)
{
    (void)tape, (void)n, (void)payload;
    ad_tensor product = ad_mul(x[0], x[1]); // @mul
    return ad_tanh(product);                // @tanh
}

static ad_tensor one(ad_tape tape, const ad_tensor *x, int n, void *payload)
{
    ad_tensor y = several(tape, x, n, payload);
    return ad_sum(y); // @sum
}

static ad_tensor half(ad_tape tape, const ad_tensor *x, int n, void *payload)
{
    (void)tape, (void)n, (void)payload;
    return ad_sin(x[0]); // @sin
}

struct model {
    double w[N];
    ad_tensor leaf;
};

static void visit(void *of, ad_visitor *v)
{
    struct model *m = of;
    ad_visit(v, "w", &m->leaf, AD_F64, 1, shape, m->w); // @member
}

static ad_status visited(ad_tape tape)
{
    static struct model model, of_model;
    ad_status status = ad_visit_leaves(tape, visit, &model);
    ad_tensor y = ad_sin(model.leaf); // @of member
    ad_tensor s = ad_sum(y);          // @sum of member
    if (status == AD_OK)
        status = ad_backward(s); // @sweep
    if (status == AD_OK)
        status = ad_visit_gradients(tape, visit, &model, &of_model);
    return status;
}

static ad_status from_a_file(ad_tape tape, const ad_tensor *x)
{
    static const char *const names[2] = {"data", "weights"};
    char path[] = "/dev/shm/tapescope-functional-XXXXXX";
    ad_tensor y[2];
    const int fd = mkstemp(path);
    if (fd < 0)
        return AD_ERROR_STATE;
    close(fd);
    ad_status status = ad_save(tape, path, 2, names, x);
    if (status == AD_OK)
        status = ad_load(tape, path, 2, names, y); // @load
    unlink(path);
    ad_tensor product = ad_mul(y[0], y[1]);           // @of loaded
    ad_tensor s = ad_sum(product);                    // @sum of loaded
    return status == AD_OK ? ad_backward(s) : status; // @sweep of loaded
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    ad_tape tape;
    ad_status status = ad_tape_create(&tape, NULL);
    ad_tensor x[2];
    x[0] = ad_leaf(tape, AD_F64, 1, shape, data);    // @leaf
    x[1] = ad_leaf(tape, AD_F64, 1, shape, weights); // @weights
    if (status == AD_OK && strcmp(name, "gradient") == 0)
        status = ad_value_and_gradient(tape, one, 2, x, NULL, NULL, gradients, counts); // @call
    const void *const along[2] = {weights, data};
    double square[N * N];
    if (status == AD_OK && strcmp(name, "jvp") == 0)
        status = ad_jvp(tape, several, 2, x, NULL, along, counts, NULL, square, N); // @jvp
    if (status == AD_OK && strcmp(name, "hvp") == 0)
        status = ad_hvp(tape, one, 2, x, NULL, along, gradients, counts); // @hvp
    if (status == AD_OK && strcmp(name, "hessian") == 0) {
        double matrix[4 * N * N];
        status = ad_hessian(tape, one, 2, x, NULL, matrix, 4 * N * N); // @hessian
    }
    if (status == AD_OK && strcmp(name, "diagonal") == 0)
        status = ad_hessian_diagonal(tape, one, 2, x, NULL, gradients, counts); // @diagonal
    if (status == AD_OK && strcmp(name, "visit") == 0)
        status = visited(tape);
    if (status == AD_OK && strcmp(name, "file") == 0)
        status = from_a_file(tape, x);
    if (status == AD_OK && strcmp(name, "rows") == 0) {
        void *const matrix[1] = {square};
        const int64_t elements[1] = {N * N};
        status =
            ad_jacobian(tape, half, 1, x, NULL, AD_JACOBIAN_BY_SHAPE, matrix, elements); // @rows
    }
    if (status == AD_OK && strcmp(name, "sparse") == 0) {
        ad_sparse_pattern p;
        status = ad_jacobian_pattern(tape, half, 1, x, NULL, &p); // @pattern
        if (status == AD_OK)
            status = ad_jacobian_sparse(tape, half, 1, x, NULL, &p, square, N); // @sparse
        ad_sparse_free(&p);
    }
    if (status == AD_OK && strcmp(name, "pullback") == 0) {
        ad_pullback pullback = ad_pullback_begin(tape, several, 2, x, NULL); // @begin
        for (int i = 0; i < 3 && status == AD_OK; i++)
            status = ad_pullback_call(pullback, data, N, gradients, counts); // @pull
        if (status == AD_OK)
            status = ad_pullback_end(pullback);
    }
    return status != AD_OK || ad_tape_status(tape) != AD_OK;
}
