// peer_stan.cpp: scalar problems by Stan Math (B. Carpenter and others, 2015, arXiv:1509.07164), as
// Debian's r-cran-stanheaders has it.
#include <stan/math.hpp>

#include "scalar_server.hpp"

namespace
{
class stan_math
{
public:
    typedef stan::math::var number;

    void prepare(const problem &)
    {
    }

    void begin(int n, const double *values)
    {
        x_.assign(values, values + n);
    }

    number *x()
    {
        return x_.data();
    }

    void end(int m, number *y)
    {
        y_.assign(y, y + m);
    }

    void reverse(int i, double *gradient)
    {
        if (i > 0)
            stan::math::set_zero_all_adjoints();
        y_[i].grad();
        for (size_t j = 0; j < x_.size(); ++j)
            gradient[j] = x_[j].adj();
    }

    // Its arena, in blocks that double.
    double bytes()
    {
        return double(stan::math::ChainableStack::instance_->memalloc_.bytes_allocated());
    }

    void reset()
    {
        stan::math::recover_memory();
    }

private:
    std::vector<number> x_, y_;
};
} // namespace

int main()
{
    return scalar::serve<stan_math>("Stan Math");
}
