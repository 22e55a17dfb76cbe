#!/usr/bin/env python3
"""Messages by MPI, and a rank that is killed, stopped or fails by itself: mpirun and
every rank end, and the training goes on from its last checkpoint as if nothing had
happened. Needs a build with MPI, and mpirun.

mpirun kills the others as soon as one has ended: its code may be that of any of
them, and who has not said its last words by then never does.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import takt
from process_failures import all_end

MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4"]


def start(plan, folder, steps, log="-"):
    return subprocess.Popen(
        [*MPIRUN, takt.BIN / "takt-run", plan, "--data", takt.TEXT, "-q",
         "--transport=mpi", f"--steps={steps}", f"--log-losses={log}",
         f"--rendezvous=file:{folder}/meet", "--timeout=10",
         f"--record={folder}/flights", f"--checkpoint={folder}/saved",
         f"--resume={folder}/saved", "--checkpoint-every=1", "--keep=2"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def why(folder):
    return json.loads(takt.run("takt-plan", "why-hang", f"{folder}/flights",
                               "--format=json").stdout)


def spoil(plan, folder, number, victim):
    """A rank gets a signal while it trains."""
    run = start(plan, folder, 1_000_000)
    for _ in range(3):
        assert run.stdout.readline().strip(), run.communicate()
    pids = {rank["rank"]: rank["pid"] for rank in why(folder)["standing"]}
    os.kill(pids[victim], number)
    said = run.communicate(timeout=120)
    assert run.returncode != 0, said
    all_end(pids.values())
    assert not why(folder)["ended_in_order"], said
    print(f"{number.name} of rank {victim}: all end, code {run.returncode}")


def fails_by_itself(plan, folder):
    run = start(plan, folder, 1_000_000, "/dev/full")
    said = run.communicate(timeout=120)
    assert run.returncode != 0, said
    assert "cannot write the losses" in said[1], said
    assert [culprit["rank"] for culprit in why(folder)["culprits"]] == [0], said


def goes_on(plan, folder):
    last = max(int(saved.name[5:])
               for saved in pathlib.Path(folder, "saved").glob("step-*"))
    run = start(plan, folder, last + 7)
    losses, said = run.communicate(timeout=120)
    assert run.returncode == 0, (run.returncode, said)
    takt.train(plan, last + 7)
    whole = plan.with_suffix(".losses").read_text().splitlines()
    assert losses.splitlines() == whole[-7:], losses
    assert why(folder)["ended_in_order"]
    assert not pathlib.Path(folder, "meet", "current").exists()


def main():
    if "mpi yes" not in takt.run("takt-run", "--version").stdout:
        print("skipped: this build has no MPI transport (TAKT_ENABLE_MPI)")
        sys.exit(takt.SKIP)
    if not shutil.which("mpirun") or subprocess.run(
            [*MPIRUN, "true"], capture_output=True, timeout=300).returncode != 0:
        print("skipped: mpirun is not there or starts nothing here")
        sys.exit(takt.SKIP)
    with takt.temporary_folder() as folder:
        plan = takt.compile_plan(folder, "job", takt.INPUTS / "gpt-tiny.yaml",
                                 takt.INPUTS / "host-8.yaml", "--stages=2",
                                 "--replicas=2")
        for victim in (0, 3):
            spoil(plan, folder, signal.SIGKILL, victim)
        spoil(plan, folder, signal.SIGSTOP, 2)
        fails_by_itself(plan, folder)
        goes_on(plan, folder)
    print("over MPI a rank that is lost ends all, and training goes on")
    sys.exit(0)


if __name__ == "__main__":
    main()
