"""Makes the files of this folder with PyTorch 2.15: state dictionaries of the network mlp 4-5-3, as torch.save writes them."""

import collections
import os

import torch

os.chdir(os.path.dirname(os.path.abspath(__file__)))


def state():
    names = {"fc1.weight": (5, 4), "fc1.bias": (5,), "fc2.weight": (3, 5), "fc2.bias": (3,)}
    at, out = 0, collections.OrderedDict()
    for name, shape in names.items():
        n = int(torch.tensor(shape).prod())
        out[name] = (torch.arange(at, at + n, dtype=torch.float32) / 8).reshape(shape)
        at += n
    return out


class Runs:
    def __reduce__(self):
        return os.system, ("touch executed",)


torch.save(state(), "plain.pth")
one = torch.cat([v.flatten() for v in state().values()])  # views of one storage
torch.save({"a": 1, "state_dict": {"module." + k: v.half() for k, v in state().items()}, "rate": [0.5, -3, None, True]}, "wrapped.pth")
torch.save({"fc1.weight": one[:20].reshape(5, 4), "fc1.bias": one[20:25], "fc2.weight": one[25:40].reshape(3, 5),
            "fc2.bias": torch.nn.Parameter(one[40:])}, "views.pth")
torch.save({**state(), "fc1.weight": state()["fc1.weight"].t().contiguous().t()}, "strided.pth")
torch.save({**state(), "fc1.weight": Runs()}, "runs.pth")
torch.save(torch.nn.Linear(4, 3), "module.pth")
torch.save({**state(), "epoch": 3}, "number.pth")
torch.save(state(), "legacy.pth", _use_new_zipfile_serialization=False)
