"""The other side of cli/weights's TestTorchvision: torchvision's ResNet-50 and weight files, both ways.

usage: weights.py FOLDER

Reads ours.safetensors (weights that fspda wrote) and images.safetensors (a batch, NHWC) from the folder. Writes theirs.safetensors, weights of
torchvision's own making with running statistics that have moved, and logits.safetensors, what torchvision predicts with either ("ours", "theirs").
"""

import sys

import torch
import torchvision
from safetensors.torch import load_file, save_file


def predict(model, images):
    with torch.no_grad():
        return model.eval()(images).contiguous()


folder = sys.argv[1]
torch.set_num_threads(1)
torch.manual_seed(1)
images = load_file(f"{folder}/images.safetensors")["images"].permute(0, 3, 1, 2).contiguous()

ours = torchvision.models.resnet50(weights=None)
ours.load_state_dict(load_file(f"{folder}/ours.safetensors"), strict=True)

theirs = torchvision.models.resnet50(weights=None)
with torch.no_grad():
    theirs.train()(images)  # moves the running statistics
save_file({k: v.contiguous() for k, v in theirs.state_dict().items()}, f"{folder}/theirs.safetensors")

save_file({"ours": predict(ours, images), "theirs": predict(theirs, images)}, f"{folder}/logits.safetensors")
