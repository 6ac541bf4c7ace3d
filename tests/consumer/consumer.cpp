// consumer.cpp: a user's program in C++.
//
// May include: what is installed.
#include <tapescope/ad.h>

#include <cmath>
#include <cstdio>
#include <vector>

namespace
{
ad_tensor norm(ad_tensor x)
{
    return ad_sqrt(ad_sum(ad_square(x))); // the line that costs
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
    std::printf("tapescope %s\n", ad_version());
    return ad_tape_destroy(tape) == AD_OK ? 0 : 1;
}
