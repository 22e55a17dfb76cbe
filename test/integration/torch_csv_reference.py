#!/usr/bin/env python3
"""Runs a schedule file in PyTorch and compares with what takt-run did.

An interpreter of its own for PyTorch's pipelining CSV: stages are modules in one
process, ranks are rows that advance in turn, a transfer is a hand-over through
a channel. It knows nothing of Takt but the file, the cut, the initial weights
and the losses.

Exit codes: 0 equal, 1 different, 77 PyTorch is not here.
"""
import argparse
import collections
import csv
import re
import sys

import torch_reference as reference
from torch_reference import torch, yaml

ACTION = re.compile(r"(\d+)(SEND_F|RECV_F|SEND_B|RECV_B|F|I|W|B)(\d+)")


def units(items, scope=""):
    """Items of the model that no cut divides, with their scope, unrolled."""
    for item in items:
        (kind, body), = item.items()
        if kind == "repeat":
            for i in range(int(body["count"])):
                yield from units(body["layers"], f"{scope}{body['name']}.{i}.")
        else:
            yield item, scope


def first_layer(item, scope):
    (kind, body), = item.items()
    if kind != "residual":
        return scope + body["name"]
    if "name" in body:
        scope += body["name"] + "."
    return first_layer(body["layers"][0], scope)


def cut(document, first_layers):
    """Units of each stage; a stage begins with the layer of that name."""
    stages = []
    for item, scope in units(document["model"]["layers"]):
        if first_layer(item, scope) in first_layers:
            stages.append([])
        stages[-1].append((item, scope))
    assert len(stages) == len(first_layers), (len(stages), first_layers)
    return stages


def parameter_names(stage, names):
    """Parameters that the units of a stage use."""
    used = set()

    def visit(item, scope):
        (kind, body), = item.items()
        inner = scope + (body["name"] + "." if "name" in body else "")
        if kind == "residual":
            for child in body["layers"]:
                visit(child, inner)
            return
        used.update(n for n in names if n.startswith(inner))
        if "tied" in body:
            used.add(body["tied"] + ".weight")

    for item, scope in stage:
        visit(item, scope)
    return sorted(used)


class Pipeline:
    def __init__(self, rows, stages, model, names, micro_batches):
        self.rows, self.stages, self.model = rows, stages, model
        self.names = [parameter_names(s, names) for s in stages]
        self.micro_batches = micro_batches
        self.rank = {}
        for r, row in enumerate(rows):
            for stage, kind, _ in row:
                if kind == "F":
                    self.rank[stage] = r
        self.with_transfers = any(kind.startswith(("SEND", "RECV"))
                                  for row in rows for _, kind, _ in row)
        self.last = len(stages) - 1

    def run(self, batches):
        """One step: the loss, with gradients left in the parameters."""
        self.batches, self.loss = batches, [None] * self.micro_batches
        self.channel = collections.defaultdict(collections.deque)
        self.inbox, self.kept, self.grad = {}, {}, {}
        heads = [0] * len(self.rows)
        while any(h < len(row) for h, row in zip(heads, self.rows)):
            moved = False
            for r, row in enumerate(self.rows):
                if heads[r] < len(row) and self.try_action(*row[heads[r]]):
                    heads[r] += 1
                    moved = True
            if not moved:
                stuck = [row[h] for h, row in zip(heads, self.rows)
                         if h < len(row)]
                raise SystemExit(f"the schedule is stuck at {stuck}")
        left = [key for key, queue in self.channel.items() if queue]
        if left or self.inbox:
            raise SystemExit(f"messages are left over: {left} {self.inbox}")
        return sum(self.loss)

    def deliver(self, value, kind, stage, neighbour, m):
        """To a stage of the same rank at once, else by its transfers."""
        if not 0 <= neighbour <= self.last:
            return
        if self.with_transfers and self.rank[stage] != self.rank[neighbour]:
            self.kept[stage, "out", kind, m] = value
        else:
            self.inbox[neighbour, kind, m] = value

    def try_action(self, stage, kind, m):
        if kind in ("SEND_F", "SEND_B"):
            what = kind[-1]
            to = stage + 1 if what == "F" else stage - 1
            value = self.kept.pop((stage, "out", what, m))
            self.channel[stage, to].append((m, value))
            return True
        if kind in ("RECV_F", "RECV_B"):
            what = kind[-1]
            source = stage - 1 if what == "F" else stage + 1
            queue = self.channel[source, stage]
            if not queue:
                return False
            got, value = queue.popleft()
            if got != m:
                raise SystemExit(f"{stage}{kind}{m} got micro-batch {got}")
            self.inbox[stage, what, m] = value
            return True
        if kind == "F":
            return self.forward(stage, m)
        if kind == "W":
            self.weight_grads(stage, m)
            return True
        return self.backward(stage, m, whole=kind == "B")

    def forward(self, stage, m):
        if stage > 0 and (stage, "F", m) not in self.inbox:
            return False
        x = None
        if stage > 0:
            x = self.inbox.pop((stage, "F", m)).detach().requires_grad_()
        y = x
        for item, scope in self.stages[stage]:
            y = self.model.item(item, y, self.batches[m], scope)
        if stage == self.last:
            y = y / self.micro_batches
            self.loss[m] = y.item()
        self.kept[stage, m] = (x, y)
        self.deliver(y.detach(), "F", stage, stage + 1, m)
        return True

    def backward(self, stage, m, whole):
        if stage < self.last and (stage, "B", m) not in self.inbox:
            return False
        dy = None
        if stage < self.last:
            dy = self.inbox.pop((stage, "B", m))
        x, y = self.kept[stage, m]
        if whole:
            y.backward(dy)
            dx = None if x is None else x.grad
            del self.kept[stage, m]
        else:
            self.grad[stage, m] = dy
            dx = None
            if x is not None:
                dx, = torch.autograd.grad(y, x, dy, retain_graph=True)
        if dx is not None:
            self.deliver(dx, "B", stage, stage - 1, m)
        return True

    def weight_grads(self, stage, m):
        _, y = self.kept.pop((stage, m))
        params = [self.model.params[n] for n in self.names[stage]]
        for p, g in zip(params, torch.autograd.grad(
                y, params, self.grad.pop((stage, m)))):
            p.grad = g if p.grad is None else p.grad + g


def read_rows(path):
    rows = []
    for row in csv.reader(open(path)):
        actions = []
        for cell in row:
            if cell:
                stage, kind, m = ACTION.fullmatch(cell).groups()
                actions.append((int(stage), kind, int(m)))
        rows.append(actions)
    return rows


def make_optimizer(params, training):
    settings = training["optimizer"]
    return torch.optim.AdamW(
        params, betas=tuple(float(b) for b in settings["betas"]),
        eps=float(settings["epsilon"]),
        weight_decay=float(settings["weight_decay"]))


def micro_batches(inputs, count):
    parts = {name: t.chunk(count) for name, t in inputs.items()}
    return [{name: part[m] for name, part in parts.items()}
            for m in range(count)]


def compare(losses, theirs):
    """Largest relative difference; exits with 1 beyond 1e-5."""
    worst = max(abs(a - b) / abs(b) for a, b in zip(theirs, losses))
    print(f"losses of {len(losses)} steps: largest relative difference "
          f"{worst:.3g}")
    return 0 if worst <= 1e-5 else 1


def main():
    parser = argparse.ArgumentParser()
    for option in ("model", "weights", "data", "losses", "csv", "cut"):
        parser.add_argument("--" + option, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    document = yaml.safe_load(open(args.model))
    training = document["training"]
    params = {name: tensor.requires_grad_() for name, tensor
              in reference.read_safetensors(args.weights).items()}
    model = reference.Model(document["model"], params)
    pipeline = Pipeline(read_rows(args.csv), cut(document, args.cut.split(",")),
                        model, params, int(training["micro_batches"]))
    text = open(args.data, "rb").read()
    length = int(document["model"]["inputs"]["tokens"]["shape"][0])
    optimizer = make_optimizer(params.values(), training)
    theirs = [float(line.split()[0]) for line in open(args.losses)]
    losses = []
    for step in range(len(theirs)):
        inputs = reference.text_batch(text, int(training["seed"]), step,
                                      int(training["global_batch"]), length)
        optimizer.zero_grad()
        losses.append(pipeline.run(micro_batches(inputs,
                                                 pipeline.micro_batches)))
        for group in optimizer.param_groups:
            group["lr"] = reference.learning_rate(training, step)
        optimizer.step()
    sys.exit(compare(losses, theirs))


if __name__ == "__main__":
    main()
