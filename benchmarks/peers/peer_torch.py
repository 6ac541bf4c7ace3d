#!/usr/bin/python3
"""peer_torch.py: what PyTorch saves for the backward pass of the workloads of common_workloads.h,
as a server that another program asks.

Prints one line when it is ready: "ready VERSION CORE BLAS", as peer_libtorch does. Then each input
line "CASE f32|f64 SECONDS" is answered by "ok SAVED GRADIENT_SUM" or by "error TEXT". SAVED: bytes of
the distinct storages that autograd saves in one forward pass (torch.autograd.graph.
saved_tensors_hooks), without those of parameters and constants. SECONDS is ignored.
"CASE f32|f64 SECONDS profiled" is answered by "ok PLAIN PROFILED GRADIENT_SUM": ns of a step, forward
and backward, without torch.profiler and under it, medians of steps that take SECONDS in all.
"""
import ctypes
import math
import os
import re
import statistics
import sys
import time

import torch
import torch.profiler


def blas():
    """The processor that OpenBLAS chose its kernels for and the file that libblas.so.3 stands for."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        found = re.search(r"/\S*/(libblas\.so|libopenblas)\S*", maps.read())
    if not found:
        return "-", "-"
    try:
        name = ctypes.CDLL(found.group(0)).openblas_get_corename
    except AttributeError:
        return "-", found.group(0)
    name.restype = ctypes.c_char_p
    return name().decode(), found.group(0)


def inputs(shape, p):
    i = torch.arange(math.prod(shape), dtype=torch.int64)
    return torch.sin(0.37 * i.double() + p + (i * i % 1009).double()).reshape(shape)


def constant(t, dtype):
    return t.to(dtype).clone().detach()


def leaf(t, dtype):
    return constant(t, dtype).requires_grad_(True)


def chain(dtype, width, parameters):
    other = leaf if parameters else constant
    x = leaf(0.5 * inputs((width,), 0), dtype)
    c = other(0.01 * inputs((width,), 1), dtype)
    d = other(1 + 0.01 * inputs((width,), 2), dtype)

    def forward():
        y = x
        for _ in range(333):
            y = y + c
            y = y * d
            y = torch.tanh(y)
        y = y + c
        return y.sum()

    return forward, [x, c, d] if parameters else [x], [] if parameters else [c, d]


def mlp(dtype, width):
    batch = 64
    scale = 1 / math.sqrt(width)
    x = constant(inputs((batch, width), 0), dtype)
    w = [leaf(inputs((width, width), k) * scale, dtype) for k in (1, 2, 3)]
    b = [leaf(inputs((width,), k) * 0.1, dtype) for k in (4, 5, 6)]
    labels = (torch.arange(batch) * 7 + 3) % width

    def forward():
        h = torch.tanh(torch.addmm(b[0], x, w[0]))
        h = torch.tanh(torch.addmm(b[1], h, w[1]))
        z = torch.addmm(b[2], h, w[2])
        return torch.nn.functional.cross_entropy(z, labels)

    return forward, [w[0], b[0], w[1], b[1], w[2], b[2]], [x, labels]


def lstm(dtype):
    steps, batch, width = 100, 16, 128
    scale = 1 / math.sqrt(width)
    x = [constant(inputs((batch, width), 100 + t), dtype) for t in range(steps)]
    wx, wh = [leaf(inputs((width, 4 * width), k) * scale, dtype) for k in (1, 2)]
    b = leaf(inputs((4 * width,), 3) * 0.1, dtype)
    zero = torch.zeros(batch, width, dtype=dtype)

    def forward():
        h = c = zero
        for t in range(steps):
            z = torch.mm(x[t], wx) + torch.mm(h, wh) + b
            i, f, g, o = z.chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return (h * h).mean()

    return forward, [wx, wh, b], x + [zero]


def attn(dtype):
    x = leaf(inputs((256, 64), 0), dtype)
    w = [leaf(inputs((64, 64), k) / 8, dtype) for k in (1, 2, 3, 4)]

    def forward():
        q, k, v = x @ w[0], x @ w[1], x @ w[2]
        p = torch.softmax((q @ k.t()) * 0.125, 1)
        y = (p @ v) @ w[3]
        return (y * y).mean()

    return forward, [x] + w, []


def gp(dtype, n):
    x = constant(inputs((n, 4), 0), dtype)
    y = constant(inputs((n, 1), 1), dtype)
    ll = leaf(inputs((4,), 2) * 0.1, dtype)
    lsf = leaf(torch.tensor([0.0]), dtype)
    lsn = leaf(torch.tensor([-1.0]), dtype)
    eye = torch.eye(n, dtype=dtype)

    def forward():
        xs = x * torch.exp(-ll)
        q = (xs * xs).sum(1)
        r2 = q[:, None] + q[None, :] - 2 * (xs @ xs.t())
        k = torch.exp(2 * lsf) * torch.exp(-0.5 * r2) + torch.exp(2 * lsn) * eye
        chol = torch.linalg.cholesky(k)
        a = torch.linalg.solve_triangular(chol, y, upper=False)
        return 0.5 * (a * a).sum() + torch.log(torch.diagonal(chol)).sum() + 0.5 * n * math.log(2 * math.pi)

    return forward, [ll, lsf, lsn], [x, y, eye]


def create(name, dtype):
    family, width = re.fullmatch(r"([a-z]+)(\d*)", name).groups()
    width = int(width or 0)
    if family in ("chain", "chainp"):
        return chain(dtype, width, family == "chainp")
    if family == "mlp":
        return mlp(dtype, width)
    if family == "gp":
        return gp(dtype, width)
    return {"lstm": lstm, "attn": attn}[family](dtype)


def saved(forward, leaves):
    """The bytes, and the loss. What is saved is kept alive, so that addresses stay distinct."""
    outside = {t.storage().data_ptr() for t in leaves}
    kept = []

    def pack(t):
        kept.append(t)
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        loss = forward()
    storages = {t.storage().data_ptr(): t.storage().nbytes() for t in kept}
    return sum(n for at, n in storages.items() if at not in outside), loss


def gradient_sum(parameters):
    total = 0.0
    for k, p in enumerate(parameters):
        g = p.grad.double().reshape(-1)
        i = torch.arange(g.numel(), dtype=torch.float64)
        total += float((g * torch.cos(0.73 * i + k)).sum())
    return total


def step(forward, parameters):
    """Its time in ns; the gradients stay until the next."""
    for p in parameters:
        p.grad = None
    start = time.perf_counter_ns()
    forward().backward()
    return time.perf_counter_ns() - start


def steps(forward, parameters, seconds):
    times, end = [], time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        times.append(step(forward, parameters))
    return statistics.median(times)


# One profile of so many steps: it is all kept in memory until its end.
PROFILED_STEPS = 20


def profiled(forward, parameters, seconds):
    plain = steps(forward, parameters, seconds / 2)
    times, end = [], time.perf_counter() + seconds / 2
    while not times or time.perf_counter() < end:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True):
            times += [step(forward, parameters) for _ in range(PROFILED_STEPS)]
    return f"ok {plain} {statistics.median(times)} {gradient_sum(parameters):.17g}"


def answer(line):
    name, dtype, seconds, *how = line.split()
    forward, parameters, constants = create(name, {"f32": torch.float32, "f64": torch.float64}[dtype])
    if how == ["profiled"]:
        return profiled(forward, parameters, float(seconds))
    n, loss = saved(forward, parameters + constants)
    loss.backward()
    return f"ok {n} {gradient_sum(parameters):.17g}"


def main():
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    print("ready", torch.__version__, *blas(), flush=True)
    for line in sys.stdin:
        try:
            print(answer(line), flush=True)
        except Exception as error:  # whatever it is, the one who asks is told
            print("error", type(error).__name__, str(error).split("\n", 1)[0], flush=True)


if __name__ == "__main__":
    main()
