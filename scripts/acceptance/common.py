"""Reporting and measuring for the acceptance scripts."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TAKT_BUILD_DIR", ROOT / "build")).resolve()
BIN = BUILD / "bin"
ENV = dict(os.environ, TAKT_BIN=str(BIN), PYTHONDONTWRITEBYTECODE="1")
failures = 0


def report(line, verdict, figure):
    """Verdict: True, False, or None for a skip (the figure says why)."""
    global failures
    if verdict is None:
        print(f"{line:4} SKIP ({figure})", flush=True)
        return
    failures += not verdict
    print(f"{line:4} {'PASS' if verdict else 'FAIL'} {figure}", flush=True)


def finish():
    sys.exit(1 if failures else 0)


def run(*command, **options):
    return subprocess.run([str(c) for c in command], capture_output=True,
                          text=True, env=ENV, cwd=ROOT, **options)


def integration(name, *arguments):
    """(passed or None when skipped, its last lines)."""
    done = run("python3", ROOT / "test/integration" / f"{name}.py", *arguments)
    lines = (done.stdout + done.stderr).strip().splitlines()
    if done.returncode == 77:
        return None, lines[-1] if lines else "skipped"
    return done.returncode == 0, "; ".join(lines)


def unit(program, test_filter):
    """Runs tests of a unit program: (all passed and at least one, how many)."""
    found = sorted(BUILD.glob(f"test/unit/**/{program}"))
    if not found:
        return False, f"{program} is not built"
    done = run(found[0], f"--gtest_filter={test_filter}")
    passed = done.stdout.count("[       OK ]")
    return done.returncode == 0 and passed > 0, f"{passed} tests of {program}"


def cost(command, repeat=5):
    """Least CPU seconds of `repeat` runs, and the largest resident set in MB."""
    best, peak = float("inf"), 0
    for _ in range(repeat):
        pid = os.fork()
        if pid == 0:
            with open(os.devnull, "w") as null:
                os.dup2(null.fileno(), 1)
                os.dup2(null.fileno(), 2)
            os.execve(str(command[0]), [str(c) for c in command], ENV)
        _, status, usage = os.wait4(pid, 0)
        if status != 0:
            return None, None
        best = min(best, usage.ru_utime + usage.ru_stime)
        peak = max(peak, usage.ru_maxrss / 1024)
    return best, peak


def measured(line, program, test, seconds, megabytes=None, repeat=5):
    """A test must pass within so many CPU seconds of its program."""
    found = sorted(BUILD.glob(f"test/unit/**/{program}"))
    if not found:
        report(line, False, f"{program} is not built")
        return
    listed = run(found[0], "--gtest_list_tests", f"--gtest_filter={test}")
    if len(listed.stdout.splitlines()) < 2:
        report(line, False, f"{program} has no {test}")
        return
    used, peak = cost([found[0], f"--gtest_filter={test}"], repeat)
    if used is None:
        report(line, False, f"{test} failed")
        return
    fine = used <= seconds and peak <= (megabytes or peak)
    report(line, fine, f"{test.split('/')[-1]}: {used:.2f} of {seconds:g} CPU s, "
                       f"{peak:.0f} MB")


def json_of(*command):
    import json
    done = run(*command)
    return json.loads(done.stdout)
