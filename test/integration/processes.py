#!/usr/bin/env python3
"""Ranks as processes: the same losses, weights and gradients bit for bit as
threads, over every transport, with pipelines, replicas and both; and what the
run says and returns when it cannot start.

Argument: steps (default: 20).
"""
import json
import re
import subprocess
import sys

import takt

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 20


def files_of(plan, folder, name, *options):
    """Losses, weights and gradients of a run, as bytes."""
    out = {what: f"{folder}/{name}.{what}"
           for what in ("losses", "weights", "gradients")}
    takt.run("takt-run", plan, "--data", takt.TEXT, "--steps", STEPS, "-q",
             "--log-losses", out["losses"], "--save-weights", out["weights"],
             "--dump-gradients", out["gradients"], *options)
    return {what: open(path, "rb").read() for what, path in out.items()}


def same_everywhere(folder):
    """Of plans of 2 to 4 ranks, over every transport."""
    for name, options in {
            "pipeline": ("--stages=4", "--replicas=1"),
            "replicas": ("--stages=1", "--replicas=2"),
            "both": ("--stages=2", "--replicas=2", "--schedule=gpipe")}.items():
        plan = takt.compile_plan(folder, name, takt.INPUTS / "gpt-tiny.yaml",
                                 takt.INPUTS / "host-8.yaml", *options)
        ranks = json.loads(takt.run("takt-plan", "show", "--format=json",
                                    plan).stdout)["ranks"]
        threads = files_of(plan, folder, "threads", "--threads")
        for transport in ("auto", "shm", "tcp"):
            processes = files_of(plan, folder, transport, "-n", ranks,
                                 f"--transport={transport}")
            for what, content in threads.items():
                assert processes[what] == content, \
                    f"{name}, {transport}: {what} differ from threads"
        print(f"{name}: {ranks} processes equal threads over shm and tcp")
    return plan


def reports(plan, folder):
    """JSON, trace and profile come from all ranks, through rank 0."""
    done = takt.run("takt-run", plan, "--data", takt.TEXT, "--steps", 4,
                    "--format=json", "-n", 4, "--trace", f"{folder}/t.json",
                    "--profile", f"{folder}/p.yaml")
    report = json.loads(done.stdout)  # nothing else on standard output
    assert report["ranks"] == 4 and len(report["losses"]) == 4, report
    assert "rank 0 of 4 by takt" in done.stderr, done.stderr
    events = json.load(open(f"{folder}/t.json"))["traceEvents"]
    measured = {e["args"]["name"] for e in events if e["name"] == "process_name"
                and "measured" in e["args"]["name"]}
    assert len(measured) == 4, measured
    takt.run("takt-run", plan, "--data", takt.TEXT, "--steps", 4, "-q",
             "--threads", "--profile", f"{folder}/threads.yaml")
    names = [re.findall(r"^    ([\w.-]+): {forward", open(path).read(), re.M)
             for path in (f"{folder}/p.yaml", f"{folder}/threads.yaml")]
    assert names[0] and names[0] == names[1], names
    layers = takt.run("taktc", takt.INPUTS / "gpt-tiny.yaml",
                      takt.INPUTS / "host-8.yaml", "--profile",
                      f"{folder}/p.yaml", "--stages=2", "--replicas=2",
                      "--format=json", "-o", f"{folder}/again.plan")
    assert "profile" in json.loads(layers.stdout)["source_of_costs"]


def refusals(plan):
    """What cannot start says why, and with which code."""
    def said(code, *options, **extra):
        done = takt.run("takt-run", plan, "--data", takt.TEXT, *options,
                        expect=code, **extra)
        return done.stderr

    assert "has 4 ranks" in said(10, "-n", 3)
    assert "4 ranks, and there are 5 processes" in said(
        10, "--rank=0", "--world-size=5", "--rendezvous=localhost:1")
    assert "where to meet" in said(2, "--rank=1", "--world-size=4")
    assert "no address" in said(2, "--rank=1", "--world-size=4",
                                "--rendezvous=nowhere")
    assert "exclude each other" in said(2, "-n", 4, "--threads")
    # What is printed with standard output closed must not go elsewhere.
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", takt.BIN / "takt-run", plan, "-n",
         "4", "--data", takt.TEXT, "--steps", "1"],
        stderr=subprocess.PIPE, text=True)
    assert closed.returncode == 1, closed
    assert "cannot write" in closed.stderr, closed.stderr
    # Options that make ranks wait for each other are compared.
    meet = f"file:{plan}.options"
    runs = [subprocess.Popen(
        [takt.BIN / "takt-run", plan, "--data", takt.TEXT, "-q",
         f"--steps={2 + rank % 2}", "--world-size=4", f"--rank={rank}",
         "--start-timeout=60", f"--rendezvous={meet}"],
        stderr=subprocess.PIPE, text=True) for rank in range(4)]
    ends = [(run.communicate()[1], run.returncode) for run in runs]
    assert all(end[1] in (10, 13) for end in ends), ends
    assert any("'--steps 2'" in end[0] and "'--steps 3'" in end[0]
               for end in ends), ends
    # Rank 1 meets nobody: the wait ends and names the place.
    assert "127.0.0.1:1" in said(12, "--rank=1", "--world-size=4",
                                 "--rendezvous=127.0.0.1:1",
                                 "--start-timeout=0.2")
    # Rank 0 waits in vain and names the others.
    alone = said(12, "--rank=0", "--world-size=4",
                 "--rendezvous=file:" + str(plan) + ".meet",
                 "--start-timeout=0.3")
    assert "ranks 1, 2 and 3 did not come in time" in alone, alone


def mixed_plans(folder, plan):
    """Two processes with two plans, or two that are one rank, do not train."""
    other = takt.compile_plan(folder, "other", takt.INPUTS / "gpt-tiny.yaml",
                              takt.INPUTS / "host-8.yaml", "--stages=4",
                              "--replicas=1", "--schedule=gpipe")
    for plans, ranks, meet, code, words in (
            ((plan, plan, other, plan), (0, 1, 2, 3), f"file:{folder}/meet",
             10, "another plan"),
            ((plan,) * 5, (2, 1, 2, 3, 0), f"file:{folder}/meet", 2,
             "say that they are"),
            ((plan,) * 4, (0, 1, 2, 2), f"127.0.0.1:{takt.free_port()}", 2,
             "say that they are")):
        runs = [subprocess.Popen(
            [takt.BIN / "takt-run", p, "--data", takt.TEXT, "--steps", "2",
             "-q", "--world-size=4", f"--rank={rank}", "--start-timeout=20",
             f"--rendezvous={meet}"],
            stderr=subprocess.PIPE, text=True) for p, rank in zip(plans, ranks)]
        ends = [(run.communicate()[1], run.returncode) for run in runs]
        # A second rank 2 may also come when the run of the first is over.
        late = "rank 0 did not come in time"
        said = [end for end in ends if end[1] not in (0, 13)]
        assert said, ends
        for text, ended in said:
            assert (words in text and ended == code) or (
                code == 2 and late in text and ended == 12), ends


def main():
    with takt.temporary_folder() as folder:
        plan = same_everywhere(folder)
        reports(plan, folder)
        refusals(plan)
        mixed_plans(folder, plan)
    print("reports, refusals and mixed plans as they should be")
    sys.exit(0)


if __name__ == "__main__":
    main()
