"""The other side of cli/weights's TestONNXRuntime: ONNX's own checker, and ONNX Runtime's logits.

usage: predict.py FOLDER

For each NAME.onnx in the folder: checks the model with its shapes, reads NAME.input (float32, or int64 for tokens: a batch
of the shape in NAME.shape, of another size than that of training), writes NAME.logits.
"""

import pathlib
import sys

import numpy as np
import onnx
import onnxruntime

for path in pathlib.Path(sys.argv[1]).glob("*.onnx"):
    onnx.checker.check_model(onnx.load(path), full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    (x,), (y,) = session.get_inputs(), session.get_outputs()
    assert (x.name, x.shape[0], y.name, y.shape[0]) == ("input", "batch", "logits", "batch"), (x, y)
    kind = np.int64 if x.type == "tensor(int64)" else np.float32
    images = np.fromfile(path.with_suffix(".input"), kind).reshape([int(n) for n in path.with_suffix(".shape").read_text().split()])
    logits = session.run(["logits"], {"input": images})[0]
    alone = session.run(["logits"], {"input": images[:1]})[0]
    assert np.allclose(alone, logits[:1], rtol=1e-4, atol=1e-5), "another batch gives other logits"
    logits.tofile(path.with_suffix(".logits"))
