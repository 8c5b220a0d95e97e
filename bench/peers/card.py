"""Runs ResNet-50 and an MLP in fspda and PyTorch on the same GPU, in turns, and prints Markdown tables.

usage: python card.py FSPDA [--device cuda|cpu] [--batches 128,256] [--sizes 224,256] [--precisions tf32,fp16,bf16] [--seconds 5] [--model resnet50]

FSPDA is the program. PyTorch runs eagerly and compiled, channels last, and with automatic mixed precision for fp16 (with its loss scaler) and bf16.
A gradient is forward and backward over one batch that lies on the GPU; times are those of the GPU's clock, the fastest of several turns.
Where PyTorch finds no GPU it says so, and nothing is run. On the CPU it is there to be tried.
"""

import argparse
import json
import subprocess
import sys
import time

ROUNDS = 2
TURN = 5  # gradients that are timed together


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("program")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batches", default="128,256")
    parser.add_argument("--sizes", default="224,256")
    parser.add_argument("--precisions", default="tf32,fp16,bf16")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--model", default="resnet50")
    return parser.parse_args()


class Gradient:
    """A gradient of a network by PyTorch, eager or compiled, in a precision."""

    def __init__(self, options, batch, size, precision, compiled):
        import torch
        import torchvision

        self.torch, self.device, self.precision = torch, options.device, precision
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision != "fp32"
        torch.backends.cudnn.benchmark = True
        self.net = getattr(torchvision.models, options.model)(num_classes=1000).to(self.device, memory_format=torch.channels_last)
        self.x = torch.randn(batch, 3, size, size, device=self.device).to(memory_format=torch.channels_last)
        self.label = torch.randint(1000, (batch,), device=self.device)
        self.scaler = torch.amp.GradScaler(self.device) if precision == "fp16" else None
        self.loss = torch.compile(self._loss) if compiled else self._loss

    def _loss(self, x, label):
        import torch.nn.functional as F

        kind = {"fp16": self.torch.float16, "bf16": self.torch.bfloat16}.get(self.precision)
        with self.torch.autocast(self.device, dtype=kind, enabled=kind is not None):
            return F.cross_entropy(self.net(x), label)

    def __call__(self):
        self.net.zero_grad(set_to_none=True)
        loss = self.loss(self.x, self.label)
        (self.scaler.scale(loss) if self.scaler else loss).backward()

    def fastest(self, seconds):
        """Nanoseconds of a gradient, in the fastest turn."""
        for _ in range(3):
            self()
        best, until = float("inf"), time.monotonic() + seconds
        while best == float("inf") or time.monotonic() < until:
            best = min(best, self._turn() / TURN)
        return best

    def _turn(self):
        if self.device == "cpu":
            begin = time.perf_counter_ns()
            for _ in range(TURN):
                self()
            return time.perf_counter_ns() - begin
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(TURN):
            self()
        end.record()
        end.synchronize()
        return 1e6 * begin.elapsed_time(end)


def peer(options, batch, size, precision, compiled):
    """Images a second of PyTorch, or why there are none."""
    import torch

    try:
        ns = Gradient(options, batch, size, precision, compiled).fastest(options.seconds)
        return 1e9 * batch / ns, None
    except Exception as e:  # out of memory, no compiler, a precision that the GPU has not
        return None, f"{type(e).__name__}: {e}".splitlines()[0]
    finally:
        torch._dynamo.reset()
        if options.device != "cpu":
            torch.cuda.empty_cache()


def ours(options, *arguments):
    """A report of fspda, or why there is none."""
    command = [options.program, "bench", *arguments, "--device", options.device, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return None, done.stderr.strip().splitlines()[-1]
    return json.loads(done.stdout), None


def best(first, second):
    """The larger of two that may be missing."""
    return max((r for r in (first, second) if r), default=None)


def network(options, batch, size, precision):
    """A row of the table: rates of fspda and of PyTorch, both ways, measured in turns."""
    rates, notes, roofline = [None, None, None], [], None
    for _ in range(ROUNDS):
        report, why = ours(options, "network", "--model", options.model, "--batch", str(batch), "--size", str(size),
                           "--precision", precision, "--time", f"{options.seconds}s")
        if report:
            rates[0] = best(rates[0], report["images_s"])
            roofline = best(roofline, report.get("roofline"))
        notes += [f"fspda: {why}"] if why else []
        for i, compiled in enumerate((False, True), start=1):
            rate, why = peer(options, batch, size, precision, compiled)
            rates[i] = best(rates[i], rate)
            notes += [f"{('eager', 'compiled')[compiled]}: {why}"] if why else []
    for note in dict.fromkeys(notes):
        print(f"\n{precision}, batch {batch}, {size} px, {note}")
    cells = [f"{r:.1f}" if r else "–" for r in rates]
    ratios = [f"{rates[0] / r:.2f}" if rates[0] and r else "–" for r in rates[1:]]
    return [f"{precision}, batch {batch}, {size} px", *cells, *ratios, f"{100 * roofline:.0f} %" if roofline else "–"]


def table(head, rows):
    """A Markdown table."""
    print("\n| " + " | ".join(head) + " |")
    print("|---|" + "---:|" * (len(head) - 1))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


def main():
    """Compares on the GPU, where there is one."""
    options = arguments()
    try:
        import torch
    except ImportError as e:
        sys.exit(f"card: {e}: make peers installs it")
    if options.device != "cpu" and not torch.cuda.is_available():
        print("\nPyTorch finds no GPU here: nothing is compared on one.")
        return
    where = "the CPU" if options.device == "cpu" else torch.cuda.get_device_name()
    print(f"\n## {options.model} on {where}, PyTorch {torch.__version__}\n\nGradient (forward, backward), images/s:")
    rows = [
        network(options, batch, size, precision)
        for precision in options.precisions.split(",")
        for size in map(int, options.sizes.split(","))
        for batch in map(int, options.batches.split(","))
    ]
    table(["", "fspda", "eager", "compiled", "fspda / eager", "fspda / compiled", "of the roofline"], rows)
    report, why = ours(options, "step", "--time", f"{options.seconds}s")
    if why:
        print(f"\nAn iteration of figure 1: {why}")
    elif "iterations_s" in report:
        print(f"\nFSPDA-SA of figure 1, {report['agents']} agents × {report['batch']}: {report['iteration_ns'] / 1e3:.1f} µs an iteration, "
              f"{report['iterations_s']:.0f} a second, the GPU idle {100 * report['idle']:.1f} % of it")


if __name__ == "__main__":
    main()
