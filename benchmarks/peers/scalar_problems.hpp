// scalar_problems.hpp: the problems of benchmarks/problems once more, as C++ templates over the
// number, as a user of these libraries writes them.
//
// Each computes what the objective in C computes,
// in the same order.
#ifndef SCALAR_PROBLEMS_HPP
#define SCALAR_PROBLEMS_HPP

#include "bodies.h"
#include "bundle.h"
#include "chains.h"
#include "gmm.h"
#include "hand.h"
#include "heat.h"
#include "heston.h"
#include "lstm.h"

#include <cmath>
#include <vector>

namespace scalar
{
using std::cos;
using std::exp;
using std::log;
using std::sin;
using std::sqrt;
using std::tanh;

// ---- mixture of Gaussians ----

template <class T> T log_of_sum_exp(const T *x, int n)
{
    T most = x[0], sum = 0.0;
    for (int i = 1; i < n; ++i)
        if (x[i] > most)
            most = x[i];
    for (int i = 0; i < n; ++i)
        sum += exp(x[i] - most);
    return most + log(sum);
}

template <class T> void gmm_objective(const gmm &g, const T *x, T *out)
{
    const int d = g.d, size = gmm_factor_size(&g);
    const T *alpha = x, *mu = x + g.k, *factors = mu + g.k * d;
    std::vector<T> diagonal(g.k * d), sum_q(g.k), term(g.k), a(d), y(d);
    T prior = 0.0, sum = 0.0;
    for (int k = 0; k < g.k; ++k) {
        const T *q = factors + k * size, *l = q + d;
        T squares = 0.0;
        sum_q[k] = 0.0;
        for (int j = 0; j < d; ++j) {
            diagonal[k * d + j] = exp(q[j]);
            sum_q[k] += q[j];
            squares += diagonal[k * d + j] * diagonal[k * d + j];
        }
        for (int j = 0; j < size - d; ++j)
            squares += l[j] * l[j];
        prior += 0.5 * g.gamma * g.gamma * squares - double(g.m) * sum_q[k];
    }
    for (int i = 0; i < g.n; ++i) {
        const double *p = g.points + i * d;
        for (int k = 0; k < g.k; ++k) {
            const T *l = factors + k * size + d;
            for (int j = 0; j < d; ++j) {
                a[j] = p[j] - mu[k * d + j];
                y[j] = diagonal[k * d + j] * a[j];
            }
            for (int c = 0; c < d; ++c)
                for (int r = c + 1; r < d; ++r)
                    y[r] += *l++ * a[c];
            T norm = 0.0;
            for (int j = 0; j < d; ++j)
                norm += y[j] * y[j];
            term[k] = alpha[k] + sum_q[k] - 0.5 * norm;
        }
        sum += log_of_sum_exp(term.data(), g.k);
    }
    *out = sum - double(g.n) * log_of_sum_exp(alpha, g.k) + prior + gmm_constant(&g);
}

// ---- long short-term memory ----

template <class T> T sigmoid(const T &z)
{
    return 1.0 / (1.0 + exp(-z));
}

template <class T> void lstm_objective(const lstm &m, const T *x, T *out)
{
    const int b = m.b;
    const T *w_in = x + 8 * m.l * b, *w_out = w_in + b, *b_out = w_out + b;
    std::vector<T> state(m.state, m.state + 2 * m.l * b), v(b);
    T loss = 0.0;
    for (int t = 0; t + 1 < m.c; ++t) {
        const double *now = m.sequence + t * b, *next = now + b;
        for (int j = 0; j < b; ++j)
            v[j] = now[j] * w_in[j];
        for (int l = 0; l < m.l; ++l) {
            const T *w = x + 8 * l * b, *bias = w + 4 * b;
            T *h = &state[2 * l * b], *cell = h + b;
            for (int j = 0; j < b; ++j) {
                T f = sigmoid(T(v[j] * w[j] + bias[j]));
                T i = sigmoid(T(h[j] * w[b + j] + bias[b + j]));
                T o = sigmoid(T(v[j] * w[2 * b + j] + bias[2 * b + j]));
                T g = tanh(T(h[j] * w[3 * b + j] + bias[3 * b + j]));
                cell[j] = cell[j] * f + i * g;
                h[j] = o * tanh(cell[j]);
                v[j] = h[j];
            }
        }
        T sum = 2.0;
        for (int j = 0; j < b; ++j) {
            v[j] = v[j] * w_out[j] + b_out[j];
            sum += exp(v[j]);
        }
        T log_sum = log(sum);
        for (int j = 0; j < b; ++j)
            loss -= next[j] * (v[j] - log_sum);
    }
    *out = loss / double(b * (m.c - 1));
}

// ---- bundle adjustment ----

template <class T> void cross(const T *a, const T *b, T *c)
{
    c[0] = a[1] * b[2] - a[2] * b[1];
    c[1] = a[2] * b[0] - a[0] * b[2];
    c[2] = a[0] * b[1] - a[1] * b[0];
}

// x: a camera, a point and a weight; out: two residuals, and that of the weight.
template <class T> void bundle_residuals(const T *x, const double *feature, T *out)
{
    const T *r = x, *point = x + BUNDLE_CAMERA, &weight = x[BUNDLE_ROW - 1];
    T v[3], c[3], q[3];
    for (int j = 0; j < 3; ++j)
        v[j] = point[j] - x[3 + j];
    T square = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
    if (square == 0.0) {
        cross(r, v, c);
        for (int j = 0; j < 3; ++j)
            q[j] = v[j] + c[j];
    } else {
        T t = sqrt(square), cosine = cos(t), sine = sin(t), inverse = 1.0 / t, w[3];
        for (int j = 0; j < 3; ++j)
            w[j] = r[j] * inverse;
        cross(w, v, c);
        T along = (w[0] * v[0] + w[1] * v[1] + w[2] * v[2]) * (1.0 - cosine);
        for (int j = 0; j < 3; ++j)
            q[j] = v[j] * cosine + c[j] * sine + w[j] * along;
    }
    T a = q[0] / q[2], b = q[1] / q[2];
    T radius = a * a + b * b;
    T radial = 1.0 + x[9] * radius + x[10] * radius * radius;
    out[0] = weight * (a * radial * x[6] + x[7] - feature[0]);
    out[1] = weight * (b * radial * x[6] + x[8] - feature[1]);
    out[2] = 1.0 - weight * weight;
}

// ---- hand ----

template <class T> struct matrix {
    T m[3][4];
};

template <class T, class B> void multiply(const matrix<T> &a, const B &b, matrix<T> &c)
{
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 4; ++j)
            c.m[i][j] =
                a.m[i][0] * b.m[0][j] + a.m[i][1] * b.m[1][j] + a.m[i][2] * b.m[2][j];
        c.m[i][3] += a.m[i][3];
    }
}

template <class T> void bend(const hand_matrix &m, const T &a, const T *b, matrix<T> &bent)
{
    T sa = sin(a), ca = cos(a), sb = 0.0, cb = 1.0;
    if (b) {
        sb = sin(*b);
        cb = cos(*b);
    }
    for (int i = 0; i < 3; ++i) {
        const double *r = m.m[i];
        T across = r[1] * cb - r[0] * sb;
        bent.m[i][0] = r[0] * cb + r[1] * sb;
        bent.m[i][1] = across * ca + r[2] * sa;
        bent.m[i][2] = r[2] * ca - across * sa;
        bent.m[i][3] = r[3];
    }
}

template <class T> void rotation(const T *w, T r[3][3])
{
    T t = sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]);
    if (t < 1e-4) {
        for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j)
                r[i][j] = i == j ? 1.0 : 0.0;
        return;
    }
    T x = w[0] / t, y = w[1] / t, z = w[2] / t, s = sin(t), c = cos(t), d = 1.0 - c;
    r[0][0] = x * x * d + c;
    r[0][1] = x * y * d - z * s;
    r[0][2] = x * z * d + y * s;
    r[1][0] = x * y * d + z * s;
    r[1][1] = y * y * d + c;
    r[1][2] = y * z * d - x * s;
    r[2][0] = x * z * d - y * s;
    r[2][1] = y * z * d + x * s;
    r[2][2] = z * z * d + c;
}

template <class T> void pose_bones(const hand &h, const T *theta, matrix<T> *transform)
{
    std::vector<matrix<T>> relative(HAND_BONES), absolute(HAND_BONES);
    for (int i = 0; i < HAND_BONES; ++i)
        for (int j = 0; j < 12; ++j)
            relative[i].m[j / 4][j % 4] = h.relative[i].m[j / 4][j % 4];
    const T *angle = theta + 6;
    for (int finger = 0; finger < HAND_FINGERS; ++finger)
        for (int k = 0; k < 3; ++k) {
            const int bone = hand_first_bone(finger) + k;
            bend(h.relative[bone], angle[0], k == 0 ? angle + 1 : nullptr, relative[bone]);
            angle += k == 0 ? 2 : 1;
        }
    for (int i = 0; i < HAND_BONES; ++i) {
        if (h.parent[i] < 0)
            absolute[i] = relative[i];
        else
            multiply(absolute[h.parent[i]], relative[i], absolute[i]);
        multiply(absolute[i], h.inverse_rest[i], transform[i]);
    }
}

template <class T> void hand_objective(const hand &h, const T *theta, T *out)
{
    std::vector<matrix<T>> transform(HAND_BONES);
    std::vector<T> moved(3 * h.n_vertices);
    T global[3][3], placed[3], sum = 0.0;
    pose_bones(h, theta, transform.data());
    rotation(theta, global);
    for (int v = 0; v < h.n_vertices; ++v) {
        const hand_vertex &vertex = h.vertex[v];
        const double *rest = vertex.rest;
        for (int i = 0; i < 3; ++i)
            placed[i] = 0.0;
        for (int k = 0; k < vertex.n; ++k) {
            const matrix<T> &t = transform[vertex.bone[k]];
            for (int i = 0; i < 3; ++i)
                placed[i] += vertex.weight[k] * (t.m[i][0] * rest[0] + t.m[i][1] * rest[1] +
                                                 t.m[i][2] * rest[2] + t.m[i][3]);
        }
        for (int i = 0; i < 3; ++i)
            moved[3 * v + i] = global[i][0] * placed[0] + global[i][1] * placed[1] +
                               global[i][2] * placed[2] + theta[3 + i];
    }
    for (int i = 0; i < h.n_points; ++i)
        for (int j = 0; j < 3; ++j) {
            T error = h.points[3 * i + j] - moved[3 * h.vertex_of[i] + j];
            sum += error * error;
        }
    *out = 0.5 * sum;
}

// ---- loops ----

template <class T> void lorenz_slope(const T *u, T *k)
{
    k[0] = lorenz_sigma * (u[1] - u[0]);
    k[1] = u[0] * (lorenz_rho - u[2]) - u[1];
    k[2] = u[0] * u[1] - lorenz_beta * u[2];
}

template <class T> void ahead(int n, const T *u, double h, const T *k, T *to)
{
    for (int j = 0; j < n; ++j)
        to[j] = u[j] + h * k[j];
}

template <class T>
void runge_kutta(int n, void (*slope)(const T *, T *), T *u, double h, int steps)
{
    std::vector<T> p(n), a(n), b(n), c(n), d(n);
    for (int i = 0; i < steps; ++i) {
        slope(u, a.data());
        ahead(n, u, 0.5 * h, a.data(), p.data());
        slope(p.data(), b.data());
        ahead(n, u, 0.5 * h, b.data(), p.data());
        slope(p.data(), c.data());
        ahead(n, u, h, c.data(), p.data());
        slope(p.data(), d.data());
        for (int j = 0; j < n; ++j)
            u[j] = u[j] + h / 6.0 * (a[j] + 2.0 * b[j] + 2.0 * c[j] + d[j]);
    }
}

template <class T> void lorenz_objective(const chain &c, const T *x, T *out)
{
    T u[3] = {x[0], x[1], x[2]};
    runge_kutta(c.n_equations, lorenz_slope<T>, u, lorenz_step, c.n);
    *out = 0.5 * (u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
}

template <class T> void burgers_objective(const chain &c, const T *x, T *out)
{
    std::vector<T> u(x, x + c.n), next(c.n);
    for (int s = 0; s < c.s; ++s) {
        next[0] = u[0];
        next[c.n - 1] = u[c.n - 1];
        for (int i = 1; i < c.n - 1; ++i)
            next[i] = u[i] - burgers_drift * u[i] * (u[i + 1] - u[i - 1]) +
                      burgers_diffusion * (u[i + 1] - 2.0 * u[i] + u[i - 1]);
        std::swap(u, next);
    }
    T sum = 0.0;
    for (int i = 0; i < c.n; ++i)
        sum += u[i] * u[i];
    *out = sum;
}

template <class T> void mulchain_objective(const chain &c, const T *x, T *out)
{
    T s = x[0];
    for (int i = 0; i < c.n; ++i)
        s = s * x[1] + x[2];
    *out = s;
}

// ---- the price of an option ----

template <class T> void heston_objective(const heston &h, const T *x, T *out)
{
    const T &kappa = x[2], &theta = x[3], &sigma = x[4], &rho = x[5], &rate = x[6];
    const double dt = heston_maturity / h.steps, root_dt = std::sqrt(dt), *z = h.normals;
    T other = sqrt(1.0 - rho * rho), sum = 0.0;
    for (int i = 0; i < h.paths; ++i) {
        T log_s = log(x[0]), v = x[1];
        for (int j = 0; j < h.steps; ++j, z += 2) {
            T positive = 0.0;
            if (v > 0.0)
                positive = v;
            T root = sqrt(positive + heston_least);
            T dw = root_dt * (rho * z[0] + other * z[1]);
            log_s = log_s + (rate - 0.5 * positive) * dt + root * dw;
            v = v + kappa * (theta - positive) * dt + sigma * root * (root_dt * z[0]);
        }
        T s = exp(log_s);
        if (s > heston_strike)
            sum = sum + (s - heston_strike);
    }
    *out = exp(-rate * heston_maturity) * sum / double(h.paths);
}

// ---- heat on a square ----

template <class T> void heat_objective(const heat &h, const T *x, T *out)
{
    const int n = h.n;
    std::vector<T> u(x, x + n * n), next(x, x + n * n);
    for (int s = 0; s < h.s; ++s) {
        for (int i = 1; i < n - 1; ++i)
            for (int j = 1; j < n - 1; ++j) {
                const T *m = &u[i * n + j];
                next[i * n + j] =
                    m[0] + heat_share * (m[-1] + m[1] + m[-n] + m[n] - 4.0 * m[0]);
            }
        std::swap(u, next);
    }
    T sum = 0.0;
    for (int i = 0; i < n * n; ++i)
        sum += u[i] * u[i];
    *out = sum;
}

// ---- bodies that attract each other ----

template <class T> void bodies_objective(const bodies &b, const T *x, T *out)
{
    const int n = b.n;
    std::vector<T> at(x, x + 3 * n), v(x + 3 * n, x + 6 * n), a(3 * n);
    const T *mass = x + 6 * n;
    for (int s = 0; s < b.s; ++s) {
        for (int i = 0; i < 3 * n; ++i)
            a[i] = 0.0;
        for (int i = 0; i < n; ++i)
            for (int j = i + 1; j < n; ++j) {
                T d[3];
                for (int k = 0; k < 3; ++k)
                    d[k] = at[3 * j + k] - at[3 * i + k];
                T square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + bodies_softening;
                T w = 1.0 / (square * sqrt(square));
                for (int k = 0; k < 3; ++k) {
                    a[3 * i + k] += mass[j] * w * d[k];
                    a[3 * j + k] -= mass[i] * w * d[k];
                }
            }
        for (int i = 0; i < 3 * n; ++i) {
            v[i] += bodies_step * a[i];
            at[i] += bodies_step * v[i];
        }
    }
    T sum = 0.0;
    for (int i = 0; i < 3 * n; ++i)
        sum += at[i] * at[i];
    *out = sum;
}

// Calls f with a function of (const T *x, T *out) that is the problem's objective, unless it is
// that of bundle adjustment.
template <class T, class F> void with_objective(const problem &p, F f)
{
    const problem_kind *kind = p.spec->kind;
    const chain *c = static_cast<const chain *>(p.input);
    if (kind == &gmm_kind)
        f([&](const T *x, T *out) { gmm_objective(*static_cast<const gmm *>(p.input), x, out); });
    else if (kind == &lstm_kind)
        f([&](const T *x, T *out) { lstm_objective(*static_cast<const lstm *>(p.input), x, out); });
    else if (kind == &hand_kind)
        f([&](const T *x, T *out) { hand_objective(*static_cast<const hand *>(p.input), x, out); });
    else if (kind == &lorenz_kind)
        f([&](const T *x, T *out) { lorenz_objective(*c, x, out); });
    else if (kind == &burgers_kind)
        f([&](const T *x, T *out) { burgers_objective(*c, x, out); });
    else if (kind == &mulchain_kind)
        f([&](const T *x, T *out) { mulchain_objective(*c, x, out); });
    else if (kind == &heston_kind)
        f([&](const T *x, T *out) {
            heston_objective(*static_cast<const heston *>(p.input), x, out);
        });
    else if (kind == &heat_kind)
        f([&](const T *x, T *out) { heat_objective(*static_cast<const heat *>(p.input), x, out); });
    else if (kind == &bodies_kind)
        f([&](const T *x, T *out) {
            bodies_objective(*static_cast<const bodies *>(p.input), x, out);
        });
}
} // namespace scalar

#endif
