/* common_inputs.c: the function F of common_workloads.h, in arrays. */
#include "common_inputs.h"

#include <math.h>
#include <stdlib.h>

static size_t element_bytes(const struct workload *w)
{
    return w->dtype == AD_F32 ? sizeof(float) : sizeof(double);
}

static void put(const struct workload *w, void *array, int64_t i, double value)
{
    if (w->dtype == AD_F32)
        ((float *)array)[i] = (float)value;
    else
        ((double *)array)[i] = value;
}

void *input_array(struct workload *w, size_t bytes)
{
    void *array = calloc(1, bytes);
    if (array)
        w->array[w->n_arrays++] = array;
    return array;
}

void input_fill(const struct workload *w, void *array, int64_t at, int64_t n, double offset,
                double scale, int p)
{
    for (int64_t i = 0; array && i < n; ++i) {
        double scaled = scale * sin(0.37 * (double)i + p + (double)(i * i % 1009));
        put(w, array, at + i, offset + scaled);
    }
}

/* Without memory the array is NULL, which the tape refuses: its error says so. */
static ad_tensor tensor_over(struct workload *w, bool parameter, int rank, const int64_t *shape,
                             const void *array)
{
    if (!parameter)
        return ad_constant(w->tape, w->dtype, rank, shape, array);
    ad_tensor leaf = ad_leaf(w->tape, w->dtype, rank, shape, array);
    w->parameter[w->n_parameters++] = leaf;
    return leaf;
}

ad_tensor input_rounded(struct workload *w, int rank, const int64_t *shape, double steps)
{
    int64_t n = 1;
    for (int k = 0; k < rank; ++k)
        n *= shape[k];
    void *array = input_array(w, (size_t)n * element_bytes(w));
    for (int64_t i = 0; array && i < n; ++i)
        put(w, array, i, floor(steps * sin(0.37 * (double)i + (double)(i * i % 1009))) / steps);
    return tensor_over(w, true, rank, shape, array);
}

ad_tensor input_tensor(struct workload *w, bool parameter, int rank, const int64_t *shape,
                       double offset, double scale, int p)
{
    int64_t n = 1;
    for (int k = 0; k < rank; ++k)
        n *= shape[k];
    void *array = input_array(w, (size_t)n * element_bytes(w));
    input_fill(w, array, 0, n, offset, scale, p);
    return tensor_over(w, parameter, rank, shape, array);
}

ad_tensor input_vector(struct workload *w, bool parameter, int64_t n, double value)
{
    void *array = input_array(w, (size_t)n * element_bytes(w));
    for (int64_t i = 0; array && i < n; ++i)
        put(w, array, i, value);
    return tensor_over(w, parameter, 1, &n, array);
}
