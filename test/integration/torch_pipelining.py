#!/usr/bin/env python3
"""Schedule files that Takt writes, loaded by PyTorch's own pipelining runtime.

The Python with a PyTorch that has it is TAKT_TORCH_PYTHON or that of the
virtual environment which `scripts/setup.sh --with-torch` makes in the build
folder; without one the test is skipped.
"""
import os
import subprocess
import sys

import takt
import torch_csv


def find_python():
    named = os.environ.get("TAKT_TORCH_PYTHON")
    if named:
        return named
    made = takt.BIN.parent / "torch-venv" / "bin" / "python"
    return str(made) if made.exists() else None


def main():
    python = find_python()
    if not python:
        print("SKIP: no Python with PyTorch 2.6 or later (TAKT_TORCH_PYTHON, or "
              "scripts/setup.sh --with-torch)")
        sys.exit(takt.SKIP)
    with takt.temporary_folder() as folder:
        for name, arguments in torch_csv.cases(folder):
            done = subprocess.run(
                [python,
                 takt.ROOT / "test/integration/torch_pipelining_worker.py",
                 *map(str, arguments)], capture_output=True, text=True)
            print(f"{name}: {(done.stdout + done.stderr).strip()[-2000:]}")
            if done.returncode != 0:
                sys.exit(done.returncode)


if __name__ == "__main__":
    main()
