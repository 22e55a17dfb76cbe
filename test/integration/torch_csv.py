#!/usr/bin/env python3
"""Schedule files that Takt writes train in PyTorch as in Takt.

Each case is compiled and trained by Takt; then an independent interpreter runs
the schedule file on Debian's PyTorch, with the communication that the file has.
"""
import json
import pathlib
import subprocess
import sys

import takt

STEPS = 20
MODEL = takt.INPUTS / "gpt-tiny.yaml"
CASES = [  # stages, schedule, form of the file
    (2, "1f1b", "csv-comms"), (4, "1f1b", "csv-comms"),
    (3, "gpipe", "csv-comms"), (4, "1f1b", "csv"),
]
# Halves of the backward apart, and row 0 ahead by one micro-batch.
SPLIT = """0F0,0F1,0F2,0I0,0W0,0F3,0I1,0W1,0I2,0W2,0I3,0W3
1F0,1I0,1F1,1W0,1I1,1F2,1W1,1I2,1F3,1W2,1I3,1W3
"""


def prepare(folder, name, schedule, stages, form):
    """Plan, schedule file, initial weights and losses of a case."""
    options = [MODEL, takt.INPUTS / "host-8.yaml", f"--stages={stages}",
               "--replicas=1", f"--schedule={schedule}", "--quiet"]
    plan = pathlib.Path(folder) / f"{name}.plan"
    takt.run("taktc", *options, "-o", plan)
    file = plan.with_suffix(".csv")
    takt.run("taktc", *options, f"--emit={form}", "-o", file)
    # What newer versions of PyTorch's runtime read.
    takt.run("taktc", *options, "--emit=csv-waits", "-o",
             file.with_suffix(".waits.csv"))
    weights = plan.with_suffix(".safetensors")
    takt.run("takt-run", plan, "--threads", "--data", takt.TEXT, "--steps", 0,
             "--quiet", "--save-weights", weights)
    takt.train(plan, STEPS, "--load-weights", weights)
    shown = json.loads(takt.run("takt-plan", "show", plan,
                                "--format=json").stdout)
    first = ",".join(stage["layers"][0] for stage in shown["stages"])
    return ["--model", MODEL, "--weights", weights, "--data", takt.TEXT,
            "--losses", plan.with_suffix(".losses"), "--csv", file,
            "--cut", first]


def cases(folder):
    split = pathlib.Path(folder) / "split.csv"
    split.write_text(SPLIT)
    for stages, schedule, form in CASES + [(2, split, "csv-comms")]:
        name = f"{pathlib.Path(schedule).stem}-{stages}-{form}"
        yield name, prepare(folder, name + "-job", schedule, stages, form)


def main():
    with takt.temporary_folder() as folder:
        for name, arguments in cases(folder):
            # Debian's PyTorch belongs to Debian's Python.
            done = subprocess.run(
                ["/usr/bin/python3",
                 takt.ROOT / "test/integration/torch_csv_reference.py",
                 *arguments], capture_output=True, text=True)
            print(f"{name}: {(done.stdout + done.stderr).strip()}")
            if done.returncode != 0:
                sys.exit(done.returncode)


if __name__ == "__main__":
    main()
