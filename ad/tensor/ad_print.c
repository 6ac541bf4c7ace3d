/* ad_print.c: a tensor as text, in NumPy's form.
 *
 * Nothing is allocated: the shown elements are formatted twice, first to find the width of the
 * column.
 */
#include "ad_internal.h"
#include "plain_format.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { EDGE = 3, WHOLE = 1000, LINE = 79, NUMBER_BYTES = 32 };

struct print {
    FILE *file;
    kernel_ref array;
    bool shortened;
    int width;  /* of a number */
    int column; /* characters on the present line */
    bool failed;
};

/* One element, "1.", "-0.25", "3e-09", "nan", "7"; returns its length. */
static int format(kernel_ref a, int64_t at, char *text)
{
    if (a->dtype == KERNEL_I64)
        return snprintf(text, NUMBER_BYTES, "%lld", (long long)((const int64_t *)a->data)[at]);
    const bool narrow = a->dtype == KERNEL_F32;
    const double x = narrow ? (double)((const float *)a->data)[at] : ((const double *)a->data)[at];
    if (isnan(x)) /* whose sign printf would show */
        return snprintf(text, NUMBER_BYTES, "nan");
    int n = plain_format(text, NUMBER_BYTES, narrow ? "%.6g" : "%.8g", x);
    /* A whole number keeps a point, so that floats look like floats. */
    if (!strpbrk(text, ".en"))
        n += snprintf(text + n, (size_t)(NUMBER_BYTES - n), ".");
    return n;
}

/* The index after i along an axis, with the middle left out; *gap says so. */
static int64_t next(const struct print *p, int64_t i, int64_t extent, bool *gap)
{
    *gap = p->shortened && extent > 2 * EDGE && i == EDGE - 1;
    return *gap ? extent - EDGE : i + 1;
}

static void measure(struct print *p, int axis, int64_t at)
{
    char text[NUMBER_BYTES];
    bool gap;
    if (axis == p->array->rank) {
        int n = format(p->array, at, text);
        p->width = n > p->width ? n : p->width;
        return;
    }
    int64_t extent = p->array->shape[axis];
    for (int64_t i = 0; i < extent; i = next(p, i, extent, &gap))
        measure(p, axis + 1, at + i * p->array->strides[axis]);
}

static void put(struct print *p, const char *text, int width)
{
    int n = fprintf(p->file, "%*s", width, text);
    p->failed = p->failed || n < 0;
    p->column += n > 0 ? n : 0;
}

/* New lines, then the brackets that are open as spaces. */
static void new_line(struct print *p, int lines, int indent)
{
    while (lines-- > 0)
        put(p, "\n", 0);
    p->column = 0;
    put(p, "", indent);
}

/* What stands between two elements of an axis. */
static void separate(struct print *p, int axis, int width)
{
    int below = p->array->rank - 1 - axis;
    if (below > 0)
        new_line(p, below, axis + 1);
    else if (p->column + 1 + width > LINE)
        new_line(p, 1, axis + 1);
    else
        put(p, " ", 0);
}

static void write_axis(struct print *p, int axis, int64_t at)
{
    if (axis == p->array->rank) {
        char text[NUMBER_BYTES];
        format(p->array, at, text);
        put(p, text, p->width);
        return;
    }
    int64_t extent = p->array->shape[axis];
    bool gap = false;
    put(p, "[", 0);
    for (int64_t i = 0; i < extent;) {
        write_axis(p, axis + 1, at + i * p->array->strides[axis]);
        i = next(p, i, extent, &gap);
        if (gap) {
            separate(p, axis, 3);
            put(p, "...", 0);
        }
        if (i < extent)
            separate(p, axis, p->width);
    }
    put(p, "]", 0);
}

ad_status ad_tensor_print_site(FILE *file, ad_tensor x, unsigned ad_line_)
{
    struct tape_site site = AD_HERE;
    struct tape *t;
    ad_status status;
    char text[256];
    uint32_t v = ad_value_find(x, "tensor_print", 0, site, &t, &status);
    if (!v)
        return status;
    if (!file)
        return (ad_status)tape_fail(t, TAPE_ERROR_ARGUMENT, site,
                                    "tensor_print: file is a null pointer");
    struct print p = {.file = file, .array = &t->entries[v].array};
    p.shortened = p.array->size > WHOLE;
    kernel_describe(p.array, text, sizeof text);
    put(&p, text, 0);
    new_line(&p, 1, 0);
    if (p.array->size > 0) {
        measure(&p, 0, 0);
        write_axis(&p, 0, 0);
    } else {
        put(&p, "[]", 0);
    }
    put(&p, "\n", 0);
    if (p.failed)
        return ad_fail(AD_ERROR_STATE, site, "tensor_print: %s", strerror(errno));
    return AD_OK;
}
