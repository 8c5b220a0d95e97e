"""Follow runs of fspda in Weights & Biases or MLflow."""

from __future__ import annotations

import os
import pathlib
import threading
from typing import Any, Callable

from .run import Run

Log = Callable[[dict[str, float], int], None]


def open_wandb(run: Run, project: str) -> tuple[Log, Callable[[], None]]:
    """Open a run of Weights & Biases."""
    import wandb

    target = wandb.init(project=project, name=run.folder.name, config=run.config)
    return (lambda metrics, step: target.log(metrics, step=step)), target.finish


def open_mlflow(run: Run, project: str) -> tuple[Log, Callable[[], None]]:
    """Open a run of MLflow."""
    import mlflow

    mlflow.set_experiment(project)
    mlflow.start_run(run_name=run.folder.name)
    mlflow.log_params(run.config)
    return (lambda metrics, step: mlflow.log_metrics(metrics, step=step)), mlflow.end_run


OPENERS: dict[str, Callable[[Run, str], tuple[Log, Callable[[], None]]]] = {
    "wandb": open_wandb,
    "mlflow": open_mlflow,
}
"""How each tracker is opened: a function of a run and a project, which returns how to log and how to end."""


class Follower:
    """Passes the evaluations of a run on to a tracker while it is running."""

    def __init__(self, tracker: str, folder: str | os.PathLike[str], project: str, every: float) -> None:
        if tracker not in OPENERS:
            raise ValueError(f"tracker {tracker!r}: want one of {', '.join(OPENERS)}")
        self.run, self.tracker, self.project, self.every = Run(folder), tracker, project, every
        self.seen = 0
        self._log: Log | None = None
        self._close: Callable[[], None] = lambda: None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while not self._ended.wait(self.every) and not self.run.summary:
            self.update()
        self.update()
        self._close()

    def update(self) -> None:
        """Pass on the rows that are new."""
        rows = self.run.rows()
        if self._log is None and (rows or (self.run.folder / "config.yaml").exists()):
            self._log, self._close = OPENERS[self.tracker](self.run, self.project)
        for row in rows[self.seen :]:
            assert self._log is not None
            step = row.pop("iteration")
            self._log({k: float(v) for k, v in row.items() if isinstance(v, (int, float))}, step)
        self.seen = max(self.seen, len(rows))

    def end(self) -> None:
        """Pass on the last rows, and close the tracker."""
        self._ended.set()
        self._thread.join()


def follow(tracker: str, folder: str | os.PathLike[str], project: str = "fspda", every: float = 2.0) -> Follower:
    """Follow a run in a thread, until it ends or ``end`` is called."""
    return Follower(tracker, folder, project, every)


def log_to(tracker: str, folder: str | os.PathLike[str], project: str = "fspda") -> None:
    """Pass a run on to "wandb" or "mlflow": all that it has, and what it still writes until it ends."""
    follower = follow(tracker, folder, project)
    if Run(folder).summary:
        follower.end()
    else:
        follower._thread.join()
