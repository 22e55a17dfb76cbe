#!/usr/bin/env python3
"""Schedules that others wrote train with the same losses, bit for bit, as long
as gradients add up in the order of micro-batches; else taktc warns."""
import pathlib
import sys

import takt

MODEL = takt.INPUTS / "gpt-tiny.yaml"
CLUSTER = takt.INPUTS / "host-8.yaml"
STEPS = 10
FILES = {
    # Neither GPipe nor 1F1B: one micro-batch more on the way, F out of order.
    "permuted": """0F1,0F0,0F2,0B0,0F3,0B1,0B2,0B3
1F1,1F0,1B0,1B1,1F2,1B2,1F3,1B3
""",
    # The weight gradients of stage 0 at the end, a rank of stage 1 first.
    "split": """1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3
0F0,0F1,0I0,0F2,0I1,0F3,0I2,0I3,0W0,0W1,0W2,0W3
""",
}
BACKWARDS = """0F0,0F1,0F2,0F3,0B3,0B2,0B1,0B0
1F0,1F1,1F2,1F3,1B3,1B2,1B1,1B0
"""


def main():
    with takt.temporary_folder() as folder:
        def losses(name, *options):
            plan = takt.compile_plan(folder, name, MODEL, CLUSTER,
                                     "--replicas=1", *options)
            return takt.train(plan, STEPS)

        expected = losses("one", "--stages=1")
        for name, text in FILES.items():
            file = pathlib.Path(folder) / f"{name}.csv"
            file.write_text(text)
            if losses(name, f"--schedule={file}") != expected:
                sys.exit(f"{name}: losses differ")
        # A replicated stage reads files too.
        wide = takt.compile_plan(folder, "wide", MODEL, CLUSTER, "--replicas=2",
                                 f"--schedule={folder}/permuted.csv")
        named = takt.compile_plan(folder, "named", MODEL, CLUSTER,
                                  "--replicas=2", "--stages=2")
        if takt.train(wide, STEPS) != takt.train(named, STEPS):
            sys.exit("with two replicas: losses differ")

        file = pathlib.Path(folder) / "backwards.csv"
        file.write_text(BACKWARDS)
        warned = takt.run("taktc", MODEL, CLUSTER, f"--schedule={file}",
                          "--replicas=1", "-o", f"{folder}/backwards.plan",
                          "--quiet").stderr
        place = f"{file}:1:1: warning: '0B2' does not come in the order"
        if place not in warned:
            sys.exit(f"no warning about the order of gradients:\n{warned}")
        other = takt.train(pathlib.Path(f"{folder}/backwards.plan"), STEPS)
        worst = takt.largest_relative(other, expected)
        if worst > 1e-5:
            sys.exit(f"backwards: losses differ by {worst:.3g}")
        print(f"{len(FILES)} schedule files: {STEPS} losses equal bit for bit; "
              f"gradients added backwards differ by {worst:.3g} and are warned "
              f"of")


if __name__ == "__main__":
    main()
