/* workloads_quad.c: the gradient sums that benchmarks/common_workloads.c states, in quadruple
 * precision, by loops and adjoints written by hand.
 *
 * Not part of the build; gcc alone has the type: gcc -O2 workloads_quad.c -lquadmath -o
 * workloads_quad && ./workloads_quad [CASE...] Inputs are rounded to double as the formulae of
 * common_workloads.h say; everything after that is in quadruple precision. lstm takes a minute.
 */
#include <math.h>
#include <quadmath.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef __float128 real;

static real *array(int n)
{
    real *a = calloc((size_t)n, sizeof *a);
    if (!a)
        exit(1);
    return a;
}

/* offset + scale F(i, p), rounded to double */
static real *input(int n, double offset, double scale, int p)
{
    real *a = array(n);
    for (int i = 0; i < n; i++) {
        double scaled = scale * sin(0.37 * (double)i + p + (double)((long)i * i % 1009));
        double value = offset + scaled;
        a[i] = value;
    }
    return a;
}

/* c [m,n] += a b, with a [m,k] or its transpose [k,m], b [k,n] or its transpose [n,k] */
static void product(int m, int n, int k, const real *a, int flip_a, const real *b, int flip_b,
                    real *c)
{
    for (int i = 0; i < m; i++)
        for (int l = 0; l < k; l++) {
            const real x = flip_a ? a[l * m + i] : a[i * k + l];
            for (int j = 0; j < n; j++)
                c[i * n + j] += x * (flip_b ? b[j * k + l] : b[l * n + j]);
        }
}

static real weigh(const real *g, int n, int k)
{
    real sum = 0;
    for (int i = 0; i < n; i++)
        sum += g[i] * cosq(0.73 * (double)i + (double)k);
    return sum;
}

static real sigmoid(real x)
{
    return 1 / (1 + expq(-x));
}

static real chain(int width, int parameters)
{
    real *x = input(width, 0, 0.5, 0), *c = input(width, 0, 0.01, 1), *d = input(width, 1, 0.01, 2);
    real *gx = array(width), *gc = array(width), *gd = array(width);
    for (int e = 0; e < width; e++) {
        real sum[333], out[333], y = x[e], g = 1;
        for (int k = 0; k < 333; k++) {
            sum[k] = y + c[e];
            out[k] = y = tanhq(sum[k] * d[e]);
        }
        gc[e] = 1;
        for (int k = 332; k >= 0; k--) {
            g *= 1 - out[k] * out[k];
            gd[e] += g * sum[k];
            g *= d[e];
            gc[e] += g;
        }
        gx[e] = g;
    }
    real sum = weigh(gx, width, 0);
    return parameters ? sum + weigh(gc, width, 1) + weigh(gd, width, 2) : sum;
}

static real mlp(int w)
{
    enum { B = 64 };
    const double scale = 1.0 / sqrt((double)w);
    real *h[4] = {input(B * w, 0, 1, 0)}, *weight[3], *bias[3], *g = array(B * w), sum = 0;
    for (int k = 0; k < 3; k++) {
        weight[k] = input(w * w, 0, scale, k + 1);
        bias[k] = input(w, 0, 0.1, k + 4);
        h[k + 1] = array(B * w);
        product(B, w, w, h[k], 0, weight[k], 0, h[k + 1]);
        for (int i = 0; i < B * w; i++) {
            h[k + 1][i] += bias[k][i % w];
            if (k < 2)
                h[k + 1][i] = tanhq(h[k + 1][i]);
        }
    }
    for (int r = 0; r < B; r++) {
        real total = 0;
        for (int j = 0; j < w; j++)
            total += expq(h[3][r * w + j]);
        for (int j = 0; j < w; j++)
            g[r * w + j] = (expq(h[3][r * w + j]) / total - (j == (7 * r + 3) % w)) / B;
    }
    for (int k = 2; k >= 0; k--) {
        real *gw = array(w * w), *gb = array(w), *next = array(B * w);
        product(w, w, B, h[k], 1, g, 0, gw);
        for (int i = 0; i < B * w; i++)
            gb[i % w] += g[i];
        sum += weigh(gw, w * w, 2 * k) + weigh(gb, w, 2 * k + 1);
        product(B, w, w, g, 0, weight[k], 1, next);
        for (int i = 0; i < B * w; i++)
            next[i] *= 1 - h[k][i] * h[k][i];
        g = next;
    }
    return sum;
}

static real lstm(int n)
{
    enum { T = 100, B = 16 };
    const double scale = 1.0 / sqrt((double)n);
    const int step = B * n;
    real *wx = input(4 * n * n, 0, scale, 1), *wh = input(4 * n * n, 0, scale, 2);
    real *b = input(4 * n, 0, 0.1, 3), *x[T], *gate[T], *h[T + 1], *c[T + 1];
    real *gwx = array(4 * n * n), *gwh = array(4 * n * n), *gb = array(4 * n);
    real *gh = array(step), *gc = array(step);
    h[0] = array(step);
    c[0] = array(step);
    for (int t = 0; t < T; t++) {
        x[t] = input(step, 0, 1, 100 + t);
        gate[t] = array(4 * step);
        h[t + 1] = array(step);
        c[t + 1] = array(step);
        product(B, 4 * n, n, x[t], 0, wx, 0, gate[t]);
        product(B, 4 * n, n, h[t], 0, wh, 0, gate[t]);
        for (int r = 0; r < B; r++)
            for (int j = 0; j < n; j++) {
                real *z = gate[t] + r * 4 * n + j;
                for (int k = 0; k < 4; k++)
                    z[k * n] =
                        k == 2 ? tanhq(z[k * n] + b[k * n + j]) : sigmoid(z[k * n] + b[k * n + j]);
                const int i = r * n + j;
                c[t + 1][i] = z[n] * c[t][i] + z[0] * z[2 * n];
                h[t + 1][i] = z[3 * n] * tanhq(c[t + 1][i]);
            }
    }
    for (int i = 0; i < step; i++)
        gh[i] = 2 * h[T][i] / step;
    for (int t = T - 1; t >= 0; t--) {
        real *gz = array(4 * step);
        for (int r = 0; r < B; r++)
            for (int j = 0; j < n; j++) {
                const int i = r * n + j;
                const real *z = gate[t] + r * 4 * n + j, y = tanhq(c[t + 1][i]);
                real *to = gz + r * 4 * n + j;
                to[3 * n] = gh[i] * y * z[3 * n] * (1 - z[3 * n]);
                gc[i] += gh[i] * z[3 * n] * (1 - y * y);
                to[0] = gc[i] * z[2 * n] * z[0] * (1 - z[0]);
                to[n] = gc[i] * c[t][i] * z[n] * (1 - z[n]);
                to[2 * n] = gc[i] * z[0] * (1 - z[2 * n] * z[2 * n]);
                gc[i] *= z[n];
            }
        product(n, 4 * n, B, x[t], 1, gz, 0, gwx);
        product(n, 4 * n, B, h[t], 1, gz, 0, gwh);
        for (int i = 0; i < 4 * step; i++)
            gb[i % (4 * n)] += gz[i];
        memset(gh, 0, sizeof *gh * (size_t)step);
        product(B, n, 4 * n, gz, 0, wh, 1, gh);
        free(gz);
    }
    return weigh(gwx, 4 * n * n, 0) + weigh(gwh, 4 * n * n, 1) + weigh(gb, 4 * n, 2);
}

static real attn(int d)
{
    enum { S = 256 };
    real *x = input(S * d, 0, 1, 0), *w[4], *in[3], *gin[3], *gw[4], *gx = array(S * d);
    real *p = array(S * S), *gp = array(S * S), *o = array(S * d), *y = array(S * d);
    real *go = array(S * d);
    for (int k = 0; k < 4; k++) {
        w[k] = input(d * d, 0, 0.125, k + 1);
        gw[k] = array(d * d);
    }
    for (int k = 0; k < 3; k++) {
        in[k] = array(S * d);
        gin[k] = array(S * d);
        product(S, d, d, x, 0, w[k], 0, in[k]);
    }
    product(S, S, d, in[0], 0, in[1], 1, p);
    for (int r = 0; r < S; r++) {
        real total = 0;
        for (int j = 0; j < S; j++)
            total += p[r * S + j] = expq(p[r * S + j] / 8);
        for (int j = 0; j < S; j++)
            p[r * S + j] /= total;
    }
    product(S, d, S, p, 0, in[2], 0, o);
    product(S, d, d, o, 0, w[3], 0, y);
    for (int i = 0; i < S * d; i++)
        y[i] *= (real)2 / (S * d);
    product(d, d, S, o, 1, y, 0, gw[3]);
    product(S, d, d, y, 0, w[3], 1, go);
    product(S, d, S, p, 1, go, 0, gin[2]);
    product(S, S, d, go, 0, in[2], 1, gp);
    for (int r = 0; r < S; r++) {
        real dot = 0;
        for (int j = 0; j < S; j++)
            dot += gp[r * S + j] * p[r * S + j];
        for (int j = 0; j < S; j++)
            gp[r * S + j] = p[r * S + j] * (gp[r * S + j] - dot) / 8;
    }
    product(S, d, S, gp, 0, in[1], 0, gin[0]);
    product(S, d, S, gp, 1, in[0], 0, gin[1]);
    real sum = 0;
    for (int k = 0; k < 3; k++) {
        product(d, d, S, x, 1, gin[k], 0, gw[k]);
        product(S, d, d, gin[k], 0, w[k], 1, gx);
    }
    for (int k = 0; k < 4; k++)
        sum += weigh(gw[k], d * d, k + 1);
    return sum + weigh(gx, S * d, 0);
}

/* The gradient of the loss in K is (inverse of K - a a^T) / 2 with a = inverse of K times y. */
static real gp(int n)
{
    enum { D = 4 };
    real *x = input(n * D, 0, 1, 0), *y = input(n, 0, 1, 1), *ll = input(D, 0, 0.1, 2);
    real *e = array(n * n), *l = array(n * n), *v = array(n * n), *k = array(n * n), *a = array(n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            real r = 0;
            for (int c = 0; c < D; c++) {
                const real u = (x[i * D + c] - x[j * D + c]) * expq(-ll[c]);
                r += u * u;
            }
            e[i * n + j] = expq(-r / 2);
            k[i * n + j] = e[i * n + j] + (i == j ? expq(-2) : 0);
        }
    for (int j = 0; j < n; j++)
        for (int i = j; i < n; i++) {
            real s = k[i * n + j];
            for (int c = 0; c < j; c++)
                s -= l[i * n + c] * l[j * n + c];
            l[i * n + j] = i == j ? sqrtq(s) : s / l[j * n + j];
        }
    /* v: the inverse of l */
    for (int j = 0; j < n; j++)
        for (int i = j; i < n; i++) {
            real s = i == j;
            for (int c = j; c < i; c++)
                s -= l[i * n + c] * v[c * n + j];
            v[i * n + j] = s / l[i * n + i];
        }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            k[i * n + j] = 0;
            for (int c = i > j ? i : j; c < n; c++)
                k[i * n + j] += v[c * n + i] * v[c * n + j];
            a[i] += k[i * n + j] * y[j];
        }
    real gll[D] = {0}, gsf = 0, gsn = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            const real g = (k[i * n + j] - a[i] * a[j]) / 2;
            gsf += g * 2 * e[i * n + j];
            if (i == j)
                gsn += g * 2 * expq(-2);
            for (int c = 0; c < D; c++) {
                const real u = (x[i * D + c] - x[j * D + c]) * expq(-ll[c]);
                gll[c] += g * e[i * n + j] * u * u;
            }
        }
    return weigh(gll, D, 0) + weigh(&gsf, 1, 1) + weigh(&gsn, 1, 2);
}

static real value(const char *name)
{
    const int digits = (int)strcspn(name, "0123456789"), n = atoi(name + digits);
    if (strncmp(name, "chain", 5) == 0)
        return chain(n, name[5] == 'p');
    if (strncmp(name, "mlp", 3) == 0)
        return mlp(n);
    if (strncmp(name, "gp", 2) == 0)
        return gp(n);
    return name[0] == 'l' ? lstm(128) : attn(64);
}

int main(int argc, char **argv)
{
    static const char *const all[] = {"chain1", "chain64", "chainp1", "chainp64", "mlp32", "mlp128",
                                      "mlp512", "mlp1024", "lstm",    "attn",     "gp512"};
    const int n = argc > 1 ? argc - 1 : (int)(sizeof all / sizeof *all);
    for (int k = 0; k < n; k++) {
        const char *name = argc > 1 ? argv[k + 1] : all[k];
        printf("%s %.17g\n", name, (double)value(name));
        fflush(stdout);
    }
    return 0;
}
