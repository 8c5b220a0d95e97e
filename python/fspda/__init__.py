"""Decentralized training with fspda: your own models, and the runs that it leaves.

>>> import fspda
>>> run = fspda.train(module, train_set, test_set, loss=cross_entropy, algo="fspda-sa", agents=8)  # doctest: +SKIP
>>> run.metrics, run.model  # doctest: +SKIP
"""

from .client import Batch, Examples, Model, Tensor, serve
from .run import Run, runs
from .tracking import log_to
from . import training
from .training import RunError, train

__all__ = ["Batch", "Examples", "Model", "Run", "RunError", "Tensor", "log_to", "runs", "serve", "train"]
