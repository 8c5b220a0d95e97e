"""Makes the pictures of this folder: see README.md."""
import json
import numpy as np
from PIL import Image

rng = np.random.default_rng(1)
h, w = 90, 120
y, x = np.mgrid[0:h, 0:w]
waves = np.stack([128 + 90 * np.sin(x / 7 + y / 11), 128 + 80 * np.cos(x * y / 300), 255 * (x + y) / (h + w)], axis=2)
waves[20:50, 30:80] = 255 - waves[20:50, 30:80]  # edges
picture = np.clip(waves + rng.normal(0, 15, waves.shape), 0, 255).astype(np.uint8)
source = Image.fromarray(picture)
source.save("source.png", optimize=True)

# box (left, upper, width, height), then the size it is scaled to
cases = [(0, 0, 120, 90, 48, 48), (13, 7, 60, 40, 48, 48), (100, 70, 20, 20, 48, 48), (5, 5, 48, 48, 48, 48), (40, 0, 33, 90, 48, 48), (0, 0, 120, 90, 85, 64), (0, 0, 120, 90, 21, 16)]
for i, (left, top, bw, bh, ow, oh) in enumerate(cases):
    box = source.crop((left, top, left + bw, top + bh))
    box.resize((ow, oh), Image.BILINEAR).save(f"{i}.png", optimize=True)
json.dump(cases, open("cases.json", "w"))
