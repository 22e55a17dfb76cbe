#!/usr/bin/env python3
"""What every importer writes is planned and simulated; GPT-2, Llama and Qwen2
configurations of two layers are trained for five steps, and by PyTorch where it
can be had: losses and gradients equal within 1e-4.
"""
import json
import os
import re
import subprocess
import sys

import takt

DATA = takt.ROOT / "test" / "data"
STEPS = 5

# File, options, cluster, options of the plan.
PLANNED = [
    ("pipedream/alexnet.txt", ("pipedream", "--samples=128"), "a100-8", ()),
    ("dapple/amoeba-6-pbs-8-simplified.txt", ("dapple",), "a100-8", ()),
    ("dnn-partitioning/LayerGraphs/bert24_inference.json", (), "a100-8", ()),
    ("dnn-partitioning/LayerGraphs/bert24_training.json", (), "a100-8", ()),
    ("piper/gnmt.json", ("--time-unit=ms", "--micro-batches=8"), "a100-8", ()),
    ("alpa/plans_gpt_moe.json", ("--plan=350M", "--micro-batches=8"),
     "h100-8", ("--replicas=1",)),
    ("alpa/plans_gpt_moe.json", ("--plan=1.3B", "--micro-batches=8"),
     "h100-8", ()),
    ("huggingface/mixtral-8x7b.json",
     ("--flops=200TFLOP/s", "--positions=4096"), "h200-8x32", ()),
    ("huggingface/deepseek-v2.json",
     ("--flops=200TFLOP/s", "--positions=1024"), "h200-8x32", ()),
    ("huggingface/qwen3-8b.json", ("--flops=200TFLOP/s", "--positions=1024"),
     "h200-8", ()),
]
TRAINED = ["gpt2-tiny", "llama-tiny", "qwen2-tiny"]


def imported(folder, file, options):
    *named, source = [o for o in options if not o.startswith("-")] + [file]
    model = folder / (re.sub(r"\W", "_", file + "_".join(options)) + ".yaml")
    takt.run("taktc", "import", *named, DATA / source, "-o", model,
             *[o for o in options if o.startswith("-")])
    return model


def plan_all(folder):
    for file, options, cluster, more in PLANNED:
        model = imported(folder, file, options)
        plan = takt.compile_plan(folder, model.stem, model, cluster, *more)
        takt.run("takt-plan", "check", plan)
        done = takt.run("takt-plan", "simulate", plan, "--format=json")
        report = json.loads(done.stdout)
        print(f"{file}: a step of {report['step_time_ns'] / 1e6:.3f} ms")


def python_with_torch():
    """The interpreter that has PyTorch, or None."""
    named = os.environ.get("TAKT_TORCH_PYTHON")
    for python in filter(None, (named, "/usr/bin/python3", sys.executable)):
        try:
            found = subprocess.run([python, "-c", "import torch, numpy, yaml"],
                                   capture_output=True).returncode == 0
        except OSError:
            continue
        if found:
            return python
    return None


def train_all(folder, python):
    for name in TRAINED:
        model = imported(folder, f"huggingface/{name}.json",
                         ("--data=text", "--positions=24", "--samples=4",
                          "--micro-batches=2"))
        plan = takt.compile_plan(folder, name, model,
                                 takt.INPUTS / "host-8.yaml", "--stages=2",
                                 "--replicas=1")
        one = takt.compile_plan(folder, name + "-one", model,
                                takt.INPUTS / "host-8.yaml", "--stages=1",
                                "--replicas=1")
        weights, gradients = folder / "weights", folder / "gradients"
        takt.run("takt-run", plan, "--threads", "--data", takt.TEXT, "--steps",
                 0, "--quiet", "--save-weights", weights)
        losses = takt.train(plan, STEPS, "--load-weights", weights,
                            "--dump-gradients", gradients)
        if losses != takt.train(one, STEPS):
            sys.exit(f"{name}: two stages lose otherwise than one")
        print(f"{name}: {losses}")
        if not python:
            continue
        done = subprocess.run([
            python, takt.ROOT / "test/integration/torch_reference.py",
            "--model", model, "--weights", weights, "--data", takt.TEXT,
            "--losses", plan.with_suffix(".losses"), "--gradients", gradients])
        if done.returncode != 0:
            sys.exit(f"{name}: not as PyTorch has it")


def main():
    with takt.temporary_folder() as name:
        folder = takt.pathlib.Path(name)
        plan_all(folder)
        python = python_with_torch()
        train_all(folder, python)
        if not python:
            print("SKIP: all but the comparison passed; no Python here has "
                  "torch, numpy and yaml (TAKT_TORCH_PYTHON names one)")
            sys.exit(takt.SKIP)


main()
