"""Writes pillow.json: the mean of each channel of pictures scaled by Pillow's Lanczos filter, for TestScaledLikePillow.

Call: python pillow.py [imagenet-sample-200.tar]. Generated pictures are those of the function tiles of the test."""
import io, json, pathlib, sys, tarfile
import numpy as np
import PIL
from PIL import Image

def fit(w, h, s):
    return (w, h) if min(w, h) <= s else (s, s * h // w) if w < h else (s * w // h, s)

def tiles(w, h, n):
    y, x = np.mgrid[0:h, 0:w]
    return Image.fromarray(np.stack([np.where((x // 5 + y // 7 + n) % 2 == 0, 190, 60), (17 * n + x) % 256, 5 * y % 256], -1).astype(np.uint8))

def means(im, size):
    return [round(float(v), 4) for v in np.asarray(im.resize(fit(*im.size, size), Image.LANCZOS), float).mean((0, 1))]

out = {"pillow": PIL.__version__, "generated": [], "sample": {}}
for n in range(24):
    w, h, size = 100 + 17 * n, 90 + 23 * (n * 5 % 24), 64
    out["generated"].append({"w": w, "h": h, "n": n, "means": means(tiles(w, h, n), size)})
for name in sys.argv[1:]:
    with tarfile.open(name) as tar:
        for m in tar:
            if m.isfile():
                out["sample"][m.name] = means(Image.open(io.BytesIO(tar.extractfile(m).read())).convert("RGB"), 256)
text = json.dumps(out).replace('{"w"', '\n {"w"').replace(', "train/', ',\n "train/').replace(', "sample"', ',\n"sample"')
(pathlib.Path(__file__).parent / "pillow.json").write_text(text + "\n")
