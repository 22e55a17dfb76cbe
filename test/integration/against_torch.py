#!/usr/bin/env python3
"""Twenty AdamW steps of a two-stage pipeline against PyTorch.

Argument: model (default: gpt-tiny).
"""
import subprocess
import sys

import takt


def main():
    model = sys.argv[1] if len(sys.argv) > 1 else takt.INPUTS / "gpt-tiny.yaml"
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
        sys.exit(done.returncode)


if __name__ == "__main__":
    main()
