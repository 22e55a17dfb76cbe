#!/usr/bin/env python3
"""The losses of a run do not depend on how it is cut or ordered: equal bit for
bit for every number of stages and schedule; close with replicas, whose gradients
are summed in another order.

Arguments: model (default: gpt-tiny), steps (default: 200).
"""
import sys

import takt


def main():
    model = sys.argv[1] if len(sys.argv) > 1 else takt.INPUTS / "gpt-tiny.yaml"
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    cluster = takt.INPUTS / "host-8.yaml"
    with takt.temporary_folder() as folder:
        reference = takt.train(takt.compile_plan(
            folder, "one", model, cluster, "--stages=1", "--replicas=1"), steps)
        failed = False
        for stages in (2, 4):
            for schedule in ("gpipe", "1f1b"):
                plan = takt.compile_plan(
                    folder, f"{schedule}{stages}", model, cluster,
                    f"--stages={stages}", "--replicas=1",
                    f"--schedule={schedule}")
                losses = takt.train(plan, steps)
                equal = losses == reference
                failed |= not equal
                print(f"{stages} stages {schedule}: {steps} losses "
                      f"{'equal bit for bit' if equal else 'DIFFER'}")
        plan = takt.compile_plan(folder, "replicas", model, cluster,
                                 "--stages=2", "--replicas=2")
        losses = takt.train(plan, steps)
        early = takt.largest_relative(losses[:20], reference[:20])
        late = abs(losses[-1] - reference[-1]) / abs(reference[-1])
        print(f"2 replicas of 2 stages: first 20 losses within {early:.2g}, "
              f"last within {late:.2g}")
        failed |= early > 1e-5 or late > 1e-3
        print(f"loss {reference[0]:.4f} -> {reference[-1]:.4f}")
        failed |= not reference[-1] < reference[0] - 1
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
