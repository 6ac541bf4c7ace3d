/* sites.c: calls whose lines are easily mistaken. Compiled as C and as C++ in many ways by
 * test_sites.
 *
 * Each line that is charged says so at its end: op, function, calls. The lines marked `error` are
 * those that a message must name.
 */
#include <tapescope/ad.h>
#include <tapescope/ad_real.h>

#include <stdio.h>

#define NOINLINE __attribute__((noinline))

#ifdef __cplusplus
extern "C" {
#endif
int sites_run(void);
int sites_error(void);
#ifdef __cplusplus
}
#endif

static const double data[4] = {0.25, 0.5, 0.75, 1};
static const int64_t extent[1] = {4};
static volatile int yes = 1, no = 0;

NOINLINE static ad_tensor wrapper(ad_tensor x, ad_tensor y)
{
    return ad_add(x, y); // @add:wrapper:3
}

NOINLINE static ad_tensor outer_wrapper(ad_tensor x, ad_tensor y)
{
    return wrapper(y, x);
}

NOINLINE static ad_tensor branches(int which, ad_tensor x, ad_tensor y)
{
    if (which)
        return ad_mul(x, y); // @mul:branches:1
    return ad_mul(x, y);     // @mul:branches:2
}

NOINLINE static ad_tensor joined_branches(int which, ad_tensor x, ad_tensor y)
{
    ad_tensor z;
    if (which)
        z = ad_sub(x, y); // @sub:joined_branches:2
    else
        z = ad_sub(x, y); // @sub:joined_branches:1
    return ad_neg(z);     // @neg:joined_branches:3
}

NOINLINE static ad_tensor cases(int which, ad_tensor x)
{
    switch (which) {
    case 0:
        return ad_relu(x); // @relu:cases:1
    case 1:
        return ad_relu(x); // @relu:cases:2
    default:
        return ad_relu(x); // @relu:cases:3
    }
}

static ad_tensor nested(ad_tensor x, ad_tensor y)
{
    return ad_add(          // @add:nested:1
        ad_mul(x, y),       // @mul:nested:1
        ad_sub(             // @sub:nested:1
            ad_exp(x),      // @exp:nested:1
            ad_square(y))); // @square:nested:1
}

static ad_tensor nested_equal(ad_tensor x, ad_tensor y)
{
    ad_tensor z = ad_add(            // @add:nested_equal:1
        ad_add(x, y),                // @add:nested_equal:1
        ad_add(ad_tanh(x),           // @add:nested_equal:1 @tanh:nested_equal:1
               ad_add(y,             // @add:nested_equal:1
                      ad_tanh(y)))); // @tanh:nested_equal:1
    return z;
}

static inline ad_tensor inlined(ad_tensor x)
{
    return ad_sigmoid(x); // @sigmoid:inlined:2
}

static inline __attribute__((always_inline)) ad_tensor inlined_twice(ad_tensor x)
{
    ad_tensor y = inlined(x);
    return ad_offset(y, 1); // @offset:inlined_twice:2
}

static ad_tensor loop(ad_tensor x)
{
    for (int i = 0; i < 4; i++)
        x = ad_scale(x, 0.5); // @scale:loop:4
    return x;
}

static ad_tensor callback(ad_tensor x)
{
    return ad_square(x); // @square:callback:3
}

typedef ad_tensor map_fn(ad_tensor x);

NOINLINE static ad_tensor map(map_fn *f, ad_tensor x, int n)
{
    for (int i = 0; i < n; i++)
        x = f(x);
    return x;
}

#define TWICE(x) ad_add(x, x)

static ad_tensor by_macro(ad_tensor x)
{
    ad_tensor y = TWICE(x);   // @add:by_macro:1
    return TWICE(ad_tanh(y)); // @add:by_macro:1 @tanh:by_macro:2
}

NOINLINE static ad_real scalars(int which, ad_real x)
{
    ad_real y;
    if (which)
        ad_set(&y, ad_real_mul(x, x)); // @statement:scalars:1
    else
        ad_set(&y, ad_real_mul(x, x)); // @statement:scalars:2
    for (int i = 0; i < 4; i++)
        ad_set(&y, ad_real_add(y, ad_real_square(y))); // @statement:scalars:12
    return y;
}

static inline ad_real inlined_scalar(ad_real x)
{
    return ad_real_of(ad_real_reciprocal(x)); // @statement:inlined_scalar:2
}

static ad_status by_scalars(ad_tape tape)
{
    ad_real x = ad_real_leaf(tape, 0.5); // @leaf:by_scalars:1
    x = scalars(no, scalars(yes, scalars(no, x)));
    x = inlined_scalar(inlined_scalar(x));
    return ad_real_backward(tape, x); // @real_backward:by_scalars:1
}

NOINLINE static ad_tensor failing(ad_tensor x, ad_tensor y)
{
    return ad_add(              // add fails after the others
        ad_mul(x, x),           //
        ad_add(                 //
            ad_linear(x, y, y), // @error
            x));
}

static ad_status begin(ad_tape *tape, ad_tensor *x, ad_tensor *y)
{
    ad_status status = ad_tape_create(tape, NULL);
    *x = ad_leaf(*tape, AD_F64, 1, extent, data);     // @leaf:begin:1
    *y = ad_constant(*tape, AD_F64, 1, extent, data); // @constant:begin:1
    return status;
}

int sites_run(void)
{
    ad_tape tape;
    ad_tensor x, y;
    map_fn *volatile f = callback;
    if (begin(&tape, &x, &y) != AD_OK)
        return 2;
    ad_tensor z = outer_wrapper(wrapper(x, y), y);
    z = wrapper(z, x);
    z = branches(no, branches(no, branches(yes, z, y), y), x);
    z = joined_branches(yes, joined_branches(no, joined_branches(yes, z, x), y), y);
    for (int i = 0; i < 6; i++)
        z = cases(i < 1 ? no : i < 3 ? yes : 2, z);
    z = ad_add(z, nested(x, y));       // @add:sites_run:1
    z = ad_add(nested_equal(x, y), z); // @add:sites_run:1
    z = inlined_twice(inlined_twice(z));
    z = map(f, loop(z), 3);
    z = by_macro(z);
    ad_tensor s = ad_sum(ad_mean(z));  // @sum:sites_run:1 @mean:sites_run:1
    ad_status status = ad_backward(s); // @backward:sites_run:1
    if (status == AD_OK)
        status = by_scalars(tape);
    if (status != AD_OK)
        fprintf(stderr, "%s\n", ad_tape_message(tape));
    return status == AD_OK ? 0 : 1;
}

int sites_error(void)
{
    ad_tape tape;
    ad_tensor x, y;
    ad_tape_create(&tape, NULL);
    x = ad_leaf(tape, AD_F64, 1, extent, data);
    y = ad_leaf(tape, AD_F64, 1, extent, data);
    failing(x, y);
    puts(ad_tape_message(tape));
    ad_tape_destroy(tape);
    return 0;
}
