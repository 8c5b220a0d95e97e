"""Makes the pictures of this folder, and with Pillow what they look like: NAME.rgb holds the pixels of convert("RGB")."""
import io, pathlib, struct, zlib
import numpy as np
from PIL import Image

here = pathlib.Path(__file__).parent
W, H = 37, 29
y, x = np.mgrid[0:H, 0:W]
colours = np.stack([x * 255 // (W - 1), y * 255 // (H - 1), (x * 7 + y * 5) % 256], -1).astype(np.uint8)
rgb = Image.fromarray(colours)

def jpeg(im, **how):
    b = io.BytesIO()
    im.save(b, "JPEG", quality=90, **how)
    return b.getvalue()

def png(im, **how):
    b = io.BytesIO()
    im.save(b, "PNG", **how)
    return b.getvalue()

def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

def png16(kind, samples):
    """A PNG of 16 bits a sample, which Pillow cannot write in colour."""
    rows = b"".join(b"\0" + r.astype(">u2").tobytes() for r in samples)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", W, H, 16, kind, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))

wide = colours.astype(np.uint16) * 251 + 17
alpha = np.concatenate([colours, (x * 6 % 256)[..., None].astype(np.uint8)], -1)
cmyk = jpeg(Image.fromarray(alpha, "CMYK"))
at = cmyk.index(b"\xff\xee")
rotated = Image.Exif()
rotated[0x0112] = 6

files = {
    "444.jpg": jpeg(rgb, subsampling=0), "422.jpg": jpeg(rgb, subsampling=1), "420.jpg": jpeg(rgb, subsampling=2),
    "progressive.jpg": jpeg(rgb, progressive=True),
    "progressive-422.jpg": jpeg(rgb, progressive=True, subsampling=1, restart_marker_blocks=2),
    "progressive-grey.jpg": jpeg(rgb.convert("L"), progressive=True), "grey.jpg": jpeg(rgb.convert("L")),
    "cmyk-adobe.jpg": cmyk, "cmyk-plain.jpg": cmyk[:at] + cmyk[at + 16:],
    "restart.jpg": jpeg(rgb, restart_marker_blocks=2),
    "exif-rotated.jpg": jpeg(rgb, exif=rotated),
    "narrow.jpg": jpeg(rgb.crop((0, 0, 3, 2)), subsampling=2),
    "rgb.png": png(rgb), "rgba.png": png(Image.fromarray(alpha, "RGBA")), "grey.png": png(rgb.convert("L")),
    "grey-alpha.png": png(Image.fromarray(alpha, "RGBA").convert("LA")), "one-bit.png": png(rgb.convert("1")),
    "palette.png": png(rgb.quantize(16)), "palette-clear.png": png(rgb.quantize(16), transparency=3),
    "rgb-16.png": png16(2, wide.reshape(H, -1)),
    "rgba-16.png": png16(6, np.concatenate([wide, wide[..., :1]], -1).reshape(H, -1)),
}
def saved(im, kind, **how):
    b = io.BytesIO()
    im.save(b, kind, **how)
    return b.getvalue()

def on_larger_screen(gif):
    """A GIF whose frame is at 3, 2 of a larger picture."""
    b = bytearray(gif)
    b[6:10] = struct.pack("<HH", W + 7, H + 5)
    at = b.index(b"\x2c" + struct.pack("<HHHH", 0, 0, W, H))
    b[at + 1:at + 5] = struct.pack("<HH", 3, 2)
    return bytes(b)

def animated_webp(im, at=(0, 0), **how):
    """An animated WebP of two frames, the first of which is at a place in a larger picture unless that is 0, 0."""
    b = bytearray(saved(im, "WEBP", save_all=True, append_images=[im.rotate(180)], **how))
    if at != (0, 0):
        b[24:30] = struct.pack("<I", im.width + 6)[:3] + struct.pack("<I", im.height + 4)[:3]
        frame = b.index(b"ANMF") + 8
        b[frame:frame + 6] = struct.pack("<I", at[0] // 2)[:3] + struct.pack("<I", at[1] // 2)[:3]
    return bytes(b)

palette = rgb.quantize(16)
files |= {
    "animated-lossless.webp": animated_webp(rgb, lossless=True),
    "animated-alpha.webp": animated_webp(Image.fromarray(alpha, "RGBA"), lossless=True, exact=True),
    "animated-lossy.webp": animated_webp(rgb, quality=90),
    "animated-lossy-alpha.webp": animated_webp(Image.fromarray(alpha, "RGBA"), quality=90, minimize_size=False),
    "animated-frame.webp": animated_webp(rgb, (4, 2), lossless=True),
    "palette.gif": saved(palette, "GIF"), "clear.gif": saved(palette, "GIF", transparency=3),
    "grey.gif": saved(rgb.convert("L"), "GIF"), "frame.gif": on_larger_screen(saved(palette, "GIF")),
    "clear-frame.gif": on_larger_screen(saved(palette, "GIF", transparency=3)),
    "animated.gif": saved(palette, "GIF", save_all=True, append_images=[rgb.rotate(180).quantize(16)]),
    "lossy.webp": saved(rgb, "WEBP", quality=90), "lossy-alpha.webp": saved(Image.fromarray(alpha, "RGBA"), "WEBP", quality=90),
    "lossless.webp": saved(rgb, "WEBP", lossless=True),
    "lossless-alpha.webp": saved(Image.fromarray(alpha, "RGBA"), "WEBP", lossless=True, exact=True),
    "rgb.bmp": saved(rgb, "BMP"), "rgba.bmp": saved(Image.fromarray(alpha, "RGBA"), "BMP"), "palette.bmp": saved(palette, "BMP"),
    "one-bit.bmp": saved(rgb.convert("1"), "BMP"), "grey.bmp": saved(rgb.convert("L"), "BMP"),
}

for name, content in files.items():
    (here / name).write_bytes(content)
    im = Image.open(io.BytesIO(content))
    (here / (name + ".rgb")).write_bytes(im.convert("RGB").tobytes())
    print(name, im.mode, im.size, len(content))
