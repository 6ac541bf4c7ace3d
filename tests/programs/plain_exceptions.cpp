// plain_exceptions.cpp: C++ in which exceptions pass through functions that are recorded. Compiled
// by `tapescope c++`; PASS_ON is a function of another compiler's.
//
// Each case is a function of four numbers; its gradient is compared with differences.
#include <tapescope/ad_plain.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#define APART __attribute__((noinline))

extern "C" double pass_on(double (*f)(const double *x), const double *x);

namespace
{
struct bad {
    double at, more;
};

struct pair {
    double a, b;
};

APART double checked(double x)
{
    if (x > 1)
        throw bad{x * x, std::sin(x)};
    return x * 3;
}

double not_thrown(const double *x)
{
    try {
        return checked(x[0]) * x[1];
    } catch (const bad &) {
        return 0;
    }
}

double thrown(const double *x)
{
    try {
        return checked(x[0] + 2) * x[1];
    } catch (const bad &b) {
        return b.at * x[2] + b.more;
    }
}

double thrown_number(const double *x)
{
    const double before = x[0] * x[1];
    double sum = before;
    try {
        sum += checked(x[1]);
        throw x[2] * x[3];
    } catch (double y) {
        sum *= y;
    }
    return sum + before;
}

// Destructors compute on the way.
struct adds {
    double &to, value;
    adds(double &t, double v) : to(t), value(v)
    {
    }
    ~adds()
    {
        to += value * value;
    }
};

APART double added(double *sum, const double *x)
{
    adds first(*sum, x[0]);
    std::vector<double> v(x, x + 4);
    adds second(*sum, v[1] * x[2]);
    return checked(v[3] + 1) + first.value;
}

double unwound(const double *x)
{
    double sum = x[1];
    try {
        sum += added(&sum, x);
    } catch (const bad &b) {
        sum *= b.at;
    }
    return sum;
}

APART double rethrown(const double *x)
{
    double kept = std::exp(x[0]);
    try {
        return checked(kept) * kept;
    } catch (bad &b) {
        b.at *= x[1] * kept;
        throw;
    }
}

double twice_caught(const double *x)
{
    const double own = x[2] * x[3];
    try {
        return rethrown(x);
    } catch (const bad &b) {
        return b.at * own + b.more;
    }
}

// A step that fails is halved and tried again.
APART double step_of(double y, double h)
{
    if (h * y > 0.2)
        throw std::runtime_error("too far");
    return y + h * std::sin(y);
}

double tried_again(const double *x)
{
    double y = x[0], h = x[1], t = 0;
    for (int k = 0; k < 6; k++) {
        double tried = h;
        for (;;) {
            try {
                y = step_of(y, tried);
                break;
            } catch (const std::exception &) {
                tried = tried / 2 * (1 + x[2] / 100);
            }
        }
        t += tried;
        h = h * 1.1;
    }
    return y * t;
}

APART pair pair_of(double a, double b)
{
    if (a < 0)
        throw std::invalid_argument("negative");
    return {a * b, a + b};
}

double structures(const double *x)
{
    pair p = {x[0], x[1]};
    for (int k = 0; k < 4; k++) {
        try {
            const pair q = pair_of(p.a - k * 0.02, p.b);
            p.a = q.a * 0.5 + q.b * 0.1;
            p.b = k % 2 ? q.b : -q.a;
        } catch (const std::invalid_argument &) {
            p.a = -p.a * x[2];
        }
    }
    return p.a * p.b;
}

double of_library(const double *x)
{
    std::vector<double> v;
    std::string name;
    double sum = 1;
    for (int k = 0; k < 4; k++) {
        v.push_back(x[k] * x[0]);
        name += "a long name that is not kept in place ";
    }
    for (unsigned k = 0; k < 6; k++) {
        try {
            sum += v.at(k) * sum;
        } catch (const std::out_of_range &) {
            sum *= v.at(k - 3);
        }
    }
    return sum + static_cast<double>(name.size());
}

double by_function(const double *x)
{
    const std::function<double(double)> f = [x](double y) { return checked(y * x[1]); };
    double sum = 0;
    for (int k = 0; k < 4; k++) {
        try {
            sum += f(x[k] * (k + 1));
        } catch (const bad &b) {
            sum += b.at * x[3];
        }
    }
    return sum;
}

struct made {
    std::vector<double> v;
    double last;
    explicit made(const double *x) : v(x, x + 4), last(checked(x[0] * 4))
    {
    }
};

double in_constructor(const double *x)
{
    double sum = x[0];
    try {
        const made m(x);
        sum += m.last;
    } catch (const bad &b) {
        sum *= b.at + b.more;
    }
    // What follows is called as ever.
    return checked(sum / 100) + pair_of(sum, x[1]).b;
}

double thrown_inside(const double *x)
{
    return checked(x[0] + x[1] + 1);
}

// Through a frame of another compiler's.
double through_others(const double *x)
{
    try {
        return pass_on(thrown_inside, x);
    } catch (const bad &b) {
        return b.at * x[2];
    }
}

double deep(const double *x, int n)
{
    if (n == 0)
        throw bad{x[0] * x[1], x[2]};
    adds none(*const_cast<double *>(x + 3), x[2] / 10);
    return deep(x, n - 1) * 2;
}

double from_the_depth(const double *x)
{
    double y[4] = {x[0], x[1], x[2], x[3]};
    try {
        return deep(y, 20);
    } catch (const bad &b) {
        return b.at * y[3] + b.more;
    }
}

const struct {
    const char *name;
    double (*function)(const double *x);
} cases[] = {
    {"not_thrown", not_thrown},         {"thrown", thrown},
    {"thrown_number", thrown_number},   {"unwound", unwound},
    {"twice_caught", twice_caught},     {"tried_again", tried_again},
    {"structures", structures},         {"of_library", of_library},
    {"by_function", by_function},       {"in_constructor", in_constructor},
    {"through_others", through_others}, {"from_the_depth", from_the_depth},
};

// A rewind, and an exception on its way back: what was in a register is a constant, or as before.
APART void throw_for(double x)
{
    if (x > 100)
        throw 2;
}

APART void rewind_and_throw(ad_tape tape, ad_mark mark, double *b, ad_real *k)
{
    if (ad_tape_rewind(tape, mark) != AD_OK || ad_plain_leaves(tape, 2, b, k) != AD_OK)
        throw std::logic_error("no rewind");
    throw 1;
}

bool rewound(ad_tape tape)
{
    double a = 3, b[2] = {2, 5}, g[3];
    ad_real ka, kb[2];
    ad_tape_reset(tape);
    if (ad_plain_leaves(tape, 1, &a, &ka) != AD_OK)
        return false;
    const ad_mark mark = ad_tape_mark(tape);
    double y = 0;
    double power = a * a; // recorded behind the mark
    try {
        throw_for(power);
        power *= a;
        rewind_and_throw(tape, mark, b, kb);
    } catch (int) { // power is one of two
        y = power * b[0] + a * b[0];
    }
    return ad_plain_backward(tape, &y) == AD_OK && ad_plain_gradients(tape, 1, &ka, g) == AD_OK &&
           ad_plain_gradients(tape, 2, kb, g + 1) == AD_OK && g[0] == 2 && g[1] == 30 && g[2] == 0;
}
} // namespace

int main()
{
    ad_tape tape;
    int failed = 0;
    if (ad_tape_create(&tape, nullptr) != AD_OK)
        return 2;
    for (const auto &c : cases) {
        double x[4] = {0.7, 0.4, 0.9, 0.6}, g[4];
        ad_real k[4];
        ad_tape_reset(tape);
        const uint64_t lost = ad_plain_dropped();
        if (ad_plain_leaves(tape, 4, x, k) != AD_OK)
            return 2;
        const double y = c.function(x);
        const bool swept =
            ad_plain_backward(tape, &y) == AD_OK && ad_plain_gradients(tape, 4, k, g) == AD_OK;
        double worst = swept ? 0 : 1;
        const bool said = ad_plain_dropped() != lost;
        for (int i = 0; i < 4 && swept; i++) {
            const double h = 1e-6;
            double up[4], down[4];
            for (int j = 0; j < 4; j++)
                up[j] = down[j] = x[j];
            up[i] += h;
            down[i] -= h;
            const double d = (c.function(up) - c.function(down)) / (2 * h);
            worst = std::fmax(worst, std::fabs(d - g[i]) / (1 + std::fabs(d)));
        }
        if (worst > 1e-7 || said) {
            std::printf("%s: off by %g%s\n", c.name, worst, said ? ", and said to be lost" : "");
            failed++;
        }
        ad_tape_clear_error(tape);
    }
    if (!rewound(tape)) {
        std::printf("rewound: %s\n", ad_tape_message(tape));
        failed++;
    }
    ad_tape_destroy(tape);
    return failed > 0;
}
