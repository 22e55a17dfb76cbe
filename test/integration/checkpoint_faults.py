#!/usr/bin/env python3
"""Whatever ends a run or fails a write, the last whole checkpoint can be loaded and
training goes on from it as if nothing had happened.

Arguments: how often to kill (default: 10).
"""
import json
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import time

import takt


def require(condition, *what):
    if not condition:
        sys.exit(" ".join(map(str, what)))


def start(plan, folder, steps, *options):
    return subprocess.Popen(
        [takt.BIN / "takt-run", plan, "--data", takt.TEXT, "--steps",
         str(steps), "-q", "--checkpoint", folder, "--resume", folder,
         "--checkpoint-every", "1", "--keep", "2", "--log-losses", "-",
         *map(str, options)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def newest(folder):
    """The step of the newest checkpoint; every one that has the name of one must
    be whole."""
    found = json.loads(takt.run("takt-plan", "explain", "checkpoint", folder,
                                "--format=json").stdout)
    require(not found["passed_over"], found["passed_over"])
    return found["step"]


def has_checkpoints(folder):
    return any(pathlib.Path(folder).glob("step-*"))


def loss_of(line):
    return float.fromhex(line.split()[1])


def kill_while_writing(folder, plan, times):
    """Kills at random moments; each start goes on where the last one got to."""
    moments = random.Random(times)
    saved = f"{folder}/killed"
    last = 0
    writing = 0
    for _ in range(times):
        run = start(plan, saved, 1_000_000)
        for _ in range(moments.randint(1, 12)):
            require(run.stdout.readline(), "ended:", run.poll())
        time.sleep(moments.uniform(0, 0.004))
        run.kill()
        run.communicate()
        require(run.returncode == -signal.SIGKILL, run.returncode)
        writing += any(pathlib.Path(saved).glob(".step-*.tmp"))
        if has_checkpoints(saved):
            step = newest(saved)
            require(step >= last, "step", step, "after step", last)
            last = step
    end = last + 5
    run = start(plan, saved, end)
    said = run.communicate()
    require(run.returncode == 0, said)
    require(not any(pathlib.Path(saved).glob(".step-*.tmp")), "left overs")
    require(newest(saved) == end, newest(saved), "is not", end)
    whole = takt.train(plan, end)
    rest = [loss_of(line) for line in said[0].splitlines()]
    require(rest == whole[-len(rest):], "the last losses differ")
    print(f"{times} kills, {writing} with a checkpoint half written: step {end} "
          "reached with the losses of a run that was never interrupted")


def limit_files(run, size):
    _, most = resource.prlimit(run.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(run.pid, resource.RLIMIT_FSIZE, (size, most))


def writes_that_fail(folder, plan):
    """A write that fails is said, training goes on, and a later one is whole."""
    saved = f"{folder}/failing"
    run = start(plan, saved, 1_000_000)
    for _ in range(5):
        require(run.stdout.readline(), "ended")
    limit_files(run, 1000)
    warning = run.stderr.readline()
    require("warning: no checkpoint of step" in warning and
            "File too large" in warning, warning)
    good = newest(saved)
    limit_files(run, resource.RLIM_INFINITY)
    for _ in range(20):
        require(run.stdout.readline(), "ended")
    run.send_signal(signal.SIGTERM)
    _, said = run.communicate()
    require(run.returncode == 0, said)
    require(newest(saved) > good, "nothing was saved after the fault")

    # Until the end: the run fails, as its last state is nowhere.
    run = start(plan, saved, 1_000_000)
    require(run.stdout.readline(), "ended")
    limit_files(run, 1000)
    require("no checkpoint of step" in run.stderr.readline(), "no warning")
    good = newest(saved)
    run.send_signal(signal.SIGTERM)
    _, said = run.communicate()
    require(run.returncode == 1 and "the last checkpoint could not be written"
            in said and f"step-{good:08}" in said, run.returncode, said)
    require(newest(saved) == good, "the last whole one is gone")
    print("failed writes: said, the last whole checkpoint stays, training goes on")


def full_disk(folder, plan):
    """The same on a file system that is full, where one may be mounted."""
    disk = pathlib.Path(folder) / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1400k", "takt-test", disk],
            capture_output=True).returncode != 0:
        print("full disk: skipped, as no file system may be mounted here")
        return
    try:
        # Two checkpoints of 560 KiB fit, and the third, without which none is
        # removed, does not.
        run = start(plan, disk / "saved", 6)
        losses, said = run.communicate()
        require(run.returncode == 1 and "No space left on device" in said, said)
        require(len(losses.splitlines()) == 6, losses)
        require(newest(disk / "saved") == 2, newest(disk / "saved"))
        (disk / "saved/step-00000001/checkpoint.json").unlink()
        for file in (disk / "saved/step-00000001").iterdir():
            file.unlink()
        (disk / "saved/step-00000001").rmdir()
        run = start(plan, disk / "saved", 3)
        _, said = run.communicate()
        require(run.returncode == 0 and newest(disk / "saved") == 3, said)
    finally:
        subprocess.run(["umount", disk], check=True)
    print("full disk: said, the last whole checkpoint stays, room is used again")


def main():
    with takt.temporary_folder() as folder:
        plan = takt.compile_plan(folder, "job", takt.INPUTS / "gpt-tiny.yaml",
                                 takt.INPUTS / "host-8.yaml", "--stages=2",
                                 "--replicas=1")
        kill_while_writing(folder, plan,
                           int(sys.argv[1]) if len(sys.argv) > 1 else 10)
        writes_that_fail(folder, plan)
        full_disk(folder, plan)


if __name__ == "__main__":
    main()
