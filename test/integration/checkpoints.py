#!/usr/bin/env python3
"""Training that is interrupted goes on from its checkpoint: bit for bit on the same
plan and on other cuts, close by with other replicas; a signal saves and ends; other
tools read the weights; damage is named."""
import json
import pathlib
import shutil
import signal
import struct
import subprocess
import sys

import takt

STEPS = 40


def plan_of(folder, stages, replicas, *options, model="gpt-tiny.yaml"):
    return takt.compile_plan(folder, f"s{stages}r{replicas}-{len(options)}",
                             takt.INPUTS / model, takt.INPUTS / "host-8.yaml",
                             f"--stages={stages}", f"--replicas={replicas}",
                             *options)


def require(condition, *what):
    if not condition:
        sys.exit(" ".join(map(str, what)))


def steps_in(folder):
    return sorted(path.name for path in pathlib.Path(folder).glob("step-*"))


def weights_by_index(checkpoint):
    """Names and shapes as other tools find them: index, then headers."""
    index = json.load(open(checkpoint / "model.safetensors.index.json"))
    found, size = {}, 0
    for name, file in index["weight_map"].items():
        with open(checkpoint / file, "rb") as shard:
            (length,) = struct.unpack("<Q", shard.read(8))
            entry = json.loads(shard.read(length))[name]
        found[name] = entry["shape"]
        size += entry["data_offsets"][1] - entry["data_offsets"][0]
    require(size == index["metadata"]["total_size"], "total_size is", size)
    return found


def resume(folder, plan, start, losses):
    """Losses from a checkpoint of step 20 to the end."""
    rest = takt.train(plan, STEPS, "--resume", start)
    require(len(rest) == STEPS - 20, len(rest), "losses")
    return rest, takt.largest_relative(rest[:1], losses[20:21])


def other_layouts(folder):
    for stages, replicas, others in [
            (2, 1, [(1, 1), (4, 1), (2, 2)]),   # two stages to four
            (2, 2, [(2, 2), (1, 2), (2, 1), (2, 4), (4, 2)])]:  # 4 to 2 and 8
        plan = plan_of(folder, stages, replicas)
        saved = pathlib.Path(folder) / f"from-{stages}-{replicas}"
        losses = takt.train(plan, STEPS, "--checkpoint", saved,
                            "--checkpoint-every", 10)
        require(steps_in(saved) == [f"step-{n:08}" for n in (10, 20, 30, 40)],
                steps_in(saved))
        start = saved / "step-00000020"
        rest, _ = resume(folder, plan, start, losses)
        require(rest == losses[20:], "the same plan loses another way")
        print(f"{stages}x{replicas} to itself: {len(rest)} losses equal bit for bit")
        for to in others:
            rest, off = resume(folder, plan_of(folder, *to), start, losses)
            if to[1] == replicas:
                require(rest == losses[20:], to, "differs")
                said = "equal bit for bit"
            else:
                require(off <= 1e-6, to, "begins", off, "off")
                require(takt.largest_relative(rest, losses[20:]) < 1e-2, to)
                said = f"first within {off:.2g}"
            print(f"{stages}x{replicas} to {to[0]}x{to[1]}: {said}")


def signals(folder):
    plan = plan_of(folder, 2, 1)
    for number in (signal.SIGTERM, signal.SIGINT):
        saved = pathlib.Path(folder) / f"signal-{number}"
        run = subprocess.Popen(
            [takt.BIN / "takt-run", plan, "--data", takt.TEXT, "--steps",
             "1000000", "-q", "--checkpoint", saved, "--checkpoint-every",
             "1000000", "--log-losses", "-"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        losses = [run.stdout.readline() for _ in range(3)]
        run.send_signal(number)
        rest, said = run.communicate()
        require(run.returncode == 0, run.returncode, said)
        done = len(losses) + len(rest.splitlines())
        require(steps_in(saved) == [f"step-{done:08}"], steps_in(saved), done)
        # The same command line goes on, at the first start and after.
        more = takt.run("takt-run", plan, "--data", takt.TEXT, "--steps",
                        done + 2, "--checkpoint", saved, "--resume", saved,
                        "--log-losses", f"{saved}.losses").stdout
        require(f"going on from '{saved}/step-{done:08}'" in more, more)
        last = open(f"{saved}.losses").read().split()[-1]
        require(float.fromhex(last) == takt.train(plan, done + 2)[-1], "differs")
    fresh = takt.run("takt-run", plan, "--data", takt.TEXT, "--steps", 2,
                     "--checkpoint", f"{folder}/fresh", "--resume",
                     f"{folder}/fresh").stdout
    require("training begins at its first step" in fresh, fresh)
    print("signals: saved after the step under way, and went on from there")


def batches(folder):
    """Other micro-batches and another text go on, and are said aloud."""
    model = (takt.INPUTS / "gpt-tiny.yaml").read_text()
    other = pathlib.Path(folder) / "other.yaml"
    other.write_text(model.replace("global_batch: 16", "global_batch: 8"))
    plan = takt.compile_plan(folder, "half", other, takt.INPUTS / "host-8.yaml",
                             "--stages=1", "--replicas=1")
    said = takt.run("takt-run", plan, "--data", takt.ROOT / "LICENSE", "--steps",
                    23, "--resume", f"{folder}/from-2-1/step-00000020",
                    "--checkpoint", f"{folder}/half", "-q")
    for line in ("the global batch was 16 and is 8", "the data was a text"):
        require(line in said.stderr, said.stderr)
    found = json.loads(takt.run("takt-plan", "explain", "checkpoint",
                                f"{folder}/half", "--format=json").stdout)
    require(found["samples"] == 20 * 16 + 3 * 8, found["samples"])
    print("another batch: said, and the data goes on at its sample")


def reading(folder):
    plan = plan_of(folder, 2, 1)
    saved = pathlib.Path(folder) / "from-2-1"
    weights = weights_by_index(saved / "step-00000040")
    require(weights["tok.weight"] == [256, 32] and "h.0.fc.weight" in weights
            and not any("adam" in name for name in weights), weights)
    damaged = pathlib.Path(folder) / "damaged"
    shutil.copytree(saved, damaged)
    shard = damaged / "step-00000040" / "model-00002-of-00002.safetensors"
    content = bytearray(shard.read_bytes())
    content[-5] ^= 1
    shard.write_bytes(content)
    exact = takt.run("takt-run", plan, "--data", takt.TEXT, "--steps", 41, "-q",
                     "--resume", shard.parent, expect=1)
    require(f"'{shard}' is damaged" in exact.stderr, exact.stderr)
    newest = takt.run("takt-run", plan, "--data", takt.TEXT, "--steps", 31,
                      "--resume", damaged)
    require("is passed over" in newest.stderr and
            "step-00000030': step 30" in newest.stdout, newest.stderr)
    refused = takt.run("takt-run", plan, "--data", takt.TEXT, "--steps", 31,
                       "--checkpoint", damaged, expect=1)
    require("this run begins at step 0" in refused.stderr, refused.stderr)
    other = takt.compile_plan(
        folder, "mlp", takt.ROOT / "examples/mlp.yaml",
        takt.INPUTS / "host-8.yaml", "--stages=1", "--replicas=1")
    refused = takt.run("takt-run", other, "--steps", 50, "--resume", saved,
                       expect=1)
    require("does not fit" in refused.stderr and "it lacks '" in refused.stderr,
            refused.stderr)
    print("the index names every weight; damage and other models are named")


def main():
    with takt.temporary_folder() as folder:
        other_layouts(folder)
        signals(folder)
        batches(folder)
        reading(folder)


if __name__ == "__main__":
    main()
