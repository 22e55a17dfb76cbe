#!/usr/bin/env python3
"""Part 2: proof, simulator, pictures, schedules in and out."""
import json
import re
import resource
import tempfile

from common import BUILD, ROOT, cost, finish, integration, report, run, unit


def line_3_hostile_input():
    """10,000 mutants of each reader: taken, or refused with a place."""
    corpus = ROOT / "test/fuzz/corpus"
    for folder in sorted(f for f in corpus.iterdir() if f.is_dir()):
        harness = BUILD / "test/fuzz" / f"fuzz-{folder.name}"
        line = f"3 {folder.name}"
        if not harness.exists():
            report(line, False, f"{harness.name} is not built")
            continue
        with tempfile.TemporaryDirectory() as place:
            done = run("env", "-C", place, harness, folder, "10000")
        said = re.search(r"\d+ mutants.*", done.stdout)
        report(line, done.returncode == 0 and bool(said),
               said.group(0) if said else done.stderr.strip()[-500:])


def line_4_small_optima():
    """The optima of exact-small.json through the solver's door, each within
    2 CPU seconds (the test asks four times and compares answer and work), and the
    same work in two runs of the program."""
    found = sorted(BUILD.glob("test/unit/**/ScheduleSearchTests"))
    if not found:
        report("4a", False, "ScheduleSearchTests is not built")
        return
    listed = run(found[0], "--gtest_list_tests", "--gtest_filter=*ExactSmall*")
    names = [line.split()[0] for line in listed.stdout.splitlines()
             if line.startswith("  ")]
    worst, works, fine = 0.0, [], len(names) == 20
    for name in names:
        seen = []
        for _ in range(2):
            with tempfile.NamedTemporaryFile(suffix=".json") as out:
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                done = run(found[0], f"--gtest_filter=*ExactSmall.{name}",
                           f"--gtest_output=json:{out.name}")
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                worst = max(worst, after.ru_utime + after.ru_stime -
                            before.ru_utime - before.ru_stime)
                test = json.load(out)["testsuites"][0]["testsuite"][0]
                fine &= done.returncode == 0 and test["result"] == "COMPLETED"
                seen.append((test.get("work"), test.get("makespan")))
        fine &= seen[0] == seen[1] and seen[0][0] is not None
        works.append(int(seen[0][0] or 0))
    report("4a", fine and worst <= 2,
           f"{len(names)} optima proven, worst {worst:.2f} CPU s for four "
           f"answers, solver work {min(works)} to {max(works)}")


def line_2_schedule_files():
    """PyTorch's schedule files take the expected times; files train."""
    report("2b", *unit("ScheduleFileTimesTest", "*"))
    report("2f", *integration("schedule_files"))


def line_7_schedules_in_pytorch():
    """What Takt writes runs in PyTorch with the losses of Takt's plan."""
    report("7a", *integration("torch_csv"))
    report("7b", *integration("torch_pipelining"))


def line_4_overlap():
    """Buckets: optimal where small, never longer, and the same losses."""
    report("4c", *unit("OverlapTests", "Overlap.*BruteForce"))
    report("4d", *unit("OverlapTests", "ChooseOverlap.StepsAreNeverLonger"))
    report("4e", *integration("overlapped_losses"))


def line_6_contradictions():
    """Ten contradictory files: lines named, suggestions applied."""
    report("6", *integration("contradictions"))


def line_2_simulator():
    """Published, computed and measured values under the virtual clock."""
    report("2a", *unit("TimedPlanTest", "TimedPlan.UniformSchedules:"
                                        "TimedPlan.ProfiledStages"))
    report("2c", *unit("TimedPlanTest", "TimedPlan.MeasuredIterations"))
    report("2d", *unit("takt_runtime_core_test", "Contention.RingAllReduce"))
    report("2e", *unit("TimedPlanTest", "TimedPlan.ZeroBubbleRates"))


def line_5_simulated():
    """393,216 actions made into a plan and simulated; CPU of the program."""
    found = sorted(BUILD.glob("test/unit/**/LargeScheduleTest"))
    if not found:
        report("5c", False, "LargeScheduleTest is not built")
        return
    seconds, megabytes = cost([found[0]])
    report("5c", seconds is not None and seconds <= 2,
           "the simulation of 393,216 actions failed" if seconds is None else
           f"393,216 actions planned and simulated in {seconds:.2f} CPU s, "
           f"{megabytes:.0f} MB")


def line_5_schedule_file():
    """64 ranks of two chunks, 1,024 micro-batches: 262,144 actions as a file,
    then as the plan of a model of known costs."""
    with tempfile.TemporaryDirectory() as place:
        file, plan = f"{place}/chunks.csv", f"{place}/job.plan"
        with open(file, "w") as out:
            out.write(interleaved(64, 2, 1024))
        for line, command in (("5d", "check"), ("5e", "simulate")):
            seconds, _ = cost([BUILD / "bin/takt-plan", command, file])
            report(line, seconds is not None and seconds <= 2,
                   f"takt-plan {command} of the file failed" if seconds is None
                   else f"takt-plan {command} of a file of 262,144 actions: "
                        f"{seconds:.2f} CPU s")
        with open(f"{place}/model.yaml", "w") as out:
            out.write(profiled_model(128, 1024))
        done = run(BUILD / "bin/taktc", f"{place}/model.yaml", "a100-8x8",
                   "--replicas=1", f"--schedule={file}", "-q", "-o", plan)
        if done.returncode != 0:
            report("5f", False, f"taktc failed: {done.stderr.strip()[-300:]}")
            return
        for line, command in (("5f", "check"), ("5g", "simulate")):
            seconds, _ = cost([BUILD / "bin/takt-plan", command, plan])
            report(line, seconds is not None and seconds <= 2,
                   f"takt-plan {command} of the plan failed" if seconds is None
                   else f"takt-plan {command} of the compiled plan: "
                        f"{seconds:.2f} CPU s")


def interleaved(ranks, chunks, micro_batches):
    """Interleaved 1F1B as a schedule file."""
    rows, total, turn_length = [], micro_batches * chunks, ranks * chunks
    for rank in range(ranks):
        def action(kind, turn):
            chunk = turn % turn_length // ranks
            chunk = chunk if kind == "F" else chunks - 1 - chunk
            micro_batch = turn // turn_length * ranks + turn % ranks
            return f"{chunk * ranks + rank}{kind}{micro_batch}"

        ahead = min(total, (ranks - rank - 1) * 2 + (chunks - 1) * ranks)
        row = []
        for turn in range(total + ahead):
            if turn < total:
                row.append(action("F", turn))
            if turn >= ahead:
                row.append(action("B", turn - ahead))
        rows.append(",".join(row) + "\n")
    return "".join(rows)


def profiled_model(layers, micro_batches):
    """A chain of equal layers known by costs only."""
    cost = ("samples: 1, forward: 1 ms, backward: 2 ms, activation: 64 KB, "
            "parameters: 1 MB")
    return f"""schema_version: 1
model:
  name: chain
  layers:
    - profiled: {{name: first, {cost}}}
    - repeat:
        name: l
        count: {layers - 1}
        layers:
          - profiled: {{name: p, {cost}}}
training: {{global_batch: {micro_batches}, micro_batches: {micro_batches}}}
data: {{kind: synthetic}}
"""


def line_1_proof():
    report("1a", *unit("ProofTests", "Traps.*"))
    report("1b", *unit("ProofTests", "Proof.AThousandRandomPlansHold"))
    report("1c", *unit("ProofTests", "Proof.AThousandFaultsAreRefused"))
    report("1d", *unit("ProofTests", "Deadlocks.*"))
    report("1e", *unit("ProofTests", "Certificate.*"))


def line_5_proof():
    found = sorted(BUILD.glob("test/unit/**/ProofTests"))
    text = run(found[0], "--gtest_filter=ProofFigures.*").stdout if found else ""
    for line, name, limit in (("5a", "many-actions", 2), ("5b", "symmetric", 1)):
        figures = re.search(rf"^{name}: .*proved ([0-9.]+) s.*simulated ([0-9.]+) s.*read ([0-9.]+) s.*",
                            text, re.M)
        report(line, bool(figures) and
               all(float(figures.group(i)) <= limit for i in (1, 2, 3)),
               figures.group(0) if figures else "ProofTests printed no figures")
        ratio = re.search(rf"^{name}: .*certificate [0-9.]+ s \(([0-9.]+) of",
                          text, re.M)
        report(line + " certificate", bool(ratio)
               and float(ratio.group(1)) <= 0.5,
               f"takes {ratio.group(1)} of the time of the proof"
               if ratio else "ProofTests printed no ratio")


def main():
    line_2_schedule_files()
    line_1_proof()
    line_5_proof()
    line_2_simulator()
    line_5_simulated()
    line_5_schedule_file()
    line_3_hostile_input()
    line_4_small_optima()
    line_4_overlap()
    line_6_contradictions()
    line_7_schedules_in_pytorch()
    finish()


if __name__ == "__main__":
    main()
