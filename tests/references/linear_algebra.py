#!/usr/bin/env python3
"""Prints tests/support/linear_references.h: values and gradients of linear algebra, by mpmath.

    python3 tests/references/linear_algebra.py > tests/support/linear_references.h

Needs python3-mpmath, which nothing else does. Values are computed with 90 digits from definitions or
mpmath's own routines. Gradients are those of sum_k w_k y_k, w_k = ((7 k + 3) % 11 - 5) / 4, over all
results y one after the other: central differences of step 1e-25, whose error is about 1e-50. Nothing
of the project's formulas is used.
"""
from mpmath import mp, mpf, matrix
import mpmath

mp.dps = 90
STEP = mpf(10) ** -25


def weight(k):
    return mpf((7 * k + 3) % 11 - 5) / 4


def numbers(count, raised_by, rows, columns, seed):
    """Multiples of 1/64, the diagonal raised by (k + 1) raised_by."""
    x = [mpf((k * 37 + seed * 29 + 11) % 101 - 50) / 64 for k in range(count)]
    for k in range(min(rows, columns)):
        x[k * columns + k] += (k + 1) * raised_by
    return x


def mat(x, rows, columns):
    return matrix([[x[i * columns + j] for j in range(columns)] for i in range(rows)])


def flat(m):
    return [m[i, j] for i in range(m.rows) for j in range(m.cols)]


def symmetric(a):
    return (a + a.T) / 2


def triangle(a, upper, unit):
    t = matrix(a.rows, a.cols)
    for i in range(a.rows):
        for j in range(a.cols):
            if i == j:
                t[i, j] = mpf(1) if unit else a[i, j]
            elif (i < j) == bool(upper):
                t[i, j] = a[i, j]
    return t


def signed(v, rows):
    """Signs by which the element of greatest magnitude of each row becomes positive."""
    signs = []
    for i in range(rows):
        row = [v[i, j] for j in range(v.cols)]
        signs.append(1 if max(row, key=abs) > 0 else -1)
    return signs


def cholesky(a):
    return flat(mpmath.cholesky(symmetric(a)))


def solve_triangular(a, b, upper, transposed, unit):
    t = triangle(a, upper, unit)
    return flat(mpmath.inverse(t.T if transposed else t) * b)


def solve(a, b):
    return flat(mpmath.inverse(a) * b)


def inverse(a):
    return flat(mpmath.inverse(a))


def det(a):
    return [mpmath.det(a)]


def logdet(a):
    return [mpmath.log(mpmath.det(a))]


def slogdet(a):
    d = mpmath.det(a)
    return [mpmath.sign(d), mpmath.log(abs(d))]


def qr(a):
    """By Gram and Schmidt, which is exact enough with 90 digits."""
    k = min(a.rows, a.cols)
    q = matrix(a.rows, k)
    for j in range(k):
        column = a[:, j]
        for i in range(j):
            column = column - q[:, i] * (q[:, i].T * a[:, j])[0]
        column = column / mpmath.norm(column)
        for i in range(a.rows):
            q[i, j] = column[i]
    r = q.T * a
    for i in range(k):
        for j in range(i):
            r[i, j] = mpf(0)
    return flat(q) + flat(r)


def lstsq(a, b):
    return flat(mpmath.inverse(a.T * a) * a.T * b)


def eigh(a):
    w, v = mp.eigsy(symmetric(a))
    signs = signed(v.T, v.rows)
    for j in range(v.cols):
        for i in range(v.rows):
            v[i, j] *= signs[j]
    return [w[i] for i in range(w.rows)] + flat(v)


def svd(a):
    """From the eigenvectors of a^T a or a a^T, whichever is less."""
    k = min(a.rows, a.cols)
    w, v = mp.eigsy(a.T * a if a.cols <= a.rows else a * a.T)
    s = [mpmath.sqrt(w[k - 1 - i]) for i in range(k)]
    v = matrix([[v[i, k - 1 - j] for j in range(k)] for i in range(k)])
    inverse_s = mpmath.diag([1 / x for x in s])
    u, vh = (a * v * inverse_s, v.T) if a.cols <= a.rows else (v, inverse_s * v.T * a)
    signs = signed(vh, k)
    for i in range(k):
        for j in range(vh.cols):
            vh[i, j] *= signs[i]
        for j in range(u.rows):
            u[j, i] *= signs[i]
    return flat(u) + s + flat(vh)


def expm(a):
    """By its series, of a scaled down by 2^-20."""
    scaled, term = a / mpf(2) ** 20, mpmath.eye(a.rows)
    result = mpmath.eye(a.rows)
    for k in range(1, 40):
        term = term * scaled / k
        result = result + term
    for _ in range(20):
        result = result * result
    return flat(result)


# Function, shapes of the operands, what raises the first one's diagonal, attributes, seed, factor.
CASES = [
    (cholesky, [(3, 3)], 3, (), 1, 1),
    (cholesky, [(5, 5)], 3, (), 2, 1),
    (solve_triangular, [(3, 3), (3, 2)], 2, (0, 0, 0), 3, 1),
    (solve_triangular, [(4, 4), (4, 1)], 2, (1, 0, 0), 4, 1),
    (solve_triangular, [(3, 3), (3, 2)], 2, (0, 1, 0), 5, 1),
    (solve_triangular, [(3, 3), (3, 2)], 0, (1, 1, 1), 6, 1),
    (solve, [(3, 3), (3, 2)], -2, (), 7, 1),
    (solve, [(5, 5), (5, 1)], 2, (), 8, 1),
    (inverse, [(4, 4)], 2, (), 9, 1),
    (det, [(4, 4)], -1, (), 10, 1),
    (logdet, [(4, 4)], 2, (), 11, 1),
    (slogdet, [(3, 3)], -2, (), 12, 1),
    (qr, [(4, 3)], 2, (), 13, 1),
    (qr, [(3, 3)], 2, (), 14, 1),
    (qr, [(2, 4)], 2, (), 15, 1),
    (lstsq, [(5, 3), (5, 2)], 2, (), 16, 1),
    (eigh, [(3, 3)], 3, (), 17, 1),
    (eigh, [(5, 5)], -3, (), 18, 1),
    (svd, [(3, 3)], 3, (), 19, 1),
    (svd, [(5, 3)], 3, (), 20, 1),
    (svd, [(3, 4)], 3, (), 21, 1),
    # Norms for each degree of the approximants, and for squarings.
    (expm, [(3, 3)], 0, (), 22, mpf(1) / 256),
    (expm, [(3, 3)], 0, (), 23, mpf(1) / 16),
    (expm, [(3, 3)], 0, (), 24, mpf(1) / 4),
    (expm, [(3, 3)], 0, (), 25, 1),
    (expm, [(4, 4)], 0, (), 26, 2),
    (expm, [(3, 3)], -4, (), 27, 1),
]


def hilbert(n):
    """As f64 has it; its condition number is large."""
    return [mpf(1.0 / (i + j + 1)) for i in range(n) for j in range(n)]


def evaluate(function, shapes, attributes, x):
    operands, at = [], 0
    for rows, columns in shapes:
        operands.append(mat(x[at:at + rows * columns], rows, columns))
        at += rows * columns
    return function(*operands, *attributes)


def loss(y):
    return mpmath.fsum(weight(k) * v for k, v in enumerate(y))


def gradient(function, shapes, attributes, x):
    g = []
    for k in range(len(x)):
        ends = []
        for step in (STEP, -STEP):
            moved = list(x)
            moved[k] += step
            ends.append(loss(evaluate(function, shapes, attributes, moved)))
        g.append((ends[0] - ends[1]) / (2 * STEP))
    return g


def printed(name, values):
    text = ", ".join("0" if v == 0 or abs(v) < mpf(10) ** -40 else mpmath.nstr(v, 17, min_fixed=-5)
                     for v in values)
    lines, line = [], "   "
    for word in text.split(" "):
        if len(line) + 1 + len(word) > 98:
            lines.append(line)
            line = "   "
        line += " " + word
    lines.append(line)
    print("static const double %s[] = {\n%s};" % (name, "\n".join(lines)))


def main():
    print("""/* linear_references.h: values and gradients of linear algebra with 17 digits, for
 * test_linear_references.c.
 *
 * Made by tests/references/linear_algebra.py with mpmath, which says how; not edited. `most` is
 * what the error may be, as a part of the greatest number of the case: 1e-12, or 4 times the
 * roundoff of f64 times the square of the condition number if that is more.
 */
#ifndef LINEAR_REFERENCES_H
#define LINEAR_REFERENCES_H

#include <stdint.h>

/* clang-format off */""")
    rows = []
    cases = [c + (None,) for c in CASES]
    cases.append((solve, [(4, 4), (4, 1)], 0, (), 28, 1, hilbert(4)))
    cases.append((cholesky, [(4, 4)], 0, (), 29, 1, hilbert(4)))
    for i, (function, shapes, raised, attributes, seed, factor, first) in enumerate(cases):
        x = []
        for k, (m, n) in enumerate(shapes):
            part = numbers(m * n, raised if k == 0 else 0, m, n, seed + k)
            x += [v * factor for v in part] if first is None or k > 0 else first
        y = evaluate(function, shapes, attributes, x)
        printed("x_%d" % i, x)
        printed("y_%d" % i, y)
        printed("g_%d" % i, gradient(function, shapes, attributes, x))
        most = mpf(10) ** -12
        if first is not None:
            a = mat(first, *shapes[0])
            condition = mpmath.mnorm(a, 1) * mpmath.mnorm(mpmath.inverse(a), 1)
            most = max(most, 4 * mpf(2) ** -53 * condition ** 2)
        operands = ", ".join("{%d, %d}" % s for s in shapes)
        rows.append('    {"%s", %d, {%s}, %d, {%s}, %d, %s, x_%d, y_%d, g_%d},' % (
            function.__name__, len(shapes), operands, len(attributes),
            ", ".join(str(a) for a in attributes) or "0", len(y), mpmath.nstr(most, 3), i, i, i))
    print("""
static const struct linear_reference {
    const char *op;
    int n_in;
    int64_t shape[2][2];
    int n_attr;
    int64_t attr[3];
    int n_y;
    double most;
    const double *x, *y, *g;
} linear_references[] = {""")
    print("\n".join(rows))
    print("""};
/* clang-format on */

#endif""")


main()
