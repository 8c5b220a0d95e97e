"""A model of JAX, for fspda."""

from __future__ import annotations

from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy

from .client import Batch, Examples, Model, Tensor


def cross_entropy(logits: jax.Array, y: jax.Array) -> jax.Array:
    """Return the mean cross entropy of a batch."""
    own = jnp.take_along_axis(logits, y[:, None], 1)[:, 0]
    return (jax.nn.logsumexp(logits, axis=1) - own).mean()


class JaxModel(Model):
    """A pair of functions: ``init(key)`` returns parameters, ``apply(parameters, x, key)`` outputs.

    Parameters are a tree of float32 arrays. ``key`` is a key of ``jax.random`` for what is random in
    training, such as dropout, and None in evaluations. ``loss(outputs, y)`` is the mean over a batch.
    """

    def __init__(
        self,
        init: Callable[[jax.Array], Any],
        apply: Callable[[Any, jax.Array, jax.Array | None], jax.Array],
        loss: Callable[[jax.Array, jax.Array], jax.Array] = cross_entropy,
        name: str = "jax",
        tokens: bool = False,
    ) -> None:
        self.draw, self.apply, self.mean_loss, self.name, self.tokens = init, apply, loss, name, tokens

    def prepare(self, examples: Examples) -> None:
        shapes = jax.eval_shape(self.draw, jax.random.key(0))
        leaves, self.tree = jax.tree_util.tree_flatten_with_path(shapes)
        self.parameters = [
            Tensor(".".join(str(getattr(k, "key", getattr(k, "idx", k))) for k in path), leaf.shape)
            for path, leaf in leaves
        ]
        self._grad = jax.jit(jax.value_and_grad(self._objective))
        self._score = jax.jit(self._sums)

    def unflatten(self, x: jax.Array) -> Any:
        """Return the parameters of a flat vector."""
        at, leaves = 0, []
        for t in self.parameters:
            leaves.append(x[at : at + t.size].reshape(t.shape))
            at += t.size
        return jax.tree_util.tree_unflatten(self.tree, leaves)

    def _outputs(self, x: jax.Array, batch_x: jax.Array, y: jax.Array, key: Any) -> tuple[jax.Array, jax.Array]:
        out = self.apply(self.unflatten(x), batch_x, key)
        return out.reshape(-1, out.shape[-1]), y.reshape(-1)

    def _objective(self, x: jax.Array, batch_x: jax.Array, y: jax.Array, key: Any) -> jax.Array:
        return self.mean_loss(*self._outputs(x, batch_x, y, key))

    def _sums(self, x: jax.Array, batch_x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        out, y = self._outputs(x, batch_x, y, None)
        own = jnp.take_along_axis(out, y[:, None], 1)
        before = ((out > own) | ((out == own) & (jnp.arange(out.shape[1]) < y[:, None]))).sum(1)
        return self.mean_loss(out, y) * len(y), (before == 0).sum(), (before < 5).sum()

    def init(self, x: Any, buffers: Any, seed: int) -> None:
        leaves = jax.tree_util.tree_leaves(self.draw(jax.random.key(seed & 0xFFFFFFFF)))
        x[:] = numpy.concatenate([numpy.asarray(leaf).reshape(-1) for leaf in leaves])

    def grad(self, x: Any, g: Any, buffers: Any, batch: Batch) -> float:
        key = jax.random.key(batch.key & 0xFFFFFFFF) if batch.key else None
        loss, found = self._grad(jnp.asarray(x), jnp.asarray(batch.x), jnp.asarray(batch.y), key)
        g[:] = numpy.asarray(found)
        return float(loss)

    def score(self, x: Any, buffers: Any, batch: Batch) -> tuple[float, float, float]:
        loss, hits, hits5 = self._score(jnp.asarray(x), jnp.asarray(batch.x), jnp.asarray(batch.y))
        return float(loss), float(hits), float(hits5)

    def predict(self, x: Any, out: Any, buffers: Any, batch: Batch) -> None:
        out[:] = numpy.asarray(self.apply(self.unflatten(jnp.asarray(x)), jnp.asarray(batch.x), None))
