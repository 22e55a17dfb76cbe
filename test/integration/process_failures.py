#!/usr/bin/env python3
"""What goes wrong with processes: a rank that is killed, stopped or fails by
itself, a launcher that is killed, strangers at the rendezvous. Every process ends,
with the right code, or goes on as if nothing had been.

Argument: number of strangers (default: 100).
"""
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time

import takt

STRANGERS = int(sys.argv[1]) if len(sys.argv) > 1 else 100


def launch(plan, *options):
    """A run without end, once it trains."""
    run = subprocess.Popen(
        [takt.BIN / "takt-run", plan, "--data", takt.TEXT, "-n", "4",
         "--steps=1000000", "-q", "--log-losses=-", *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(3):
        assert run.stdout.readline().strip(), run.communicate()[1]
    return run


def alive(pids):
    """Those that are still there and no zombies."""
    there = []
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat") as stat:
                if stat.read().rsplit(")", 1)[1].split()[0] != "Z":
                    there.append(pid)
        except OSError:
            pass
    return there


def all_end(pids):
    for _ in range(3000):
        if not alive(pids):
            return
        time.sleep(0.01)
    sys.exit(f"processes that did not end: {alive(pids)}")


def killed(plan, transport, rank):
    """A rank that is killed ends all, at once, and the others say so."""
    run = launch(plan, f"--transport={transport}")
    pids = takt.children_of(run, 4)
    os.kill(pids[rank], signal.SIGKILL)
    said = run.communicate(timeout=60)[1]
    assert run.returncode == 13, (run.returncode, said)
    assert f"rank {rank}: its process was killed by signal 9" in said, said
    others_say(said, set(range(4)) - {rank}, f"rank {rank} failed")
    assert "SIGTERM" not in said, said
    all_end(pids)


def others_say(said, ranks, what):
    """One of the ranks says it, the others that they end with the same."""
    first = re.findall(rf"^\[(\d)\] takt-run: error: {what}$", said, re.M)
    assert len(first) == 1, said
    [same] = re.findall(r"^\[([\d, -]+)\] takt-run: error: the same as rank "
                        f"{first[0]}$", said, re.M)
    rest = {rank for part in same.split(",")
            for rank in range(int(part.strip()[0]), int(part[-1]) + 1)}
    assert rest | {int(first[0])} == ranks, said


def stopped(plan):
    """A rank that stands still is a timeout: one rank says it, the others that
    it did; the one that stands still is killed."""
    run = launch(plan, "--timeout-floor=1")
    pids = takt.children_of(run, 4)
    os.kill(pids[2], signal.SIGSTOP)
    said = run.communicate(timeout=120)[1]
    assert run.returncode == 12, (run.returncode, said)
    assert "rank 2 did not end: stopped by a signal, killed" in said, said
    [first] = re.findall(r"^\[(\d)\] takt-run: error: (?!rank|the same)", said,
                         re.M)
    others_say(said, {0, 1, 3} - {int(first)}, f"rank {first} failed")
    all_end(pids)


def told_twice(plan):
    """A second signal ends at once a run that the first cannot end."""
    for number in (signal.SIGINT, signal.SIGTERM):
        run = launch(plan, "--timeout-floor=100")
        pids = takt.children_of(run, 4)
        os.kill(pids[1], signal.SIGSTOP)  # no step ends any more
        while run.poll() is None:  # two that are pending are one
            run.send_signal(number)
            time.sleep(0.05)
        said = run.communicate(timeout=60)[1]
        assert run.returncode == 128 + number, (run.returncode, said)
        assert "killed by signal" not in said, said
        all_end(pids)


def goes_on(plan):
    """A rank that stands still for less than that goes on."""
    run = launch(plan, "--timeout-floor=60")
    pids = takt.children_of(run, 4)
    os.kill(pids[1], signal.SIGSTOP)
    time.sleep(0.3)
    os.kill(pids[1], signal.SIGCONT)
    for _ in range(3):
        assert run.stdout.readline().strip()
    run.send_signal(signal.SIGTERM)
    said = run.communicate(timeout=60)[1]
    assert run.returncode == 0 and "stopped by a signal" in said, said
    all_end(pids)


def launcher_killed(plan):
    run = launch(plan)
    pids = takt.children_of(run, 4)
    run.kill()
    run.communicate(timeout=60)
    all_end(pids)


def fails_by_itself(plan, folder):
    """The code of the rank that fails, from all: here a file it cannot write."""
    full = takt.run("takt-run", plan, "--data", takt.TEXT, "-n", 4, "--steps=3",
                    "-q", "--log-losses=/dev/full", expect=1)
    assert "cannot write the losses" in full.stderr, full.stderr
    others_say(full.stderr, {1, 2, 3}, "rank 0 failed")


def fail_alike(plan, folder):
    """What all ranks fail with is said once."""
    other = takt.pathlib.Path(folder) / "weights"
    other.write_text("no weights")
    said = takt.run("takt-run", plan, "--data", takt.TEXT, "-n", 4, "-q",
                    "--steps=3", "--load-weights", other,
                    expect=1).stderr
    assert said.count(str(other)) == 1, said


def folder_of_a_killed_run(plan, folder):
    """A rendezvous folder is as good after a run that was killed as before."""
    where = f"file:{folder}/meet"
    options = ("--data", takt.TEXT, "-q", "--world-size=4", "--rendezvous",
               where, "--start-timeout=60", "--launcher=none")
    losses = folder / "losses"
    start = lambda steps: [subprocess.Popen(
        [takt.BIN / "takt-run", plan, *options, f"--rank={rank}",
         f"--steps={steps}", f"--log-losses={losses}"],
        stderr=subprocess.PIPE, text=True) for rank in range(4)]
    runs = start(1000000)
    while not losses.exists() or losses.stat().st_size == 0:
        time.sleep(0.01)  # it trains
    runs[3].kill()
    ends = takt.end_ranks(runs)
    assert [code for code, _ in ends] == [13, 13, 13, -9], ends
    ends = takt.end_ranks(start(2))
    assert all(code == 0 for code, _ in ends), ends


def strangers(plan, folder):
    """Random bytes at the rendezvous before and while the ranks come; the run
    has the losses it has without."""
    port = takt.free_port()
    log = folder / "strangers.losses"
    options = ("--data", takt.TEXT, "--world-size=4", "--steps=10",
               f"--rendezvous=127.0.0.1:{port}", "--start-timeout=120",
               "--transport=tcp", "--log-losses", log, "-q")
    start = lambda rank: subprocess.Popen(
        [takt.BIN / "takt-run", plan, f"--rank={rank}", *map(str, options)],
        stderr=subprocess.PIPE, text=True)
    runs = [start(0)]
    draw = random.Random(3)
    for i in range(STRANGERS):
        if i == STRANGERS // 2:
            runs += [start(1), start(2)]
        for attempt in range(500):
            try:
                with socket.create_connection(("127.0.0.1", port)) as stranger:
                    stranger.sendall(draw.randbytes(draw.randrange(0, 300)))
                break
            except ConnectionRefusedError:  # rank 0 does not listen yet
                time.sleep(0.02)
            except OSError:  # turned away while it was speaking
                break
    runs.append(start(3))
    ends = takt.end_ranks(runs)
    assert all(code == 0 for code, _ in ends), ends
    takt.train(plan, 10)
    assert log.read_text() == plan.with_suffix(".losses").read_text()
    lines = [line for line in ends[0][1].splitlines() if "stranger" in line]
    assert 1 <= len(lines) <= 2 + STRANGERS.bit_length(), lines
    print(f"{STRANGERS} strangers: {lines[-1]}")


def main():
    with takt.temporary_folder() as name:
        folder = takt.pathlib.Path(name)
        plan = takt.compile_plan(folder, "job", takt.INPUTS / "gpt-tiny.yaml",
                                 takt.INPUTS / "host-8.yaml", "--stages=2",
                                 "--replicas=2")
        for transport in ("shm", "tcp"):
            for rank in (0, 3):
                killed(plan, transport, rank)
        stopped(plan)
        goes_on(plan)
        told_twice(plan)
        launcher_killed(plan)
        fails_by_itself(plan, folder)
        fail_alike(plan, folder)
        folder_of_a_killed_run(plan, folder)
        strangers(plan, folder)
    print("killed, stopped and failing ranks end all with the right codes")
    sys.exit(0)


if __name__ == "__main__":
    main()
