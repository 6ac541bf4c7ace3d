/* ad_custom.h: ops of the user's own over tensors, whose derivatives he says. Included by ad.h.
 *
 *     static ad_status cube(ad_custom_call *c, void *payload)           // y = x^3
 *     {
 *         const double *x = c->in[0].data;
 *         for (int64_t i = 0; i < c->in[0].size; i++)
 *             ((double *)c->out[0].data)[i] = x[i] * x[i] * x[i];
 *         return AD_OK;
 *     }
 *
 *     static ad_status cube_pullback(ad_custom_call *c, void *payload)  // x' += 3 x^2 y'
 *     {
 *         const double *x = c->in[0].data, *g = c->out_adjoint[0].data;
 *         for (int64_t i = 0; i < c->in[0].size; i++)
 *             ((double *)c->in_adjoint[0].data)[i] += 3 * x[i] * x[i] * g[i];
 *         return AD_OK;
 *     }
 *
 *     static const ad_custom_rule rule = {.name = "cube", .forward = cube,
 *                                         .pullback = cube_pullback, .saves = AD_SAVES_OPERANDS};
 *     ad_custom(tape, &rule, NULL, 1, &x, 1, &y);
 *
 * docs/how-to/custom-ops.md has more. Numbers have ad_real_custom (ad_real_fused_loops.h), plain C
 * has ad_plain_rule (ad_plain.h).
 */
#include <tapescope/ad.h> /* which includes this one where its types are there */

#ifndef TAPESCOPE_AD_CUSTOM_H
#define TAPESCOPE_AD_CUSTOM_H

#ifdef __cplusplus
extern "C" {
#endif

enum { AD_CUSTOM_MAX_RESULTS = 32, AD_CUSTOM_MESSAGE = 256 };

/* What a rule saves for its pullback: such buffers stay on the tape until the sweep, and count as
 * every op's residuals do. */
enum {
    AD_SAVES_OPERANDS = 1, /* in[].data are there in the pullback, and in[] in `graph` */
    AD_SAVES_RESULTS = 2,  /* the same of out[] */
    /* Saves nothing: something outside the tape depends on the op, or the op on that (a message
     * that is sent, one that is received). It is recorded whether an operand needs a gradient or
     * not, its results of floats need one, and each sweep from a tensor or numbers that passes the
     * record runs the pullback, in its turn, also where no adjoint has come to a result. Nobody
     * reads out_adjoint[].data afterwards: the pullback may write there. It may have no operands:
     * n_in = 0, then a result is f64 [] unless the rule says another shape. */
    AD_SWEPT_ALWAYS = 4,
    /* The pullback overwrites all of an adjoint that is in_fresh: such are not zeroed before. */
    AD_WRITES_FRESH = 8,
    /* With AD_SWEPT_ALWAYS, of operands that are leaves alone: the pullback runs not in its turn,
     * but as soon as their adjoints are complete: when the sweep has passed the oldest record that
     * reads one of them, and the newer ops of this flag have run. So these run in the order of the
     * calls, reversed. It may change the adjoints in place. The results need no gradient. */
    AD_SWEPT_COMPLETE = 16
};

/* A tensor's buffer as a rule's function sees it. Valid during the call. */
typedef struct ad_custom_array {
    void *data;   /* [size] elements of dtype, row-major without gaps; NULL: not there */
    int64_t size; /* product of the extents */
    ad_dtype dtype;
    int rank;
    int64_t shape[AD_MAX_RANK];
} ad_custom_array;

/* One call of a rule's function. */
typedef struct ad_custom_call {
    int n_in, n_out;
    const ad_custom_array *in; /* [n_in] operands, not to be written to; in a pullback without
                                * AD_SAVES_OPERANDS, and in `shape`, data is NULL */
    /* [n_out] results. `shape` sets dtype, rank and shape of each, which are in[0]'s when it is
     * called; forward writes all of data; in a pullback data is NULL without AD_SAVES_RESULTS. */
    ad_custom_array *out;
    /* The pullback's, else NULL. [n_out]: adjoints of the results, data NULL where none has come,
     * which means zeros. [n_in]: adjoints of the operands, to be ADDED to, never overwritten: other
     * uses of an operand may have added already. data is NULL where no adjoint is wanted. One
     * tensor that is two operands has one buffer for both. */
    const ad_custom_array *out_adjoint;
    ad_custom_array *in_adjoint;
    /* Bytes of the call's own: forward writes, the pullback reads. 64-byte aligned, not zeroed;
     * NULL if there are none. `shape` may change own_bytes; what the rule's `own` gave
     * stands at the begin. */
    void *own;
    size_t own_bytes;
    char *message; /* [AD_CUSTOM_MESSAGE], "": a function that fails may say why */
    /* The pullback's, else NULL. [n_in]: nobody has added to the operand's adjoint yet, so that it
     * may be overwritten instead. It is zeros, but with AD_WRITES_FRESH. */
    const bool *in_fresh;
    /* 0. A pullback of AD_SWEPT_COMPLETE may set it to the bytes of memory outside the tape that it
     * uses until the sweep ends. They count as adjoints of the op's line, and in the budget: a
     * sweep that has no room for them fails with AD_ERROR_MEMORY. */
    size_t held_bytes;
} ad_custom_call;

/* A function of a rule. It computes on buffers and cannot use the tape: AD_ERROR_STATE, in the
 * thread's error. It runs in the tape's thread, and must return (no longjmp). What it returns other
 * than AD_OK is the tape's error then, with the rule's name, c->message, and the line of ad_custom.
 */
typedef ad_status ad_custom_function(ad_custom_call *c, void *payload);

/* The derivative, to be recorded by ops on c->tape. */
typedef struct ad_custom_graph_call {
    ad_tape tape;
    int n_in, n_out;
    const ad_tensor *in, *out;    /* those that the rule saves, else zero handles */
    const ad_tensor *out_adjoint; /* [n_out]; a zero handle where none has come */
    ad_tensor *in_adjoint;        /* [n_in], zero handles: to be set to tensors of in[i]'s shape and
                                   * dtype. Left zero: no derivative by this operand */
    const void *own;              /* as in the pullback */
    char *message;
} ad_custom_graph_call;

/* Records what the pullback computes, by ad_ ops (and ad_custom): the same numbers, so that
 * ad_create_graph, and derivatives of what it records, go through the op. It may do what the
 * function of a checkpoint may (ad_checkpoint.h). */
typedef ad_status ad_custom_graph_function(ad_custom_graph_call *c, void *payload);

/* A rule. It is copied; `name` must stay: a profile, messages and the page show it. */
typedef struct ad_custom_rule {
    const char *name;
    ad_custom_function *shape;       /* NULL: results are like in[0] */
    ad_custom_function *forward;     /* needed */
    ad_custom_function *pullback;    /* needed */
    ad_custom_graph_function *graph; /* NULL: ad_create_graph through the op is refused */
    unsigned saves;                  /* of the flags above, joined by | */
    size_t own_bytes;                /* of each call's own */
    const void *own;                 /* [own_bytes] that these begin as, copied; NULL: not set */
    /* [n_out], or NULL: dtype, rank and shape of the results, instead of in[0]'s; needed only
     * during the call. */
    const ad_custom_array *results;
} ad_custom_rule;

/* Runs the rule's forward on in[n_in] at once and sets out[n_out] to its results; records it where
 * an operand needs a gradient, as any op. `payload` is handed to the rule's functions; it and what
 * it points to must stay as they are until the tape is rewound, reset or destroyed, or no sweep and
 * no replay (ad_tensor_program.h) is to come any more. An operand that is a view with gaps is
 * copied first, on the caller's line. in[] and out[] may be the same array. 1 <= n_in <= 64, 1 <=
 * n_out <= AD_CUSTOM_MAX_RESULTS. Results of integers have no gradient. What is AD_SWEPT_ALWAYS is
 * refused in the function of a checkpoint, in a program of tensors, and on the way of
 * ad_create_graph and of ad_real_jacobian (AD_ERROR_STATE): they call it at other times, or not.
 *
 * Errors, which leave the tape as it was and out[] as results of an op that failed: those that the
 * rule's functions return; AD_ERROR_ARGUMENT, AD_ERROR_HANDLE, AD_ERROR_TAPE (of in[]),
 * AD_ERROR_SHAPE, AD_ERROR_DTYPE (of what `shape` says), AD_ERROR_MEMORY, AD_ERROR_STATE (a fork),
 * AD_ERROR_NONFINITE (ad_tape_trap). A pullback that fails fails its sweep. */
AD_INLINE ad_status ad_custom(ad_tape tape, const ad_custom_rule *rule, void *payload, int n_in,
                              const ad_tensor *in, int n_out, ad_tensor *out AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_custom,
         (ad_tape tape, const ad_custom_rule *rule, void *payload, int n_in, const ad_tensor *in,
          int n_out, ad_tensor *out),
         (tape, rule, payload, n_in, in, n_out, out))

/* For libraries whose functions are ops. As ad_custom, for a call that stands at the return address
 * `caller` of the library's function, in that line (0: not known), so that costs and messages are
 * of the line of its user: ad_ode.h, a function by AD_SITED, passes on
 * __builtin_return_address(0) and its ad_line_. */
AD_API ad_status ad_custom_from(ad_tape tape, const ad_custom_rule *rule, void *payload, int n_in,
                                const ad_tensor *in, int n_out, ad_tensor *out, const void *caller,
                                unsigned line);

/* Writes what messages say of a place, "mlp.c:41 in dense", for a return address and a line (0: not
 * known): at most n bytes with the 0 at the end. */
AD_API void ad_custom_where(const void *caller, unsigned line, char *text, size_t n);

/* In a rule's function for buffers: *tape becomes a tape of its own, on which it may record, sweep
 * and read, to be destroyed before it returns. Its memory is that of home, the tape of the call,
 * within a budget as large; no profile sees it, since its time is the op's. Errors, which are in no
 * tape; *tape is zero then: AD_ERROR_HANDLE, AD_ERROR_STATE (no function of home's runs),
 * AD_ERROR_MEMORY, AD_ERROR_LIMIT. */
AD_API ad_status ad_tape_within(ad_tape home, ad_tape *tape);

/* Compares a rule's pullback with central differences of its forward, at the values of the leaves
 * x[n] (f64, which are the operands), as ad_check_gradient does; every result that is a float must
 * be f64. With `graph`, also what that records with the pullback, and its derivative with
 * differences of it. Returns and reports what ad_check_gradient does; a disagreement of `graph` is
 * AD_ERROR_GRADIENT too, and its message begins "check_custom: graph". */
AD_INLINE ad_status ad_check_custom(ad_tape tape, const ad_custom_rule *rule, void *payload, int n,
                                    const ad_tensor *x, int n_out, double tolerance,
                                    ad_gradient_report *report AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_check_custom,
         (ad_tape tape, const ad_custom_rule *rule, void *payload, int n, const ad_tensor *x,
          int n_out, double tolerance, ad_gradient_report *report),
         (tape, rule, payload, n, x, n_out, tolerance, report))

/* Sees the adjoint of a tensor in a sweep: data [size] may be read, and changed in place (scaled,
 * clipped). It cannot use the tape. What it returns other than AD_OK fails the sweep. */
typedef ad_status ad_adjoint_callback(const ad_custom_array *adjoint, void *payload);

/* From now on each sweep that comes to x calls callback once, when the adjoint of x is complete:
 * for a leaf at the end of the sweep, with what this sweep has brought, before that is added to the
 * gradient; for what was computed, before the adjoint goes on to its operands and to its retained
 * gradient. NULL: none. A second callback takes the place of the first. It lives as long as x; in
 * the function of a checkpoint it is given anew in each call. payload is passed on, never followed.
 *
 * Sweeps call it; ad_real_jacobian does not, and ad_create_graph is refused where it is on the way
 * (AD_ERROR_STATE), since a recorded derivative would lack what it does. While a function is
 * differentiated by itself (ad_check_gradient, ad_functional.h) only those are called that it
 * gives. Its time is backward time of the line of this call. Errors: AD_ERROR_STATE (a constant; a
 * tensor older than such a function), AD_ERROR_HANDLE, AD_ERROR_MEMORY. */
AD_INLINE ad_status ad_on_adjoint(ad_tensor x, ad_adjoint_callback *callback,
                                  void *payload AD_LINE_PARAMETER_);
AD_SITED(ad_status, ad_on_adjoint, (ad_tensor x, ad_adjoint_callback *callback, void *payload),
         (x, callback, payload))

#if AD_LINE_MACROS
#define ad_custom(...) ad_custom_at(__VA_ARGS__, __LINE__)
#define ad_on_adjoint(...) ad_on_adjoint_at(__VA_ARGS__, __LINE__)
#define ad_check_custom(...) ad_check_custom_at(__VA_ARGS__, __LINE__)
#endif

#ifdef __cplusplus
}
#endif

#endif
