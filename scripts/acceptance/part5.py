#!/usr/bin/env python3
"""Part 5: every pipeline schedule as data, executed."""
from common import (BUILD, ROOT, finish, integration, measured, report, run,
                    unit)

PIPELINES = "SchedulePipelineTests"
FAMILIES = "ScheduleFamilyTests"
VERSIONS = "ScheduleVersionTests"
CHAINS = "ScheduleChainTests"

# Table 9 of the Zero Bubble paper: ranks, micro-batches, hidden size.
PUBLISHED_ROWS = (
    (8, 24, 2304), (8, 32, 2304), (8, 64, 2304),
    (8, 24, 4096), (8, 32, 4096), (8, 64, 4096),
    (16, 48, 5120), (16, 64, 5120), (16, 128, 5120),
    (32, 96, 6144), (32, 128, 6144), (32, 256, 6144))


def line_1_published():
    """B13: 24 automatic, 12 1F1B and 24 hand-made rates within 0.0001, a row in
    a CPU second; unit times, orders, peaks; the V-shaped and the interleaved.
    Then A18, B9 to B12, B16, B17, B6, B15 and the order strings of B8."""
    for ranks, micro_batches, hidden in PUBLISHED_ROWS:
        measured("1a", PIPELINES, "Rows/PublishedRates.AreMet/"
                 f"p{ranks}_m{micro_batches}_h{hidden}", 1, repeat=2)
    report("1b", *unit(PIPELINES, "ZeroBubble.*"))
    report("1c", *unit(PIPELINES, "ZeroBubbleV.*:VShapes.*"))
    report("1d", *unit(PIPELINES, "ZeroBubbleInterleaved.*"))
    report("1e", *unit(FAMILIES, "Interleaved.*:PeerOrders.Interleaved*"))
    report("1f", *unit(FAMILIES, "EarlyBackward.*:BreadthFirst.*:RoundRobin.*:"
                       "Continuous.*:GroupBackward.*:DualPipe.*:Orders.*"))
    report("1g", *unit(CHAINS, "Helix.*"))
    report("1h", *unit(CHAINS, "Skip.*"))
    report("1i", *unit(CHAINS, "Janus.*"))
    report("1j", *unit(VERSIONS, "Versions.*:Semantics.*"))
    report("1k", *unit(VERSIONS, "VersionProperties.*:DelayedTraining.*"))
    report("1l", *unit("ScheduleLanguageTests", "*"))


def line_2_peers():
    """No row of another planner is shorter at its placement and memory."""
    program = BUILD / "bench/peer-schedules"
    if not program.exists():
        report("2a", False, "peer-schedules is not built")
        return
    done = run(program, ROOT / "test/data/peer-schedules/rows.json")
    last = (done.stdout + done.stderr).strip().splitlines()[-1:]
    report("2a", done.returncode == 0, "".join(last))
    report("2b", *unit(FAMILIES, "PeerOrders.*"))


def line_3_training():
    """Every family that makes plans trains as one stage does, bit for bit."""
    report("3", *integration("family_losses"))


def line_4_order():
    """Runs under random delays keep the plan's order on every lane."""
    report("4", *integration("measured_order"))


def line_5_properties():
    """Timing against a replay, bounds against all orders; every family for
    p <= 8 and m <= 24, with limits and without; changed lists refused exactly
    where a replay fails."""
    report("5a", *unit(PIPELINES, "PipelineTiming.*:PipelineBounds.*"))
    report("5b", *unit(PIPELINES, "Families/EveryFamily.*"))
    report("5c", *unit(FAMILIES, "EveryFamily.*"))
    report("5d", *unit(CHAINS, "Chains.*:ChainProperties.*"))


def line_6_guide():
    """The worked example is compiled from its page, and its commands run."""
    report("6a", *unit("ScheduleGuideTests", "*"))
    report("6b", *integration("tutorial", "adding-a-schedule"))


def main():
    line_1_published()
    line_2_peers()
    line_3_training()
    line_4_order()
    line_5_properties()
    line_6_guide()
    finish()


if __name__ == "__main__":
    main()
