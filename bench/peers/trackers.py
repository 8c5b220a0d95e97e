"""The other side of cli's TestTrackers: TensorBoard and MLflow read what a run and deploy/trackers.py wrote.

usage: trackers.py RUN STORE

Prints JSON: the last value of each curve ("scalars"), the hyperparameters ("hparams"), and the history of each metric of MLflow ("mlflow").
"""

import json
import os
import pathlib
import sys

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
import mlflow
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import plugin_data_pb2

run, store = sys.argv[1:]
events = EventAccumulator(f"{run}/tensorboard").Reload()
scalars = {tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
content = events.PluginTagToContent("hparams")["_hparams_/session_start_info"]
info = plugin_data_pb2.HParamsPluginData.FromString(content).session_start_info
hparams = {k: v.number_value if v.HasField("number_value") else v.string_value for k, v in info.hparams.items()}

client = mlflow.MlflowClient(pathlib.Path(store).absolute().as_uri())
(experiment,) = [e for e in client.search_experiments() if e.name == "fspda"]
(logged,) = client.search_runs([experiment.experiment_id])
history = {k: [[m.step, m.value] for m in client.get_metric_history(logged.info.run_id, k)] for k in logged.data.metrics}
print(json.dumps({"scalars": scalars, "hparams": hparams, "mlflow": history, "params": logged.data.params}))
