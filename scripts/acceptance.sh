#!/usr/bin/env bash
# Runs the acceptance lines of a part in full: scripts/acceptance.sh N.
# Lines that need a newer PyTorch run after scripts/setup.sh --with-torch.
# One PASS, FAIL or SKIP (why) a line, with its figure; exit 1 if any failed.
set -euo pipefail
cd "$(dirname "$0")/.."
part=${1:?usage: scripts/acceptance.sh PART}
script=scripts/acceptance/part$part.py
[ -f "$script" ] || { echo "acceptance: there is no part $part yet" >&2; exit 2; }
scripts/setup.sh --with-debian-torch
exec python3 "$script"
