// peer_sacado.cpp: scalar problems by Sacado's reverse mode (Trilinos; D. M. Gay, E. T. Phipps), as
// Debian's libtrilinos-sacado-dev has it. It takes its memory back when the recording after a sweep
// begins.
#include "scalar_server.hpp"

#include <Sacado_trad.hpp>

namespace
{
class sacado
{
public:
    typedef Sacado::Rad::ADvar<double> number;

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
        number *output[3];
        double weight[3];
        for (size_t k = 0; k < y_.size(); ++k) {
            output[k] = &y_[k];
            weight[k] = int(k) == i ? 1.0 : 0.0; // it would keep that of a sweep before
        }
        number::Weighted_Gradcomp(y_.size(), output, weight);
        for (size_t j = 0; j < x_.size(); ++j)
            gradient[j] = x_[j].adj();
    }

    double bytes()
    {
        return NAN;
    }

    void reset()
    {
    }

private:
    std::vector<number> x_, y_;
};
} // namespace

int main()
{
    return scalar::serve<sacado>("Sacado (RAD)");
}
