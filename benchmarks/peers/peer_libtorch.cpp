// peer_libtorch.cpp: the workloads of common_workloads.h and common_network.h in libtorch, as a
// server that another program asks for one round at a time.
//
// Prints one line when it is ready: "ready VERSION CORE
// BLAS", with the processor that OpenBLAS chose its kernels for ("-" where the BLAS is another)
// and the file that the name libblas.so.3 stands for. Then each input line "CASE f32|f64 SECONDS"
// is answered by "ok FORWARD BACKWARD TOTAL GRADIENT_SUM STEPS" (medians in ns) or by "error TEXT".
//
// It uses as many threads as OMP_NUM_THREADS says, or one.
// Backward is loss.backward() with no gradients before it, as after zero_grad(set_to_none=True).
// What libtorch does when the loss is dropped is not counted.
#include "libtorch_network.h"
#include "libtorch_workload.h"

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <link.h>

namespace
{

Workload chain(torch::Dtype dtype, int64_t width, bool parameters)
{
    auto other = parameters ? leaf : constant;
    Tensor x = leaf(0.5 * input({width}, 0), dtype);
    Tensor c = other(0.01 * input({width}, 1), dtype);
    Tensor d = other(1 + 0.01 * input({width}, 2), dtype);
    Workload w;
    w.parameters = parameters ? std::vector<Tensor>{x, c, d} : std::vector<Tensor>{x};
    w.forward = [=] {
        Tensor y = x;
        for (int k = 0; k < 333; ++k) {
            y = y + c;
            y = y * d;
            y = torch::tanh(y);
        }
        y = y + c;
        return y.sum();
    };
    return w;
}

Workload mlp(torch::Dtype dtype, int64_t width)
{
    const int64_t batch = 64;
    const double scale = 1 / std::sqrt((double)width);
    Tensor x = constant(input({batch, width}, 0), dtype);
    std::vector<Tensor> weight, bias;
    for (int k = 1; k <= 3; ++k) {
        weight.push_back(leaf(input({width, width}, k) * scale, dtype));
        bias.push_back(leaf(input({width}, k + 3) * 0.1, dtype));
    }
    Tensor labels = (torch::arange(batch, torch::kInt64) * 7 + 3) % width;
    Workload w;
    w.parameters = {weight[0], bias[0], weight[1], bias[1], weight[2], bias[2]};
    w.forward = [=] {
        Tensor h = torch::tanh(torch::addmm(bias[0], x, weight[0]));
        h = torch::tanh(torch::addmm(bias[1], h, weight[1]));
        Tensor z = torch::addmm(bias[2], h, weight[2]);
        return torch::nn::functional::cross_entropy(z, labels);
    };
    return w;
}

Workload lstm(torch::Dtype dtype)
{
    const int64_t steps = 100, batch = 16, width = 128;
    const double scale = 1 / std::sqrt((double)width);
    std::vector<Tensor> x;
    for (int64_t t = 0; t < steps; ++t)
        x.push_back(constant(input({batch, width}, 100 + (double)t), dtype));
    Tensor wx = leaf(input({width, 4 * width}, 1) * scale, dtype);
    Tensor wh = leaf(input({width, 4 * width}, 2) * scale, dtype);
    Tensor b = leaf(input({4 * width}, 3) * 0.1, dtype);
    Tensor zero = torch::zeros({batch, width}, dtype);
    Workload w;
    w.parameters = {wx, wh, b};
    w.forward = [=] {
        Tensor h = zero, c = zero;
        for (const Tensor &input : x) {
            Tensor z = torch::mm(input, wx) + torch::mm(h, wh) + b;
            std::vector<Tensor> gate = z.chunk(4, 1);
            c = torch::sigmoid(gate[1]) * c + torch::sigmoid(gate[0]) * torch::tanh(gate[2]);
            h = torch::sigmoid(gate[3]) * torch::tanh(c);
        }
        return (h * h).mean();
    };
    return w;
}

Workload attn(torch::Dtype dtype)
{
    Tensor x = leaf(input({256, 64}, 0), dtype);
    std::vector<Tensor> weight;
    for (int k = 1; k <= 4; ++k)
        weight.push_back(leaf(input({64, 64}, k) / 8, dtype));
    Workload w;
    w.parameters = {x, weight[0], weight[1], weight[2], weight[3]};
    w.forward = [=] {
        Tensor q = x.matmul(weight[0]), k = x.matmul(weight[1]), v = x.matmul(weight[2]);
        Tensor p = torch::softmax(q.matmul(k.t()) * 0.125, 1);
        Tensor y = p.matmul(v).matmul(weight[3]);
        return (y * y).mean();
    };
    return w;
}

Workload gp(torch::Dtype dtype, int64_t n)
{
    Tensor x = constant(input({n, 4}, 0), dtype), y = constant(input({n, 1}, 1), dtype);
    Tensor ll = leaf(input({4}, 2) * 0.1, dtype);
    Tensor lsf = leaf(torch::zeros({1}), dtype), lsn = leaf(-torch::ones({1}), dtype);
    Tensor eye = torch::eye(n, dtype);
    Workload w;
    w.parameters = {ll, lsf, lsn};
    w.forward = [=] {
        Tensor xs = x * torch::exp(-ll);
        Tensor q = (xs * xs).sum(1);
        Tensor r2 = q.unsqueeze(1) + q.unsqueeze(0) - 2 * xs.matmul(xs.t());
        Tensor k = torch::exp(2 * lsf) * torch::exp(-0.5 * r2) + torch::exp(2 * lsn) * eye;
        Tensor l = torch::linalg_cholesky(k);
        Tensor a = torch::linalg_solve_triangular(l, y, false);
        return 0.5 * (a * a).sum() + torch::log(torch::diagonal(l)).sum() +
               0.5 * (double)n * std::log(2 * M_PI);
    };
    return w;
}

// "chain64", "lstm": a family, and a width where it has one. Null for a name that is none of these.
std::unique_ptr<Workload> create(const std::string &name, torch::Dtype dtype)
{
    if (name == "lstm")
        return std::make_unique<Workload>(lstm(dtype));
    if (name == "attn")
        return std::make_unique<Workload>(attn(dtype));
    if (auto w = network(name, dtype))
        return w;
    const size_t digits = name.find_first_of("0123456789");
    if (digits == std::string::npos)
        return nullptr;
    const std::string family = name.substr(0, digits);
    const int64_t width = std::atoll(name.c_str() + digits);
    if (width < 1 || width > 4096)
        return nullptr;
    if (family == "chain" || family == "chainp")
        return std::make_unique<Workload>(chain(dtype, width, family == "chainp"));
    if (family == "mlp")
        return std::make_unique<Workload>(mlp(dtype, width));
    if (family == "gp")
        return std::make_unique<Workload>(gp(dtype, width));
    return nullptr;
}

double now_ns()
{
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::nano>(now).count();
}

double median(std::vector<double> &values)
{
    const size_t middle = values.size() / 2;
    std::nth_element(values.begin(), values.begin() + (std::ptrdiff_t)middle, values.end());
    return values[middle];
}

double gradient_sum(const Workload &w)
{
    double sum = 0;
    for (size_t k = 0; k < w.parameters.size(); ++k) {
        const Tensor g = w.parameters[k].grad().to(torch::kFloat64).contiguous();
        const double *data = g.data_ptr<double>();
        for (int64_t i = 0; i < g.numel(); ++i)
            sum += data[i] * std::cos(0.73 * (double)i + (double)k);
    }
    return sum;
}

void round(const Workload &w, double seconds)
{
    std::vector<double> forward, backward, total;
    const int warm_up = 3;
    double end = 0;
    for (int step = -warm_up; step < 5 || now_ns() < end; ++step) {
        if (step == 0)
            end = now_ns() + seconds * 1e9;
        for (const Tensor &p : w.parameters)
            p.mutable_grad() = Tensor();
        const double start = now_ns();
        const Tensor loss = w.forward();
        const double middle = now_ns();
        loss.backward(w.seed);
        const double stop = now_ns();
        if (step < 0)
            continue;
        forward.push_back(middle - start);
        backward.push_back(stop - middle);
        total.push_back(stop - start);
    }
    std::printf("ok %.1f %.1f %.1f %.17g %zu\n", median(forward), median(backward), median(total),
                gradient_sum(w), total.size());
}

int find_blas(struct dl_phdr_info *info, size_t, void *path)
{
    const std::string name = info->dlpi_name;
    if (name.find("libblas.so") != std::string::npos)
        *static_cast<std::string *>(path) = name;
    return 0;
}

// The BLAS that the loader resolved for libtorch. Debian's is an alternative: a chain of links.
void greet()
{
    std::string path = "-";
    dl_iterate_phdr(find_blas, &path);
    if (char *real = realpath(path.c_str(), nullptr)) {
        path = real;
        std::free(real);
    }
    const char *core = "-";
    if (void *symbol = dlsym(RTLD_DEFAULT, "openblas_get_corename"))
        core = reinterpret_cast<char *(*)()>(symbol)();
    std::printf("ready %s %s %s\n", TORCH_VERSION, core, path.c_str());
}

} // namespace

int main()
{
    const char *threads = std::getenv("OMP_NUM_THREADS");
    at::set_num_threads(threads ? std::max(1, std::atoi(threads)) : 1);
    greet();
    std::fflush(stdout);
    std::string line, made;
    std::unique_ptr<Workload> workload;
    while (std::getline(std::cin, line)) {
        std::istringstream words(line);
        std::string name, type;
        double seconds = 0;
        try {
            if (!(words >> name >> type >> seconds) || (type != "f32" && type != "f64"))
                throw std::runtime_error("expected CASE f32|f64 SECONDS");
            if (made != name + type) {
                made.clear();
                workload = create(name, type == "f32" ? torch::kFloat32 : torch::kFloat64);
                if (!workload)
                    throw std::runtime_error("there is no case " + name);
                made = name + type;
            }
            round(*workload, seconds);
        } catch (const std::exception &error) {
            std::string text = error.what();
            std::printf("error %s\n", text.substr(0, text.find('\n')).c_str());
        }
        std::fflush(stdout);
    }
    return 0;
}
