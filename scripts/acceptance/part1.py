#!/usr/bin/env python3
"""Part 1, the whole line: from YAML to a trained model."""
import re
import subprocess
import tempfile

from common import (BIN, ENV, ROOT, cost, finish, integration, report, run, unit)


def demo():
    done = subprocess.run(["scripts/demo.sh"], cwd=ROOT, env=ENV,
                          capture_output=True, text=True)
    if done.returncode != 0:
        report("1a", False, done.stderr.strip()[-300:])
        return
    losses = [float(line.split()[0])
              for line in (ROOT / "out/demo/losses.txt").open()]
    report("1a", losses[-1] < 2.5 and abs(losses[0] - 5.55) < 0.3,
           f"{losses[0]:.3f} -> {losses[-1]:.3f} nats a byte in {len(losses)} steps")
    ratio = re.findall(r"ratio ([0-9.]+)", done.stdout)
    report("1b", bool(ratio) and 1 / 1.3 <= float(ratio[-1]) <= 1.3,
           f"measured / predicted step {ratio[-1] if ratio else 'not printed'}")


def large(line, cluster, batch, *options):
    """Searches and compiles gpt-96 with a global batch of `batch` samples."""
    with tempfile.TemporaryDirectory() as folder:
        plan, model = f"{folder}/big.plan", f"{folder}/model.yaml"
        text = (ROOT / "examples/gpt-96.yaml").read_text()
        with open(model, "w") as out:
            out.write(text.replace("global_batch: 256", f"global_batch: {batch}"))
        command = [BIN / "taktc", model, cluster, "-o", plan, "--quiet", *options]
        seconds, megabytes = cost(command)
        if seconds is None:
            report(line, False, f"taktc failed on {cluster}")
            return
        size = len(open(plan, "rb").read())
        gap = run(BIN / "taktc", model, cluster, "--format=json", *options).stdout
        gap = re.search(r'"gap": *([0-9.e+-]+)', gap)
        report(line, seconds <= 10 and megabytes <= 1000 and size < 2_000_000,
               f"{cluster} {' '.join(options)}: {seconds:.2f} CPU s, "
               f"{megabytes:.0f} MB, plan {size} bytes, gap "
               f"{gap.group(1) if gap else '?'}")


def sizes():
    files = run("git", "ls-files").stdout.split()
    # Published inputs and pictures are not ours to cut.
    text = [f for f in files if not f.startswith("test/data/")
            and f != "LICENSE" and b"\0" not in (ROOT / f).read_bytes()]
    long = [(sum(1 for _ in open(ROOT / f, errors="replace")), f) for f in text]
    worst = max(long)
    report("7b", worst[0] < 600, f"longest file {worst[1]}: {worst[0]} lines")


def main():
    demo()
    model = ROOT / "examples/gpt-small.yaml"
    report("2", *integration("equal_losses", model, "200"))
    report("3a", *integration("against_torch", model))
    report("3b", *unit("HostTests", "*Gradient.MatchesDifferences*"))
    report("4a", *unit("PartitionTests", "PartitionOracle.*"))
    report("4b", *unit("DappleTests", "*SlowestStage*"))
    report("5a", *unit("LowerTest", "*ClosedForms*"))
    report("5b", *unit("LowerTest", "*Arena*"))
    large("6a", "h100-8x8", 256)
    large("6b", "h100-8x128", 4096, "--stages=16")
    report("7a", *integration("deterministic_plans"))
    sizes()
    report("7c", *integration("tutorial"))
    finish()


if __name__ == "__main__":
    main()
