"""Writes train/algo/testdata/pytorch.json: trajectories of PyTorch's optimizers in float64, for TestPyTorchOptimizers.

python bench/peers/optimizers.py > train/algo/testdata/pytorch.json
"""

import json

import torch

torch.set_default_dtype(torch.float64)


def trajectory(make):
    x = torch.tensor([2.0, -1.0, 0.5, 3.0], requires_grad=True)
    k = torch.arange(4.0)
    optimizer, rows = make([x]), []
    for t in range(100):
        x.grad = ((0.5 + 0.25 * k) * (x - (k - 1)) * (1 + 0.5 * (t % 3))).detach()
        optimizer.step()
        if t in (0, 1, 9, 99):
            rows.append(x.tolist())
    return rows


SGD, ADAMW, LR = torch.optim.SGD, torch.optim.AdamW, 0.05
CASES = [
    ("sgd", 0.01, lambda p: SGD(p, lr=LR, weight_decay=0.01)),
    ("heavy-ball", 0.01, lambda p: SGD(p, lr=LR, momentum=0.9, weight_decay=0.01)),
    ("nesterov", 0.01, lambda p: SGD(p, lr=LR, momentum=0.9, nesterov=True, weight_decay=0.01)),
    ("adamw", 0.01, lambda p: ADAMW(p, lr=LR, weight_decay=0.01)),
]
print(json.dumps([{"Name": name, "Decay": wd, "X": trajectory(make)} for name, wd, make in CASES], indent="\t"))
