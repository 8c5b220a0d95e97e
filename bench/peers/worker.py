"""A process that measures one library on given cores: a request on each line of its input, an answer on each of its output."""

import contextlib
import importlib
import json
import os
import sys

# The cores come first: libraries look at them when they are imported.
library, cores = sys.argv[1], [int(c) for c in sys.argv[2].split(",")]
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, cores)
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(len(cores))
os.environ["JAX_PLATFORMS"] = "cpu"


def answer(peer, request):
    """Measures what a request names."""
    from work import PRODUCTS

    kind, seconds = request["kind"], request["seconds"]
    if kind == "products":
        return {p.name: peer.product(p, seconds) for p in PRODUCTS}
    if kind in ("mlp", "gpt"):
        return getattr(peer, kind)(seconds)
    return getattr(peer, kind)(request["batch"], seconds)


def main():
    """Answers until the input ends; what a library prints goes to the standard error."""
    with contextlib.redirect_stdout(sys.stderr):
        try:
            peer = importlib.import_module("peer_" + library)
            if hasattr(peer, "use"):
                peer.use(len(cores))
            first = {"ready": True}
        except Exception as e:  # reported, and the library is left out
            first = {"error": f"{type(e).__name__}: {e}".splitlines()[0]}
    print(json.dumps(first), flush=True)
    for line in sys.stdin:
        with contextlib.redirect_stdout(sys.stderr):
            try:
                result = {"times": answer(peer, json.loads(line))}
            except Exception as e:
                result = {"error": f"{type(e).__name__}: {e}".splitlines()[0]}
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
