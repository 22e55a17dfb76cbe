#!/usr/bin/env python3
"""A signal ends a run after the step under way; what was asked for is written."""
import signal
import subprocess
import sys

import takt


def main():
    with takt.temporary_folder() as folder:
        plan = takt.compile_plan(folder, "job", takt.INPUTS / "gpt-tiny.yaml",
                                 takt.INPUTS / "host-8.yaml", "--stages=2",
                                 "--replicas=1")
        weights = f"{folder}/weights.safetensors"
        run = subprocess.Popen(
            [takt.BIN / "takt-run", plan, "--data", takt.TEXT, "--steps",
             "1000000", "-q", "--save-weights", weights, "--log-losses", "-"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3):  # it trains
            assert run.stdout.readline().strip()
        run.send_signal(signal.SIGINT)
        _, said = run.communicate()
        assert run.returncode == 0, (run.returncode, said)
        assert "stopped by a signal" in said, said
        takt.run("takt-run", plan, "--data", takt.TEXT, "--steps", 1, "-q",
                 "--load-weights", weights)
    print("stopped after a step, weights written and loaded again")
    sys.exit(0)


if __name__ == "__main__":
    main()
