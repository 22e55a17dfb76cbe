#!/usr/bin/env python3
"""Two compilations of the same inputs give the same bytes; a plan survives its
text form; large plans stay small."""
import sys

import takt

LIMIT = 2 * 1000 * 1000  # bytes of a plan file


def wide_model(folder):
    """gpt-96 with micro-batches of 64 samples, for 64 replicas a stage."""
    text = (takt.ROOT / "examples/gpt-96.yaml").read_text()
    assert "global_batch: 256" in text
    path = f"{folder}/gpt-96-wide.yaml"
    with open(path, "w") as out:
        out.write(text.replace("global_batch: 256", "global_batch: 4096"))
    return path


def main():
    failed = False
    with takt.temporary_folder() as folder:
        cases = [
            ("small", takt.ROOT / "examples/gpt-small.yaml",
             takt.INPUTS / "host-8.yaml", ["--stages=4"]),
            ("mlp", takt.ROOT / "examples/mlp.yaml", "host-2core", []),
            ("large", takt.ROOT / "examples/gpt-96.yaml", "h100-8x8", []),
            ("wide", wide_model(folder), "h100-8x128", ["--stages=16"]),
        ]
        for name, model, cluster, options in cases:
            plans = [takt.compile_plan(folder, f"{name}{i}", model, cluster,
                                       *options) for i in range(2)]
            first, second = (plan.read_bytes() for plan in plans)
            text = f"{folder}/{name}.txt"
            back = f"{folder}/{name}.back"
            takt.run("takt-plan", "dump", plans[0], "-o", text)
            takt.run("takt-plan", "assemble", text, "-o", back)
            same = first == second
            lossless = open(back, "rb").read() == first
            small = len(first) < LIMIT
            print(f"{name}: {len(first)} bytes, same bytes twice: {same}, "
                  f"text form lossless: {lossless}")
            failed |= not (same and lossless and small)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
