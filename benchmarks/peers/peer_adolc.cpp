// peer_adolc.cpp: scalar problems by ADOL-C (A. Walther, A. Griewank), as Debian's libadolc-dev has
// it. A recording keeps what the sweep needs (keep = 1), so that it is swept at once. Its buffers
// are large enough for every case, so that nothing goes through files, but as they are where tapes
// are tiny, since each recording pays for their size.
#include "scalar_server.hpp"

#include <adolc/adolc.h>

namespace
{
class adolc
{
public:
    typedef adouble number;

    void prepare(const problem &p)
    {
        tiny_ = p.spec->kind == &bundle_kind;
    }

    void begin(int n, const double *values)
    {
        const unsigned operations = 1u << 26, locations = 1u << 28, constants = 1u << 24;
        const unsigned kept = 1u << 27;
        if (tiny_)
            trace_on(tag, 1);
        else
            trace_on(tag, 1, operations, locations, constants, kept);
        x_.resize(n);
        for (int i = 0; i < n; ++i)
            x_[i] <<= values[i];
    }

    number *x()
    {
        return x_.data();
    }

    void end(int m, number *y)
    {
        double unused;
        n_outputs_ = m;
        for (int i = 0; i < m; ++i)
            y[i] >>= unused;
        trace_off();
    }

    void reverse(int i, double *gradient)
    {
        double seed[3] = {0.0, 0.0, 0.0};
        seed[i] = 1.0;
        ::reverse(tag, n_outputs_, int(x_.size()), 0, seed, gradient);
    }

    // Operations, locations, constants and the values kept for the sweep.
    double bytes()
    {
        size_t counts[STAT_SIZE];
        tapestats(tag, counts);
        return double(counts[NUM_OPERATIONS]) + 4.0 * double(counts[NUM_LOCATIONS]) +
               8.0 * double(counts[NUM_VALUES]) + 8.0 * double(counts[TAY_STACK_SIZE]);
    }

    void reset()
    {
    }

private:
    static const short tag = 1;
    std::vector<adouble> x_;
    int n_outputs_ = 0;
    bool tiny_ = false;
};
} // namespace

int main()
{
    return scalar::serve<adolc>("ADOL-C");
}
