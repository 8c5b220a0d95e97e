"""A process that measures PyTorch on a device: a request on each line of its input, an answer on each of its output, both JSON.

usage: python card.py DEVICE, such as cuda:0 or cpu

`fspda bench card` starts it and takes turns with it, so that both are measured in the same minutes on the same card. Requests:

  {"kind": "network", "model": "resnet50", "batch": 128, "size": 224, "precision": "bf16", "compiled": false, "seconds": 3}
  {"kind": "language", "layers": 12, "heads": 12, "width": 768, "batch": 16, "window": 1024, "vocabulary": 50257, "precision": "bf16", …}
  {"kind": "figure1", "agents": 10, "batch": 256, "precision": "fp32", "compiled": false, "seconds": 3}

The answer has the time of one gradient, or iteration, in ns, the fastest of several turns on the device's clock, or the error. What was made for a
request stays for the next of the same, so a network is compiled once.

A gradient is forward and backward over one batch that lies on the device: channels last, automatic mixed precision in fp16 (with its loss scaler)
and bf16, TF32 products unless the precision is fp32, and cuDNN's own choice of the fastest algorithms.
"""

import contextlib
import json
import sys
import time

WARM_UP = 3
TURN = 5  # runs that are timed together
LONG_TURN = 200  # where a run takes microseconds


def use(torch, precision):
    """Sets how float32 is multiplied."""
    tf32 = precision != "fp32"
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = True


class Network:
    """A gradient of a network of torchvision, in a precision."""

    turn = TURN

    def __init__(self, torch, device, model, batch, size, precision, compiled):
        import torchvision

        self.torch, self.device, self.precision = torch, torch.device(device), precision
        self.net = getattr(torchvision.models, model)(num_classes=1000).to(self.device, memory_format=torch.channels_last).train()
        self.x = torch.randn(batch, 3, size, size, device=self.device).to(memory_format=torch.channels_last)
        self.label = torch.randint(1000, (batch,), device=self.device)
        self.scaler = torch.amp.GradScaler(self.device.type) if precision == "fp16" else None
        self.loss = torch.compile(self._loss) if compiled else self._loss

    def _loss(self, x, label):
        kind = {"fp16": self.torch.float16, "bf16": self.torch.bfloat16}.get(self.precision)
        with self.torch.autocast(self.device.type, dtype=kind, enabled=kind is not None):
            return self.torch.nn.functional.cross_entropy(self.net(x), label)

    def __call__(self):
        self.net.zero_grad(set_to_none=True)
        loss = self.loss(self.x, self.label)
        (self.scaler.scale(loss) if self.scaler else loss).backward()

    def rest(self):
        """Lets go of what the next turn makes anew."""
        self.net.zero_grad(set_to_none=True)


def language_model(torch, layers, heads, width, window, vocabulary):
    """A GPT-2 without dropout: embeddings, blocks of causal attention and an MLP before residual sums, tied output."""
    nn, functional = torch.nn, torch.nn.functional

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x):
            b, t, _ = x.shape
            q, k, v = self.qkv(x).view(b, t, 3, heads, width // heads).permute(2, 0, 3, 1, 4).unbind()
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).reshape(b, t, width))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.attention, self.norm2 = nn.LayerNorm(width), Attention(), nn.LayerNorm(width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

        def forward(self, x):
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(window, width)
            self.blocks, self.norm = nn.Sequential(*(Block() for _ in range(layers))), nn.LayerNorm(width)

        def forward(self, ids):
            x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
            return functional.linear(self.norm(self.blocks(x)), self.tokens.weight)

    return Model()


class Language:
    """A gradient of a language model, in a precision. The vocabulary has rows added up to a multiple of 64, which is faster."""

    turn = TURN

    def __init__(self, torch, device, layers, heads, width, batch, window, vocabulary, precision, compiled):
        self.torch, self.device, self.precision = torch, torch.device(device), precision
        self.net = language_model(torch, layers, heads, width, window, -(-vocabulary // 64) * 64).to(self.device).train()
        self.ids = torch.randint(vocabulary, (batch, window + 1), device=self.device)
        self.loss = torch.compile(self._loss) if compiled else self._loss

    def _loss(self, ids):
        kind = {"fp16": self.torch.float16, "bf16": self.torch.bfloat16}.get(self.precision)
        with self.torch.autocast(self.device.type, dtype=kind, enabled=kind is not None):
            return self.torch.nn.functional.cross_entropy(self.net(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())

    def __call__(self):
        self.net.zero_grad(set_to_none=True)
        self.loss(self.ids).backward()

    def rest(self):
        """Lets go of what the next turn makes anew."""
        self.net.zero_grad(set_to_none=True)


class Figure1:
    """An iteration of FSPDA-SA of all agents on an MLP 784-100-10: batched products, everything drawn on the device, one captured graph.

    Agents lie side by side in one tensor; the gradient is written out by hand, which saves what autograd does beside it, and is held against
    autograd once. Each iteration one random edge exchanges a tenth of the coordinates.
    """

    INPUTS, HIDDEN, CLASSES, EXAMPLES = 784, 100, 10, 1000
    ALPHA, ETA, GAMMA, BETA, DENSITY, DECAY = 1e-4, 1e-5, 0.5, 1.0, 0.1, 1e-4

    def __init__(self, torch, device, agents, batch, precision, compiled):
        self.torch, self.device, self.agents, self.batch = torch, torch.device(device), agents, batch
        self.turn = TURN if device == "cpu" else LONG_TURN
        i, h, c = self.INPUTS, self.HIDDEN, self.CLASSES
        self.dim = i * h + h + h * c + c
        generator = torch.Generator(device="cpu").manual_seed(1)
        self.images = torch.randn(agents, self.EXAMPLES, i, generator=generator).to(self.device)
        self.labels = torch.randint(c, (agents, self.EXAMPLES), generator=generator).to(self.device)
        self.targets = torch.nn.functional.one_hot(self.labels, c).to(self.images.dtype)
        start = torch.randn(self.dim, generator=generator) / 28
        self.x = start.expand(agents, -1).clone().to(self.device)
        self.dual, self.grad = torch.zeros_like(self.x), torch.zeros_like(self.x)
        ring = torch.arange(agents)
        self.edges = torch.stack([ring, (ring + 1) % agents], 1).to(self.device)
        self.rows = torch.arange(agents, device=self.device)[:, None]
        with torch.no_grad():
            self._check()
            self.run = self._captured(torch.compile(self._step) if compiled else self._step)

    def _tensors(self, flat):
        i, h, c = self.INPUTS, self.HIDDEN, self.CLASSES
        w1, b1, w2, b2 = flat.split([i * h, h, h * c, c], 1)
        return w1.view(-1, h, i), b1.unsqueeze(1), w2.view(-1, c, h), b2.unsqueeze(1)

    def _gradient(self, images, targets):
        """Writes the gradient of every agent's mean loss and L2 term; targets have a one at the class."""
        torch = self.torch
        w1, b1, w2, b2 = self._tensors(self.x)
        g1, gb1, g2, gb2 = self._tensors(self.grad)
        hidden = torch.baddbmm(b1, images, w1.transpose(1, 2)).sigmoid()
        out = torch.softmax(torch.baddbmm(b2, hidden, w2.transpose(1, 2)), 2)
        out = (out - targets) / targets.shape[1]
        back = torch.bmm(out, w2) * hidden * (1 - hidden)
        g2.copy_(torch.bmm(out.transpose(1, 2), hidden))
        gb2.copy_(out.sum(1, keepdim=True))
        g1.copy_(torch.bmm(back.transpose(1, 2), images))
        gb1.copy_(back.sum(1, keepdim=True))
        self.grad.add_(self.x, alpha=self.DECAY)

    def _step(self):
        torch = self.torch
        drawn = torch.randint(self.EXAMPLES, (self.agents, self.batch), device=self.device)
        self._gradient(self.images[self.rows, drawn], self.targets[self.rows, drawn])
        ends = self.edges[torch.randint(len(self.edges), (1,), device=self.device)][0]
        mask = torch.rand(self.dim, device=self.device) < self.DENSITY
        pair = self.x[ends]
        apart = (pair - pair.flip(0)) * mask
        self.x.add_(self.grad, alpha=-self.ALPHA).add_(self.dual, alpha=-self.ETA)
        self.x.index_add_(0, ends, apart, alpha=-self.GAMMA)
        self.dual.index_add_(0, ends, apart, alpha=self.BETA)

    def _check(self):
        """Raises where the gradient is not that of autograd."""
        torch = self.torch
        images, labels = self.images[:, : self.batch], self.labels[:, : self.batch]
        self._gradient(images, self.targets[:, : self.batch])
        with torch.enable_grad():
            x = self.x.clone().requires_grad_()
            w1, b1, w2, b2 = self._tensors(x)
            logits = (images @ w1.transpose(1, 2) + b1).sigmoid() @ w2.transpose(1, 2) + b2
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten()) * self.agents + self.DECAY / 2 * (x * x).sum()
            (want,) = torch.autograd.grad(loss, x)
        far = ((self.grad - want).norm() / want.norm()).item()
        if not far < 1e-2:
            raise ArithmeticError(f"the gradient is {far:.2g} of its length from that of autograd")

    def _captured(self, step):
        """The step as one graph of CUDA, or as it is on the CPU."""
        torch = self.torch
        if self.device.type == "cpu":
            return step
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(WARM_UP):
                step()
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        return graph.replay

    def __call__(self):
        with self.torch.no_grad():
            self.run()

    def rest(self):
        """Nothing is made anew."""


def fastest(torch, device, work, seconds):
    """Nanoseconds of one run, in the fastest turn."""
    for _ in range(WARM_UP):
        work()
    best, until = float("inf"), time.monotonic() + seconds
    while best == float("inf") or time.monotonic() < until:
        best = min(best, turn(torch, device, work) / work.turn)
    return best


def turn(torch, device, work):
    """Nanoseconds of a turn, on the device's clock."""
    if device == "cpu":
        begin = time.perf_counter_ns()
        for _ in range(work.turn):
            work()
        return time.perf_counter_ns() - begin
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(work.turn):
        work()
    end.record()
    end.synchronize()
    return 1e6 * begin.elapsed_time(end)


class Worker:
    """Answers requests, and keeps what they made."""

    def __init__(self, device):
        import torch

        self.torch, self.device, self.made = torch, device, {}
        if device != "cpu":
            if not torch.cuda.is_available():
                raise RuntimeError("PyTorch finds no GPU")
            torch.cuda.set_device(device)

    def about(self):
        """What is measured, and where."""
        cpu = self.device == "cpu"
        return {"torch": self.torch.__version__, "device": "the CPU" if cpu else self.torch.cuda.get_device_name(),
                "cudnn": None if cpu else self.torch.backends.cudnn.version()}

    def measure(self, kind, seconds, precision, **settings):
        """The time of what a request names. Another precision changes what is set for all, so nothing made before is kept."""
        key = json.dumps([kind, precision, settings], sort_keys=True)
        use(self.torch, precision)
        if key not in self.made:
            self.made[key] = {"network": Network, "language": Language, "figure1": Figure1}[kind](self.torch, self.device, precision=precision, **settings)
        work = self.made[key]
        try:
            return fastest(self.torch, self.device, work, seconds)
        finally:
            work.rest()
            if self.device != "cpu":
                self.torch.cuda.empty_cache()


def main():
    """Answers until the input ends; what libraries print goes to the standard error."""
    with contextlib.redirect_stdout(sys.stderr):
        try:
            worker = Worker(sys.argv[1])
            first = worker.about()
        except Exception as e:  # no PyTorch, or no GPU for it: it is reported
            worker, first = None, {"error": f"{type(e).__name__}: {e}".splitlines()[0]}
    print(json.dumps(first), flush=True)
    if worker is None:
        return
    for line in sys.stdin:
        with contextlib.redirect_stdout(sys.stderr):
            try:
                answer = {"ns": worker.measure(**json.loads(line))}
            except Exception as e:  # out of memory, no compiler, a precision that the GPU has not
                answer = {"error": f"{type(e).__name__}: {e}".splitlines()[0]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
