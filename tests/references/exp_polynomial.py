#!/usr/bin/env python3
"""Coefficients of kernels/simd/lanes_exp.h: python3 exp_polynomial.py (needs python3-mpmath).

q of degree d for exp(r) - 1 = r + r^2 q(r) on |r| <= log(2) / 2, with the least greatest error
relative to exp(r) - 1, by the second algorithm of Remez. Prints for d = 9 (f64) and 4 (f32) the
error as a power of two and each coefficient; those of f32 are then rounded to f32.
"""
from mpmath import cos, expm1, fabs, log, lu_solve, matrix, mp, mpf, pi, polyval

mp.dps = 60
GRID = 2000


def wanted(r):
    if fabs(r) < mpf(10) ** -12:
        return mpf(1) / 2 + r / 6 + r * r / 24 + r**3 / 120
    return (expm1(r) - r) / r**2


def weight(r):
    return max(fabs(r * r / expm1(r)) if r != 0 else mpf(0), mpf(10) ** -9)


def alternating(points):
    """The point of greatest error in each run of errors of one sign."""
    runs = []
    for x, error in points:
        if runs and (runs[-1][1] > 0) == (error > 0):
            if fabs(error) > fabs(runs[-1][1]):
                runs[-1] = (x, error)
        else:
            runs.append((x, error))
    return runs


def remez(degree, half, rounds=40):
    n = degree + 2
    nodes = [half * cos(pi * (n - 1 - k) / (n - 1)) for k in range(n)]
    grid = [half * cos(pi * (GRID - k) / GRID) for k in range(GRID + 1)]
    for _ in range(rounds):
        left, right = matrix(n, n), matrix(n, 1)
        for i, x in enumerate(nodes):
            for j in range(degree + 1):
                left[i, j] = x**j
            left[i, degree + 1] = (-1) ** i / weight(x)
            right[i] = wanted(x)
        c = list(lu_solve(left, right))[: degree + 1]
        runs = alternating([(x, (polyval(c[::-1], x) - wanted(x)) * weight(x)) for x in grid])
        while len(runs) > n:
            runs.pop(0 if fabs(runs[0][1]) < fabs(runs[-1][1]) else -1)
        if len(runs) < n:
            break
        nodes = [x for x, _ in runs]
    return c, max(fabs(error) for _, error in runs)


for degree in (9, 4):
    coefficients, error = remez(degree, log(mpf(2)) / 2 * mpf("1.0001"))
    print(f"degree {degree}: error 2^{float(log(error, 2)):.1f}")
    for value in coefficients:
        print("   ", float(value).hex())
