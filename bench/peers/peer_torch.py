"""PyTorch on the CPU, which stands on oneDNN and MKL."""

import torch
import torch.nn.functional as F
from work import BATCH, CLASSES, CONVS, EPSILON, GPT, HIDDEN, INPUTS, LABELS, NORMS, RATE, SIDE, fastest

torch.manual_seed(1)


def use(threads):
    """Sets the number of threads."""
    torch.set_num_threads(threads)


def _noise(*shape):
    return torch.rand(*shape) * 2 - 1


def product(p, seconds):
    """Nanoseconds of a product. Views that are transposed become flags of sgemm."""
    a = _noise(p.k, p.m).T if p.trans_a else _noise(p.m, p.k)
    b = _noise(p.n, p.k).T if p.trans_b else _noise(p.k, p.n)
    c = torch.empty(p.m, p.n)
    with torch.no_grad():
        return fastest(lambda: torch.mm(a, b, out=c), seconds)


class _Step:
    """A training step of the MLP; forward is compiled or not, and compiled once."""

    def __init__(self, wrap):
        self.net = torch.nn.Sequential(torch.nn.Linear(INPUTS, HIDDEN), torch.nn.Sigmoid(), torch.nn.Linear(HIDDEN, CLASSES))
        self.x, self.label = _noise(BATCH, INPUTS), torch.randint(CLASSES, (BATCH,))
        self.sgd = torch.optim.SGD(self.net.parameters(), lr=RATE, foreach=True)
        self.loss = wrap(lambda x, label: F.cross_entropy(self.net(x), label))

    def __call__(self):
        self.sgd.zero_grad(set_to_none=True)
        self.loss(self.x, self.label).backward()
        self.sgd.step()


_steps = {}


def mlp(seconds):
    """Nanoseconds of a step, eager and compiled. A machine that cannot compile has no such entry."""
    if "eager" not in _steps:
        _steps["eager"] = _Step(lambda f: f)
        try:
            compiled = _Step(torch.compile)
            compiled()
            _steps["compile"] = compiled
        except Exception:  # the compiler, its headers, or what it needs may be missing
            pass
    return {name: fastest(_steps[name], seconds, least=10) for name in ("eager", "compile") if name in _steps}


class _Layer(torch.nn.Module):
    """A layer of a GPT: causal attention, then two products with GELU between them."""

    def __init__(self, g):
        super().__init__()
        self.heads = g.heads
        self.norm1, self.norm2 = (torch.nn.LayerNorm(g.width) for _ in range(2))
        self.qkv = torch.nn.Linear(g.width, 3 * g.width)
        self.proj = torch.nn.Linear(g.width, g.width)
        self.up = torch.nn.Linear(g.width, 4 * g.width)
        self.down = torch.nn.Linear(4 * g.width, g.width)

    def forward(self, x):
        q, k, v = (
            part.view(*x.shape[:2], self.heads, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(x.shape[2], 2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(x.shape))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class _GPTStep(torch.nn.Module):
    """A training step of a GPT with tied embeddings."""

    def __init__(self, g, optimizer):
        super().__init__()
        self.g = g
        self.tokens = torch.nn.Embedding(g.tokens, g.width)
        self.positions = torch.nn.Embedding(g.block, g.width)
        self.layers = torch.nn.Sequential(*(_Layer(g) for _ in range(g.layers)))
        self.norm = torch.nn.LayerNorm(g.width)
        for p in self.parameters():
            if p.dim() > 1:
                torch.nn.init.normal_(p, std=0.02)
        hidden = [p for p in self.layers.parameters() if p.dim() > 1] if optimizer == "muon" else []
        rest = [p for p in self.parameters() if not any(p is h for h in hidden)]
        groups = [{"params": [p for p in rest if (p.dim() > 1) == two], "weight_decay": g.decay * two} for two in (True, False)]
        self.optimizers = [torch.optim.AdamW(groups, lr=g.rate, betas=g.betas, fused=True)]
        if hidden:  # the queries, keys and values of a layer are one matrix
            self.optimizers.append(torch.optim.Muon(hidden, lr=g.rate, weight_decay=g.decay, adjust_lr_fn="match_rms_adamw"))
        self.x, self.y = (torch.randint(g.tokens, (g.batch, g.block)) for _ in range(2))

    def gradient(self):
        """Forward and backward."""
        self.zero_grad(set_to_none=True)
        x = self.layers(self.tokens(self.x) + self.positions.weight)
        F.cross_entropy((self.norm(x) @ self.tokens.weight.T).flatten(0, 1), self.y.flatten()).backward()

    def step(self):
        """A gradient, clipped, and a step of the optimizers."""
        self.gradient()
        torch.nn.utils.clip_grad_norm_(self.parameters(), self.g.clip)
        for optimizer in self.optimizers:
            optimizer.step()


def gpt(seconds):
    """Nanoseconds of a gradient and of a step of a small GPT with AdamW and with Muon, eager."""
    for name in ("adamw", "muon"):
        if name not in _steps:
            _steps[name] = _GPTStep(GPT(), name)
    adamw, muon = _steps["adamw"], _steps["muon"]
    times = {"gradient": fastest(adamw.gradient, seconds, least=10), "step": fastest(adamw.step, seconds, least=10)}
    return times | {"muon": fastest(muon.step, seconds, least=10)}


def network(batch, seconds):
    """Nanoseconds of a gradient of ResNet-50, in each layout."""
    import torchvision

    result = {}
    for name, layout in (("channels last", torch.channels_last), ("channels first", torch.contiguous_format)):
        net = torchvision.models.resnet50(num_classes=LABELS).to(memory_format=layout)
        x = _noise(batch, 3, SIDE, SIDE).to(memory_format=layout)
        label = torch.randint(LABELS, (batch,))

        def gradient(net=net, x=x, label=label):
            net.zero_grad(set_to_none=True)
            F.cross_entropy(net(x), label).backward()

        gradient()
        result[name] = fastest(gradient, seconds)
    return result


def layers(batch, seconds):
    """Nanoseconds of each layer, [forward, backward], in the better of the two layouts."""
    result = {}
    for kind, table in (("conv", CONVS), ("norm", NORMS)):
        for i, layer in enumerate(table):
            times = []
            for layout in (torch.channels_last, torch.contiguous_format):
                make = _conv if kind == "conv" else _norm
                times.append(_layer(make(layer, batch, layout), seconds))
            result[f"{kind}{i}"] = min(times, key=sum)
    return result


def _layer(parts, seconds):
    forward, inputs, dy = parts
    y = forward()
    backward = fastest(lambda: torch.autograd.grad(y, inputs, dy, retain_graph=True), seconds, least=1)
    return [fastest(forward, seconds, least=1), backward]


def _conv(c, batch, layout):
    x = _noise(batch, c.channels, c.side, c.side).to(memory_format=layout)
    w = _noise(c.filters, c.channels, c.filter, c.filter).to(memory_format=layout).requires_grad_()
    inputs = [w]
    if c.channels > 3:  # the first layer needs no data gradient
        inputs.append(x.requires_grad_())

    def forward():
        return F.conv2d(x, w, stride=c.stride, padding=c.pad)

    return forward, inputs, _like(forward(), layout)


def _norm(n, batch, layout):
    shape = (batch, n.channels, n.side, n.side)
    x, z = (_noise(*shape).to(memory_format=layout).requires_grad_() for _ in range(2))
    gamma, beta = (_noise(n.channels).requires_grad_() for _ in range(2))
    mean, var = torch.zeros(n.channels), torch.ones(n.channels)

    def forward():
        y = F.batch_norm(x, mean, var, gamma, beta, training=True, eps=EPSILON)
        if n.add:
            y = y + z
        return F.relu_(y) if n.relu else y

    return forward, [x, gamma, beta] + [z] * n.add, _like(forward(), layout)


def _like(y, layout):
    return _noise(*y.shape).to(memory_format=layout)
