#!/usr/bin/env python3
"""Trains with PyTorch's own pipelining runtime from a schedule file.

Ranks are processes joined by gloo on this machine. Needs PyTorch 2.6 or later;
takes the arguments of torch_csv_reference.py.

Exit codes: 0 equal, 1 different, 77 PyTorch or its runtime is not here.
"""
import argparse
import os
import sys

import torch_csv_reference as interpreter
import torch_reference as reference
from torch_reference import F, torch, yaml

try:
    import torch.distributed as dist
    import torch.multiprocessing as processes
    from torch.distributed.pipelining import PipelineStage
    from torch.distributed.pipelining import schedules
except ImportError as missing:
    print(f"SKIP: {missing} (PyTorch 2.6 or later)")
    sys.exit(77)


class StageModule(torch.nn.Module):
    """The units of one stage; the loss is the runtime's, not the stage's."""

    def __init__(self, spec, units, params, names):
        super().__init__()
        self.units = [u for u in units if "cross_entropy" not in u[0]]
        own = {name: torch.nn.Parameter(params[name]) for name in names}
        for name, parameter in own.items():
            self.register_parameter(name.replace(".", "/"), parameter)
        self.named = own
        self.model = reference.Model(spec, own)

    def forward(self, x):
        inputs = {"tokens": x}
        for item, scope in self.units:
            x = self.model.item(item, x, inputs, scope)
        return x


def loss_of(output, target):
    return F.cross_entropy(output.reshape(-1, output.shape[-1]),
                           target.reshape(-1))


def add_up_ties(modules, params):
    """Gradients of parameters that several ranks hold, added on all of them."""
    own = {name: p for module in modules for name, p in module.named.items()}
    for name in sorted(params):
        holds = torch.tensor(int(name in own))
        dist.all_reduce(holds)
        if holds.item() < 2:
            continue
        grad = own[name].grad if name in own else torch.zeros_like(params[name])
        dist.all_reduce(grad)


def work(rank, world, store, args, results):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank,
                            world_size=world)
    document = yaml.safe_load(open(args.model))
    training = document["training"]
    params = reference.read_safetensors(args.weights)
    count = int(training["micro_batches"])
    rows = interpreter.read_rows(args.csv)
    cut = interpreter.cut(document, args.cut.split(","))
    own = sorted({stage for stage, kind, _ in rows[rank] if kind == "F"})
    modules = [StageModule(document["model"], cut[s], params,
                           interpreter.parameter_names(cut[s], params))
               for s in own]
    device = torch.device("cpu")
    stages = [PipelineStage(module, s, len(cut), device)
              for module, s in zip(modules, own)]
    schedule = schedules._PipelineScheduleRuntime(stages, count,
                                                  loss_fn=loss_of)
    if not any(kind.startswith("SEND") for row in rows for _, kind, _ in row):
        schedule._load_csv(args.csv, "compute_only")
    elif hasattr(schedules._ComputationType, "WAIT_SEND_F"):
        schedule._load_csv(args.csv.replace(".csv", ".waits.csv"),
                           "compute_comms")
    else:
        schedule._load_csv(args.csv, "compute_comms")

    text = open(args.data, "rb").read()
    length = int(document["model"]["inputs"]["tokens"]["shape"][0])
    optimizer = interpreter.make_optimizer(
        [p for module in modules for p in module.parameters()], training)
    steps = len(open(args.losses).readlines())
    means = []
    for step in range(steps):
        inputs = reference.text_batch(text, int(training["seed"]), step,
                                      int(training["global_batch"]), length)
        optimizer.zero_grad()
        losses = []
        tokens = [inputs["tokens"]] if 0 in own else []
        if len(cut) - 1 in own:
            schedule.step(*tokens, target=inputs["targets"], losses=losses)
            means.append(sum(float(loss.detach()) for loss in losses) / count)
        else:
            schedule.step(*tokens)
        add_up_ties(modules, params)
        for group in optimizer.param_groups:
            group["lr"] = reference.learning_rate(training, step)
        optimizer.step()
    if means:
        results.put(means)
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    for option in ("model", "weights", "data", "losses", "csv", "cut"):
        parser.add_argument("--" + option, required=True)
    args = parser.parse_args()
    store = args.csv + ".store"
    world = len(interpreter.read_rows(args.csv))
    context = processes.get_context("spawn")
    results = context.SimpleQueue()
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    processes.spawn(work, (world, store, args, results), nprocs=world)
    theirs = [float(line.split()[0]) for line in open(args.losses)]
    print(f"PyTorch {torch.__version__}, {world} processes: ", end="")
    sys.exit(interpreter.compare(results.get(), theirs))


if __name__ == "__main__":
    main()
