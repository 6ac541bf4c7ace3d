// libtorch_network.h: the ops of common_network.h for peer_libtorch.
//
// What libtorch has as one function is called so;
// rms_norm and attention, which version 1.13 has not, are written as a user would.
#ifndef LIBTORCH_NETWORK_H
#define LIBTORCH_NETWORK_H

#include "libtorch_workload.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace network_cases
{

constexpr double seed_phase = 9, eps = 1e-5;

inline Workload conv(torch::Dtype dtype, const std::string &name)
{
    const bool deep = name.find("64") != std::string::npos;
    const int64_t c = deep ? 64 : 16, n = deep ? 1 : 16;
    const bool only_x = name.back() == 'x', only_w = name.back() == 'w';
    Tensor x = (only_w ? constant : leaf)(input({n, c, 32, 32}, 0), dtype);
    Tensor weights =
        (only_x ? constant : leaf)(input({c, c, 3, 3}, 1) * (deep ? 1.0 / 24 : 1.0 / 12), dtype);
    Workload w;
    w.parameters = only_x   ? std::vector<Tensor>{x}
                   : only_w ? std::vector<Tensor>{weights}
                            : std::vector<Tensor>{x, weights};
    w.forward = [=] { return torch::conv2d(x, weights, {}, 1, 1); };
    return w;
}

inline Workload pool(torch::Dtype dtype, const std::string &name)
{
    Tensor x = leaf(torch::floor(input({16, 16, 64, 64}, 0) * 1024) / 1024, dtype);
    Workload w;
    w.parameters = {x};
    if (name == "maxpool2")
        w.forward = [=] { return torch::max_pool2d(x, 2, 2); };
    else if (name == "maxpool3")
        w.forward = [=] { return torch::max_pool2d(x, 3, 2, 1); };
    else if (name == "avgpool2")
        w.forward = [=] { return torch::avg_pool2d(x, 2, 2); };
    else
        w.forward = [=] { return torch::avg_pool2d(x, 3, 1, 1); };
    return w;
}

inline Workload norm(torch::Dtype dtype, const std::string &name)
{
    const bool channels = name == "batchnorm";
    const int64_t width = channels ? 64 : 512;
    Tensor x = leaf(channels ? input({32, 64, 16, 16}, 0) : input({256, 512}, 0), dtype);
    Tensor weights = leaf(1 + 0.5 * input({width}, 1), dtype);
    Tensor bias = leaf(input({width}, 2), dtype);
    Workload w;
    w.parameters = {x, weights};
    if (name != "rmsnorm")
        w.parameters.push_back(bias);
    if (channels)
        w.forward = [=] {
            return torch::batch_norm(x, weights, bias, {}, {}, true, 0, eps, false);
        };
    else if (name == "layernorm")
        w.forward = [=] { return torch::layer_norm(x, {512}, weights, bias, eps); };
    else
        w.forward = [=] { return x * torch::rsqrt((x * x).mean(1, true) + eps) * weights; };
    return w;
}

inline Workload rows(torch::Dtype dtype, const std::string &name)
{
    Tensor x = leaf(name == "rowsums" ? input({1024, 512}, 0) : input({256, 1000}, 0), dtype);
    Tensor labels = (torch::arange(256, torch::kInt64) * 7 + 3) % 1000;
    Workload w;
    w.parameters = {x};
    if (name == "softmax")
        w.forward = [=] { return torch::softmax(x, 1); };
    else if (name == "rowsums")
        w.forward = [=] { return x.sum(1); };
    else
        w.forward = [=] { return torch::nn::functional::cross_entropy(x, labels); };
    return w;
}

inline Workload embedding(torch::Dtype dtype)
{
    Tensor table = leaf(input({4096, 128}, 0), dtype);
    Tensor r = torch::arange(2048, torch::kInt64), indices = (r * r * 7 + 3) % 4096;
    Workload w;
    w.parameters = {table};
    w.forward = [=] { return torch::embedding(table, indices); };
    return w;
}

inline Workload attention(torch::Dtype dtype)
{
    Tensor q = leaf(input({8, 256, 64}, 0), dtype), k = leaf(input({8, 256, 64}, 1), dtype);
    Tensor v = leaf(input({8, 256, 64}, 2), dtype);
    Workload w;
    w.parameters = {q, k, v};
    w.forward = [=] { return torch::softmax(q.matmul(k.transpose(1, 2)) * 0.125, 2).matmul(v); };
    return w;
}

inline bool begins(const std::string &name, const char *with)
{
    return name.rfind(with, 0) == 0;
}

} // namespace network_cases

// The case of common_network.h, or null for a name that is none.
inline std::unique_ptr<Workload> network(const std::string &name, torch::Dtype dtype)
{
    using namespace network_cases;
    Workload w;
    if (begins(name, "conv"))
        w = conv(dtype, name);
    else if (begins(name, "maxpool") || begins(name, "avgpool"))
        w = pool(dtype, name);
    else if (name == "batchnorm" || name == "layernorm" || name == "rmsnorm")
        w = norm(dtype, name);
    else if (name == "softmax" || name == "rowsums" || name == "celoss")
        w = rows(dtype, name);
    else if (name == "embedding")
        w = embedding(dtype);
    else if (begins(name, "attn") && name != "attn")
        w = attention(dtype);
    else
        return nullptr;
    if (name != "celoss") {
        torch::NoGradGuard constants;
        w.seed = constant(input(w.forward().sizes().vec(), seed_phase), dtype);
    }
    return std::make_unique<Workload>(w);
}

#endif
