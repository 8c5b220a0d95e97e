"""A model of PyTorch, for fspda.

The parameters of a module on the CPU are views of the vectors of the training: nothing is copied. On
another device each call copies them there, and the gradient back. For CUDA the memory of the vectors is
locked, so that the copies go at the speed of the bus, and gradients go back while the backward pass is
still computing others.
"""

from __future__ import annotations

import contextlib
import copy
import mmap
import sys
from typing import Any, Callable, ContextManager, Sequence

import torch

from .client import Batch, Examples, Model, Tensor

_NORMS = (
    torch.nn.modules.batchnorm._NormBase,
    torch.nn.GroupNorm,
    torch.nn.LayerNorm,
    torch.nn.LocalResponseNorm,
)


def tensor(values: Any) -> torch.Tensor:
    """Return an array of the shared memory as a tensor of the same memory."""
    if isinstance(values, memoryview):
        kind = {"f": torch.float32, "i": torch.int32}[values.format]
        shape = values.shape or ()
        if values.nbytes == 0:
            return torch.empty(shape, dtype=kind)
        return torch.frombuffer(values.cast("B"), dtype=kind).view(shape)
    return torch.from_numpy(values)


def images(x: torch.Tensor) -> torch.Tensor:
    """Return examples as PyTorch has them: with the channels before rows and columns."""
    if x.ndim == 4:
        return x.permute(0, 3, 1, 2)
    return x.unsqueeze(1) if x.ndim == 3 else x


class Copies:
    """How vectors of the training reach the parameters of a module, and gradients come back."""

    def __init__(self, values: Sequence[torch.nn.Parameter], device: torch.device) -> None:
        self.values = values
        self.flat = None
        if device.type != "cpu":
            self.flat = torch.empty(sum(p.numel() for p in values), device=device)

    def place(self, x: torch.Tensor) -> torch.Tensor:
        """Return a vector where the module computes: itself, or a copy."""
        return x if self.flat is None else self.flat.copy_(x)

    def lock(self, x: torch.Tensor) -> None:
        """Prepare a vector for faster copies, if there are any."""

    def collecting(self, targets: Sequence[torch.Tensor]) -> ContextManager[None]:
        """Return the context of a backward pass, whose gradients ``store`` writes to the targets."""
        return contextlib.nullcontext()

    def store(self, grads: Sequence[torch.Tensor | None], targets: Sequence[torch.Tensor]) -> None:
        """Write gradients to parts of a vector, and return when they are there."""
        for to, by in zip(targets, grads):
            if by is None:
                to.zero_()
            else:
                to.copy_(by)


class CUDACopies(Copies):
    """Copies to and from locked memory. A gradient goes back on a stream of its own as soon as it is known."""

    def __init__(self, values: Sequence[torch.nn.Parameter], device: torch.device, cuda: Any = torch.cuda) -> None:
        super().__init__(values, device)
        self.cuda = cuda
        self.back = cuda.Stream(device)
        self.locked: dict[int, torch.Tensor] = {}  # by address; a mapping must stay while it is locked
        self.refused = False
        self.targets: Sequence[torch.Tensor] = ()
        self.sent: set[int] = set()
        for i, p in enumerate(values):
            p.register_hook(self._sender(i))

    def lock(self, x: torch.Tensor) -> None:
        """Lock the pages of a vector that has pages of its own. Copies are right without it, but slower."""
        at, size = x.data_ptr(), x.numel() * x.element_size()
        if self.refused or at in self.locked or at % mmap.PAGESIZE or size < mmap.PAGESIZE:
            return
        code = int(self.cuda.cudart().cudaHostRegister(at, -(-size // mmap.PAGESIZE) * mmap.PAGESIZE, 0))
        if code == 0:
            self.locked[at] = x
            return
        self.refused = True
        print(
            f"fspda: CUDA cannot lock the memory of the vectors (cudaHostRegister: error {code}): copies take longer",
            file=sys.stderr,
        )

    def place(self, x: torch.Tensor) -> torch.Tensor:
        self.lock(x)
        assert self.flat is not None
        return self.flat.copy_(x, non_blocking=True)  # the kernels that follow are on the same stream

    @contextlib.contextmanager
    def collecting(self, targets: Sequence[torch.Tensor]) -> Any:
        self.targets, self.sent = targets, set()
        try:
            yield
        finally:
            self.targets = ()

    def _sender(self, i: int) -> Callable[[torch.Tensor], None]:
        def send(grad: torch.Tensor) -> None:
            if self.targets:
                self.back.wait_stream(self.cuda.current_stream())
                with self.cuda.stream(self.back):
                    self.targets[i].copy_(grad, non_blocking=True)
                    grad.record_stream(self.back)
                self.sent.add(i)

        return send

    def store(self, grads: Sequence[torch.Tensor | None], targets: Sequence[torch.Tensor]) -> None:
        self.back.synchronize()
        for i, to in enumerate(targets):
            if i not in self.sent:  # the loss does not depend on it
                to.zero_()


class TorchModel(Model):
    """A ``torch.nn.Module`` with a loss.

    ``module`` is a module, whose parameters are the first model of every run, or a function that
    makes one, which is called after ``torch.manual_seed`` of the run's seed. ``loss(output, y)`` is
    the mean over a batch. Parameters without ``requires_grad`` are constants of the module.

    ``train_set`` and ``test_set`` are map-style datasets, or any sequences of pairs ``(x, y)``; without
    them the batches are fspda's. ``transform`` makes the input of the module of fspda's examples; images
    have the shape (N, C, H, W) by default, and one channel if the data have none.
    """

    def __init__(
        self,
        module: torch.nn.Module | Callable[[], torch.nn.Module],
        loss: Callable[[Any, torch.Tensor], torch.Tensor] | None = None,
        train_set: Sequence[Any] | None = None,
        test_set: Sequence[Any] | None = None,
        device: str | torch.device = "cpu",
        transform: Callable[[torch.Tensor], torch.Tensor] = images,
        collate: Callable[[list[Any]], Any] | None = None,
        tokens: bool = False,
    ) -> None:
        self.make: Callable[[], torch.nn.Module] | None = None
        self.given: torch.nn.Module | None = None
        if isinstance(module, torch.nn.Module):
            self.given = module
        else:
            self.make = module
        self.loss = loss or torch.nn.functional.cross_entropy
        self.sets = {"train": train_set, "test": test_set}
        self.device, self.transform, self.tokens = torch.device(device), transform, tokens
        self.collate = collate or torch.utils.data.default_collate
        self.module: torch.nn.Module | None = None

    def prepare(self, examples: Examples) -> None:
        if self.make is not None:
            torch.manual_seed(0)
            self.module = self.make()
        else:
            self.module = copy.deepcopy(self.given)
        assert self.module is not None
        self.module.to(self.device)
        self.name = type(self.module).__name__
        owners = dict(self.module.named_modules())

        def described(name: str, shape: torch.Size) -> Tensor:
            owner = owners[name.rpartition(".")[0]]
            table = isinstance(owner, (torch.nn.Embedding, torch.nn.EmbeddingBag))
            return Tensor(name, tuple(shape), isinstance(owner, _NORMS), table)

        moved = [(n, p) for n, p in self.module.named_parameters() if p.requires_grad]
        self.parameters = [described(n, p.shape) for n, p in moved]
        self.values = [p for _, p in moved]
        other = [n for n, p in moved if p.dtype != torch.float32]
        if other:
            raise TypeError(f"the parameter {other[0]} is not float32: fspda trains float32, convert the module")
        self.norms = [
            m for m in self.module.modules() if isinstance(m, torch.nn.modules.batchnorm._NormBase) and m.track_running_stats
        ]
        self.momenta = {m: m.momentum for m in self.norms}
        names = {id(m): n for n, m in owners.items()}
        self.buffers, self.statistics = [], []
        for m in self.norms:
            for kind in "running_mean", "running_var":
                statistic = getattr(m, kind)
                self.buffers.append(Tensor(f"{names[id(m)]}.{kind}".lstrip("."), tuple(statistic.shape)))
                self.statistics.append(statistic)
        self.size = sum(t.size for t in self.parameters)
        made = CUDACopies if self.device.type == "cuda" else Copies
        self.copies = made(self.values, self.device)

    def split(self, flat: torch.Tensor, tensors: Sequence[Tensor]) -> list[torch.Tensor]:
        """Return the tensors of a flat vector."""
        parts = flat.split([t.size for t in tensors])
        return [part.view(t.shape) for part, t in zip(parts, tensors)]

    @torch.no_grad()
    def load(self, x: Any, buffers: Any) -> None:
        """Give the module parameters, and if they are not None buffers."""
        flat = self.copies.place(tensor(x))
        for p, v in zip(self.values, self.split(flat, self.parameters)):
            p.data = v
        if buffers is not None:
            for s, v in zip(self.statistics, self.split(tensor(buffers), self.buffers)):
                s.copy_(v)

    @torch.no_grad()
    def save_buffers(self, buffers: Any) -> None:
        """Write the buffers of the module."""
        if buffers is not None:
            for s, v in zip(self.statistics, self.split(tensor(buffers), self.buffers)):
                v.copy_(s)

    @torch.no_grad()
    def init(self, x: Any, buffers: Any, seed: int) -> None:
        source = self.given
        if self.make is not None:
            torch.manual_seed(seed & (1 << 63) - 1)
            source = self.make()
        assert source is not None
        state = {**dict(source.named_parameters()), **dict(source.named_buffers())}
        for flat, tensors in (x, self.parameters), (buffers, self.buffers):
            if flat is not None and tensors:
                for v, t in zip(self.split(tensor(flat), tensors), tensors):
                    v.copy_(state[t.name])

    def inputs(self, batch: Batch) -> tuple[Any, torch.Tensor]:
        """Return the examples of a batch, and their labels."""
        if batch.x is None:
            data = self.sets[batch.split]
            assert data is not None
            x, y = self.collate([data[int(i)] for i in batch.rows])
        else:
            x, y = tensor(batch.x), tensor(batch.y).long()
            x = x.long() if self.tokens else self.transform(x)
        return to(x, self.device), to(y, self.device)

    def outputs(self, x: Any, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the outputs for examples, and the labels, one a row."""
        assert self.module is not None
        out = self.module(**x) if isinstance(x, dict) else self.module(x)
        out = getattr(out, "logits", out)
        if isinstance(out, torch.Tensor) and out.ndim == 3 and y.ndim == 2:  # of tokens
            return out.reshape(-1, out.shape[-1]), y.reshape(-1)
        return out, y

    def mode(self, training: bool, from_batch: bool, momentum: float | None = None) -> None:
        """Set what dropout and batch norm do."""
        assert self.module is not None
        self.module.train(training)
        for m in self.norms:
            m.train(from_batch)
            m.momentum = self.momenta[m] if momentum is None else momentum

    def grad(self, x: Any, g: Any, buffers: Any, batch: Batch) -> float:
        self.load(x, buffers)
        self.mode(training=True, from_batch=True)
        if batch.key:
            torch.manual_seed(batch.key & (1 << 63) - 1)
        out, y = self.outputs(*self.inputs(batch))
        loss = self.loss(out, y)
        if loss.ndim != 0:
            raise ValueError(f"the loss has the shape {tuple(loss.shape)}, want one number: the mean over the batch")
        flat = tensor(g)
        self.copies.lock(flat)
        targets = self.split(flat, self.parameters)
        with self.copies.collecting(targets):
            grads = torch.autograd.grad(loss, self.values, allow_unused=True)
        self.copies.store(grads, targets)
        self.save_buffers(buffers)
        return loss.item()

    @torch.no_grad()
    def score(self, x: Any, buffers: Any, batch: Batch) -> tuple[float, float, float]:
        self.load(x, buffers)
        self.mode(training=False, from_batch=buffers is None, momentum=0.0 if buffers is None else None)
        out, y = self.outputs(*self.inputs(batch))
        loss = self.loss(out, y).item() * len(y)
        if not isinstance(out, torch.Tensor) or out.ndim != 2 or y.is_floating_point() or y.ndim != 1:
            return loss, 0, 0
        own = out.gather(1, y[:, None])
        order = torch.arange(out.shape[1], device=out.device)
        before = ((out > own) | ((out == own) & (order < y[:, None]))).sum(1)
        known = ~out.isnan().any(1)
        return loss, ((before == 0) & known).sum().item(), ((before < 5) & known).sum().item()

    @torch.no_grad()
    def observe(self, x: Any, buffers: Any, batch: Batch, momentum: float) -> None:
        self.load(x, buffers)
        self.mode(training=False, from_batch=True, momentum=momentum)
        self.outputs(*self.inputs(batch))
        self.save_buffers(buffers)

    @torch.no_grad()
    def predict(self, x: Any, out: Any, buffers: Any, batch: Batch) -> None:
        self.load(x, buffers)
        self.mode(training=False, from_batch=False)
        logits, _ = self.outputs(*self.inputs(batch))
        tensor(out).copy_(logits)

    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for split, data in self.sets.items():
            if data is None:
                raise ValueError(f"there is no {split}_set: give both, or let fspda read its data")
            found[split] = labels(data)
        names = getattr(self.sets["train"], "classes", None)
        if names is not None and all(isinstance(n, str) for n in names):
            found["classes"], found["class_names"] = len(names), list(names)
        return found


def to(x: Any, device: torch.device) -> Any:
    """Move what collate made to a device."""
    if isinstance(x, torch.Tensor):
        return x.to(device)
    if isinstance(x, dict):
        return {k: to(v, device) for k, v in x.items()}
    return type(x)(to(v, device) for v in x) if isinstance(x, (list, tuple)) else x


def labels(data: Sequence[Any]) -> list[int]:
    """Return the classes of a dataset: its targets, or those of its pairs; 0 for numbers that are none."""
    targets = getattr(data, "targets", None)
    if targets is None or len(targets) != len(data):
        targets = [data[i][1] for i in range(len(data))]
    found = []
    for y in targets:
        y = y.item() if isinstance(y, torch.Tensor) and y.numel() == 1 else y
        found.append(int(y) if hasattr(y, "__index__") else 0)
    return found
