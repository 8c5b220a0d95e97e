"""Decentralized training with fspda: your own models, and the runs that it leaves."""

from .client import Batch, Examples, Model, Tensor, serve

__all__ = ["Batch", "Examples", "Model", "Tensor", "serve"]
