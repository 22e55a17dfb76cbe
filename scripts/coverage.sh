#!/usr/bin/env bash
# Prints each published system that docs/reference/systems.md lists, and how many
# tests carry its label. Exit 1 if page and labels disagree: a place without a
# test, a test without a place, a label without a row.
# TAKT_BUILD_DIR moves the build that is asked.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${TAKT_BUILD_DIR:-build}
[ -f "$build/CTestTestfile.cmake" ] ||
  { echo "coverage: no build in '$build'; run scripts/setup.sh" >&2; exit 2; }
ctest --test-dir "$build" --show-only=json-v1 |
  exec python3 scripts/coverage.py docs/reference/systems.md
