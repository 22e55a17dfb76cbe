"""Ctrl-C ends a long search with the best it has: the plan is written, holds its
proof, and what it may lack is said. A second one ends at once with exit code 130
and leaves neither a plan nor a part of one. Wherever the signal falls, a plan is
either there as a whole or not at all."""
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading

from takt import BIN, INPUTS, ROOT, run, temporary_folder

LIMIT = 300  # seconds, for a process that should end at once
MODEL = ROOT / "examples" / "gpt-small.yaml"
LONG = ["--replicas=1", "--stages=4", "--schedule=optimal-split",
        "--search-work=1000000000000000"]


@contextlib.contextmanager
def start(folder, *options):
    """A search whose end nobody lives to see: the memory of the devices leaves
    so few micro-batches in flight that no schedule meets the bound."""
    cluster = folder + "/cluster.yaml"
    with open(cluster, "w") as file:
        file.write((INPUTS / "host-8.yaml").read_text()
                   .replace("1 GiB", "16 MiB").replace("4 GB/s", "200 MB/s"))
    process = subprocess.Popen(
        [BIN / "taktc", MODEL, cluster, "-o", folder + "/job.plan", *LONG, *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # The tests may run in the background of a shell, which ignores it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    limit = threading.Timer(LIMIT, process.kill)
    limit.start()
    try:
        yield process
    finally:
        limit.cancel()
        process.kill()
        process.wait()


def wait_for_progress(process):
    for line in process.stderr:
        if line.startswith("taktc: schedule: constraint solver: best "):
            return line
    sys.exit("the search ended by itself")


def plans(folder):
    return sorted(name for name in os.listdir(folder) if name.startswith("job"))


def once():
    with temporary_folder() as folder, \
            start(folder, "--progress", "--format=json") as process:
        line = wait_for_progress(process)
        for word in (", bound ", ", gap ", " s\n"):
            assert word in line, line
        process.send_signal(signal.SIGINT)
        out, said = process.communicate()
        assert process.returncode == 0, (process.returncode, said)
        assert "taktc: warning: interrupted: took the best so far: stages " in said
        assert "; schedule " in said, said
        report = json.loads(out)
        assert report["interrupted"] is True, out
        assert 0 < report["search"]["bound_ns"] < report["search"]["makespan_ns"]
        run("takt-plan", "check", folder + "/job.plan")
        assert plans(folder) == ["job.plan"], plans(folder)


def twice():
    with temporary_folder() as folder, start(folder, "--progress") as process:
        wait_for_progress(process)
        # Pending signals of one kind are one, so the process is sent another
        # until it has ended.
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(timeout=0.001)
            except subprocess.TimeoutExpired:
                pass
        process.communicate()
        # The plan may have been there before the second one came.
        assert process.returncode in (0, 130, -signal.SIGINT), process.returncode
        assert plans(folder) in ([], ["job.plan"]), plans(folder)
        if plans(folder):
            run("takt-plan", "check", folder + "/job.plan")
        return process.returncode


def anywhere(delay):
    """Falls into start, reading, stages, search, or what follows."""
    with temporary_folder() as folder, start(folder) as process:
        try:
            process.wait(timeout=delay)
        except subprocess.TimeoutExpired:
            pass
        process.send_signal(signal.SIGINT)
        out, said = process.communicate()
        # Before the handler is there, a signal ends the process.
        assert process.returncode in (0, -signal.SIGINT), (process.returncode, said)
        assert plans(folder) == (["job.plan"] if process.returncode == 0 else [])
        if process.returncode == 0:
            run("takt-plan", "check", folder + "/job.plan")
        # Nothing but the report into a pipe that nobody asked for progress in.
        assert "constraint solver: best" not in said, said
        return process.returncode == 0


def main():
    once()
    code = twice()
    kept = sum(anywhere(0.01 * step) for step in range(12))
    print(f"interrupted once: the best so far; twice: exit code {code}; at 12 other "
          f"moments: {kept} plans, none in part")


if __name__ == "__main__":
    main()
