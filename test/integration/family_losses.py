#!/usr/bin/env python3
"""Plans of every family of schedules that has exact steps train, on threads and
as processes, with the losses of one stage, bit for bit, as far as its order adds
gradients up as one stage does; where it does not, taktc says so. Families whose
steps are not exact, or that need copies of stages, make no plan."""
import json
import sys

import takt

MODEL = takt.INPUTS / "gpt-tiny.yaml"
CLUSTER = takt.INPUTS / "host-8.yaml"
STEPS = 5


def compile_family(folder, name, chunks, ranks):
    """The plan, and whether taktc warned of another order of sums."""
    plan = f"{folder}/{name}-{chunks}x{ranks}.plan"
    done = takt.run("taktc", MODEL, CLUSTER, "-o", plan, "--replicas=1",
                    f"--schedule={name}", f"--stages={ranks * chunks}",
                    f"--chunks={chunks}", "--quiet")
    return plan, "gradients add up in another order" in done.stderr


def main():
    families = json.loads(takt.run("taktc", "schedules", "--format=json").stdout)
    trained = refused = 0
    with takt.temporary_folder() as folder:
        expected = losses(takt.compile_plan(
            folder, "one", MODEL, CLUSTER, "--stages=1", "--replicas=1"),
            "--threads")
        for family in families:
            name = family["name"]
            if family["why_no_plan"]:
                takt.run("taktc", MODEL, CLUSTER, "-o", f"{folder}/none.plan",
                         f"--schedule={name}", "--stages=2", expect=2)
                refused += 1
                continue
            least = family["least_chunks"]
            most = min(family["most_chunks"] or 2, 2)
            for chunks in range(least, most + 1):
                for ranks in (2, 3):
                    plan, reordered = compile_family(folder, name, chunks, ranks)
                    takt.run("takt-plan", "check", plan)
                    for mode in ("--threads", f"-n{ranks}"):
                        got = losses(plan, mode)
                        if not reordered and got != expected:
                            sys.exit(f"{name}, {chunks} a rank, {ranks} ranks, "
                                     f"{mode}: {got} instead of {expected}")
                        if reordered and takt.largest_relative(got, expected) > 1e-3:
                            sys.exit(f"{name}: {got} far from {expected}")
                    trained += 1
    if not trained or not refused:
        sys.exit("no family has a plan, or none has none")
    print(f"{trained} plans of {len(families) - refused} families: {STEPS} losses "
          f"equal to one stage's bit for bit; {refused} families refused")


def losses(plan, mode):
    log = f"{plan}.losses"
    takt.run("takt-run", plan, mode, "--data", takt.TEXT, "--steps", STEPS,
             "--quiet", "--log-losses", log)
    with open(log, encoding="utf-8") as lines:
        return [float.fromhex(line.split()[1]) for line in lines]


if __name__ == "__main__":
    main()
