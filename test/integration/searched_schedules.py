"""Schedules that were searched for train as 1F1B does: the same losses bit for
bit, with backward whole or cut into its halves, on two stages and on four."""
import sys

from takt import ROOT, compile_plan, run, temporary_folder, train

STEPS = 4


def main():
    model = ROOT / "examples" / "gpt-small.yaml"
    compared = 0
    with temporary_folder() as folder:
        for cluster, stages in (("host-2core", 2), ("h100-8", 4)):
            def losses(schedule):
                plan = compile_plan(folder, f"{schedule}-{stages}", model, cluster,
                                    f"--stages={stages}", "--replicas=1",
                                    f"--schedule={schedule}")
                return train(plan, STEPS)
            expected = losses("1f1b")
            for schedule in ("optimal", "optimal-split"):
                if losses(schedule) != expected:
                    sys.exit(f"{schedule} on {stages} stages trains differently")
                compared += 1
        report = run("taktc", model, "host-2core", "--stages=2",
                     "--schedule=optimal-split").stderr
        if "schedule optimal-split: " not in report:
            sys.exit(f"no line about the schedule in\n{report}")
    print(f"{compared} searched schedules with the losses of 1f1b over {STEPS} steps")


if __name__ == "__main__":
    main()
