#!/usr/bin/env python3
"""Twenty AdamW steps of a two-stage pipeline against PyTorch.

Argument: model (default: gpt-tiny and unet-tiny, one after the other).
"""
import subprocess
import sys

import takt


def compare(model):
    """Exit code of the reference."""
    with takt.temporary_folder() as folder:
        plan = takt.compile_plan(folder, "job", model,
                                 takt.INPUTS / "host-8.yaml", "--stages=2",
                                 "--replicas=1")
        initial = f"{folder}/initial.safetensors"
        takt.run("takt-run", plan, "--threads", "--data", takt.TEXT,
                 "--steps", 0, "--quiet", "--save-weights", initial)
        gradients = f"{folder}/gradients.safetensors"
        takt.train(plan, 20, "--load-weights", initial, "--dump-gradients",
                   gradients)
        # Debian's PyTorch belongs to Debian's Python.
        done = subprocess.run([
            "/usr/bin/python3",
            takt.ROOT / "test/integration/torch_reference.py",
            "--model", model, "--weights", initial, "--data", takt.TEXT,
            "--losses", plan.with_suffix(".losses"), "--gradients", gradients])
        return done.returncode


def main():
    models = sys.argv[1:] or [takt.INPUTS / "gpt-tiny.yaml",
                              takt.INPUTS / "unet-tiny.yaml"]
    for model in models:
        code = compare(model)
        if code:
            sys.exit(code)


if __name__ == "__main__":
    main()
