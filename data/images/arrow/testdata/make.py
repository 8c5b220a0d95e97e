"""Writes the files of the tests by PyArrow. With an argument it checks a file that TestWriter wrote (FSPDA_TEST_WRITE=FILE)."""
import pathlib, sys
import pyarrow as pa

if len(sys.argv) > 1:
    table = pa.ipc.open_file(sys.argv[1]).read_all()
    table.validate(full=True)
    names = ["one", "", "three", "vier"]
    assert table.to_pydict() == {"label": [0, -1, -2, 0], "pixels": [20 * n.encode() for n in names], "name": names}
    assert table.schema.metadata == {b"maker": b"test", b"empty": b""}
    sys.exit(print("as written"))

here = pathlib.Path(__file__).parent
n = 5
columns = {
    "list": pa.array([[1] * i for i in range(n)], pa.list_(pa.int32())),
    "image": pa.array([None if i == 1 else {"bytes": None if i == 2 else b"b" * i, "path": f"p{i}"} for i in range(n)],
                      pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
    "dictionary": pa.array(["x", "y", "x", "y", "x"]).dictionary_encode(),
    "label": pa.array([0, 1, None, -1, 1 << 40], pa.int64()),
    "flag": pa.array([True, False, None, True, True]),
    "vector": pa.array([[1.0, 2.0]] * n, pa.list_(pa.float64(), 2)),
    "map": pa.array([[("k", i)] for i in range(n)], pa.map_(pa.string(), pa.int8())),
    "large": pa.array([f"s{i}" for i in range(n)], pa.large_string()),
    "none": pa.nulls(n),
    "u8": pa.array([0, 255, 3, 4, 5], pa.uint8()),
    "i16": pa.array([0, -2, 3, 4, -5], pa.int16()),
    "time": pa.array(range(n), pa.timestamp("s")),
    "price": pa.array([1.5] * n, pa.float16()),
}
plain = {k: v for k, v in columns.items() if k != "dictionary"}

def write(name, table, how=pa.ipc.new_stream, **options):
    with how(here / name, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as w:
        w.write_table(table, max_chunksize=3)

write("stream.arrow", pa.table(plain, metadata={"huggingface": "{}"}))
write("file.arrow", pa.table(plain), pa.ipc.new_file)
write("dictionary.arrow", pa.table(columns))
write("compressed.arrow", pa.table({"u8": columns["u8"]}), compression="zstd")
write("view.arrow", pa.table({"v": pa.array(["a"], pa.string_view())}))
