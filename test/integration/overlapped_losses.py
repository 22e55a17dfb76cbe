#!/usr/bin/env python3
"""Reducing gradients in buckets beside the last backward changes no bit: the
losses are those of one all-reduce after compute, with 2 replicas and, as the host
sums in the order of ranks, with 4.

Arguments: model (default: gpt-tiny), steps (default: 40).
"""
import re
import sys

import takt


def main():
    model = sys.argv[1] if len(sys.argv) > 1 else takt.INPUTS / "gpt-tiny.yaml"
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    cluster = takt.INPUTS / "host-8.yaml"
    failed = False
    with takt.temporary_folder() as folder:
        for stages, replicas, lanes in ((1, 2, 1), (2, 2, 1), (2, 2, 2),
                                        (2, 4, 1)):
            shape = (f"--stages={stages}", f"--replicas={replicas}")
            name = f"{stages}x{replicas}-{lanes}"
            plain = takt.compile_plan(folder, f"plain-{name}", model, cluster,
                                      *shape, "--overlap=off")
            plan = takt.compile_plan(folder, f"overlap-{name}", model, cluster,
                                     *shape, "--bucket-size=16KB",
                                     f"--reduce-lanes={lanes}")
            text = takt.run("taktc", model, cluster, *shape,
                            "--bucket-size=16KB", f"--reduce-lanes={lanes}",
                            "--emit=comm", "-o", "-").stdout
            buckets = len(re.findall(r"coll\.group @\S+ stage \d+ bucket", text))
            expected = takt.train(plain, steps)
            losses = takt.train(plan, steps)
            equal = losses == expected
            failed |= not equal or buckets < 2
            print(f"{stages} stages of {replicas} replicas, {buckets} buckets, "
                  f"{lanes} lanes: {steps} losses "
                  f"{'equal bit for bit' if equal else 'DIFFER'}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
