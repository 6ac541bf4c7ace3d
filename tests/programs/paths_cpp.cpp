// paths_cpp.cpp: ops recorded in methods and lambdas, and exceptions that pass through such frames.
#include <stdexcept>
#include <tapescope/ad.h>

namespace
{
struct network {
    ad_tensor x;

    __attribute__((noinline)) ad_tensor layer(int n)
    {
        x = ad_tanh(x);
        if (n == 3)
            throw std::runtime_error("three");
        return x;
    }
};

template <class F> __attribute__((noinline)) void repeat(int n, F f)
{
    for (int i = 0; i < n; i++)
        f(i);
    __asm__ volatile("");
}

__attribute__((noinline)) void train(network &net)
{
    for (int round = 0; round < 2; round++) {
        try {
            repeat(5, [&](int i) { net.layer(i); });
        } catch (const std::exception &) {
            net.x = ad_exp(net.x);
        }
    }
    __asm__ volatile("");
}
} // namespace

int main()
{
    static const double data[2] = {0.5, 0.25};
    const int64_t shape[1] = {2};
    ad_tape tape;
    if (ad_tape_create(&tape, nullptr) != AD_OK)
        return 2;
    network net = {ad_leaf(tape, AD_F64, 1, shape, data)};
    train(net);
    ad_tape_destroy(tape);
    return 0;
}
