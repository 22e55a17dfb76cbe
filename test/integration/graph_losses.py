#!/usr/bin/env python3
"""Models with skip connections, cut where several values cross: random ones with
every layer pinned to a random stage train to the bits of one stage, and the
assignment of a larger one is proven, stated with its bound, and trains the same
for every number of stages, schedule and replicas."""
import json
import pathlib
import random
import sys

import takt

CLUSTER = takt.INPUTS / "host-8.yaml"
UNET = takt.INPUTS / "unet-tiny.yaml"
STEPS = 20
MODELS = 12
WIDTH = 8

HEAD = """schema_version: 1
model:
  name: random
  inputs:
    tokens: {dtype: int32, shape: [8], classes: 256}
    targets: {dtype: int32, shape: [8], classes: 256}
  layers:
"""
TAIL = """training:
  global_batch: 16
  micro_batches: 4
  optimizer: {kind: adamw, learning_rate: 3e-3}
data: {kind: text}
"""


class RandomModel:
    """Layers with the layers that they read: `lines` of YAML, `reads` by name.
    Values are read near and far, some by three layers and more."""

    def __init__(self, draw):
        self.draw, self.lines, self.reads = draw, [], {}
        tok = self.add("embedding", "tok", [], f"input: tokens, vocab: 256, "
                                               f"width: {WIDTH}")
        values, unread = [tok], [tok]
        for i in range(draw.randint(6, 12)):
            def take():
                value = draw.choice(unread if unread and draw.random() < 0.6
                                    else values)
                if value in unread:
                    unread.remove(value)
                return value
            kind = draw.choice(["linear", "linear", "layer_norm", "gelu", "add",
                                "add"])
            if kind == "add":
                value = self.sum(f"n{i}", take(), take())
            else:
                source = take()
                out = f", out: {WIDTH}" if kind == "linear" else ""
                value = self.add(kind, f"n{i}", [source],
                                 f"input: {source}{out}")
            values.append(value)
            unread.append(value)
        last = unread.pop()
        for i, value in enumerate(unread):
            last = self.sum(f"join{i}", last, value)
        last = self.add("linear", "head", [last], f"input: {last}, out: 256")
        self.add("cross_entropy", "loss", [last],
                 f"input: {last}, target: targets")

    def add(self, kind, name, reads, body):
        self.lines.append(f"    - {kind}: {{name: {name}, {body}}}\n")
        self.reads[name] = reads
        return name

    def sum(self, name, a, b):
        return self.add("add", name, [a, b], f"inputs: [{a}, {b}]")

    def must_follow(self):
        """Pairs that stages may not exchange: data, and the readers of one
        value where they are three or more."""
        pairs = [(r, name) for name, reads in self.reads.items() for r in reads]
        for value in self.reads:
            readers = [name for name, reads in self.reads.items()
                       for r in reads if r == value]
            if len(readers) > 2:
                pairs += [p for p in zip(readers, readers[1:]) if p[0] != p[1]]
        return pairs

    def pins(self, stages):
        """A random stage for every layer, none empty, none before what it
        reads."""
        names, pairs = list(self.reads), self.must_follow()
        while True:
            stage = {}
            for i, name in enumerate(names):
                low = max([stage[a] for a, b in pairs if b == name], default=0)
                # About where the layer stands, give or take a stage.
                near = i * stages // len(names) + self.draw.choice([-1, 0, 0, 1])
                stage[name] = min(stages - 1, max(low, near))
            if len(set(stage.values())) == stages:
                return stage

    def text(self, pins=None):
        placement = ""
        if pins:
            placement = "placement:\n  constraints:\n" + "".join(
                f"    - pin: {{layer: {name}, stage: {stage}}}\n"
                for name, stage in pins.items())
        return HEAD + "".join(self.lines) + TAIL + placement


def random_models(folder):
    reordered = several = 0
    for seed in range(MODELS):
        draw = random.Random(seed)
        model = RandomModel(draw)
        one = pathlib.Path(folder) / f"r{seed}.yaml"
        one.write_text(model.text())
        plan = takt.compile_plan(folder, f"r{seed}", one, CLUSTER, "--stages=1",
                                 "--replicas=1")
        expected = takt.train(plan, STEPS)
        for stages in (2, 3, 4):
            pins = model.pins(stages)
            cut = pathlib.Path(folder) / f"r{seed}x{stages}.yaml"
            cut.write_text(model.text(pins))
            schedule = draw.choice(["1f1b", "gpipe"])
            plan = takt.compile_plan(
                folder, f"r{seed}x{stages}", cut, CLUSTER, "--assign=graph",
                "--replicas=1", f"--stages={stages}", f"--schedule={schedule}")
            takt.run("takt-plan", "check", plan)
            text = takt.run("takt-plan", "dump", plan).stdout
            several += "act0_1" in text
            order = list(pins.values())
            reordered += order != sorted(order)
            if takt.train(plan, STEPS) != expected:
                sys.exit(f"model {seed}, {stages} stages, {schedule}: losses "
                         f"differ from one stage:\n{cut.read_text()}")
    # The draw must have what it is for.
    if several < MODELS or reordered < MODELS:
        sys.exit(f"only {several} plans send several values over their first "
                 f"cut, {reordered} change the order of the layers")
    print(f"{MODELS} random models in 2, 3 and 4 stages: {STEPS} losses equal "
          f"bit for bit; {several} with several values over the first cut, "
          f"{reordered} in another order than the model's")


def unet(folder):
    for replicas in (1, 2):
        expected = None
        for stages in (1, 2, 3, 4):
            for schedule in ("1f1b", "gpipe"):
                name = f"unet{stages}{schedule}x{replicas}"
                plan = pathlib.Path(folder) / f"{name}.plan"
                report = json.loads(takt.run(
                    "taktc", UNET, CLUSTER, "-o", plan, "--format=json",
                    f"--stages={stages}", f"--replicas={replicas}",
                    f"--schedule={schedule}").stdout)
                if not report["proof"].startswith("proved"):
                    sys.exit(f"{name}: {report['proof']}")
                if not 0 < report["bound_ns"] <= report["objective_ns"]:
                    sys.exit(f"{name}: bound {report['bound_ns']}, objective "
                             f"{report['objective_ns']}")
                if len(report["stages"]) != stages:
                    sys.exit(f"{name}: {len(report['stages'])} stages")
                losses = takt.train(plan, STEPS)
                expected = expected or losses
                if losses != expected:
                    sys.exit(f"{name}: losses differ")
    print(f"U-Net in 1 to 4 stages, two schedules, 1 and 2 replicas: {STEPS} "
          f"losses equal bit for bit")


def main():
    with takt.temporary_folder() as folder:
        random_models(folder)
        unet(folder)


if __name__ == "__main__":
    main()
