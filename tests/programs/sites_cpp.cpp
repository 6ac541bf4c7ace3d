// sites_cpp.cpp: what only C++ has: methods, templates, lambdas, namespaces, exceptions.
// Marks as in sites.c.
#include <tapescope/ad.h>

#include <functional>

extern "C" int sites_run(void);
extern "C" int sites_error(void);

namespace model
{

struct layer {
    ad_tensor weight;
    ad_tensor operator()(ad_tensor x) const
    {
        return ad_tanh(      // @tanh:operator():2
            ad_mul(x,        // @mul:operator():2
                   weight)); //
    }
    static ad_tensor scaled(ad_tensor x)
    {
        return ad_scale(x, 2); // @scale:scaled:1
    }
};

template <int N> ad_tensor repeated(ad_tensor x)
{
    for (int i = 0; i < N; i++)
        x = ad_neg(x); // @neg:repeated<3>:3
    return x;
}

} // namespace model

static ad_tensor guarded(ad_tensor x)
{
    try {
        x = ad_exp(x); // @exp:guarded:1
        throw 1;
    } catch (int) {
        return ad_sigmoid(x); // @sigmoid:guarded:1
    }
}

int sites_run(void)
{
    static const double data[2] = {1, 2};
    static const int64_t extent[1] = {2};
    ad_tape tape;
    if (ad_tape_create(&tape, nullptr) != AD_OK)
        return 2;
    ad_tensor x = ad_leaf(tape, AD_F64, 1, extent, data); // @leaf:sites_run:1
    model::layer layer{x};
    std::function<ad_tensor(ad_tensor)> square = [](ad_tensor y) {
        return ad_square(y); // @square:operator():1
    };
    ad_tensor z = square(model::layer::scaled(layer(layer(x))));
    z = guarded(model::repeated<3>(z));
    return ad_backward(ad_sum(z)) == AD_OK ? 0 : 1; // @sum:sites_run:1 @backward:sites_run:1
}

int sites_error(void)
{
    return 0;
}
