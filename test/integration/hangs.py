#!/usr/bin/env python3
"""Whatever befalls a run at a random rank and moment - a process killed or stopped,
a connection cut or silent, a bit turned on the way, a disk that is full - every rank
ends with the right code, takt-plan why-hang names the rank and where it stood, and
the training goes on from its last checkpoint as if nothing had happened.

Arguments: how many faults (default: one of each kind). Several jobs suffer theirs
side by side, as most of the time is spent waiting.
"""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import sys
import time

import between
import takt

RANKS = 4
JOBS = 6
PATIENCE = 10  # seconds without progress that end a run
HANGS = 120  # seconds after which a test gives a run up


class Failed(Exception):
    pass


def require(condition, *what):
    if not condition:
        raise Failed(" ".join(map(str, what)))


def options(folder, steps):
    return ["--data", takt.TEXT, "--steps", steps, "-q", "--record",
            f"{folder}/flights", "--checkpoint", f"{folder}/saved", "--resume",
            f"{folder}/saved", "--checkpoint-every", 1, "--keep", 2,
            "--timeout", PATIENCE, "--log-losses", "-"]


def why(folder):
    return json.loads(takt.run("takt-plan", "why-hang", f"{folder}/flights",
                               "--format=json").stdout)


class Job:
    """A training that is spoilt again and again."""

    def __init__(self, number, folder, plan):
        self.number = number
        self.folder = pathlib.Path(folder) / f"job{number}"
        self.folder.mkdir()
        self.plan = plan
        self.text = takt.run("takt-plan", "dump", plan).stdout.splitlines()
        self.draw = random.Random(number)
        self.codes = set()

    # Runs

    @contextlib.contextmanager
    def launch(self, steps, *more):
        """All ranks under one launcher, which takes them along."""
        run = subprocess.Popen(
            [takt.BIN / "takt-run", self.plan, "-n", str(RANKS),
             *map(str, options(self.folder, steps)), *more],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            yield run
        finally:
            run.kill()
            run.communicate()

    def apart(self, middle):
        """Each rank on its own, all but rank 0 through the middle."""
        return takt.start_ranks(
            self.plan,
            [{"TAKT_RANK": r, "TAKT_WORLD_SIZE": RANKS, "TAKT_TOKEN": "secret",
              "TAKT_RENDEZVOUS": "%s:%d" % middle.real if r == 0
              else middle.address} for r in range(RANKS)],
            *options(self.folder, 1_000_000), "--transport=tcp")

    def train(self, first):
        """Until a random moment; `first` is rank 0, or the launcher."""
        for _ in range(self.draw.randint(1, 12)):
            require(first.stdout.readline(), "ended:", first.poll(),
                    first.stderr.read() if first.poll() is not None else "")
        time.sleep(self.draw.uniform(0, 0.004))

    def pids(self):
        """Of the ranks that run now, from their recordings."""
        return {rank["rank"]: rank["pid"]
                for rank in why(self.folder)["standing"]}

    def named(self, ranks, *said):
        """The culprit, which must be one of the ranks."""
        report = why(self.folder)
        named = {culprit["rank"] for culprit in report["culprits"]}
        require(named and named <= ranks, "of ranks", ranks, "named",
                json.dumps(report, indent=1), *said)
        for culprit in report["culprits"]:
            if culprit["line"] is None:
                require("before step" in culprit["text"], culprit)
            else:
                line = self.text[culprit["line"] - 1]
                require(line.endswith(f"# {culprit['action']}"), line, culprit)
        for waiting in report["waiting"]:
            require(waiting["chain"], waiting)
        return report["culprits"]

    # Faults

    def signalled(self, number):
        with self.launch(1_000_000,
                         self.draw.choice(("--transport=shm",
                                           "--transport=tcp"))) as run:
            self.train(run)
            victim = self.draw.randrange(RANKS)
            os.kill(self.pids()[victim], number)
            _, said = run.communicate(timeout=HANGS)
        code = {signal.SIGKILL: 13, signal.SIGSTOP: 12}[number]
        require(run.returncode == code, run.returncode, said)
        [culprit] = self.named({victim}, said)
        self.codes.add(run.returncode)
        return f"{number.name} of rank {victim}", culprit

    def kill(self):
        return self.signalled(signal.SIGKILL)

    def stop(self):
        return self.signalled(signal.SIGSTOP)

    def spoil(self, fault, code, ends):
        """A fault of a link, given to both ends or to whom it shows. One rank
        ends with the code, the others because of it."""
        middle = between.Between(between.loopback(self.number))
        try:
            runs = self.apart(middle)
            try:
                self.train(runs[0])
                link = self.draw.choice(middle.links)
                fault(middle, link)
                results = [(run.communicate(timeout=HANGS), run.returncode)
                           for run in runs]
            finally:
                for run in runs:
                    run.kill()
                    run.communicate()
        finally:
            middle.close()
        said = [text for (_, text), _ in results]
        codes = [returned for _, returned in results]
        ends = ends(link)
        first = [rank for rank in range(RANKS) if codes[rank] == code]
        require(sorted(codes) == sorted([code, 13, 13, 13]), codes, *said)
        if code == 11:
            require(first[0] in ends, first, ends, *said)
            require(f"from rank {link.source} to rank {link.target}" in
                    said[first[0]], *said)
        culprits = self.named(ends, *said)
        self.codes.update(codes)
        return (f"link from rank {link.source} to rank {link.target}",
                culprits[0])

    def cut(self):
        what, culprit = self.spoil(between.Between.cut, 11,
                                   lambda link: {link.source, link.target})
        return f"cut {what}", culprit

    def hush(self):
        what, culprit = self.spoil(between.Between.hush, 12,
                                   lambda link: {link.source, link.target})
        return f"silent {what}", culprit

    def damage(self):
        back = self.draw.randrange(2)
        bit = self.draw.randrange(1 << 19)
        what, culprit = self.spoil(
            lambda middle, link: middle.turn_bit(link, back, bit), 11,
            lambda link: {link.source if back else link.target})
        return f"bit turned in {'answers' if back else 'data'} of {what}", culprit

    def disk(self):
        """A rank that writes can write no more: said, training goes on, and only
        its end is an error."""
        with self.launch(1_000_000) as run:
            self.train(run)
            pids = self.pids()
            victim = self.draw.choice((0, 2))  # those that have a shard
            _, most = resource.prlimit(pids[victim], resource.RLIMIT_FSIZE)
            resource.prlimit(pids[victim], resource.RLIMIT_FSIZE, (1000, most))
            said = ""
            for line in run.stderr:
                said += line
                if "warning: no checkpoint of step" in line:
                    break
            require("File too large" in said, said, run.poll())
            for _ in range(3):
                require(run.stdout.readline(), "ended", run.poll())
            run.send_signal(signal.SIGTERM)
            _, rest = run.communicate(timeout=HANGS)
        require(run.returncode == 1 and "the last checkpoint could not be "
                "written" in rest, run.returncode, said, rest)
        [culprit] = self.named({victim}, said, rest)
        self.codes.add(run.returncode)
        return f"full disk of rank {victim}", culprit

    # The end

    def go_on(self):
        """The rest of the training has the losses of one without faults."""
        saved = sorted((self.folder / "saved").glob("step-*"))
        last = int(re.search(r"\d+$", saved[-1].name).group()) if saved else 0
        with self.launch(last + 7) as run:
            losses, said = run.communicate(timeout=HANGS)
        require(run.returncode == 0, run.returncode, said)
        whole = self.folder / "whole"
        takt.run("takt-run", self.plan, "--threads", "--data", takt.TEXT,
                 "--steps", last + 7, "-q", "--log-losses", whole)
        rest = losses.splitlines()
        require(len(rest) == 7 and rest == whole.read_text().splitlines()[-7:],
                rest)
        require(why(self.folder)["ended_in_order"], "no order")
        return last + 7


KINDS = (Job.kill, Job.stop, Job.cut, Job.hush, Job.damage, Job.disk)


def suffer(job, kinds):
    for kind in kinds:
        what, culprit = kind(job)
        print(f"{what}: rank {culprit['rank']} named, at "
              f"{culprit['action'] or 'the start of a step'}", flush=True)
    return job.go_on()


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else len(KINDS)
    kinds = [KINDS[number % len(KINDS)] for number in range(rounds)]
    random.Random(rounds).shuffle(kinds)
    with takt.temporary_folder() as folder:
        plan = takt.compile_plan(folder, "job", takt.INPUTS / "gpt-tiny.yaml",
                                 takt.INPUTS / "host-8.yaml", "--stages=2",
                                 "--replicas=2")
        jobs = [Job(number, folder, plan) for number in range(JOBS)]
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            steps = list(pool.map(suffer, jobs,
                                  [kinds[number::JOBS] for number in range(JOBS)]))
    codes = sorted(set().union(*(job.codes for job in jobs)))
    print(f"{rounds} faults, codes {codes}: every rank named; steps {steps} "
          "reached with the losses of runs without faults")


if __name__ == "__main__":
    main()
