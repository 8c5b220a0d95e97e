"""Runs the same work in fspda, NumPy, PyTorch and JAX on the same cores, in turns, and prints Markdown tables.

usage: python compare.py FSPDA

FSPDA is the program. First all run on one core, then on all; there, fspda runs once on each core at the same time, which is how its agents
use a machine, and its rates are added. Every number is the fastest of several rounds, in which the libraries take turns.
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from work import BATCH, CONVS, GPT, NORMS, PRODUCTS

ROUNDS = 3
LAYER_ROUNDS = 2  # a round takes half a minute
BATCHES = (8, 16)


class Peer:
    """A library in a process of its own. What follows a space in its name is for people."""

    def __init__(self, name, cores, environment):
        worker = Path(__file__).with_name("worker.py")
        command = [sys.executable, str(worker), name.split()[0], ",".join(map(str, cores))]
        pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
        environment = os.environ | environment
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere, text=True, env=environment)
        self.error = self._answer().get("error")

    def ask(self, **request):
        """The times of a request, or None."""
        try:
            print(json.dumps(request), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            return None
        return self._answer().get("times")

    def close(self):
        """Ends the process."""
        self.process.stdin.close()
        self.process.wait()

    def _answer(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": "the process ended"}


def libraries():
    """The peers by name, with the environment of each. On many processors OpenBLAS uses its AVX-512 kernels only when told."""
    info = Path("/proc/cpuinfo")
    if info.exists() and "avx512vl" in info.read_text():
        return {"numpy": {}, "numpy (AVX-512)": {"OPENBLAS_CORETYPE": "SkylakeX"}, "torch": {}, "jax": {}}
    return {"numpy": {}, "torch": {}, "jax": {}}


def ours(program, cores, *arguments):
    """The reports of fspda, one of each core, or of each list of cores, all run at the same time."""
    pinned = hasattr(os, "sched_setaffinity")
    running = []
    for core in cores:
        those = core if isinstance(core, list) else [core]
        pin = (lambda c=those: os.sched_setaffinity(0, c)) if pinned else None
        command = [program, "bench", *arguments, "--json"]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=pin))
    reports = [json.loads(p.communicate()[0] or "{}") for p in running]
    if any(p.returncode for p in running):
        sys.exit(f"compare: {program} bench {' '.join(arguments)} failed")
    return reports


def keep(best, key, value):
    """Keeps the smallest value of a key."""
    if key not in best or value < best[key]:
        best[key] = value


def products(program, cores, peers):
    """Rates in GFLOP/s by (library, product), and what the multiply-adds of these cores reached beside each product."""
    best, peaks = {}, {}
    rows = ",".join("sgemm/" + p.name for p in PRODUCTS)
    for _ in range(ROUNDS):
        for core, report in zip(cores, ours(program, cores, "kernels", "--filter", rows, "--each", "40ms"), strict=True):
            for row in report["rows"]:
                keep(best, ("fspda", row["name"], core), row["time_ns"])
                keep(peaks, (row["name"], core), -row["limit"])
        for name, peer in peers.items():
            for product, ns in (peer.ask(kind="products", seconds=0.04) or {}).items():
                keep(best, (name, product, 0), ns)
    rates = {}
    for (name, product, _), ns in best.items():
        p = next(p for p in PRODUCTS if p.name == product)
        rates[name, product] = rates.get((name, product), 0) + 2 * p.m * p.n * p.k / ns
    limits = {}
    for (product, _), negative in peaks.items():
        limits[product] = limits.get(product, 0) - negative
    return rates, limits


def mlp(program, cores, peers):
    """Steps in a second by library; fspda also with the preparation of batches and all else. It reports the mean of a fifth of
    its time, the others their fastest step."""
    best = {}
    for _ in range(2 * ROUNDS):
        step = ("step", "--algo", "sgd", "--agents", "1", "--momentum", "0", "--weight-decay", "0", "--partition", "shuffled")
        step += ("--batch", str(BATCH), "--data-train", "2560", "--time", "400ms")
        for core, report in zip(cores, ours(program, cores, *step), strict=True):
            keep(best, ("fspda", core), report["gradient_ns"] + report["vectors_ns"])
            keep(best, ("fspda, all of an iteration", core), report["step_ns"])
        for name, peer in peers.items():
            for way, ns in (peer.ask(kind="mlp", seconds=0.15) or {}).items():
                keep(best, (f"{name} {way}".strip(), 0), ns)
    rates = {}
    for (name, _), ns in best.items():
        rates[name] = rates.get(name, 0) + 1e9 / ns
    return rates


def gpt(program, cores, peers):
    """Milliseconds of a gradient and of steps of a small GPT by library, GFLOP/s of a product of 1024×1024 matrices in the same
    turns, and which share of it fspda's gradient and step have, the median of the turns."""
    g, best, rate, shares = GPT(), {}, 0.0, {"share": [], "step_share": []}
    sizes = ("--model", "gpt-nano", "--batch", str(g.batch))
    for _ in range(ROUNDS):
        (gradient,) = ours(program, [cores], "network", *sizes, "--time", "4s", "--threads", str(len(cores)))
        keep(best, ("fspda", "gradient"), gradient["time_ns"])
        keep(best, ("fspda", "step"), gradient["step_ns"])
        (muon,) = ours(program, [cores], "network", *sizes, "--optimizer", "muon", "--time", "4s", "--threads", str(len(cores)))
        keep(best, ("fspda", "muon"), muon["step_ns"])
        rate = max(rate, gradient["product_gflop_s"])
        for what, values in shares.items():
            values.append(gradient[what])
        for name, peer in peers.items():
            for what, ns in (peer.ask(kind="gpt", seconds=2) or {}).items():
                keep(best, (name, what), ns)
    return {key: ns * 1e-6 for key, ns in best.items()}, rate, [statistics.median(v) for v in shares.values()]


def network(program, cores, peers, batch):
    """Images in a second of a whole gradient by library; fspda in one process on all cores, and in one on each."""
    best = {}
    run = ("network", "--batch", str(batch), "--time", "4s")
    for _ in range(LAYER_ROUNDS):
        for report in ours(program, [cores], *run, "--threads", str(len(cores))):
            keep(best, ("fspda", 0), report["time_ns"])
        if len(cores) > 1:
            for core, report in zip(cores, ours(program, cores, *run, "--threads", "1"), strict=True):
                keep(best, ("fspda, a process on each core", core), report["time_ns"])
        for name, peer in peers.items():
            for way, ns in (peer.ask(kind="network", batch=batch, seconds=4) or {}).items():
                keep(best, (f"{name} {way}".strip(), 0), ns)
    rates = {}
    for (name, _), ns in best.items():
        rates[name] = rates.get(name, 0) + batch * 1e9 / ns
    return rates


def layers(program, cores, peers, batch):
    """Seconds of an image in all layers by library, [forward, backward]; fspda is missing while it lacks a kernel."""
    best, counts = {}, {}
    for _ in range(LAYER_ROUNDS):
        run = ("kernels", "--filter", "conv/,norm/batch-norm", "--batch", str(batch), "--each", "1ms")
        for core, report in zip(cores, ours(program, cores, *run), strict=True):
            if "resnet50" not in report:
                continue
            for row in report["rows"]:
                key = ("fspda", row["name"], row.get("backward", False), core)
                keep(best, key, row["time_ns"])
                counts[row["name"]] = row["count"]
        for name, peer in peers.items():
            for layer, times in (peer.ask(kind="layers", batch=batch, seconds=0.001) or {}).items():
                table, i = (CONVS, layer[4:]) if layer.startswith("conv") else (NORMS, layer[4:])
                counts[layer] = table[int(i)].count
                for backward, ns in enumerate(times):
                    keep(best, (name, layer, bool(backward), 0), ns)
    return _by_image(best, counts, batch)


def _by_image(best, counts, batch):
    """Adds the layers of a process by their counts; processes that run at the same time add their rates."""
    sums = {}
    for (name, layer, backward, core), ns in best.items():
        per_core = sums.setdefault(name, {}).setdefault(core, [0, 0])
        per_core[backward] += counts[layer] * ns * 1e-9 / batch
    return {name: [_parallel([s[i] for s in cores.values()]) for i in (0, 1)] for name, cores in sums.items()}


def _parallel(seconds):
    return 1 / sum(1 / s for s in seconds)


def table(head, rows):
    """A Markdown table."""
    print("\n| " + " | ".join(head) + " |")
    print("|---|" + "---:|" * (len(head) - 1))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def ratio(ours_rate, best_rate):
    """Ours over the best peer's."""
    return f"{ours_rate / best_rate:.2f}" if ours_rate and best_rate else "–"


def number(x, digits=1):
    """A number, or a dash."""
    return f"{x:.{digits}f}" if x else "–"


def compare(program, cores):
    """Measures everything on these cores and prints it."""
    what = "one core" if len(cores) == 1 else f"{len(cores)} cores (fspda: one process on each)"
    print(f"\n## {what}")
    peers = {name: Peer(name, cores, environment) for name, environment in libraries().items()}
    for name in [n for n, p in peers.items() if p.error]:
        print(f"\n{name} is left out: {peers.pop(name).error}")

    rates, limits = products(program, cores, peers)
    print("\nProducts of matrices, GFLOP/s; multiply-adds alone, measured beside each product, are the limit of all:")
    head = ["m×n×k", "fspda", *peers, "multiply-adds", "fspda / them", "fspda / best NumPy", "fspda / best"]
    rows = []
    for p in PRODUCTS:
        mine, others = rates.get(("fspda", p.name)), {n: rates.get((n, p.name)) for n in peers}
        most = max((r for r in others.values() if r), default=None)
        blas = max((r for n, r in others.items() if r and n.startswith("numpy")), default=None)
        limit = limits.get(p.name)
        cells = [number(mine), *map(number, others.values()), number(limit), ratio(mine, limit), ratio(mine, blas), ratio(mine, most)]
        rows.append([p.name, *cells])
    table(head, rows)

    rates = mlp(program, cores, peers)
    print(f"\nStep of an MLP 784-100-10 of {BATCH} examples (forward, backward, update):")
    table(["", "steps/s", "fspda / it"], [[n, number(r, 0), ratio(rates["fspda"], r)] for n, r in rates.items()])

    times, rate, (share, step_share) = gpt(program, cores, {n: p for n, p in peers.items() if n == "torch"})
    print(f"\nStep of gpt-nano, {GPT().batch} windows of {GPT().block} tokens, ms (gradient, and all with clipping and AdamW, or Muon);")
    print(f"fspda's have {share:.0%} and {step_share:.0%} of the rate of its products of 1024×1024 matrices, up to {rate:.0f} GFLOP/s.")
    rows = []
    for name in dict.fromkeys(name for name, _ in times):
        both = [times[name, what] for what in ("gradient", "step", "muon")]
        ours_ms = [times["fspda", what] for what in ("gradient", "step", "muon")]
        rows.append([name, *map(number, both), *(number(theirs / mine, 2) for theirs, mine in zip(both, ours_ms, strict=True))])
    head = ["", "gradient", "step", "step with Muon"]
    table([*head, *(f"it / fspda, {what}" for what in head[1:])], rows)

    print("\nConvolutions and batch norms of ResNet-50 at 224×224 pixels, ms an image (forward, backward) and images/s of both:")
    rows = []
    for batch in BATCHES:
        # Compiling all layers takes JAX longest, so it has one size only.
        asked = {n: p for n, p in peers.items() if n == "torch" or (n == "jax" and batch == BATCHES[0])}
        times = layers(program, cores, asked, batch)
        mine = 1 / sum(times["fspda"]) if "fspda" in times else None
        for name, seconds in times.items():
            both = 1 / sum(seconds)
            cells = [number(1e3 * s) for s in seconds]
            rows.append([f"{name}, batch {batch}", *cells, number(both, 2), ratio(mine, both)])
    table(["", "forward", "backward", "images/s", "fspda / it"], rows)

    print("\nGradient of all of ResNet-50 (forward, backward):")
    rows = []
    for batch in BATCHES:
        rates = network(program, cores, {n: p for n, p in peers.items() if not n.startswith("numpy")}, batch)
        rows += [[f"{n}, batch {batch}", number(r, 2), ratio(rates["fspda"], r)] for n, r in rates.items()]
    table(["", "images/s", "fspda / it"], rows)
    for peer in peers.values():
        peer.close()


def main():
    """Compares on one core, then on all."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count()))
    compare(sys.argv[1], cores[-1:])
    if len(cores) > 1:
        compare(sys.argv[1], cores)


if __name__ == "__main__":
    main()
