/* plain_blas_memory.c: operands of BLAS and LAPACK in memory: read with their indices, and given
 * new ones; and how a wrapper calls the program's own function. */
#include "plain_blas.h"

#include "plain_calls.h"
#include "plain_shadow.h"

#include <stdio.h>
#include <stdlib.h>

__thread uintptr_t ad_plain_real_;

/* ---- the call ---- */

void plain_call_begin(struct plain_call *call)
{
    call->real = ad_plain_real_;
    for (unsigned k = 0; k < 2; k++)
        call->index[k] = ad_plain_callee_ == call->self ? ad_plain_arguments_[k] : 0;
    ad_plain_callee_ = 0;
}

void plain_call_enter(struct plain_call *call)
{
    /* It may have been compiled by `tapescope cc` too: then it takes these, and says so. */
    for (unsigned k = 0; k < 2; k++)
        ad_plain_arguments_[k] = call->index[k];
    ad_plain_callee_ = call->real;
    ad_plain_returned_ = 0;
}

void plain_call_leave(struct plain_call *call)
{
    call->recorded = ad_plain_returned_ == call->real;
    call->result = call->recorded ? ad_plain_results_[0] : 0;
    ad_plain_callee_ = 0;
}

struct plain_held {
    struct plain_held *next;
    double begin[];
};

void *plain_call_memory(struct plain_call *call, size_t n, size_t size)
{
    size_t bytes;
    struct plain_held *held = NULL;
    if (!__builtin_mul_overflow(n, size, &bytes) &&
        !__builtin_add_overflow(bytes, sizeof *held + 1, &bytes))
        held = malloc(bytes);
    if (!held) {
        if (!call->failed)
            plain_call_lost(call, "there is no memory for its operands");
        call->failed = true;
        return NULL;
    }
    held->next = call->held;
    call->held = held;
    return held->begin;
}

void plain_call_end(struct plain_call *call)
{
    while (call->held) {
        struct plain_held *held = call->held;
        call->held = held->next;
        free(held);
    }
    ad_plain_results_[0] = call->result;
    ad_plain_returned_ = call->self;
}

void plain_call_lost(const struct plain_call *call, const char *why)
{
    char text[160];
    snprintf(text, sizeof text, "%s: %s", call->name, why);
    ad_plain_lost_(text, ad_plain_is_strict_, call->pc);
}

/* ---- numbers ---- */

ad_real plain_argument(const struct plain_call *call, unsigned k, double value)
{
    const uint32_t index = call->index[k];
    return (ad_real){value, index, index ? ad_plain_tag_(index) : 0};
}

static double value_at(const void *at, bool is_float)
{
    if (is_float) {
        float x;
        memcpy(&x, at, sizeof x);
        return (double)x;
    }
    double x;
    memcpy(&x, at, sizeof x);
    return x;
}

static uint32_t index_at(const void *at)
{
    uint32_t index;
    memcpy(&index, plain_shadow(at), sizeof index);
    return index;
}

ad_real plain_number(const struct plain_call *call, const void *at)
{
    if (!call->is_float)
        return plain_looked(at, call->pc);
    uint32_t tag, bits;
    memcpy(&tag, plain_checks(at), sizeof tag);
    memcpy(&bits, at, sizeof bits);
    return plain_real(value_at(at, true), index_at(at), tag ^ bits, call->pc);
}

/* ---- views ---- */

static size_t size_of(const struct plain_call *call)
{
    return call->is_float ? sizeof(float) : sizeof(double);
}

static void *place(const struct plain_call *call, const struct plain_view *v, int64_t i, int64_t j)
{
    int64_t k = i * v->row + j * v->column;
    if (v->packed) {
        /* Row i of column j, or column i of row j: in the lower half columns become shorter. */
        const bool by_columns = v->row < v->column;
        const bool lower = (v->part == PLAIN_LOWER) == by_columns;
        const int64_t within = by_columns ? i : j, line = by_columns ? j : i;
        k = within + (lower ? line * (2 * v->n - line - 1) / 2 : line * (line + 1) / 2);
    }
    return (char *)v->at + k * (int64_t)size_of(call);
}

static bool is_in(const struct plain_view *v, int64_t i, int64_t j)
{
    if (v->part == PLAIN_WHOLE)
        return true;
    if (i == j)
        return !v->unit;
    return (i > j) == (v->part == PLAIN_LOWER);
}

/* The same elements in the order of memory: the outer of two loops goes over the greater steps. */
static struct plain_view in_order(const struct plain_view *v)
{
    const bool by_columns = llabs(v->row) <= llabs(v->column);
    return by_columns ? *v : plain_flipped(*v);
}

bool plain_any(const struct plain_call *call, const struct plain_view *view)
{
    const struct plain_view v = in_order(view);
    for (int64_t j = 0; j < v.n; j++)
        for (int64_t i = 0; i < v.m; i++)
            if (is_in(&v, i, j) && index_at(place(call, &v, i, j)) != 0)
                return true;
    return false;
}

struct plain_numbers plain_read_view(struct plain_call *call, const struct plain_view *v)
{
    struct plain_numbers numbers = {.m = v->m, .n = v->n};
    ad_real *x = plain_call_memory(call, (size_t)v->m * (size_t)v->n, sizeof *x);
    numbers.x = x;
    for (int64_t j = 0; x && j < v->n; j++)
        for (int64_t i = 0; i < v->m; i++, x++) {
            if (is_in(v, i, j))
                *x = plain_number(call, place(call, v, i, j));
            else if (v->symmetric)
                *x = plain_number(call, place(call, v, j, i));
            else
                *x = (ad_real){i == j, 0, 0};
            numbers.active |= x->index != 0;
        }
    return numbers;
}

double *plain_values_of(struct plain_call *call, const struct plain_view *v)
{
    double *values = plain_call_memory(call, (size_t)v->m * (size_t)v->n, sizeof *values);
    double *x = values;
    for (int64_t j = 0; x && j < v->n; j++)
        for (int64_t i = 0; i < v->m; i++, x++)
            *x = is_in(v, i, j) ? value_at(place(call, v, i, j), call->is_float) : i == j;
    return values;
}

static void name(const struct plain_call *call, void *at, uint32_t index, uint32_t tag)
{
    uint32_t bits;
    memcpy(plain_shadow(at), &index, sizeof index);
    if (call->is_float) {
        memcpy(&bits, at, sizeof bits);
        bits ^= tag;
        memcpy(plain_checks(at), &bits, sizeof bits);
    } else {
        bits = plain_folded(value_at(at, false)) ^ tag;
        memcpy((char *)plain_shadow(at) + sizeof index, &bits, sizeof bits);
    }
}

/* What is a constant already stays untouched, and so does its shadow's page. */
static void forget_view(const struct plain_call *call, const struct plain_view *view)
{
    const struct plain_view v = in_order(view);
    for (int64_t j = 0; j < v.n; j++)
        for (int64_t i = 0; i < v.m; i++) {
            void *at = place(call, &v, i, j);
            if (is_in(&v, i, j) && index_at(at) != 0)
                name(call, at, 0, 0);
        }
}

void plain_name_view(const struct plain_call *call, const struct plain_view *v, const ad_real *y)
{
    if (!y) {
        forget_view(call, v);
        return;
    }
    for (int64_t j = 0; j < v->n; j++)
        for (int64_t i = 0; i < v->m; i++)
            if (is_in(v, i, j))
                name(call, place(call, v, i, j), y[i + j * v->m].index, y[i + j * v->m].tag);
}
