#!/usr/bin/env python3
"""Clusters of several kinds of device: plans say which kind each stage has, fit its
memory, are proven, and train to the bits of one stage, as threads and as processes;
the cheapest plan is no dearer than the fastest, and limits on time and price hold."""
import json
import pathlib
import random
import sys

import takt

MODELS = [takt.INPUTS / "gpt-tiny.yaml", takt.INPUTS / "unet-tiny.yaml"]
STEPS = 6
CLUSTERS = 4


def require(condition, *what):
    if not condition:
        sys.exit(" ".join(map(str, what)))


def random_cluster(draw, path):
    """Two or three kinds in nodes of one, two or four."""
    kinds = [f"kind{i}" for i in range(draw.randint(2, 3))]
    lines = ["schema_version: 1", "cluster:", "  name: drawn", "  devices:"]
    for kind in kinds:
        lines.append(
            f"    {kind}: {{flops: {draw.randint(5, 60)} GFLOP/s, "
            f"memory_bandwidth: {draw.randint(4, 30)} GB/s, "
            f"memory: {draw.choice([16, 64, 512])} MiB, kernel_overhead: 2 us, "
            f"price_per_hour: {draw.randint(1, 40) / 8}}}")
    lines.append("  nodes:")
    for i, kind in enumerate(kinds):
        devices = draw.choice([2, 4]) if i == 0 else draw.choice([1, 2, 4])
        lines.append(f"    - {{count: {draw.randint(1, 2)}, device: {kind}, "
                     f"devices: {devices}, link: l{i}}}")
    lines.append("  links:")
    for i in range(len(kinds)):
        lines.append(f"    l{i}: {{latency: {draw.randint(1, 4)} us, "
                     f"bandwidth: {draw.randint(2, 20)} GB/s}}")
    lines += ["    wan: {latency: 5 us, bandwidth: 3 GB/s}", "  network: wan"]
    path.write_text("\n".join(lines) + "\n")
    return kinds


def plan_of(folder, name, model, cluster, *options, expect=0):
    """The plan and its report; None for one that is proven not to exist."""
    plan = pathlib.Path(folder) / f"{name}.plan"
    done = takt.run("taktc", model, cluster, "-o", plan, "--format=json",
                    *options, expect=None)
    if done.returncode == 3:
        return None, None
    require(done.returncode == expect, name, options, done.stderr)
    report = json.loads(done.stdout)
    require(report["proof"].startswith("proved"), name, report["proof"])
    require(0 < report["bound_ns"] <= report["objective_ns"], name, "bound",
            report["bound_ns"], "above", report["objective_ns"])
    for stage in report["stages"]:
        require(stage["kind"] and max(stage["peak_bytes"]) <=
                stage["capacity_bytes"], name, stage)
    return plan, report


def equal_losses(folder, cluster, number):
    """Returns the numbers of plans that were trained and that mix kinds."""
    trained = mixed = 0
    for model in MODELS:
        for replicas in (1, 2):
            expected = None
            for stages in (1, 2, 3, 4):
                name = f"{number}-{model.stem}-{stages}x{replicas}"
                plan, report = plan_of(folder, name, model, cluster,
                                       f"--stages={stages}",
                                       f"--replicas={replicas}")
                if plan is None:
                    continue
                takt.run("takt-plan", "check", plan)
                losses = takt.train(plan, STEPS)
                expected = expected or losses
                require(losses == expected, name, "losses differ")
                trained += 1
                several = len({s["kind"] for s in report["stages"]}) > 1
                mixed += several
                if several and stages == 3 and replicas == 1:
                    log = plan.with_suffix(".processes")
                    takt.run("takt-run", plan, "-n", report["ranks"], "--data",
                             takt.TEXT, "--steps", STEPS, "-q", "--log-losses",
                             log, "--start-timeout", "120", "--timeout-floor",
                             "120")
                    found = [float.fromhex(line.split()[1])
                             for line in log.open()]
                    require(found == expected, name, "processes differ")
    return trained, mixed


def prices(folder, cluster, number):
    """Returns whether time and price want different plans."""
    model = MODELS[0]
    _, fastest = plan_of(folder, f"{number}-fast", model, cluster)
    _, cheapest = plan_of(folder, f"{number}-cheap", model, cluster,
                          "--objective=price")
    require(fastest and cheapest, "no plan for cluster", number)

    def assigned(report):
        return report["objective_ns"] * report["price_per_hour"] / 3600e9

    near = 1 + 1e-9
    require(fastest["objective_ns"] <= cheapest["objective_ns"] and
            assigned(cheapest) <= assigned(fastest) * near, number,
            "the cheapest is faster or dearer than the fastest")
    _, again = plan_of(folder, f"{number}-dear", model, cluster,
                       f"--within={assigned(cheapest) * near:.12g}")
    require(assigned(again) <= assigned(cheapest) * near ** 2, number,
            "dearer than allowed")
    _, soon = plan_of(folder, f"{number}-soon", model, cluster,
                      "--objective=price",
                      f"--within={fastest['objective_ns']}ns")
    require(soon["objective_ns"] == fastest["objective_ns"] and
            assigned(soon) <= assigned(fastest) * near, number,
            "slower than allowed, or dearer than it could be")
    return fastest["objective_ns"] < cheapest["objective_ns"]


def main():
    trained = mixed = apart = 0
    with takt.temporary_folder() as folder:
        for number in range(CLUSTERS):
            cluster = pathlib.Path(folder) / f"c{number}.yaml"
            random_cluster(random.Random(number), cluster)
            more = equal_losses(folder, cluster, number)
            trained += more[0]
            mixed += more[1]
            apart += prices(folder, cluster, number)
    # The draw must have what it is for.
    require(trained >= 40 and mixed >= 10 and apart >= 1, trained, "plans,",
            mixed, "of several kinds,", apart, "clusters with a choice")
    print(f"{CLUSTERS} random clusters: {trained} plans train to the bits of one "
          f"stage, {mixed} of them on several kinds; time and price differ on "
          f"{apart}, and every limit on the other holds")


if __name__ == "__main__":
    main()
