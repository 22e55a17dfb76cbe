#!/usr/bin/env bash
# The main job, start to end: compiles a byte-level language model into a
# two-stage 1F1B plan, measures its layers here, plans again with what was
# measured, and trains it for 200 steps on a text every Debian has.
# Leaves plan, trace, timeline and weights in out/demo.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${TAKT_BUILD_DIR:-build}
out=${TAKT_DEMO_DIR:-out/demo}
text=/usr/share/common-licenses/GPL-3
model=examples/gpt-small.yaml
TAKT_BUILD_TARGETS="taktc takt-run takt-plan" scripts/setup.sh
mkdir -p "$out"
bin=$build/bin

echo "== a first plan, costs from the roofline"
"$bin/taktc" "$model" host-2core --stages=2 --schedule=1f1b -o "$out/first.plan"
echo
echo "== measure every layer on this machine (20 steps)"
"$bin/takt-run" "$out/first.plan" --data "$text" --steps 20 --quiet \
  --profile "$out/costs.yaml"
echo
echo "== plan again with the measured costs"
"$bin/taktc" "$model" host-2core --stages=2 --schedule=1f1b \
  --profile "$out/costs.yaml" -o "$out/job.plan"
echo
echo "== train"
"$bin/takt-run" "$out/job.plan" --data "$text" --steps 200 \
  --trace "$out/trace.json" --timeline "$out/timeline.html" \
  --save-weights "$out/weights.safetensors" --log-losses "$out/losses.txt"
echo
echo "left in $out: job.plan, trace.json (open in ui.perfetto.dev),"
echo "timeline.html (open in a browser), weights.safetensors, losses.txt"
