"""NumPy, which multiplies matrices with OpenBLAS."""

import numpy as np
from work import BATCH, CLASSES, HIDDEN, INPUTS, RATE, fastest

_random = np.random.default_rng(1)


def _noise(*shape):
    return _random.uniform(-1, 1, shape).astype(np.float32)


def product(p, seconds):
    """Nanoseconds of a product. Views that are transposed become flags of sgemm."""
    a = _noise(p.k, p.m).T if p.trans_a else _noise(p.m, p.k)
    b = _noise(p.n, p.k).T if p.trans_b else _noise(p.k, p.n)
    c = np.empty((p.m, p.n), np.float32)
    return fastest(lambda: np.matmul(a, b, out=c), seconds)


def mlp(seconds):
    """Nanoseconds of a step of the MLP by hand: forward, backward, update in place."""
    w1, b1 = _noise(HIDDEN, INPUTS) * 0.05, np.zeros(HIDDEN, np.float32)
    w2, b2 = _noise(CLASSES, HIDDEN) * 0.1, np.zeros(CLASSES, np.float32)
    x, label = _noise(BATCH, INPUTS), _random.integers(0, CLASSES, BATCH)
    rows = np.arange(BATCH)

    def step():
        h = x @ w1.T
        h += b1
        h = 1 / (1 + np.exp(-h))
        y = h @ w2.T
        y += b2
        y -= y.max(axis=1, keepdims=True)
        np.exp(y, out=y)
        y /= y.sum(axis=1, keepdims=True)
        y[rows, label] -= 1
        y *= np.float32(1 / BATCH)
        dh = y @ w2
        dh *= h
        dh *= 1 - h
        for v, grad in ((w2, y.T @ h), (b2, y.sum(axis=0)), (w1, dh.T @ x), (b1, dh.sum(axis=0))):
            grad *= np.float32(RATE)
            v -= grad

    return {"": fastest(step, seconds, least=10)}
