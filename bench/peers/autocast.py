"""The other side of cuda's TestAutocast: a short training of a small MLP by torch.autocast and torch.amp.GradScaler.

Reads JSON from standard input: dtype ("float16" or "bfloat16"), sizes of the layers, params (flat: W1, b1, W2, b2, ...), batches (x, y), rate, decay,
smoothing, clip, and the scale and growth tracker that float16 begins with. Writes JSON: the loss, the scale and whether the step was skipped of each
iteration, and the parameters at the end.
"""

import json
import sys

import torch
from torch import nn

task = json.load(sys.stdin)
torch.set_num_threads(1)
dtype = getattr(torch, task["dtype"])
sizes = task["sizes"]
layers = []
for k in range(len(sizes) - 1):
    layers += [nn.Linear(sizes[k], sizes[k + 1])] + ([{"sigmoid": nn.Sigmoid, "relu": nn.ReLU}[task["activation"]]()] if k < len(sizes) - 2 else [])
model = nn.Sequential(*layers)
flat = torch.tensor(task["params"])
with torch.no_grad():
    at = 0
    for p in model.parameters():
        p.copy_(flat[at : at + p.numel()].view_as(p))
        at += p.numel()

optimizer = torch.optim.SGD(model.parameters(), lr=task["rate"])
scaler = torch.amp.GradScaler("cpu", enabled=dtype == torch.float16)
if scaler.is_enabled():
    scaler.load_state_dict({"scale": task["scale"], "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2000, "_growth_tracker": task["good"]})

losses, scales, skipped = [], [], []
for batch in task["batches"]:
    x, y = torch.tensor(batch["x"]).view(len(batch["y"]), sizes[0]), torch.tensor(batch["y"])
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=dtype):
        logits = model(x)
    loss = nn.functional.cross_entropy(logits.float(), y, label_smoothing=task["smoothing"])
    loss = loss + task["decay"] / 2 * sum((p * p).sum() for p in model.parameters())
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    if task["clip"] > 0:
        torch.nn.utils.clip_grad_norm_(model.parameters(), task["clip"])
    before = scaler.get_scale()
    scaler.step(optimizer)
    scaler.update()
    losses.append(loss.item())
    scales.append(scaler.get_scale())
    skipped.append(scaler.get_scale() < before)

json.dump({"losses": losses, "scales": scales, "skipped": skipped, "params": nn.utils.parameters_to_vector(model.parameters()).tolist()}, sys.stdout)
