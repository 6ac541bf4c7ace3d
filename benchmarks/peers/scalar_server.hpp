// scalar_server.hpp: a peer that answers questions about scalar problems: main() for any library
// that is described by a class Tool:
//
//     typedef ... number;
//     void prepare(const problem &);            what will be recorded
//     void begin(int n, const double *values);  a recording begins; x is made of n variables
//     number *x();
//     void end(int m, number *y);               it ends with m outputs
//     void reverse(int i, double *gradient);    dy[i]/dx, n of them
//     double bytes();                           of the tape; NAN: unknown
//     void reset();                             the recording is no longer needed
//
// It reads "CASE SECONDS FOLDER" ("-": inputs of its own) a line and answers "ok" and the figures
// of common_scalar.h, or why not. The gradient of each answer was compared with the one by hand.
#ifndef SCALAR_SERVER_HPP
#define SCALAR_SERVER_HPP

#include "common_forked.h"
#include "common_rounds.h"
#include "common_scalar.h"
#include "scalar_problems.hpp"

#include <cstdio>
#include <cstring>
#include <string>

namespace scalar
{
// A problem that is asked about, its gradient by hand, and the one computed here.
template <class Tool> struct session {
    Tool tool;
    problem p;
    std::vector<double> exact, gradient;
    double record, reverse, bytes;
};

// Whether all derivatives are right, to ADBench's tolerance.
template <class Tool> bool is_right(const session<Tool> &s)
{
    const double d = problem_distances(s.p.n_gradient, s.gradient.data(), s.exact.data());
    if (d < 1e-8)
        return true;
    std::fprintf(stderr, "%s: the gradient is wrong by %g\n", s.p.spec->name, d);
    return false;
}

template <class Tool, class F>
void record(session<Tool> &s, int n, const double *x, int m, F objective)
{
    typename Tool::number y[3];
    s.tool.begin(n, x);
    objective(s.tool.x(), y);
    s.tool.end(m, y);
}

// A tape for each observation, of three outputs.
template <class Tool> void bundle_step(session<Tool> &s, bool clocked)
{
    typedef typename Tool::number T;
    const bundle &b = *static_cast<const bundle *>(s.p.input);
    const double *points = s.p.x + b.n * BUNDLE_CAMERA, *weights = points + b.m * BUNDLE_POINT;
    double *g = s.gradient.data(), x[BUNDLE_ROW], unused[BUNDLE_ROW];
    double start = clocked ? rounds_now() : 0.0;
    for (int i = 0; i < b.p; ++i) {
        std::memcpy(x, s.p.x + b.observation[2 * i] * BUNDLE_CAMERA, sizeof(double[11]));
        std::memcpy(x + BUNDLE_CAMERA, points + b.observation[2 * i + 1] * BUNDLE_POINT,
                    sizeof(double[3]));
        x[BUNDLE_ROW - 1] = weights[i];
        record(s, BUNDLE_ROW, x, 3, [&](const T *in, T *out) {
            bundle_residuals(in, b.feature + 2 * i, out);
        });
        if (clocked)
            s.record += rounds_now() - start;
        for (int e = 0; e < 2; ++e, g += BUNDLE_ROW)
            s.tool.reverse(e, g);
        s.tool.reverse(2, unused);
        s.gradient[b.p * 2 * BUNDLE_ROW + i] = unused[BUNDLE_ROW - 1];
        s.bytes = s.tool.bytes();
        s.tool.reset();
        if (clocked)
            start = rounds_now();
    }
}

template <class Tool> bool step(void *context, bool clocked, scalar_step *result)
{
    typedef typename Tool::number T;
    session<Tool> &s = *static_cast<session<Tool> *>(context);
    s.record = 0.0;
    if (s.p.spec->kind == &bundle_kind) {
        bundle_step(s, clocked);
        if (clocked)
            result->record = s.record;
    } else {
        const double start = rounds_now();
        with_objective<T>(s.p, [&](auto objective) {
            record(s, int(s.p.n_variables), s.p.x, 1, objective);
        });
        result->record = rounds_now() - start;
        s.bytes = s.tool.bytes();
        s.tool.reverse(0, s.gradient.data());
        s.tool.reset();
    }
    result->bytes = s.bytes;
    result->statements = NAN;
    return true;
}

// Compares the gradient, once, before anything is measured.
template <class Tool> bool check(void *context, double *figures)
{
    scalar_step result;
    *figures = 0.0;
    return step<Tool>(context, false, &result) &&
           is_right(*static_cast<session<Tool> *>(context));
}

// Opens a problem and computes its gradient by hand.
template <class Tool> bool open(session<Tool> &s, const char *name, const char *folder)
{
    const problem_case *spec = problem_find(name);
    if (!spec || !problem_open(&s.p, spec, std::strcmp(folder, "-") == 0 ? nullptr : folder))
        return false;
    std::vector<double> work(s.p.work_bytes / sizeof(double) + 1), outputs(s.p.n_outputs);
    s.exact.assign(s.p.n_gradient, 0.0);
    s.gradient.assign(s.p.n_gradient, NAN);
    s.tool.prepare(s.p);
    spec->kind->gradient(&s.p, s.p.x, work.data(), outputs.data(), s.exact.data());
    return true;
}

template <class Tool> std::string answer(const char *line)
{
    char name[64], folder[4096];
    double seconds, figures[SCALAR_FIGURES], unused;
    session<Tool> s = session<Tool>();
    if (std::sscanf(line, "%63s %lf %4095[^\n]", name, &seconds, folder) != 3)
        return "not a question";
    if (!open(s, name, folder))
        return "no such problem";
    scalar_way way = {step<Tool>, &s};
    std::string text = "ok";
    if (!forked(check<Tool>, &s, 1, &unused))
        text = "its gradient is wrong, or it failed";
    else if (!scalar_measure(&way, seconds, figures))
        text = "it failed";
    else
        for (double figure : figures) {
            char number[32];
            std::snprintf(number, sizeof number, " %.9g", figure);
            text += number;
        }
    problem_close(&s.p);
    return text;
}

// Says that it is ready, and answers until its input ends.
template <class Tool> int serve(const char *greeting)
{
    char line[8192];
    std::printf("ready %s\n", greeting);
    std::fflush(stdout);
    while (std::fgets(line, sizeof line, stdin)) {
        std::printf("%s\n", answer<Tool>(line).c_str());
        std::fflush(stdout);
    }
    return 0;
}
} // namespace scalar

#endif
