#!/usr/bin/env bash
# Writes docs/reference/dialects/*.md and docs/reference/passes.md from the
# TableGen files; --check only reports where they are out of date.
#   LLVM_DIR=DIR    prefix of LLVM 22 (default: /usr/lib/llvm-22)
set -euo pipefail
cd "$(dirname "$0")/.."
llvm=${LLVM_DIR:-/usr/lib/llvm-22}
reference=docs/reference
out=$reference
if [ "${1:-}" = --check ]; then
  out=$(mktemp -d)
  trap 'rm -rf "$out"' EXIT
elif [ $# -gt 0 ]; then
  echo "usage: scripts/generate-docs.sh [--check]" >&2
  exit 2
fi
mkdir -p "$out/dialects"

# generate FILE.md FLAG... FILE.td: without the table of contents mark that only
# MLIR's own site understands, and with single blank lines.
generate() {
  local page=$1
  shift
  "$llvm/bin/mlir-tblgen" -I "$llvm/include" -I dialects "$@" |
    grep -v '^\[TOC\]$' | cat -s >"$out/$page"
}

# The layers of the model dialect have a page of their own.
frame='^model\.(graph|output|param|repeat|yield)$'
for dialect in Model Pipe Coll; do
  name=${dialect,,}
  only=()
  [ "$dialect" = Model ] && only=("-op-include-regex=$frame")
  generate "dialects/$name.md" -gen-dialect-doc "-dialect=$name" \
    "${only[@]}" "dialects/$dialect/${dialect}Ops.td"
done
generate dialects/model-layers.md -gen-op-doc "-op-exclude-regex=$frame" \
  dialects/Model/ModelOps.td
generate passes.md -gen-pass-doc include/takt/Transforms/Passes.td
{
  echo '# Passes'
  echo
  echo 'In the order in which they run: `-takt-annotate-costs`,'
  echo '`-takt-assign-stages`, `-takt-schedule`, `-takt-insert-comms`.'
  echo '`-takt-pipeline` runs them all.'
  echo
} | cat - "$out/passes.md" >"$out/passes.tmp"
mv "$out/passes.tmp" "$out/passes.md"

if [ "$out" != "$reference" ]; then
  status=0
  for page in dialects/model.md dialects/model-layers.md dialects/pipe.md dialects/coll.md passes.md; do
    diff -u "$reference/$page" "$out/$page" || status=1
  done
  [ $status = 0 ] || echo "docs: run scripts/generate-docs.sh" >&2
  exit $status
fi
