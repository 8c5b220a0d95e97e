"""The other side of cli/weights's TestHuggingFace: timm, transformers and torchvision.

usage: huggingface.py FOLDER

FOLDER/export is a folder that fspda export --format hf wrote. timm and transformers load it; both predict images.safetensors (a batch, NHWC). Writes
logits.safetensors ("timm", "transformers"), and FOLDER/theirs.safetensors: a ResNet of transformers with its own names, whose logits are "theirs".
"""

import sys

import timm
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoImageProcessor, AutoModelForImageClassification, ResNetConfig, ResNetForImageClassification

folder = sys.argv[1]
torch.set_num_threads(1)
torch.manual_seed(1)
images = load_file(f"{folder}/images.safetensors")["images"].permute(0, 3, 1, 2).contiguous()
ours = timm.create_model(f"local-dir:{folder}/export", pretrained=True).eval()
config = timm.data.resolve_data_config({}, model=ours)
assert config["mean"] == [0.5, 0.25, 0.125] and config["std"] == [0.5, 0.5, 0.25] and config["crop_pct"] == 0.875, config
wrapped = AutoModelForImageClassification.from_pretrained(f"{folder}/export").eval()
AutoImageProcessor.from_pretrained(f"{folder}/export")
theirs = ResNetForImageClassification(ResNetConfig(depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512], layer_type="basic", num_labels=7))
with torch.no_grad():
    theirs.train()(images)  # moves the running statistics
    logits = {"timm": ours(images), "transformers": wrapped(images).logits, "theirs": theirs.eval()(images).logits}
save_file({k: v.contiguous() for k, v in theirs.state_dict().items()}, f"{folder}/theirs.safetensors")
save_file({k: v.contiguous() for k, v in logits.items()}, f"{folder}/logits.safetensors")
