"""Feeds the same JPEG files by torchvision on Pillow and by fspda, on one core, in turns, and prints a Markdown table.

usage: python load.py FSPDA PICTURES

FSPDA is the program, PICTURES a folder or a tar of class folders. Every picture is decoded, cropped at random, scaled to 224×224, mirrored
every other time and normalised to float32: torchvision's transforms for the training of ImageNet. Every number is the fastest of several
rounds.
"""

import json
import os
import random
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import torch
from PIL import Image, __version__ as pillow
from torchvision import __version__ as torchvision
from torchvision import transforms

ROUNDS = 3
SECONDS = 5  # of a round
BATCH = 32

TRAINING = transforms.Compose(
    [
        transforms.RandomResizedCrop(224),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ]
)


def files(pictures, unpacked):
    """The pictures as files, which a tar is unpacked for."""
    folder = Path(pictures)
    if folder.is_file():
        with tarfile.open(folder) as archive:
            archive.extractall(unpacked, filter="data")
        folder = Path(unpacked)
    found = sorted(p for p in folder.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
    if not found:
        sys.exit(f"{pictures} has no *.jpg or *.jpeg")
    return found


def rate(paths):
    """Pictures a second, in batches as a training loop would take them."""
    order = paths.copy()
    count, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < SECONDS:
        random.shuffle(order)
        for at in range(0, len(order), BATCH):
            batch = torch.stack([TRAINING(Image.open(p).convert("RGB")) for p in order[at : at + BATCH]])
            count += len(batch)
            if time.perf_counter() - begin >= SECONDS:
                break
    return count / (time.perf_counter() - begin)


def ours(program, pictures):
    """The report of fspda on one core."""
    command = [program, "bench", "load", "--data", "folder", "--data-dir", pictures, "--jobs", "1", "--time", f"{SECONDS}s", "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    program, pictures = sys.argv[1:]
    torch.set_num_threads(1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # fspda inherits it
    rates = {}
    with tempfile.TemporaryDirectory() as unpacked:
        paths = files(pictures, unpacked)
        for _ in range(ROUNDS):
            name = f"torchvision {torchvision}, Pillow {pillow}"
            rates[name] = max(rates.get(name, 0), rate(paths))
            for row in ours(program, pictures)["rows"]:
                name = "fspda: " + row["from"]
                rates[name] = max(rates.get(name, 0), row["per_core"])
    base = next(iter(rates.values()))
    print(f"| {len(paths)} pictures, one core | pictures a second | over torchvision |\n|---|---|---|")
    for name, value in rates.items():
        print(f"| {name} | {value:.0f} | {value / base:.2f} |")


main()
