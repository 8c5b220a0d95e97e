"""The client of fspda: it answers requests for gradients and scores of a model.

A model is an object with the methods of :class:`Model`. :func:`serve` connects it with the program
``fspda`` that started this process, and answers until that ends. docs/external-models.md describes
the messages. The module needs the standard library alone; with NumPy arrays are NumPy arrays, else
they are memoryviews.
"""

from __future__ import annotations

import array
import faulthandler
import json
import mmap
import os
import socket
import sys
import traceback
from dataclasses import dataclass
from typing import Any, Callable, Sequence

try:
    import numpy
except ImportError:  # arrays are memoryviews
    numpy = None  # type: ignore[assignment]

PROTOCOL = 1
"""The version of the messages."""


@dataclass
class Tensor:
    """A tensor of the flat vector of parameters, or of buffers."""

    name: str
    shape: tuple[int, ...]
    norm: bool = False  # a parameter of a norm, to which weight decay "no-norm" does not apply
    embedding: bool = False  # a table of vectors

    @property
    def size(self) -> int:
        """The number of elements."""
        n = 1
        for d in self.shape:
            n *= d
        return n


@dataclass
class Examples:
    """The examples that fspda trains on."""

    shape: tuple[int, ...]  # of one example: (28, 28), (height, width, channels), or (tokens,)
    classes: int
    tokens: bool = False  # an example is a window of tokens, each of which predicts the next
    rows: bool = False  # this program loads the examples of each batch


@dataclass
class Batch:
    """Examples and their classes.

    ``x`` is an array of ``len`` examples (float32, or int32 tokens), ``y`` their classes (int32; for
    tokens one for each of them). Of a set that the program loads itself, ``rows`` are the indices of
    the examples of ``split``, and ``x`` is None.
    """

    x: Any
    y: Any
    rows: Any
    split: str
    key: int
    """Seed of what is random in this batch, such as dropout; 0 if nothing is."""

    def __len__(self) -> int:
        return len(self.rows) if self.x is None else len(self.x)


class Model:
    """A model without state: its vectors come with each call.

    ``x``, ``g`` and ``buffers`` are flat float32 arrays in shared memory, in the order of
    ``parameters`` and ``buffers``. They are valid during the call, and x must not be changed.
    """

    name = "external"
    parameters: Sequence[Tensor] = ()
    buffers: Sequence[Tensor] = ()
    tokens = False

    def prepare(self, examples: Examples) -> None:
        """Learn the examples. ``parameters`` and ``buffers`` are read after this call."""

    def init(self, x: Any, buffers: Any, seed: int) -> None:
        """Write the initial parameters of a seed to x, and the initial buffers."""
        raise NotImplementedError

    def grad(self, x: Any, g: Any, buffers: Any, batch: Batch) -> float:
        """Write the gradient of the mean loss of the batch at x to g, and return that loss.

        Update the buffers if they are not None.
        """
        raise NotImplementedError

    def score(self, x: Any, buffers: Any, batch: Batch) -> tuple[float, float, float]:
        """Return the sum of the losses, and the numbers of hits among the first and the first five.

        Batch norm takes the statistics of the buffers, or of the batch if they are None.
        """
        raise NotImplementedError

    def observe(self, x: Any, buffers: Any, batch: Batch, momentum: float) -> None:
        """Move the buffers towards the statistics of the batch by a momentum."""
        raise NotImplementedError

    def predict(self, x: Any, out: Any, buffers: Any, batch: Batch) -> None:
        """Write the logits of the batch to out, an array of examples × classes."""
        raise NotImplementedError

    def data(self) -> dict[str, Any]:
        """Return the labels of a set that the program loads itself.

        That is ``{"train": labels, "test": labels}``, with lists of whole numbers from 0 on, and if
        they are known ``"classes"``, a number, and ``"class_names"``.
        """
        raise NotImplementedError


class Memory:
    """The shared memory."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._map: Any = None
        self._size = 0

    def array(self, place: dict[str, Any] | None) -> Any:
        """Return the array at a place of a message; None for no place."""
        if place is None:
            return None
        shape, at = tuple(place["shape"]), place["at"]
        count = 1
        for d in shape:
            count *= d
        if at + 4 * count > self._size:  # the memory has grown; arrays keep the earlier map
            self._size = os.fstat(self.fd).st_size
            self._map = mmap.mmap(self.fd, self._size)
        kind = place["type"]
        if numpy is not None:
            return numpy.frombuffer(self._map, kind, count, at).reshape(shape)
        view = memoryview(self._map)[at : at + 4 * count]
        flat = view.cast({"float32": "f", "int32": "i"}[kind])
        if len(shape) < 2 or count == 0:
            return flat
        return flat.cast("B").cast({"float32": "f", "int32": "i"}[kind], shape)


class Connection:
    """A connection with fspda, for one model."""

    def __init__(self, model: Model, sock: socket.socket) -> None:
        self.model, self.sock = model, sock
        self.memory: Memory | None = None

    def run(self) -> None:
        """Answer requests until the other side ends."""
        with self.sock:
            self._run()
        if self.memory is not None:
            os.close(self.memory.fd)

    def _run(self) -> None:
        line, fds = b"", array.array("i")
        while not line.endswith(b"\n"):
            data, ancillary, _, _ = self.sock.recvmsg(1 << 16, socket.CMSG_LEN(4))
            if not data:
                return
            line += data
            for level, kind, payload in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
        if fds:
            self.memory = Memory(fds[0])
        with self.sock.makefile("rb") as lines:
            while line:
                answer = json.dumps(self.answer(line), allow_nan=False).encode() + b"\n"
                try:
                    self.sock.sendall(answer)
                    line = lines.readline()
                except OSError:  # fspda has ended
                    return

    def answer(self, line: bytes) -> dict[str, Any]:
        """Return the answer to the line of a request."""
        try:
            request = json.loads(line)
            return getattr(self, "do_" + request["do"])(request)
        except Exception as error:  # the other side decides
            return {
                "error": f"{type(error).__name__}: {error}",
                "traceback": traceback.format_exc(),
            }

    def do_hello(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"protocol": PROTOCOL}

    def do_data(self, request: dict[str, Any]) -> dict[str, Any]:
        found = dict(self.model.data())
        for split in "train", "test":
            found[split] = {"labels": [int(y) for y in found[split]]}
        return found

    def do_model(self, request: dict[str, Any]) -> dict[str, Any]:
        about = request["example"]
        self.model.prepare(
            Examples(
                tuple(about["shape"]), about["classes"], about.get("tokens", False), about.get("rows", False)
            )
        )

        def described(tensors: Sequence[Tensor]) -> list[dict[str, Any]]:
            return [
                {"name": t.name, "shape": list(t.shape), "norm": t.norm, "embedding": t.embedding} for t in tensors
            ]

        return {
            "name": self.model.name,
            "parameters": described(self.model.parameters),
            "buffers": described(self.model.buffers),
            "tokens": self.model.tokens,
        }

    def arrays(self, request: dict[str, Any], *names: str) -> list[Any]:
        """Return arrays of a request."""
        assert self.memory is not None, "hello came without memory"
        return [self.memory.array(request.get(name)) for name in names]

    def batch(self, request: dict[str, Any]) -> Batch:
        """Return the batch of a request."""
        given = request["batch"]
        x, y, rows = self.arrays(given, "x", "y", "rows")
        return Batch(x, y, rows, given.get("split", ""), given.get("key", 0))

    def do_init(self, request: dict[str, Any]) -> dict[str, Any]:
        x, buffers = self.arrays(request, "x", "buffers")
        self.model.init(x, buffers, request["seed"])
        return {}

    def do_grad(self, request: dict[str, Any]) -> dict[str, Any]:
        x, g, buffers = self.arrays(request, "x", "g", "buffers")
        return {"loss": finite(self.model.grad(x, g, buffers, self.batch(request)))}

    def do_score(self, request: dict[str, Any]) -> dict[str, Any]:
        x, buffers = self.arrays(request, "x", "buffers")
        loss, hits, hits5 = self.model.score(x, buffers, self.batch(request))
        return {"loss": finite(loss), "hits": float(hits), "hits5": float(hits5)}

    def do_observe(self, request: dict[str, Any]) -> dict[str, Any]:
        x, buffers = self.arrays(request, "x", "buffers")
        self.model.observe(x, buffers, self.batch(request), request["momentum"])
        return {}

    def do_predict(self, request: dict[str, Any]) -> dict[str, Any]:
        x, out, buffers = self.arrays(request, "x", "out", "buffers")
        self.model.predict(x, out, buffers, self.batch(request))
        return {}


def finite(loss: float) -> float | None:
    """Return a loss as JSON has it: None stands for one that is not finite."""
    loss = float(loss)
    return loss if loss - loss == 0 else None


def started() -> bool:
    """Report whether fspda started this process as the program of a model."""
    return "FSPDA_SOCKET" in os.environ


def serve(model: Model | Callable[[], Model]) -> None:
    """Answer the requests of the fspda that started this process, and return when it has ended."""
    if not started():
        raise RuntimeError(
            "fspda did not start this program: run fspda train --model external --command "
            f"'python3 {sys.argv[0]}', or call fspda.train"
        )
    faulthandler.enable(all_threads=True)  # fspda sends SIGABRT to a program that hangs
    sock = socket.socket(fileno=int(os.environ.pop("FSPDA_SOCKET")))
    Connection(model if isinstance(model, Model) else model(), sock).run()
