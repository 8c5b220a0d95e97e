"""JAX on the CPU, compiled."""

import jax
import jax.numpy as jnp
import numpy as np
from work import BATCH, BLOCKS, CLASSES, CONVS, EPSILON, HIDDEN, INPUTS, LABELS, NORMS, RATE, SIDE, fastest

_random = np.random.default_rng(1)


def _noise(*shape):
    return jnp.asarray(_random.uniform(-1, 1, shape).astype(np.float32))


def product(p, seconds):
    """Nanoseconds of a product."""
    a = _noise(p.k, p.m) if p.trans_a else _noise(p.m, p.k)
    b = _noise(p.n, p.k) if p.trans_b else _noise(p.k, p.n)
    f = _product[p.trans_a, p.trans_b]
    return fastest(lambda: f(a, b).block_until_ready(), seconds)


def _transposing(trans_a, trans_b):
    return jax.jit(lambda a, b: (a.T if trans_a else a) @ (b.T if trans_b else b))


_product = {(a, b): _transposing(a, b) for a in (False, True) for b in (False, True)}


def _loss(v, x, label):
    w1, b1, w2, b2 = v
    logits = jax.nn.sigmoid(x @ w1.T + b1) @ w2.T + b2
    return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(BATCH), label])


def _update(v, x, label):
    return [p - RATE * g for p, g in zip(v, jax.grad(_loss)(v, x, label), strict=True)]


_step = jax.jit(_update, donate_argnums=0)


def mlp(seconds):
    """Nanoseconds of a step."""
    v = [_noise(HIDDEN, INPUTS) * 0.05, _noise(HIDDEN), _noise(CLASSES, HIDDEN) * 0.1, _noise(CLASSES)]
    x, label = _noise(BATCH, INPUTS), jnp.asarray(_random.integers(0, CLASSES, BATCH))

    def step():
        nonlocal v
        v = jax.block_until_ready(_step(v, x, label))

    return {"": fastest(step, seconds, least=10)}


def _bottlenecks():
    """Channels read, channels inside and stride of each bottleneck of ResNet-50."""
    channels = 64
    for stage, count in enumerate(BLOCKS):
        for i in range(count):
            yield channels, 64 << stage, 2 if stage and not i else 1
            channels = 256 << stage


def _filter(side, inputs, outputs):
    deviation = (2 / (side * side * outputs)) ** 0.5
    return jnp.asarray(_random.normal(0, deviation, (side, side, inputs, outputs)).astype(np.float32))


def _weights():
    """Weights by block: each convolution with the scale and the shift behind it."""
    layer = lambda side, inputs, outputs: (_filter(side, inputs, outputs), jnp.ones(outputs), jnp.zeros(outputs))
    blocks = []
    for inputs, inside, stride in _bottlenecks():
        block = [layer(1, inputs, inside), layer(3, inside, inside), layer(1, inside, 4 * inside)]
        if stride > 1 or inputs != 4 * inside:
            block.append(layer(1, inputs, 4 * inside))
        blocks.append(block)
    return [layer(7, 3, 64), blocks, (_noise(2048, LABELS) * 0.01, jnp.zeros(LABELS))]


def _layer_of_network(v, x, stride=1):
    w, scale, shift = v
    pad = [(w.shape[0] // 2,) * 2] * 2
    y = jax.lax.conv_general_dilated(x, w, (stride, stride), pad, dimension_numbers=("NHWC", "HWIO", "NHWC"))
    mean, var = y.mean((0, 1, 2)), y.var((0, 1, 2))
    return (y - mean) * (scale * jax.lax.rsqrt(var + EPSILON)) + shift


def _resnet50_loss(v, x, label):
    stem, blocks, (w, b) = v
    x = jax.nn.relu(_layer_of_network(stem, x, 2))
    window, steps, pad = (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0))
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, steps, pad)
    for block, (_, _, stride) in zip(blocks, _bottlenecks(), strict=True):
        y = jax.nn.relu(_layer_of_network(block[0], x))
        y = jax.nn.relu(_layer_of_network(block[1], y, stride))
        y = _layer_of_network(block[2], y)
        x = jax.nn.relu(y + (_layer_of_network(block[3], x, stride) if len(block) > 3 else x))
    logits = x.mean((1, 2)) @ w + b
    return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(len(label)), label])


def network(batch, seconds):
    """Nanoseconds of a gradient of ResNet-50."""
    v, x = _weights(), _noise(batch, SIDE, SIDE, 3)
    label = jnp.asarray(_random.integers(0, LABELS, batch))
    gradient = jax.jit(jax.value_and_grad(_resnet50_loss))
    run = lambda: jax.block_until_ready(gradient(v, x, label))
    run()
    return {"": fastest(run, seconds)}


_compiled = {}


def layers(batch, seconds):
    """Nanoseconds of each layer, [forward, backward], images with their channels last."""
    result = {}
    for kind, table, make in (("conv", CONVS, _conv), ("norm", NORMS, _norm)):
        for i, layer in enumerate(table):
            key = f"{kind}{i}"
            if (key, batch) not in _compiled:
                _compiled[key, batch] = make(layer)
            args, dy = _operands(kind, layer, batch)
            result[key] = _layer(*_compiled[key, batch], args, dy, seconds)
    return result


def _layer(forward, backward, args, dy, seconds):
    return [
        fastest(lambda: jax.block_until_ready(forward(*args)), seconds, least=1),
        fastest(lambda: jax.block_until_ready(backward(dy, *args)), seconds, least=1),
    ]


def _operands(kind, layer, batch):
    if kind == "norm":
        shape = (batch, layer.side, layer.side, layer.channels)
        args = [_noise(*shape), _noise(layer.channels), _noise(layer.channels)]
        return args + [_noise(*shape)] * layer.add, _noise(*shape)
    out = (layer.side + 2 * layer.pad - layer.filter) // layer.stride + 1
    x = _noise(batch, layer.side, layer.side, layer.channels)
    w = _noise(layer.filter, layer.filter, layer.channels, layer.filters)
    return [w, x], _noise(batch, out, out, layer.filters)


def _conv(c):
    def f(w, x):
        pad = [(c.pad, c.pad)] * 2
        return jax.lax.conv_general_dilated(x, w, (c.stride, c.stride), pad, dimension_numbers=("NHWC", "HWIO", "NHWC"))

    if c.channels > 3:
        return jax.jit(f), jax.jit(lambda dy, w, x: jax.vjp(f, w, x)[1](dy))
    return jax.jit(f), jax.jit(lambda dy, w, x: jax.vjp(lambda w: f(w, x), w)[1](dy))


def _norm(n):
    def f(x, gamma, beta, z=0):
        mean = x.mean((0, 1, 2))
        var = ((x - mean) ** 2).mean((0, 1, 2))
        y = (x - mean) * (gamma * jax.lax.rsqrt(var + EPSILON)) + beta + z
        return jnp.maximum(y, 0) if n.relu else y

    # Backward alone: what XLA needs again of the forward pass it computes again, as it would keep it in a network.
    return jax.jit(f), jax.jit(lambda dy, *args: jax.vjp(f, *args)[1](dy))
