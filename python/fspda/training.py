"""Runs of fspda from Python."""

from __future__ import annotations

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import threading
from typing import Any, Callable, Sequence

from . import client
from .run import Run


class RunError(RuntimeError):
    """A run that failed. The program has printed why; ``status`` is its exit status."""

    def __init__(self, arguments: Sequence[str], status: int) -> None:
        super().__init__(f"{' '.join(arguments)} ended with the status {status}: what it printed says why")
        self.status = status


def binary() -> str:
    """Return the path of the program: of FSPDA_BINARY, of this package, or of PATH."""
    own = pathlib.Path(__file__).with_name("bin") / ("fspda.exe" if os.name == "nt" else "fspda")
    found = os.environ.get("FSPDA_BINARY") or (str(own) if own.exists() else shutil.which("fspda"))
    if not found:
        raise FileNotFoundError("there is no program fspda: install a wheel of this package, or put it into PATH")
    return found


def main() -> int:
    """Run the program with the arguments of this process."""
    return subprocess.call([binary(), *sys.argv[1:]])


def call(model: client.Model | None, arguments: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """Start the program, which asks this process for the model, and stops when its input is closed.

    So it leaves a checkpoint when this process is interrupted, and ends with it in any case. Ctrl-C in a
    terminal reaches this process alone.
    """
    options = {"stdin": subprocess.PIPE, "start_new_session": True, **options}
    environment = {**os.environ, "FSPDA_STOP_AT_EOF": "1"}
    if model is None:
        return subprocess.Popen([binary(), *arguments], env=environment, **options)
    if os.name == "nt":
        raise NotImplementedError("Windows passes no memory between processes: train models of Python on Linux or macOS")
    ours, theirs = socket.socketpair()
    environment["FSPDA_CONTROL"] = str(theirs.fileno())
    process = subprocess.Popen([binary(), *arguments], pass_fds=[theirs.fileno()], env=environment, **options)
    theirs.close()

    def serve() -> None:
        with ours:
            while True:
                data, fds, _, _ = socket.recv_fds(ours, 1, 1)
                if not data:
                    return
                connection = client.Connection(model, socket.socket(fileno=fds[0]))
                threading.Thread(target=connection.run, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    return process


def finish(process: subprocess.Popen[Any]) -> int:
    """Wait for the program. An interrupt lets it leave a checkpoint first; another one ends it at once."""
    assert process.stdin is not None
    while True:
        try:
            status = process.wait()
            break
        except KeyboardInterrupt:
            if process.stdin.closed:
                process.kill()
            process.stdin.close()
    if not process.stdin.closed:
        process.stdin.close()
    return status


STOPPED = 130
"""The exit status of a run that was stopped, and has left a checkpoint."""


def flags(settings: dict[str, Any]) -> list[str]:
    """Return settings as flags of the program."""
    found = []
    for name, value in settings.items():
        if isinstance(value, bool):
            value = str(value).lower()
        elif isinstance(value, (list, tuple)):
            value = ",".join(map(str, value))
        found.append(f"--{name.replace('_', '-')}={value}")
    return found


def free(algo: str) -> pathlib.Path:
    """Return a run folder that does not exist."""
    for n in range(1, 1 << 30):
        path = pathlib.Path("runs") / f"{algo}-python-{n}"
        if not path.exists():
            return path
    raise RuntimeError("every name of a run folder is taken")


def wrap(model: Any, train_set: Any, test_set: Any, loss: Any, **options: Any) -> client.Model:
    """Return a module, or a function that makes one, as a model."""
    if isinstance(model, client.Model):
        return model
    from .pytorch import TorchModel

    return TorchModel(model, loss, train_set, test_set, **options)


def train(
    model: Any,
    train_set: Sequence[Any] | None = None,
    test_set: Sequence[Any] | None = None,
    *,
    loss: Callable[..., Any] | None = None,
    device: Any = "cpu",
    tokens: bool = False,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    quiet: bool = False,
    log_to: str | None = None,
    transform: Callable[..., Any] | None = None,
    collate: Callable[..., Any] | None = None,
    **settings: Any,
) -> Run:
    """Train a model, and return the run.

    ``model`` is a ``torch.nn.Module``, a function that makes one, or a :class:`fspda.Model`. ``train_set``
    and ``test_set`` are sequences of pairs ``(x, y)``; without them fspda's data are used (``data="mnist"``
    and so on). ``device`` is where the module computes. Other keywords are settings of ``fspda train``, with
    underscores: ``algo="fspda-sa", agents=8, partition="dirichlet(0.3)", density=0.01, seed=1``.

    ``out`` is the run folder. An interrupt stops the run, with a checkpoint. With ``resume`` the run in it goes
    on, with the same bits. ``tokens`` says that a module reads windows of tokens. ``log_to`` follows
    the run in "wandb" or "mlflow". In a process that fspda started as a ``--command`` the function answers its
    requests instead, and ends the process: so one file is both.
    """
    options: dict[str, Any] = {"device": device, "tokens": tokens}
    if transform is not None:
        options["transform"] = transform
    if collate is not None:
        options["collate"] = collate
    if isinstance(model, client.Model):
        options = {}
    served = wrap(model, train_set, test_set, loss, **options)
    if client.started():
        client.serve(served)
        sys.exit(0)
    if train_set is not None:
        settings.setdefault("data", "external")
    folder = pathlib.Path(out) if out is not None else free(str(settings.get("algo", "fspda-sa")))
    arguments = ["train", "--out", str(folder)]
    if resume:
        arguments.append("--resume")
    else:
        arguments += ["--model", "external"]
    if quiet:
        arguments.append("--quiet")
    arguments += flags(settings)
    follower = None
    if log_to is not None:
        from .tracking import follow

        follower = follow(log_to, folder)
    process = call(served, arguments)
    status = finish(process)
    if follower is not None:
        follower.end()
    if status == STOPPED:
        raise KeyboardInterrupt(f"the run in {folder} was stopped: resume=True goes on")
    if status != 0:
        raise RunError([binary(), *arguments], status)
    return Run(folder, served)
