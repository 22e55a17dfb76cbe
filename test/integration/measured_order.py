#!/usr/bin/env python3
"""Fifty runs whose ranks are stopped and let go on at random times do on every lane
what the plan says, in its order: calls and messages of families with one stage a
rank and with several, I and W apart and not."""
import collections
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import takt

MODEL = takt.INPUTS / "gpt-tiny.yaml"
CLUSTER = takt.INPUTS / "host-8.yaml"
RUNS = 50
FAMILIES = (("1f1b", 1, 3), ("gpipe", 1, 2), ("zb-h1", 1, 3), ("zb-v", 2, 2),
            ("interleaved-1f1b", 2, 2), ("v-min", 2, 3))


def lanes_of(trace, kind):
    """Names of the actions of every lane of a kind ('predicted', 'measured'), by
    rank and lane, in the order of their starts."""
    processes, lanes = {}, collections.defaultdict(list)
    events = json.loads(trace.read_text())["traceEvents"]
    for event in events:
        if event["name"] == "process_name" and \
                event["args"]["name"].startswith(kind):
            processes[event["pid"]] = event["args"]["name"].split()[2]
    names = {(event["pid"], event["tid"]): event["args"]["name"]
             for event in events if event["name"] == "thread_name"}
    for event in events:
        if event["ph"] == "X" and event["pid"] in processes:
            lane = names[event["pid"], event["tid"]]
            lanes[processes[event["pid"]], lane].append(
                (event["ts"], event["name"]))
    return {lane: [name for _, name in sorted(found, key=lambda e: e[0])]
            for lane, found in lanes.items()}


def disturb(run, rng):
    """Stops ranks for some milliseconds, one after the other, until the run ends;
    how often."""
    stops = 0
    children = pathlib.Path(f"/proc/{run.pid}/task/{run.pid}/children")
    while run.poll() is None:
        try:
            ranks = children.read_text().split()
        except OSError:
            ranks = []
        if not ranks:
            time.sleep(0.001)  # not started yet, or already ended
            continue
        rank = int(rng.choice(ranks))
        try:
            os.kill(rank, signal.SIGSTOP)
            time.sleep(rng.uniform(0, 0.008))
            stops += 1
        except ProcessLookupError:
            pass
        finally:
            try:
                os.kill(rank, signal.SIGCONT)
            except ProcessLookupError:
                pass
        time.sleep(rng.uniform(0, 0.004))
    return stops


def main():
    rng = random.Random(7)
    stops = actions = 0
    with takt.temporary_folder() as folder:
        plans = []
        for name, chunks, ranks in FAMILIES:
            plans.append((name, ranks, takt.compile_plan(
                folder, name, MODEL, CLUSTER, "--replicas=1",
                f"--schedule={name}", f"--stages={ranks * chunks}", f"--chunks={chunks}")))
        for number in range(RUNS):
            name, ranks, plan = plans[number % len(plans)]
            trace = plan.with_suffix(".json")
            run = subprocess.Popen(
                [str(takt.BIN / "takt-run"), str(plan), f"-n{ranks}", "-q",
                 "--synthetic", "--steps=40", "--trace", str(trace)],
                stderr=subprocess.PIPE, text=True)
            stops += disturb(run, rng)
            if run.wait() != 0:
                sys.exit(f"{name}: {run.stderr.read()}")
            planned = lanes_of(trace, "predicted")
            measured = lanes_of(trace, "measured")
            if not planned or planned.keys() != measured.keys():
                sys.exit(f"{name}: lanes {sorted(planned)} planned, "
                         f"{sorted(measured)} measured")
            for lane, order in planned.items():
                if measured[lane] != order:
                    sys.exit(f"{name}, rank and lane {lane}: planned {order}, "
                             f"measured {measured[lane]}")
                actions += len(order)
            trace.unlink()
    if stops < RUNS:
        sys.exit(f"only {stops} stops in {RUNS} runs")
    print(f"{RUNS} runs of {len(FAMILIES)} families, ranks stopped {stops} times: "
          f"{actions} actions in the order of the plan")


if __name__ == "__main__":
    main()
