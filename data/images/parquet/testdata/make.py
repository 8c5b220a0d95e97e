"""Makes a small set in parquet as the datasets library writes it: data/train-*.parquet and data/validation-*.parquet."""
import io, json, pathlib
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

here = pathlib.Path(__file__).parent / "data"
here.mkdir(exist_ok=True)
names = ["ant", "bee", "cat"]
meta = {"huggingface": json.dumps({"info": {"features": {"image": {"_type": "Image"}, "label": {"names": names, "_type": "ClassLabel"}}}})}
image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])

def picture(n):
    """Noise of one colour: picture n has the mean 10·n in red, about."""
    draw = np.random.default_rng(n)
    a = np.clip(draw.normal((10 * n, 128, 60), 3, (9, 11, 3)), 0, 255).astype(np.uint8)
    b = io.BytesIO()
    Image.fromarray(a).save(b, "PNG" if n % 3 == 0 else "JPEG")
    return b.getvalue()

def write(name, numbers, **how):
    rows = [{"bytes": picture(n), "path": f"{names[n % 3]}_{n}.JPEG" if n % 4 else None} for n in numbers]
    table = pa.table({"image": pa.array(rows, image), "label": pa.array([n % 3 for n in numbers], pa.int64())}).replace_schema_metadata(meta)
    pq.write_table(table, here / name, **how)

write("train-00000-of-00002.parquet", range(0, 11), row_group_size=4, compression="snappy", data_page_size=1500)
write("train-00001-of-00002.parquet", range(11, 20), row_group_size=100, compression="zstd", data_page_version="2.0", use_dictionary=False)
write("validation-00000-of-00001.parquet", range(20, 24), compression="none")
