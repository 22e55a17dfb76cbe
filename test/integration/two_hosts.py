#!/usr/bin/env python3
"""Two hosts made of network namespaces train across a link: the same losses, and
an end with the right codes when the link is cut. Needs root and ip(8); skipped,
and that said, where namespaces cannot be made.
"""
import os
import subprocess
import sys
import time

import takt

NAME = f"takt{os.getpid() % 10000}"
HOSTS = (f"{NAME}a", f"{NAME}b")
STEPS = 10


def ip(*arguments):
    return subprocess.run(["ip", *arguments], capture_output=True, text=True)


def make_hosts():
    """None, or why there are no two hosts."""
    try:
        commands = [
            ("netns", "add", HOSTS[0]), ("netns", "add", HOSTS[1]),
            ("link", "add", f"{NAME}v0", "netns", HOSTS[0], "type", "veth",
             "peer", "name", f"{NAME}v1", "netns", HOSTS[1])]
        for i, host in enumerate(HOSTS):
            commands += [
                ("-n", host, "addr", "add", f"10.231.7.{i + 1}/24", "dev",
                 f"{NAME}v{i}"),
                ("-n", host, "link", "set", f"{NAME}v{i}", "up"),
                ("-n", host, "link", "set", "lo", "up")]
        for command in commands:
            done = ip(*command)
            if done.returncode != 0:
                return f"ip {' '.join(command)}: {done.stderr.strip()}"
    except OSError as error:
        return str(error)
    return None


def remove_hosts():
    for host in HOSTS:
        ip("netns", "del", host)


def start(plan, *options):
    """Ranks 0 and 1 on the first host, 2 and 3 on the second."""
    return takt.start_ranks(
        plan, [{"TAKT_RANK": r, "TAKT_WORLD_SIZE": 4, "TAKT_NODE": r // 2,
                "TAKT_TOKEN": "secret",
                "TAKT_RENDEZVOUS": "10.231.7.1:29600"} for r in range(4)],
        "--data", takt.TEXT, "--start-timeout=100", *options,
        prefixes=[["ip", "netns", "exec", HOSTS[r // 2]] for r in range(4)])


def same_losses(plan, folder):
    log = folder / "hosts.losses"
    ends = takt.end_ranks(start(plan, "--steps", STEPS, "--log-losses", log))
    assert all(code == 0 for code, _ in ends), ends
    assert "shared memory within the node, TCP across" in ends[0][1], ends[0]
    takt.train(plan, STEPS)
    assert log.read_text() == plan.with_suffix(".losses").read_text()
    print("2 hosts of 2 ranks: the same losses as threads")


def cut_link(plan, folder):
    """Nothing arrives any more and nobody says so."""
    log = folder / "cut.losses"
    runs = start(plan, "--steps=1000000", "--timeout-floor=2", "-q",
                 "--log-losses", log)
    while not log.exists() or log.stat().st_size == 0:
        assert all(run.poll() is None for run in runs), takt.end_ranks(runs)
        time.sleep(0.01)
    ip("-n", HOSTS[1], "link", "set", f"{NAME}v1", "down")
    ends = takt.end_ranks(runs, timeout=200)
    codes = [code for code, _ in ends]
    # Whoever notices first says what: a wait that is too long, on each side.
    assert all(code in (11, 12, 13) for code in codes), ends
    assert 12 in codes or 11 in codes, ends
    print(f"a link that is cut ends the ranks with {codes}")


def main():
    why = make_hosts()
    try:
        if why:
            print(f"skipped: no network namespaces here ({why})")
            sys.exit(takt.SKIP)
        with takt.temporary_folder() as name:
            folder = takt.pathlib.Path(name)
            plan = takt.compile_plan(folder, "job",
                                     takt.INPUTS / "gpt-tiny.yaml",
                                     takt.INPUTS / "host-8.yaml", "--stages=2",
                                     "--replicas=2")
            same_losses(plan, folder)
            cut_link(plan, folder)
    finally:
        remove_hosts()
    sys.exit(0)


if __name__ == "__main__":
    main()
