"""What is compared: products of matrices, steps of an MLP and of a small GPT, the layers of ResNet-50, and all of it."""

from typing import NamedTuple


class Product(NamedTuple):
    """C = op(A)·op(B): C is m×n, the inner length k, op a transposition where its flag is set."""

    m: int
    n: int
    k: int
    trans_a: bool = False
    trans_b: bool = False

    @property
    def name(self):
        """The row of `fspda bench kernels`."""
        flags = "NT"[self.trans_a] + "NT"[self.trans_b]
        return f"{self.m}×{self.n}×{self.k} {flags}"


PRODUCTS = [
    Product(256, 100, 784),
    Product(784, 100, 256, trans_a=True),
    Product(256, 10, 100),
    Product(256, 100, 10, trans_b=True),
    Product(100, 10, 256, trans_a=True),
    Product(1024, 1024, 1024),
    Product(1024, 1024, 1024, trans_a=True),
    Product(1024, 1024, 1024, trans_b=True),
    Product(3136, 64, 576),
    Product(12544, 64, 147),
]

# The MLP: inputs, hidden units, classes, examples of a step, and the step size.
INPUTS, HIDDEN, CLASSES, BATCH, RATE = 784, 100, 10, 256, 0.05


class GPT(NamedTuple):
    """The network gpt-nano of fspda, and its step: windows of tokens, AdamW."""

    layers: int = 4
    heads: int = 4
    width: int = 128
    block: int = 64
    tokens: int = 65
    batch: int = 12
    rate: float = 1e-3
    betas: tuple = (0.9, 0.99)
    decay: float = 0.1
    clip: float = 1.0


class Conv(NamedTuple):
    """A convolution of side×side pixels with square filters, count times in the network."""

    side: int
    channels: int
    filters: int
    filter: int
    stride: int
    pad: int
    count: int


CONVS = [
    Conv(224, 3, 64, 7, 2, 3, 1),
    Conv(56, 64, 64, 1, 1, 0, 1),
    Conv(56, 64, 64, 3, 1, 1, 3),
    Conv(56, 64, 256, 1, 1, 0, 4),
    Conv(56, 256, 64, 1, 1, 0, 2),
    Conv(56, 256, 128, 1, 1, 0, 1),
    Conv(56, 128, 128, 3, 2, 1, 1),
    Conv(56, 256, 512, 1, 2, 0, 1),
    Conv(28, 128, 512, 1, 1, 0, 4),
    Conv(28, 512, 128, 1, 1, 0, 3),
    Conv(28, 128, 128, 3, 1, 1, 3),
    Conv(28, 512, 256, 1, 1, 0, 1),
    Conv(28, 256, 256, 3, 2, 1, 1),
    Conv(28, 512, 1024, 1, 2, 0, 1),
    Conv(14, 256, 1024, 1, 1, 0, 6),
    Conv(14, 1024, 256, 1, 1, 0, 5),
    Conv(14, 256, 256, 3, 1, 1, 5),
    Conv(14, 1024, 512, 1, 1, 0, 1),
    Conv(14, 512, 512, 3, 2, 1, 1),
    Conv(14, 1024, 2048, 1, 2, 0, 1),
    Conv(7, 512, 2048, 1, 1, 0, 3),
    Conv(7, 2048, 512, 1, 1, 0, 2),
    Conv(7, 512, 512, 3, 1, 1, 2),
]


class Norm(NamedTuple):
    """A batch norm over side×side pixels, and what follows it: nothing, ReLU, or a sum and ReLU."""

    side: int
    channels: int
    relu: bool
    add: bool
    count: int


NORMS = [
    Norm(112, 64, True, False, 1),
    Norm(56, 64, True, False, 6),
    Norm(56, 256, True, True, 3),
    Norm(56, 256, False, False, 1),
    Norm(56, 128, True, False, 1),
    Norm(28, 128, True, False, 7),
    Norm(28, 512, True, True, 4),
    Norm(28, 512, False, False, 1),
    Norm(28, 256, True, False, 1),
    Norm(14, 256, True, False, 11),
    Norm(14, 1024, True, True, 6),
    Norm(14, 1024, False, False, 1),
    Norm(14, 512, True, False, 1),
    Norm(7, 512, True, False, 5),
    Norm(7, 2048, True, True, 3),
    Norm(7, 2048, False, False, 1),
]

EPSILON = 1e-5

# The whole network: images of side×side pixels, and classes; its bottlenecks by stage.
SIDE, LABELS, BLOCKS = 224, 1000, (3, 4, 6, 3)


def fastest(run, seconds, least=2):
    """Nanoseconds of the fastest of several turns of run(); what is short runs often in a turn."""
    import time

    clock = time.perf_counter_ns
    begin = clock()
    run()
    repeat = 1 + int(200_000 // max(1, clock() - begin))
    best, turns, until = float("inf"), 0, clock() + seconds * 1e9
    while turns < least or clock() < until:
        begin = clock()
        for _ in range(repeat):
            run()
        best = min(best, (clock() - begin) / repeat)
        turns += 1
    return best
