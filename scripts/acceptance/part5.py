#!/usr/bin/env python3
"""Part 5: every pipeline schedule as data, executed."""
from common import BUILD, ROOT, finish, measured, report, run, unit

PIPELINES = "SchedulePipelineTests"

# Table 9 of the Zero Bubble paper: ranks, micro-batches, hidden size.
PUBLISHED_ROWS = (
    (8, 24, 2304), (8, 32, 2304), (8, 64, 2304),
    (8, 24, 4096), (8, 32, 4096), (8, 64, 4096),
    (16, 48, 5120), (16, 64, 5120), (16, 128, 5120),
    (32, 96, 6144), (32, 128, 6144), (32, 256, 6144))


def line_1_contract():
    """Timing against a replay, bounds against all orders, every family for
    p <= 8 and m <= 24, with limits and without."""
    report("1a", *unit(PIPELINES, "PipelineTiming.*:PipelineBounds.*"))
    report("1b", *unit(PIPELINES, "Families/EveryFamily.*"))


def line_2_zero_bubble():
    """B13: 24 automatic, 12 1F1B and 24 hand-made rates within 0.0001, a row in
    a CPU second; unit times, orders, peaks; the V-shaped and the interleaved."""
    for ranks, micro_batches, hidden in PUBLISHED_ROWS:
        measured("2a", PIPELINES, "Rows/PublishedRates.AreMet/"
                 f"p{ranks}_m{micro_batches}_h{hidden}", 1, repeat=2)
    report("2b", *unit(PIPELINES, "ZeroBubble.*"))
    report("2c", *unit(PIPELINES, "ZeroBubbleV.*:VShapes.*"))
    report("2d", *unit(PIPELINES, "ZeroBubbleInterleaved.*"))


def line_3_peers():
    """No row of another planner is shorter at its placement and memory."""
    program = BUILD / "bench/peer-schedules"
    if not program.exists():
        report("3", False, "peer-schedules is not built")
        return
    done = run(program, ROOT / "test/data/peer-schedules/rows.json")
    last = (done.stdout + done.stderr).strip().splitlines()[-1:]
    report("3", done.returncode == 0, "".join(last))


def main():
    line_1_contract()
    line_2_zero_bubble()
    line_3_peers()
    finish()


if __name__ == "__main__":
    main()
