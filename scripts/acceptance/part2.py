#!/usr/bin/env python3
"""Part 2: proof, simulator, pictures, schedules in and out."""
import json
import resource
import tempfile

from common import BUILD, finish, integration, report, run, unit


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


def line_4_overlap():
    """Buckets: optimal where small, never longer, and the same losses."""
    report("4c", *unit("OverlapTests", "Overlap.*BruteForce"))
    report("4d", *unit("OverlapTests", "ChooseOverlap.StepsAreNeverLonger"))
    report("4e", *integration("overlapped_losses"))


def line_6_contradictions():
    """Ten contradictory files: lines named, suggestions applied."""
    report("6", *integration("contradictions"))


def main():
    line_4_small_optima()
    line_4_overlap()
    line_6_contradictions()
    finish()


if __name__ == "__main__":
    main()
