#!/usr/bin/env python3
"""Inference: k stages give the outputs of one stage bit for bit, on threads and
on processes, and the losses of training's forward on the same weights; a text is
gone through once; the simulator's period is the objective."""
import json
import pathlib
import random
import struct
import sys

import graph_losses
import takt

CLUSTER = takt.INPUTS / "host-8.yaml"
MODELS = 6
STEPS = 3

TAIL = """mode: inference
inference:
  global_batch: 16
  micro_batches: 4
data: {kind: text}
"""

CHAIN = """schema_version: 1
mode: inference
inference: {{global_batch: {batch}, micro_batches: 64}}
data: {{kind: synthetic}}
model:
  name: chain
  inputs: {{x: {{shape: [64]}}}}
  layers:
"""

DEVICES = """schema_version: 1
cluster:
  name: alone
  devices:
    core: {{flops: 20 GFLOP/s, memory_bandwidth: 8 TB/s, memory: 1 GiB,
           kernel_overhead: 2 us}}
  nodes:
    - {{count: 1, device: core, devices: 4, link: wire}}
  links:
    wire: {{latency: {latency} us, bandwidth: {bandwidth} MB/s}}
"""


def infer(plan, *options, steps=STEPS):
    """Losses as exact floats, and the file of outputs as bytes."""
    losses, outputs = plan.with_suffix(".losses"), plan.with_suffix(".outputs")
    run = takt.run("takt-run", plan, *options, "--quiet", "--steps", steps,
                   "--log-losses", losses, "--outputs", outputs,
                   "--timeout", 120)
    exact = [float.fromhex(line.split()[1]) for line in losses.open()]
    return exact, outputs.read_bytes(), run


def shape_of(outputs):
    """Name and shape of the one tensor of a safetensors file, whose size must
    be right."""
    length = struct.unpack("<Q", outputs[:8])[0]
    header = json.loads(outputs[8:8 + length])
    header.pop("__metadata__")
    (name, tensor), = header.items()
    size = 4
    for extent in tensor["shape"]:
        size *= extent
    if tensor["data_offsets"] != [0, size] or len(outputs) != 8 + length + size:
        sys.exit(f"outputs of {len(outputs)} bytes with the header {header}")
    return name, tensor["shape"]


def data_of(outputs):
    return outputs[8 + struct.unpack("<Q", outputs[:8])[0]:]


def write(folder, name, text):
    path = pathlib.Path(folder) / name
    path.write_text(text)
    return path


def random_models(folder):
    """Every layer of a random model with skips on a random stage."""
    for seed in range(MODELS):
        draw = random.Random(1000 + seed)
        model = graph_losses.RandomModel(draw)
        trains = model.text()
        text = trains.replace(graph_losses.TAIL, TAIL)
        one = write(folder, f"i{seed}.yaml", text)
        data = ("--data", takt.TEXT)
        expected = {}
        for replicas in (2, 1):
            plan = takt.compile_plan(folder, f"i{seed}", one, CLUSTER,
                                     "--stages=1", f"--replicas={replicas}")
            expected[replicas] = infer(plan, "--threads", *data)[:2]
        # Replicas add parts of a loss in another order, and that is all.
        if expected[1][1] != expected[2][1]:
            sys.exit(f"model {seed}: replicas give other outputs")
        if shape_of(expected[1][1]) != ("head", [16 * STEPS, 8, 256]):
            sys.exit(f"outputs {shape_of(expected[1][1])}")
        # The same samples, which training draws from a text at random.
        first, _, _ = infer(plan, "--threads", "--synthetic", steps=1)
        training = takt.compile_plan(
            folder, f"t{seed}", write(folder, f"t{seed}.yaml", trains), CLUSTER,
            "--stages=1", "--replicas=1")
        log = training.with_suffix(".losses")
        takt.run("takt-run", training, "--threads", "--synthetic", "--steps", 1,
                 "--quiet", "--log-losses", log)
        if first[0] != float.fromhex(log.read_text().split()[1]):
            sys.exit(f"model {seed}: {first} is not training's first loss, "
                     f"{log.read_text()}")
        for stages in (2, 3, 4):
            pins = model.pins(stages)
            cut = write(folder, f"i{seed}x{stages}.yaml",
                        model.text(pins).replace(graph_losses.TAIL, TAIL))
            replicas = draw.choice([1, 2])
            plan = takt.compile_plan(folder, f"i{seed}x{stages}", cut, CLUSTER,
                                     "--assign=graph", f"--replicas={replicas}",
                                     f"--stages={stages}")
            takt.run("takt-plan", "check", plan)
            ways = [("--threads",)]
            if stages == 2:
                ways.append(("-n", stages * replicas))
            for way in ways:
                if infer(plan, *way, *data)[:2] != expected[replicas]:
                    sys.exit(f"model {seed}, {stages} stages of {replicas}, "
                             f"{way}: another result than one stage:\n"
                             f"{cut.read_text()}")
    print(f"{MODELS} random models in 2, 3 and 4 stages, on threads and on "
          f"processes: outputs and losses of one stage bit for bit, and the "
          f"first loss of training")


def unet(folder):
    """Assigned as a graph, with a bound of the period."""
    head, _ = graph_losses.UNET.read_text().split("training:\n")
    model = write(folder, "unet.yaml", head + TAIL)
    expected = None
    for stages in (1, 2, 3, 4):
        plan = pathlib.Path(folder) / f"unet{stages}.plan"
        report = json.loads(takt.run(
            "taktc", model, CLUSTER, "-o", plan, "--format=json",
            f"--stages={stages}", "--replicas=1").stdout)
        if not report["proof"].startswith("proved") or \
                len(report["stages"]) != stages or \
                not 0 < report["bound_ns"] <= report["objective_ns"]:
            sys.exit(f"U-Net in {stages} stages: {report}")
        result = infer(plan, "--threads", "--data", takt.TEXT)[:2]
        expected = expected or result
        if result != expected:
            sys.exit(f"U-Net in {stages} stages: another result than in one")
    print("U-Net in 1 to 4 stages: bounds of the period, and the same bits")


def checkpoint(folder):
    """Inference with the weights of a checkpoint."""
    model = graph_losses.RandomModel(random.Random(7))
    training = takt.compile_plan(folder, "c", write(folder, "c.yaml",
                                                    model.text()),
                                 CLUSTER, "--stages=2", "--replicas=1")
    saved = pathlib.Path(folder) / "saved"
    weights = pathlib.Path(folder) / "weights.safetensors"
    takt.train(training, 5, "--checkpoint", saved, "--save-weights", weights)
    plan = takt.compile_plan(
        folder, "ci",
        write(folder, "ci.yaml", model.text().replace(graph_losses.TAIL, TAIL)),
        CLUSTER, "--stages=3", "--replicas=1")
    data = ("--data", takt.TEXT)
    drawn = infer(plan, "--threads", *data)[:2]
    loaded = infer(plan, "--threads", *data, "--load-weights", saved)[:2]
    if loaded != infer(plan, "--threads", *data, "--load-weights",
                       weights)[:2] or loaded == drawn:
        sys.exit("a checkpoint's weights do not give what a file of them gives")
    if infer(plan, "-n", 3, *data, "--load-weights", saved)[:2] != loaded:
        sys.exit("processes load another checkpoint")
    log = training.with_suffix(".losses")
    takt.run("takt-run", training, "--threads", "--synthetic", "--steps", 1,
             "--quiet", "--load-weights", saved, "--log-losses", log)
    if infer(plan, "--threads", "--synthetic", "--load-weights", saved,
             steps=1)[0][0] != float.fromhex(log.read_text().split()[1]):
        sys.exit("with a checkpoint the loss is not that of training")
    print("a checkpoint's weights, on threads and on processes")


def without_loss(folder):
    """The same outputs where the model ends in them; a text is gone through
    once, in order."""
    model = graph_losses.RandomModel(random.Random(11))
    text = model.text().replace(graph_losses.TAIL, TAIL)
    plain = "".join(
        line for line in text.splitlines(keepends=True)
        if "cross_entropy" not in line and "targets: {" not in line)
    book = pathlib.Path(folder) / "book.txt"
    book.write_bytes(takt.TEXT.read_bytes()[:8 * 16 * 2 + 8 * 5])
    runs = []
    for name, content in (("with", text), ("without", plain)):
        plan = takt.compile_plan(folder, name, write(folder, f"{name}.yaml",
                                                     content),
                                 CLUSTER, "--stages=2", "--replicas=2")
        outputs = plan.with_suffix(".outputs")
        run = takt.run("takt-run", plan, "--threads", "--data", book,
                       "--outputs", outputs, "--format=json")
        report = json.loads(run.stdout)
        if report["samples"] != 32 or "of 37" not in run.stderr and \
                "of 36" not in run.stderr:
            sys.exit(f"{name}: {report['samples']} samples, {run.stderr}")
        if (report["mean_loss"] is None) != (name == "without"):
            sys.exit(f"{name}: a loss of {report['mean_loss']}")
        runs.append(outputs.read_bytes())
        if shape_of(runs[-1]) != ("head", [32, 8, 256]):
            sys.exit(f"{name}: outputs {shape_of(runs[-1])}")
    if data_of(runs[0]) != data_of(runs[1]):
        sys.exit("a model without its loss gives other outputs")
    # Windows in order: the second half alone gives the second half.
    late = pathlib.Path(folder) / "late.txt"
    late.write_bytes(book.read_bytes()[8 * 16:])
    plan = pathlib.Path(folder) / "without.plan"
    outputs = plan.with_suffix(".late")
    run = takt.run("takt-run", plan, "--threads", "--data", late, "--steps", 9,
                   "--outputs", outputs, "--quiet")
    half = data_of(outputs.read_bytes())
    if half != data_of(runs[1])[len(half):]:
        sys.exit("the end of a text does not give the end of its outputs")
    print("a model without its loss; a text in order, and its end")


def periods(folder):
    """What the simulator finds of 64 micro-batches is what was promised."""
    by_link = 0
    for seed in range(20):
        draw = random.Random(seed)
        layers = ""
        for i in range(draw.randint(4, 10)):
            source = ", input: x" if i == 0 else ""
            layers += draw.choice(
                [f"    - linear: {{name: l{i}, out: {draw.choice([32, 64, 256])}"
                 f"{source}}}\n", f"    - relu: {{name: l{i}{source}}}\n"])
        batch = 64 * draw.choice([4, 8])
        model = write(folder, f"p{seed}.yaml",
                      CHAIN.format(batch=batch) + layers)
        cluster = write(folder, f"k{seed}.yaml", DEVICES.format(
            latency=draw.choice([1, 20]), bandwidth=draw.choice([20, 4000])))
        stages = draw.randint(1, 3)
        report = json.loads(takt.run(
            "taktc", model, cluster, f"--stages={stages}", "--format=json",
            "-o", pathlib.Path(folder) / f"p{seed}.plan").stdout)
        if report["period_ns"] != report["objective_ns"] or \
                report["bound_ns"] != report["objective_ns"]:
            sys.exit(f"chain {seed}: period {report['period_ns']}, objective "
                     f"{report['objective_ns']}, bound {report['bound_ns']}")
        steps = report["latency_ns"] + 63 * report["period_ns"]
        if report["step_time_ns"] != steps:
            sys.exit(f"chain {seed}: a step of {report['step_time_ns']} ns, "
                     f"expected {steps}")
        by_link += report["period_ns"] > max(s["forward_ns"]
                                             for s in report["stages"])
    if by_link < 1:
        sys.exit("no chain is held up by a link")
    print(f"20 chains: the simulator's period is the objective, of {by_link} "
          f"that of a link")


def main():
    with takt.temporary_folder() as folder:
        periods(folder)
        random_models(folder)
        unet(folder)
        checkpoint(folder)
        without_loss(folder)


if __name__ == "__main__":
    main()
