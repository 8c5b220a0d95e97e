"""Imports runs of fspda into MLflow or Weights & Biases.

usage: trackers.py mlflow|wandb RUN... [--project fspda] [--to FOLDER]

mlflow writes a file store, which `mlflow ui --backend-store-uri FOLDER` shows; wandb works offline and leaves folders for `wandb sync`. The default
of --to is mlruns, or wandb below the current folder. The parameters are those of config.yaml, the metrics the columns of metrics.jsonl by iteration.
"""

import argparse
import json
import os
import pathlib

import yaml


def rows(run):
    for line in (run / "metrics.jsonl").open():
        row = json.loads(line)
        yield row.pop("iteration"), {k: float(v) for k, v in row.items() if v is not None}


def to_mlflow(runs, project, folder):
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # newer versions prefer a database
    import mlflow

    mlflow.set_tracking_uri(pathlib.Path(folder or "mlruns").absolute().as_uri())
    mlflow.set_experiment(project)
    for run in runs:
        with mlflow.start_run(run_name=run.name):
            mlflow.log_params(yaml.safe_load((run / "config.yaml").read_text()))
            for step, metrics in rows(run):
                mlflow.log_metrics(metrics, step=step)
            for name in ("config.yaml", "summary.json", "report.html"):
                if (run / name).exists():
                    mlflow.log_artifact(run / name)


def to_wandb(runs, project, folder):
    os.environ.setdefault("WANDB_MODE", "offline")
    import wandb

    for run in runs:
        config = yaml.safe_load((run / "config.yaml").read_text())
        with wandb.init(project=project, name=run.name, config=config, dir=folder) as target:
            for step, metrics in rows(run):
                target.log(metrics, step=step)


arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
arguments.add_argument("tracker", choices=("mlflow", "wandb"))
arguments.add_argument("runs", nargs="+", type=pathlib.Path)
arguments.add_argument("--project", default="fspda")
arguments.add_argument("--to")
given = arguments.parse_args()
{"mlflow": to_mlflow, "wandb": to_wandb}[given.tracker](given.runs, given.project, given.to)
