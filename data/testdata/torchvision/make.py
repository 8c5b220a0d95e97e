"""Makes the files of this folder: see README.md."""
import json
import numpy as np
from PIL import Image
from torchvision.transforms import functional as F
from torchvision.transforms import CenterCrop, Resize

SIDE, SHORT = 48, 55
rng = np.random.default_rng(1)
h, w = 110, 150  # twice SHORT, so that libjpeg could halve it
y, x = np.mgrid[0:h, 0:w]
waves = np.stack([128 + 90 * np.sin(x / 2 + y / 3), 128 + 80 * np.cos(x * y / 100), 255 * (x + y) / (h + w)], axis=2)
waves[20:70, 30:100] = 255 - waves[20:70, 30:100]  # edges
waves[::5, 60:] = 250  # lines
picture = Image.fromarray(np.clip(waves + rng.normal(0, 20, waves.shape), 0, 255).astype(np.uint8))
boxes = [(0, 0, 110, 110), (13, 7, 97, 96), (40, 3, 60, 80), (100, 60, 40, 30), (30, 50, 120, 60)]  # left, top, width, height
for name, subsampling in (("444", 0), ("422", 1), ("420", 2)):
    picture.save(name + ".jpg", quality=90, subsampling=subsampling)
    im = Image.open(name + ".jpg").convert("RGB")
    views = [CenterCrop(SIDE)(Resize(SHORT)(im))]
    views += [F.resized_crop(im, top, left, height, width, [SIDE, SIDE]) for left, top, width, height in boxes]
    Image.fromarray(np.concatenate([np.asarray(v) for v in views])).save(name + ".png", optimize=True)
json.dump(boxes, open("boxes.json", "w"))
