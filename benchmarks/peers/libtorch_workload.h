// libtorch_workload.h: what a workload is for peer_libtorch, and its inputs.
//
// Inputs are those of common_workloads.h.
#ifndef LIBTORCH_WORKLOAD_H
#define LIBTORCH_WORKLOAD_H

#include <torch/torch.h>

#include <cmath>
#include <functional>
#include <vector>

using Tensor = torch::Tensor;

struct Workload {
    std::function<Tensor()> forward;
    std::vector<Tensor> parameters;
    Tensor seed; // of backward(); undefined: 1, since the result is a loss
};

inline Tensor input(std::vector<int64_t> shape, double p)
{
    Tensor t = torch::empty(shape, torch::kFloat64);
    double *data = t.data_ptr<double>();
    for (int64_t i = 0; i < t.numel(); ++i)
        data[i] = std::sin(0.37 * (double)i + p + (double)(i * i % 1009));
    return t;
}

inline Tensor constant(const Tensor &t, torch::Dtype dtype)
{
    return t.to(dtype).clone().detach();
}

inline Tensor leaf(const Tensor &t, torch::Dtype dtype)
{
    return constant(t, dtype).requires_grad_(true);
}

#endif
