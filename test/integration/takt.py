"""What the integration tests share: running the tools and reading losses."""
import os
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("TAKT_BIN", ROOT / "build" / "bin"))
INPUTS = ROOT / "test" / "integration" / "Inputs"
TEXT = pathlib.Path("/usr/share/common-licenses/GPL-3")
SKIP = 77


def run(tool, *args, expect=0):
    """Runs a tool; fails the test with its output on another exit code than the
    one expected (None: any will do)."""
    command = [str(BIN / tool), *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True)
    if expect is not None and done.returncode != expect:
        sys.exit(f"{' '.join(command)}\nexited with {done.returncode}, expected "
                 f"{expect}\n{done.stdout}{done.stderr}")
    return done


def compile_plan(folder, name, model, cluster, *options):
    plan = pathlib.Path(folder) / f"{name}.plan"
    run("taktc", model, cluster, "-o", plan, "--quiet", *options)
    return plan


def train(plan, steps, *options):
    """Losses of a run, as exact floats."""
    losses = plan.with_suffix(".losses")
    run("takt-run", plan, "--threads", "--data", TEXT, "--steps", steps,
        "--quiet", "--log-losses", losses, *options)
    # Each line: decimal, then the hexadecimal float with every bit.
    return [float.fromhex(line.split()[1]) for line in losses.open()]


def largest_relative(a, b):
    assert len(a) == len(b) and a
    return max(abs(x - y) / abs(y) for x, y in zip(a, b))


def temporary_folder():
    return tempfile.TemporaryDirectory(prefix="takt-test-")


def free_port():
    """A port of this machine that nobody uses now, and that none gets who asks
    the system for any port, as every connection does."""
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as listening:
            try:
                listening.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def start_ranks(plan, environments, *options, prefixes=None):
    """One takt-run a rank, each with variables of its own beside this test's;
    those of launchers that this test runs under are left out."""
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(("TAKT_", "SLURM_", "OMPI_", "PMI", "MPI_"))
             and name not in ("RANK", "WORLD_SIZE", "JOB_COMPLETION_INDEX")}
    return [subprocess.Popen(
        [*(prefixes[rank] if prefixes else ()), str(BIN / "takt-run"),
         str(plan), *map(str, options)],
        env={**clean, **{k: str(v) for k, v in variables.items()}},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for rank, variables in enumerate(environments)]


def end_ranks(runs, timeout=120):
    """(exit code, standard error) of each; kills what does not end."""
    ends = []
    for run in runs:
        try:
            ends.append((run, run.communicate(timeout=timeout)[1]))
        except subprocess.TimeoutExpired:
            for other in runs:
                other.kill()
            sys.exit(f"a rank did not end in {timeout} s: {run.args}")
    return [(run.returncode, said) for run, said in ends]


def children_of(launcher, count):
    """Process numbers of a launcher's ranks, by rank, once all are there."""
    path = pathlib.Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children")
    for _ in range(2000):
        pids = [int(pid) for pid in path.read_text().split()]
        if len(pids) == count:
            return sorted(pids)
        time.sleep(0.01)
    sys.exit(f"the launcher has {len(pids)} children, expected {count}")
