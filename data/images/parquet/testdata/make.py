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

cases = pathlib.Path(__file__).parent / "cases"
cases.mkdir(exist_ok=True)
binary, optional = pa.binary(), lambda v, t: pa.array(v, t)

def case(name, columns, **how):
    pq.write_table(pa.table(columns), cases / f"{name}.parquet", **how)

two = optional([b"x", b"y"], binary)
case("no-columns", {"id": pa.array([1, 2], pa.int64()), "text": two})
case("no-label", {"image": two})
case("label-of-bytes", {"image": two, "label": two})
case("null-label", {"image": two, "label": pa.array([1, None], pa.int64())})
case("negative", {"image": two, "label": pa.array([-1, 0], pa.int32())})
case("huge", {"image": two, "label": pa.array([0, 1 << 40], pa.int64())})
case("no-row", {"image": optional([], binary), "label": pa.array([], pa.int64())})
case("brotli", {"image": two, "label": pa.array([0, 1], pa.int64())}, compression="brotli")
case("split", {"image": two, "label": pa.array([0, 1], pa.int64())}, use_dictionary=False, column_encoding={"label": "BYTE_STREAM_SPLIT"})
case("bad-rows", {"img": optional([picture(0), None, b"junk", picture(0)], binary), "labels": pa.array([0, 2, 10, 3], pa.int32())})

# The same 24 pictures, written in every way. A list before them has levels of its own and more values than rows.
def ways(name, kind=pa.int64(), **how):
    rows = [{"bytes": picture(n), "path": f"{names[n % 3]}_{n}.JPEG" if n % 4 else None} for n in range(24)]
    before = pa.array([[n] * (n % 3) for n in range(24)], pa.list_(pa.int32()))
    case(name, {"before": before, "image": pa.array(rows, image), "label": pa.array([n % 3 for n in range(24)], kind)}, **how)

ways("way-gzip", compression="gzip", data_page_size=3000, write_page_checksum=True)
ways("way-lz4", pa.int32(), compression="lz4", data_page_version="2.0", write_page_checksum=True, write_page_index=True)
deltas = {"image.bytes": "DELTA_LENGTH_BYTE_ARRAY", "image.path": "DELTA_BYTE_ARRAY", "label": "DELTA_BINARY_PACKED"}
ways("way-delta", compression="zstd", use_dictionary=False, column_encoding=deltas, row_group_size=10)
ways("way-delta32", pa.int32(), compression="snappy", use_dictionary=False, column_encoding=deltas, data_page_version="2.0")
ways("way-dictionary", compression="none", dictionary_pagesize_limit=1 << 20, data_page_size=1, write_batch_size=5)
ways("way-mixed", compression="snappy", dictionary_pagesize_limit=900, data_page_size=2000, write_batch_size=3, max_rows_per_page=2)

# Labels of other types, rows without labels, columns with other names.
def pictures(count): return optional([picture(n) for n in range(count)], binary)

case("strings", {"image": pictures(4), "label": pa.array(["dog", "cat", None, "ant"])})
case("booleans", {"image": pictures(3), "label": pa.array([True, False, True])})
case("unlabelled", {"image": pictures(4), "label": pa.array([0, -1, None, 1], pa.int8())})
case("none-labelled", {"image": pictures(2), "label": pa.array([-1, -1], pa.int64())})
case("other-names", {"photo": pa.array([{"bytes": picture(n), "path": None} for n in range(3)], image), "kind": pa.array([2, 1, 0], pa.uint8()), "label": two.slice(0, 0).cast(pa.binary()).take(pa.nulls(3, pa.int64()))})
features = {"huggingface": json.dumps({"info": {"features": {"scan": {"_type": "Image"}, "finding": {"names": ["no", "yes"], "_type": "ClassLabel"}}}})}
pq.write_table(pa.table({"scan": pa.array([{"bytes": picture(n), "path": None} for n in range(3)], image), "finding": pa.array([1, 0, 1], pa.int64())}).replace_schema_metadata(features), cases / "features.parquet")

# A folder of save_to_disk, with a table beside it that does not belong to the set.
import datasets
datasets.disable_progress_bars()
saved = pathlib.Path(__file__).parent / "saved"
def split(numbers): return datasets.Dataset.from_dict(
    {"image": [{"bytes": picture(n), "path": f"{names[n % 3]}_{n}.JPEG"} for n in numbers], "label": [n % 3 for n in numbers]},
    features=datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=names)}))
datasets.DatasetDict({"train": split(range(5)), "test": split(range(5, 7))}).save_to_disk(saved)
(saved / "train" / "cache-0000.arrow").write_bytes(b"not a table")
