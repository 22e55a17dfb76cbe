#!/usr/bin/env python3
"""A rank that is killed or stopped ends the run with the right code, takt-plan
why-hang names it and where it stood, and the training goes on from its last
checkpoint as if nothing had happened.

Arguments: how many faults (default: 5).
"""
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

import takt

RANKS = 4


def require(condition, *what):
    if not condition:
        sys.exit(" ".join(map(str, what)))


def command(plan, folder, steps):
    return [str(takt.BIN / "takt-run"), str(plan), "--data", str(takt.TEXT),
            "-n", str(RANKS), "--steps", str(steps), "-q", "--record",
            f"{folder}/flights", "--checkpoint", f"{folder}/saved", "--resume",
            f"{folder}/saved", "--checkpoint-every", "1", "--keep", "2",
            "--timeout", "1.5", "--log-losses", "-"]


def why(folder):
    return json.loads(takt.run("takt-plan", "why-hang", folder,
                               "--format=json").stdout)


def pids(folder):
    """Of the ranks that run now, from their recordings."""
    return {rank["rank"]: rank["pid"] for rank in why(folder)["standing"]}


def spoil(plan, folder, text, moments, fault):
    """One run in which a rank suffers a fault; returns that rank."""
    run = subprocess.Popen(command(plan, folder, 1_000_000),
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True)
    for _ in range(moments.randint(1, 12)):
        require(run.stdout.readline(), "ended:", run.poll())
    victim = moments.randrange(RANKS)
    pid = pids(f"{folder}/flights")[victim]
    time.sleep(moments.uniform(0, 0.004))
    os.kill(pid, fault)
    _, said = run.communicate()
    report = why(f"{folder}/flights")
    named = [culprit["rank"] for culprit in report["culprits"]]
    require(named == [victim], signal.Signals(fault).name, "of rank", victim,
            "named", json.dumps(report, indent=1), said)
    culprit = report["culprits"][0]
    if culprit["line"] is None:
        require("before step" in culprit["text"], culprit)
    else:
        line = text[culprit["line"] - 1]
        require(line.endswith(f"# {culprit['action']}"), line, culprit)
    for waiting in report["waiting"]:
        require(waiting["chain"], waiting)
    require(run.returncode in ((13, 11, 12, 128 + fault)), run.returncode, said)
    return victim, culprit["action"], run.returncode


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    moments = random.Random(rounds)
    with takt.temporary_folder() as folder:
        plan = takt.compile_plan(folder, "job", takt.INPUTS / "gpt-tiny.yaml",
                                 takt.INPUTS / "host-8.yaml", "--stages=2",
                                 "--replicas=2")
        text = takt.run("takt-plan", "dump", plan).stdout.splitlines()
        codes = set()
        for number in range(rounds):
            fault = signal.SIGSTOP if number % 3 == 2 else signal.SIGKILL
            victim, action, code = spoil(plan, folder, text, moments, fault)
            codes.add(code)
            print(f"{signal.Signals(fault).name} of rank {victim}: named, at "
                  f"{action or 'the start of a step'}, code {code}", flush=True)
        saved = sorted(pathlib.Path(folder, "saved").glob("step-*"))
        last = int(re.search(r"\d+$", saved[-1].name).group()) if saved else 0
        done = subprocess.run(command(plan, folder, last + 7),
                              capture_output=True, text=True)
        require(done.returncode == 0, done.stderr)
        rest = [float.fromhex(line.split()[1])
                for line in done.stdout.splitlines()]
        whole = takt.train(plan, last + 7)
        require(len(rest) == 7 and rest == whole[-7:], rest, whole[-7:])
        require(why(f"{folder}/flights")["ended_in_order"], "no order")
        print(f"{rounds} faults, codes {sorted(codes)}: every rank named; step "
              f"{last + 7} reached with the losses of a run without faults")


if __name__ == "__main__":
    main()
