#!/usr/bin/env bash
# Formats our C++ with clang-format; --check only reports what would change.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v clang-format >/dev/null || { echo "format: install clang-format" >&2; exit 1; }
mode=(-i)
[ "${1:-}" = --check ] && mode=(--dry-run -Werror)
git ls-files '*.cpp' '*.h' | grep -v '^test/data/' | xargs clang-format "${mode[@]}"
