// consumer.cpp: a user's program in C++.
#include <tapescope/ad.h>
#include <tapescope/ad_real.h>

#include <cmath>
#include <cstdio>
#include <vector>

namespace
{
ad_tensor norm(ad_tensor x)
{
    return ad_sqrt(ad_sum(ad_square(x))); // the line that costs
}

// The same norm over real numbers, by a loop; an int, a double and formulas mix.
bool norm_of_reals(ad_tape tape, const std::vector<double> &data)
{
    std::vector<ad_real> x(data.size());
    std::vector<double> g(data.size());
    ad_real_leaves(tape, (int64_t)x.size(), data.data(), x.data());
    ad_real sum = ad_real_of(0);
    for (const ad_real &each : x)
        ad_set(&sum, ad_real_add(sum, ad_real_mul(each, each)));
    const ad_real y = ad_real_of(ad_real_sqrt(ad_real_mul(sum, 1.0)));
    return ad_real_backward(tape, y) == AD_OK &&
           ad_real_gradients(tape, (int64_t)x.size(), x.data(), g.data()) == AD_OK &&
           std::fabs(g[0] - 0.6) < 1e-15 && std::fabs(g[1] - 0.8) < 1e-15;
}
} // namespace

int main()
{
    std::vector<double> data{3, 4}, g(2);
    const int64_t shape[] = {2};
    ad_tape tape;
    if (ad_tape_create(&tape, nullptr) != AD_OK)
        return 1;
    const ad_tensor x = ad_leaf(tape, AD_F64, 1, shape, data.data());
    const ad_tensor y = norm(x);
    if (ad_backward(y) != AD_OK || ad_gradient(x, g.data(), 2) != AD_OK) {
        std::puts(ad_message_of(tape));
        return 1;
    }
    if (std::fabs(g[0] - 0.6) > 1e-15 || std::fabs(g[1] - 0.8) > 1e-15)
        return 1;
    if (!norm_of_reals(tape, data)) {
        std::puts(ad_message_of(tape));
        return 1;
    }
    std::printf("tapescope %s\n", ad_version());
    return ad_tape_destroy(tape) == AD_OK ? 0 : 1;
}
