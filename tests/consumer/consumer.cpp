// consumer.cpp: a user's program in C++.
#include <tapescope/ad.h>
#include <tapescope/ad_real.hpp>

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

// Infix, in a template over numbers of either kind.
template <class T> T wave(const T &x, const T &y)
{
    using std::sin;
    T z = 0.5;
    z += x * sin(y) / 2;
    return z;
}

bool infix(ad_tape tape)
{
    ad_real x = ad_real_leaf(tape, 3), y = ad_real_leaf(tape, 0.25);
    const ad_real z = wave(x, y);
    return z.value == wave(3.0, 0.25) && ad_real_backward(tape, z) == AD_OK &&
           ad_real_gradient(tape, x) == std::sin(0.25) / 2 &&
           std::fabs(ad_real_gradient(tape, y) - 1.5 * std::cos(0.25)) < 1e-15;
}

// A buffer of another type than its tensor's is refused, and nothing is written beyond its end.
bool other_elements(ad_tape tape)
{
    const double number = 2;
    float narrow[2] = {1, 1};
    double rows[1][1];
    const ad_tensor x = ad_constant(tape, AD_F64, 0, nullptr, &number);
    const bool refused = ad_value(x, narrow, 1) == AD_ERROR_DTYPE;
    ad_tape_clear_error(tape);
    return refused && std::isnan(narrow[0]) && narrow[1] == 1 && ad_value(x, rows, 1) == AD_OK &&
           rows[0][0] == 2;
}

// Options are a variable with a name here; flags are joined by |.
bool windows(ad_tape tape)
{
    const double numbers[] = {1, 2, 3, 4};
    const int64_t shape[] = {1, 1, 2, 2};
    double means[4], weights[2];
    const ad_tensor x = ad_constant(tape, AD_F64, 4, shape, numbers);
    ad_avg_pool2d_options options{};
    options.stride_h = options.stride_w = 1;
    options.padding_h = options.padding_w = 1;
    options.flags = AD_SKIP_PADDING;
    const ad_tensor y = ad_avg_pool2d(
        ad_conv2d(x, ad_slice(ad_slice(x, 2, 0, 1, 1), 3, 0, 1, 1), nullptr), 2, 2, &options);
    const ad_tensor row = ad_slice(ad_reshape(x, shape + 2, 2), 0, 0, 1, 1);
    const ad_tensor z = ad_attention(row, row, row, 0, AD_CAUSAL | AD_KEEP_WEIGHTS);
    return ad_size(y) == 9 &&
           ad_value(ad_slice(ad_slice(y, 2, 0, 2, 1), 3, 0, 2, 1), means, 4) == AD_OK &&
           means[0] == 1 && means[1] == 1.5 && means[2] == 2 && means[3] == 2.5 &&
           ad_value(z, weights, 2) == AD_OK && weights[0] == 1 && weights[1] == 2;
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
        std::puts(ad_tape_message(tape));
        return 1;
    }
    if (std::fabs(g[0] - 0.6) > 1e-15 || std::fabs(g[1] - 0.8) > 1e-15)
        return 1;
    if (!norm_of_reals(tape, data) || !windows(tape) || !infix(tape) || !other_elements(tape)) {
        std::puts(ad_tape_message(tape));
        return 1;
    }
    std::printf("tapescope %s\n", ad_version());
    return ad_tape_destroy(tape) == AD_OK ? 0 : 1;
}
