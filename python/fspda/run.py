"""Run folders of fspda as data."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import tempfile
from typing import Any

try:
    import pandas
except ImportError:  # tables are lists of dictionaries
    pandas = None  # type: ignore[assignment]


def table(rows: list[dict[str, Any]]) -> Any:
    """Return rows as a DataFrame of pandas; without pandas as they are."""
    return rows if pandas is None else pandas.DataFrame(rows)


def number(text: str) -> Any:
    """Return a value of a file of settings."""
    if text in ("true", "false"):
        return text == "true"
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    for kind in int, float:
        try:
            return kind(text)
        except ValueError:
            pass
    return text


class Run:
    """A run folder."""

    def __init__(self, folder: str | os.PathLike[str], model: Any = None) -> None:
        self.folder = pathlib.Path(folder)
        self._model = model

    def __repr__(self) -> str:
        return f"fspda.Run({str(self.folder)!r})"

    @property
    def config(self) -> dict[str, Any]:
        """The settings of the run."""
        found = {}
        for line in (self.folder / "config.yaml").read_text().splitlines():
            name, colon, value = line.partition(":")
            if colon and name and not name.startswith((" ", "#", "-")):
                found[name] = number(value.strip())
        return found

    @property
    def summary(self) -> dict[str, Any]:
        """The summary of a run that has ended; empty before."""
        path = self.folder / "summary.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def rows(self) -> list[dict[str, Any]]:
        """Return the evaluations: a row has the columns of metrics.jsonl."""
        path = self.folder / "metrics.jsonl"
        found = []
        for line in path.read_text().splitlines() if path.exists() else []:
            try:
                found.append(json.loads(line))
            except ValueError:  # a row that is being written
                break
        return found

    @property
    def metrics(self) -> Any:
        """The evaluations, as a DataFrame of pandas; without pandas a list of dictionaries."""
        return table(self.rows())

    @property
    def model(self) -> dict[str, Any]:
        """The mean model by the names of its tensors: a state_dict, or arrays without PyTorch."""
        return self.weights()

    def weights(self, agent: int | None = None, best: bool = False) -> dict[str, Any]:
        """Return the model of an agent, the best mean model, or the last one."""
        from .training import RunError, call, finish

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.safetensors")
            arguments = ["export", str(self.folder), "--out", path]
            if best:
                arguments.append("--best")
            if agent is not None:
                arguments += ["--agent", str(agent)]
            process = call(self._model, arguments, stdout=subprocess.DEVNULL)
            if status := finish(process):
                raise RunError(arguments, status)
            return read(path)


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a safetensors file: tensors of PyTorch where it is installed, else arrays of NumPy, else memoryviews."""
    text = pathlib.Path(path).read_bytes()
    size = int.from_bytes(text[:8], "little")
    data = bytearray(text[8 + size :])
    found: dict[str, Any] = {}
    for name, about in json.loads(text[8 : 8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = about["data_offsets"]
        part = memoryview(data)[begin:end]
        found[name] = array(part, about["dtype"], about["shape"])
    return found


def array(part: memoryview, kind: str, shape: list[int]) -> Any:
    """Return the bytes of a tensor as an array."""
    try:
        import torch

        return torch.frombuffer(part, dtype={"F32": torch.float32, "I64": torch.int64}[kind]).reshape(shape)
    except ImportError:
        pass
    try:
        import numpy

        return numpy.frombuffer(part, {"F32": "float32", "I64": "int64"}[kind]).reshape(shape)
    except ImportError:
        return part.cast("f") if kind == "F32" else part.cast("q")


def runs(folder: str | os.PathLike[str] = "runs") -> Any:
    """Return the runs below a folder, one a row: its settings, the last evaluation, and how it ended.

    That is a DataFrame of pandas; without pandas a list of dictionaries. Columns of evaluations are those of
    metrics.jsonl; "run" is the folder, "status" is empty while a run has not ended.
    """
    found = []
    for path in sorted(pathlib.Path(folder).glob("**/config.yaml")):
        run = Run(path.parent)
        rows = run.rows()
        found.append(
            {"run": str(path.parent), **run.config, **(rows[-1] if rows else {}), "status": run.summary.get("status", "")}
        )
    return table(found)
