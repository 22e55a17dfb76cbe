#!/usr/bin/env python3
"""--hosts: the printed script starts every host's ranks, here over an ssh that
stays on this machine; they train to the losses of threads, and a rank that is
killed on one host ends those of the others.
"""
import os
import shutil
import signal
import subprocess
import sys
import time

import takt

HOSTS = "127.0.0.1:2,localhost:2"
STEPS = 10

# As ssh -n HOST does it: the rest is for the shell there, which starts at home.
SSH = """#!/bin/sh
[ "$1" = -n ] || exit 255
echo "$2" >> "$SSH_LOG"
shift 2
cd / && exec sh -c "$*"
"""


def surroundings(folder):
    """Variables with which 'ssh' is found and every host is this one."""
    programs = folder / "programs"
    programs.mkdir()
    ssh = programs / "ssh"
    ssh.write_text(SSH)
    ssh.chmod(0o755)
    return {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}",
            "SSH_LOG": str(folder / "ssh.log"), "TAKT_ADDRESS": "127.0.0.1",
            "TAKT_TOKEN": "secret"}


def script(plan, folder, *options):
    """What --hosts prints, in a folder with a name that needs quotes."""
    return subprocess.run(
        [takt.BIN / "takt-run", plan, "--hosts", HOSTS, *map(str, options)],
        cwd=folder, check=True, capture_output=True, text=True).stdout


def same_losses(plan, folder, variables):
    here = folder / "it's a folder"
    here.mkdir()
    shutil.copy(takt.TEXT, here / "some text")
    text = script(plan, here, "--data", "some text", "--steps", STEPS,
                  f"--rendezvous=file:{folder}/meet", "--start-timeout=100",
                  "--log-losses", "losses")
    done = subprocess.run(["sh", "-c", text], env=variables, cwd="/",
                          capture_output=True, text=True)
    assert done.returncode == 0, (text, done.stderr)
    called = (folder / "ssh.log").read_text().split()
    assert sorted(called) == ["127.0.0.1", "localhost"], called
    assert "shared memory within the node, TCP across" in done.stderr, done
    takt.train(plan, STEPS)
    assert ((here / "losses").read_text() ==
            plan.with_suffix(".losses").read_text())
    print("a script for 2 hosts of 2 ranks: the same losses as threads")


def fails(plan, folder, variables):
    """The script ends with a code of the ranks."""
    text = script(plan, folder, "--data", takt.TEXT, "--steps=3", "-q",
                  f"--rendezvous=file:{folder}/full", "--start-timeout=100",
                  "--log-losses=/dev/full")
    done = subprocess.run(["sh", "-c", text], env=variables,
                          capture_output=True, text=True)
    assert done.returncode == 1, done
    assert "[0] takt-run: error: cannot write the losses" in done.stderr, done


def killed(plan, folder, variables):
    """Rank 3 is the second of host 1; nobody outlives it."""
    losses = folder / "killed.losses"
    start = lambda node: subprocess.Popen(
        [takt.BIN / "takt-run", plan, "--hosts", HOSTS, f"--node={node}",
         f"--rendezvous=file:{folder}/killed", "--data", takt.TEXT, "-q",
         "--steps=1000000", "--start-timeout=100", "--log-losses", losses],
        env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True)
    runs = [start(0), start(1)]
    while not losses.exists() or losses.stat().st_size == 0:
        assert all(run.poll() is None for run in runs), takt.end_ranks(runs)
        time.sleep(0.01)
    rank_of = {}
    for pid in takt.children_of(runs[1], 2):
        with open(f"/proc/{pid}/environ", "rb") as told:
            rank_of.update({int(entry[10:]): pid
                            for entry in told.read().split(b"\0")
                            if entry.startswith(b"TAKT_RANK=")})
    assert sorted(rank_of) == [2, 3], rank_of
    os.kill(rank_of[3], signal.SIGKILL)
    ends = takt.end_ranks(runs)
    assert [code for code, _ in ends] == [13, 13], ends
    assert "rank 3: its process was killed by signal 9" in ends[1][1], ends
    print("a rank that is killed on one host ends those of both")


def main():
    with takt.temporary_folder() as name:
        folder = takt.pathlib.Path(name)
        plan = takt.compile_plan(folder, "job", takt.INPUTS / "gpt-tiny.yaml",
                                 takt.INPUTS / "host-8.yaml", "--stages=2",
                                 "--replicas=2")
        variables = surroundings(folder)
        same_losses(plan, folder, variables)
        fails(plan, folder, variables)
        killed(plan, folder, variables)
    sys.exit(0)


if __name__ == "__main__":
    main()
