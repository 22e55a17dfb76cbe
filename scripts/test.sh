#!/usr/bin/env bash
# Set-up and all tests. Arguments go to ctest (for instance -R Lower).
set -euo pipefail
cd "$(dirname "$0")/.."
build=${TAKT_BUILD_DIR:-build}
scripts/setup.sh --with-debian-torch
exec ctest --test-dir "$build" --output-on-failure -j "$(nproc)" "$@"
