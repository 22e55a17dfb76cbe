"""Lines 5 and 6 of part 3: what the runtime costs, and what predictions are worth.

Ratios are medians of five, each of a run and the prediction for it, so that a
machine that is slower today is slower in both. Other load is in the figures: the
machine has to be quiet.
"""
import json
import pathlib
import re
import statistics
import tempfile

from common import BIN, BUILD, ROOT, report, run

MODEL = ROOT / "examples/gpt-small.yaml"
TEXT = "/usr/share/common-licenses/GPL-3"
STEPS = 12
REPEATS = 5


def line_5_overhead():
    """Nanoseconds and allocations an instruction, by the benchmark."""
    program = BUILD / "bench/interpreter-bench"
    if not program.exists():
        report("5a", None, f"{program} is not built: Google Benchmark is missing")
        return
    rows = json.loads(run(program, "--benchmark_format=json").stdout)["benchmarks"]
    # Over TCP the thread of the sockets is waited for, which is not overhead.
    worst = max(r["per_instruction"] for r in rows if "tcp" not in r["name"])
    tcp = max(r["per_instruction"] for r in rows if "tcp" in r["name"])
    allocations = sum(r["allocations"] for r in rows)
    report("5a", worst < 2e-6 and allocations == 0,
           f"{worst * 1e9:.0f} ns an instruction at most (over TCP "
           f"{tcp * 1e9:.0f} ns, waits counted), {allocations:.0f} allocations "
           "after the first step")


def checked(*command):
    done = run(*command)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]}: {done.stderr.strip()[-300:]}")
    return done.stdout


def compiled(plan, cluster, *options):
    """The report of taktc, and the plan in a file."""
    return json.loads(checked(BIN / "taktc", MODEL, cluster, "-o", plan,
                              "--format=json", *options))


def measured(plan, ranks, *options):
    """The report of a run with a process a rank."""
    return json.loads(checked(BIN / "takt-run", plan, "-n", ranks, "--data", TEXT,
                              "--steps", STEPS, "--format=json", *options))


def same_cuts(layout):
    """Options that keep the stages of a report, whatever the costs."""
    stages = layout["stages"]
    cuts = [stage["layers"][0] for stage in stages[1:]]
    options = [f"--stages={len(stages)}", f"--replicas={stages[0]['replicas']}"]
    return options + ([f"--cuts={','.join(cuts)}"] if cuts else [])


def calibrated(folder, ranks):
    cluster = pathlib.Path(folder) / f"cluster-{ranks}.yaml"
    checked(BIN / "takt-run", "calibrate", "-n", ranks, "-q", "-o", cluster)
    return cluster


def of_own_bound(folder, cluster):
    """Bound by measured one: the bound is the step that the schedule takes with
    the times that layers had in this very run."""
    plan, profile = f"{folder}/pipeline.plan", f"{folder}/own.yaml"
    keep = same_cuts(compiled(plan, cluster, "--stages=2", "--replicas=1"))
    ratios = []
    for _ in range(REPEATS):
        took = measured(plan, 2, "--profile", profile)["median_step_ns"]
        bound = compiled(f"{folder}/bound.plan", cluster, "--profile", profile,
                         *keep)["step_time_ns"]
        ratios.append(bound / took)
    return ratios


def of_prediction(folder, cluster, ranks, layout, profile_layout, *options):
    """Measured by predicted step; layers are profiled in a run before."""
    plan, profile = f"{folder}/job.plan", f"{folder}/profile.yaml"
    first = f"{folder}/first.plan"
    ratios = []
    for _ in range(REPEATS):
        shape = compiled(first, cluster, *profile_layout)
        measured(first, shape["ranks"], "--profile", profile)
        compiled(plan, cluster, "--profile", profile, *layout)
        ratios.append(measured(plan, ranks, *options)["ratio"])
    return ratios


def listed(ratios):
    return (f"median {statistics.median(ratios):.3f} of "
            + ", ".join(f"{ratio:.3f}" for ratio in sorted(ratios)))


def slow_links(folder, cluster):
    """Links that this machine can stand for: slower than its own."""
    text, count = re.subn(r"{latency: [^}]*}",
                          "{latency: 500 us, bandwidth: 200 MB/s}",
                          cluster.read_text())
    assert count == 1, text
    slow = pathlib.Path(folder) / "slow.yaml"
    slow.write_text(text)
    return slow


def guarded(line, name, judge, measure):
    try:
        ratios = measure()
    except (RuntimeError, OSError, ValueError, KeyError) as error:
        report(line, False, f"{name}: {error}")
        return
    report(line, judge(statistics.median(ratios)), f"{name}: {listed(ratios)}")


def lines_5_and_6():
    with tempfile.TemporaryDirectory() as folder:
        try:
            two, four = calibrated(folder, 2), calibrated(folder, 4)
        except RuntimeError as error:
            report("6", False, f"calibrate: {error}")
            return
        pipeline = ["--stages=2", "--replicas=1"]
        guarded("5b", "2-rank pipeline, throughput by that of its bound",
                lambda median: median >= 0.85, lambda: of_own_bound(folder, two))

        def within(median):
            return 0.85 <= median <= 1.15
        guarded("6", "2-rank pipeline, measured by predicted", within,
                lambda: of_prediction(folder, two, 2, pipeline, pipeline))
        replicas = ["--stages=1", "--replicas=2"]
        guarded("6", "2-rank data-parallel, measured by predicted", within,
                lambda: of_prediction(folder, two, 2, replicas, replicas))
        both = ["--stages=2", "--replicas=2"]
        guarded("6", "4 ranks with emulated links, measured by predicted", within,
                lambda: of_prediction(folder, slow_links(folder, four), 4, both,
                                      both, "--emulate-links"))
