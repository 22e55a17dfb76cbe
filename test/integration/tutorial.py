#!/usr/bin/env python3
"""Runs every command of a guide (by default the tutorial), in order, as a reader would paste them.

The commands are the fenced `sh` blocks; they run in one shell in an empty folder
that has the repository's files. A block that fails fails the test. Output that
the tutorial shows (fenced `text` blocks after `<!-- check: PATTERN -->`) must
match the pattern.
"""
import os
import re
import subprocess
import sys

import takt


def blocks(markdown):
    """(commands, pattern or None) of each fenced sh block."""
    pattern = re.compile(
        r"```sh\n(.*?)```(?:\s*<!-- check: (.*?) -->)?", re.DOTALL)
    return [(m.group(1), m.group(2)) for m in pattern.finditer(markdown)]


def main():
    name, least = (sys.argv[1], 3) if sys.argv[1:] else ("tutorial", 5)
    guide = takt.ROOT / "docs" / "guides" / f"{name}.md"
    found = blocks(guide.read_text())
    if len(found) < least:
        sys.exit(f"{guide} has only {len(found)} command blocks")
    with takt.temporary_folder() as folder:
        # The tutorial's first command sets PATH for a build in ./build.
        os.symlink(takt.ROOT / "examples", f"{folder}/examples")
        os.symlink(takt.ROOT / "scripts", f"{folder}/scripts")
        env = dict(os.environ, PATH=f"{takt.BIN}:{os.environ['PATH']}")
        for commands, pattern in found:
            if "scripts/setup.sh" in commands or "export PATH" in commands:
                continue  # done before any test can run
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", commands],
                                  cwd=folder, env=env, text=True,
                                  stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
            output = done.stdout
            if done.returncode != 0:
                sys.exit(f"this block failed:\n{commands}\n{output}")
            if pattern and not re.search(pattern, output):
                sys.exit(f"no '{pattern}' in the output of:\n{commands}\n"
                         f"{output}")
            print(f"ok: {commands.strip().splitlines()[0]}")


if __name__ == "__main__":
    main()
