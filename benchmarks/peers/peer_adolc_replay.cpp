// peer_adolc_replay.cpp: tapes of ADOL-C (A. Walther, A. Griewank) evaluated again: a problem is
// recorded once, and then zos_forward gives its value for other numbers and fos_reverse the
// gradient. It reads "CASE SECONDS" a line and answers "ok" and the ns of one such gradient, which
// was compared with the one by hand.
#include "common_rounds.h"
#include "scalar_problems.hpp"

#include <adolc/adolc.h>

#include <cstdio>
#include <string>

namespace
{
const short replay_tag = 1;

// Buffers as large as every case needs, so that nothing goes through files.
void record(const problem &p)
{
    std::vector<adouble> x(p.n_variables);
    adouble y;
    double value;
    trace_on(replay_tag, 0, 1u << 26, 1u << 28, 1u << 24, 1u << 27);
    for (size_t i = 0; i < x.size(); ++i)
        x[i] <<= p.x[i];
    scalar::with_objective<adouble>(p, [&](auto objective) { objective(x.data(), &y); });
    y >>= value;
    trace_off();
}

bool replay(const problem &p, double *gradient)
{
    double value, seed = 1.0;
    const int n = int(p.n_variables);
    return zos_forward(replay_tag, 1, n, 1, p.x, &value) >= 0 &&
           fos_reverse(replay_tag, 1, n, &seed, gradient) >= 0;
}

bool is_right(const problem &p, const double *gradient)
{
    std::vector<double> work(p.work_bytes / sizeof(double) + 1), value(p.n_outputs),
        exact(p.n_gradient);
    p.spec->kind->gradient(&p, p.x, work.data(), value.data(), exact.data());
    return problem_distances(p.n_gradient, gradient, exact.data()) < 1e-8;
}

std::string answer(const char *line, std::string *recorded)
{
    char name[64];
    double seconds;
    problem p;
    if (std::sscanf(line, "%63s %lf", name, &seconds) != 2)
        return "not a question";
    const problem_case *spec = problem_find(name);
    if (!spec || !problem_open(&p, spec, nullptr))
        return "no such problem";
    if (*recorded != name)
        record(p);
    *recorded = name;
    std::vector<double> gradient(p.n_gradient);
    std::string text = "its gradient is wrong, or it failed";
    if (replay(p, gradient.data()) && is_right(p, gradient.data())) {
        const double begin = rounds_now();
        double now = begin;
        long n = 0;
        do {
            replay(p, gradient.data());
            ++n;
            now = rounds_now();
        } while (now - begin < seconds * 1e9);
        char figure[64];
        std::snprintf(figure, sizeof figure, "ok %.9g", (now - begin) / double(n));
        text = figure;
    }
    problem_close(&p);
    return text;
}
} // namespace

int main()
{
    char line[8192];
    std::string recorded;
    std::printf("ready ADOL-C\n");
    std::fflush(stdout);
    while (std::fgets(line, sizeof line, stdin)) {
        std::printf("%s\n", answer(line, &recorded).c_str());
        std::fflush(stdout);
    }
    return 0;
}
