#!/usr/bin/env python3
"""Schedule files with several stages a rank train with the losses, bit for bit,
of the plan with one stage a rank and the same replicas. Their plans are proven,
and their memory is what they need."""
import json
import pathlib
import sys

import takt

MODEL = takt.INPUTS / "gpt-tiny.yaml"
CLUSTER = takt.INPUTS / "host-8.yaml"
STEPS = 10
MICRO_BATCHES = 4


def interleaved(ranks, chunks, split=False):
    """Interleaved 1F1B: stage s on rank s mod ranks."""
    rows, total = [], MICRO_BATCHES * chunks
    back = (lambda s, m: [f"{s}I{m}", f"{s}W{m}"]) if split else (
        lambda s, m: [f"{s}B{m}"])
    for rank in range(ranks):
        def stage(turn, forward):
            chunk = turn % (ranks * chunks) // ranks
            chunk = chunk if forward else chunks - 1 - chunk
            return chunk * ranks + rank

        def micro_batch(turn):
            return turn // (ranks * chunks) * ranks + turn % ranks

        ahead = min(total, (ranks - rank - 1) * 2 + (chunks - 1) * ranks)
        row = []
        for turn in range(total + ahead):
            if turn < total:
                row.append(f"{stage(turn, True)}F{micro_batch(turn)}")
            if turn >= ahead:
                done = turn - ahead
                row += back(stage(done, False), micro_batch(done))
        rows.append(",".join(row))
    return "\n".join(rows) + "\n"


def greedy(rank_of, split=False):
    """Any placement: each rank does in turn what it can, backward first, weight
    gradients when there is nothing else."""
    stages, ranks = len(rank_of), max(rank_of) + 1
    done = {(s, kind): 0 for s in range(stages) for kind in "FIW"}
    rows = [[] for _ in range(ranks)]
    while any(done[s, "W"] < MICRO_BATCHES for s in range(stages)):
        before = dict(done)
        for rank in range(ranks):
            own = [s for s in range(stages) if rank_of[s] == rank]
            for kind, s in [(k, s) for k in "IFW" for s in reversed(own)]:
                m = done[s, kind]
                need = {"F": s == 0 or before[s - 1, "F"] > m,
                        "I": before[s, "F"] > m and
                             (s == stages - 1 or before[s + 1, "I"] > m),
                        "W": split and done[s, "I"] > m}[kind]
                if m == MICRO_BATCHES or not need:
                    continue
                done[s, kind] += 1
                if kind == "I" and not split:
                    done[s, "W"] += 1
                rows[rank].append(f"{s}{'B' if kind == 'I' and not split else kind}{m}")
                break
    return "".join(",".join(row) + "\n" for row in rows)


def v_shape(ranks):
    return [min(s, 2 * ranks - 1 - s) for s in range(2 * ranks)]


FILES = {
    "interleaved, 2 ranks, 2 chunks": interleaved(2, 2),
    "interleaved, 2 ranks, 3 chunks": interleaved(2, 3),
    "interleaved, 2 ranks, 2 chunks, I and W apart": interleaved(2, 2, True),
    "V, 2 ranks": greedy(v_shape(2)),
    "V, 3 ranks, I and W apart": greedy(v_shape(3), True),
    "all stages on one rank": greedy([0, 0, 0]),
    "any placement": greedy([0, 1, 1, 0, 2, 0, 1], True),
}


def check_report(report, name):
    """The proof holds; arenas are close to what is alive at once."""
    if not report["proof"].startswith("proved"):
        sys.exit(f"{name}: {report['proof']}")
    for stage in report["stages"]:
        peak, live = stage["peak_bytes"][0], stage["liveness_bytes"]
        if peak > 1.35 * live:
            sys.exit(f"{name}: stages {stage['stages']} take {peak} bytes, "
                     f"{live} are alive at once")
    if not any(len(stage["stages"]) > 1 for stage in report["stages"]):
        sys.exit(f"{name}: no rank has several stages")


def main():
    with takt.temporary_folder() as folder:
        for replicas in (1, 2):
            shape = (f"--replicas={replicas}",)
            plain = takt.compile_plan(folder, f"plain{replicas}", MODEL, CLUSTER,
                                      "--stages=2", *shape)
            expected = takt.train(plain, STEPS)
            for number, (name, text) in enumerate(FILES.items()):
                file = pathlib.Path(folder) / f"{number}.csv"
                file.write_text(text)
                plan = takt.compile_plan(folder, f"{number}x{replicas}", MODEL,
                                         CLUSTER, *shape, f"--schedule={file}")
                check_report(json.loads(takt.run(
                    "takt-plan", "show", plan, "--format=json").stdout), name)
                takt.run("takt-plan", "check", plan)
                if takt.train(plan, STEPS) != expected:
                    sys.exit(f"{name}, {replicas} replicas: losses differ")
        print(f"{len(FILES)} placements with 1 and 2 replicas: {STEPS} losses "
              f"equal bit for bit")


if __name__ == "__main__":
    main()
