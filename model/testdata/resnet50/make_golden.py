"""Writes golden.json: what torchvision's ResNet-50 makes of the weights and images that formula() gives. See README.md."""

import json
import math
import sys

import numpy as np
import torch
import torchvision

SIDE, BATCH, LABELS, SMOOTHING, SAMPLES = 64, 2, [3, 871], 0.1, 4
MASK = (1 << 64) - 1


def formula(tensor, n):
    """n numbers in [-1,1), multiples of 2^-23: the top bits of a mix of the tensor's number and the element's place."""
    z = np.arange(n, dtype=np.uint64) + np.uint64((tensor + 1) << 32)
    with np.errstate(over="ignore"):
        z = z * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(40)).astype(np.float64) * 2.0**-23 - 1


def weight(i, name, shape):
    """The numbers of parameter i as float32, in the shape of torchvision; the formula counts a filter in the order OHWI."""
    u = formula(i, math.prod(shape)).astype(np.float32)
    if len(shape) == 4:
        k, c, r, s = shape
        u = u * np.float32(math.sqrt(6 / (k * r * s)))
        return u.reshape(k, r, s, c).transpose(0, 3, 1, 2)
    if name.startswith("fc."):
        return (u * np.float32(0.02)).reshape(shape)
    return np.float32(0.1) * u + np.float32(name.endswith("weight"))


def flat(x):
    """A tensor's numbers in our order."""
    x = x.detach().double()
    return (x.permute(0, 2, 3, 1) if x.dim() == 4 else x).reshape(-1).numpy()


def run(dtype):
    model = torchvision.models.resnet50().to(dtype)
    model.load_state_dict({n: torch.tensor(weight(i, n, p.shape)).to(dtype) for i, (n, p) in enumerate(model.named_parameters())}, strict=False)
    images = formula(1000, BATCH * SIDE * SIDE * 3).astype(np.float32).reshape(BATCH, SIDE, SIDE, 3) * np.float32(1.7)
    x, y = torch.tensor(images).permute(0, 3, 1, 2).to(dtype), torch.tensor(LABELS)
    model.train()
    logits = model(x)
    smooth = torch.nn.functional.cross_entropy(logits, y, label_smoothing=SMOOTHING)
    parameters = list(model.parameters())
    smooth_grads = torch.autograd.grad(smooth, parameters, retain_graph=True)
    loss = torch.nn.functional.cross_entropy(logits, y)
    grads = torch.autograd.grad(loss, parameters)
    model.eval()
    with torch.no_grad():
        evaluated = model(x)
    buffers = {n: b for n, b in model.named_buffers() if not n.endswith("num_batches_tracked")}
    return dict(model=model, logits=logits, loss=loss.item(), smooth=smooth.item(), evaluated=evaluated,
                grads=[flat(g) for g in grads], smooth_grads=[flat(g) for g in smooth_grads], buffers={n: flat(b) for n, b in buffers.items()})


def short(v):
    return [float("%.9g" % x) for x in np.ravel(v)]


def tensor(values, others=None):
    """Norm and samples of a tensor, and the norm of the difference from the same in float32, relative to the norm."""
    norm = float(np.linalg.norm(values))
    entry = {"norm": float("%.9g" % norm), "samples": short(values[sample(len(values))])}
    if others is not None:
        entry["float32"] = float("%.2g" % (np.linalg.norm(values - others) / norm))
    return entry


def sample(n):
    return [n * k // SAMPLES + (n // SAMPLES) // 3 for k in range(SAMPLES)] if n >= SAMPLES else list(range(n))


def main():
    exact, single = run(torch.float64), run(torch.float32)
    names = [n for n, _ in exact["model"].named_parameters()]
    golden = {
        "torch": torch.__version__, "torchvision": torchvision.__version__,
        "side": SIDE, "batch": BATCH, "labels": LABELS, "smoothing": SMOOTHING,
        "loss": exact["loss"], "smooth_loss": exact["smooth"],
        "logits": short(exact["logits"].detach().numpy()), "evaluated": short(exact["evaluated"].numpy()),
        "logits_float32": float((exact["logits"] - single["logits"]).detach().abs().max()),
        "evaluated_float32": float((exact["evaluated"] - single["evaluated"]).abs().max()),
        "grads": {n: tensor(g, s) for n, g, s in zip(names, exact["grads"], single["grads"])},
        "smooth_norms": short([np.linalg.norm(g) for g in exact["smooth_grads"]]),
        "buffers": {n: tensor(b, single["buffers"][n]) for n, b in exact["buffers"].items()},
        "shapes": {n: list(p.shape) for n, p in exact["model"].named_parameters()},
    }
    with open(sys.argv[1], "w") as f:
        json.dump(golden, f, separators=(",", ":"))


if __name__ == "__main__":
    torch.manual_seed(0)
    main()
