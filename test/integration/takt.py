"""What the integration tests share: running the tools and reading losses."""
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("TAKT_BIN", ROOT / "build" / "bin"))
INPUTS = ROOT / "test" / "integration" / "Inputs"
TEXT = pathlib.Path("/usr/share/common-licenses/GPL-3")
SKIP = 77


def run(tool, *args, expect=0):
    """Runs a tool; fails the test with its output on another exit code."""
    command = [str(BIN / tool), *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != expect:
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
    """A port of this machine that nobody uses now."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]
