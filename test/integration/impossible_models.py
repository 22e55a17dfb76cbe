"""Five published models that cannot be planned as asked: devices with too little
memory, and a pin that nothing can keep. taktc must end with exit code 3, name the
lines of model and cluster that clash, and the way out that it names must work."""
import json
import pathlib
import re
import sys

from takt import ROOT, run, temporary_folder

MODELS = ("bert-24-pbs-6", "gnmt-16-pbs-64", "vgg-19-pbs-32", "xlnet-24-pbs-1",
          "amoeba-18-pbs-8")
CLUSTER = (ROOT / "examples/clusters/a100-8.yaml").read_text()


def cluster_with(folder, memory):
    """The file, and the number of its line that states the memory."""
    text, count = re.subn(r"^(\s+memory:) .*$", rf"\1 {memory}", CLUSTER, flags=re.M)
    assert count == 1, "one kind of device"
    path = folder / "cluster.yaml"
    path.write_text(text)
    lines = text.splitlines()
    return path, next(n for n, line in enumerate(lines, 1)
                      if re.match(r"\s+memory:", line))


def places(path, stderr):
    """(line, kind, words) of every message about a file."""
    return [(int(line), kind, words) for line, kind, words in re.findall(
        re.escape(str(path)) + r":(\d+):\d+: (error|note): (.*)", stderr)]


def too_little_memory(model, folder):
    cluster, memory_line = cluster_with(folder, "200 MB")
    done = run("taktc", model, cluster, expect=3)
    [(line, kind, words)] = places(model, done.stderr)
    name = re.match(r"no stages fit: segments? '([^' ]+)", words)
    assert kind == "error" and name, done.stderr
    # The layer that does not fit, at its own line.
    assert name.group(1) in model.read_text().splitlines()[line - 1], done.stderr
    [(line, kind, words)] = places(cluster, done.stderr)
    way = re.match(r"use devices with at least (\S+) (\S+)$", words)
    assert kind == "note" and line == memory_line and way, done.stderr
    cluster, _ = cluster_with(folder, f"{way.group(1)} {way.group(2)}")
    json.loads(run("taktc", model, cluster, "-o", folder / "job.plan",
                   "--format=json").stdout)
    run("takt-plan", "check", folder / "job.plan")


def impossible_pin(model, folder):
    text = model.read_text()
    first = re.search(r"name: ([^,}\s]+)", text.split("layers:")[1]).group(1)
    pin = f"    - pin: {{layer: {first}, stage: 1}}"
    pinned = folder / "pinned.yaml"
    pinned.write_text(f"{text}placement:\n  constraints:\n{pin}\n")
    number = pinned.read_text().splitlines().index(pin) + 1
    done = run("taktc", pinned, "a100-8", expect=3)
    (error, note) = places(pinned, done.stderr)
    assert error[:2] == (number, "error") and "cannot be kept" in error[2], error
    way = re.match(r"cheapest way out: change it to '(.*?)'", note[2])
    assert note[0] == number and way, note
    pinned.write_text(pinned.read_text().replace(pin, "    - " + way.group(1)))
    run("taktc", pinned, "a100-8", "-q", "-o", folder / "job.plan")
    run("takt-plan", "check", folder / "job.plan")


def main():
    with temporary_folder() as name:
        folder = pathlib.Path(name)
        for profile in MODELS:
            model = folder / f"{profile}.yaml"
            run("taktc", "import", "dapple",
                ROOT / f"test/data/dapple/{profile}.txt", "-o", model)
            too_little_memory(model, folder)
            impossible_pin(model, folder)
    print(f"{len(MODELS)} published models: what does not fit is named by its "
          "lines, and the ways out work")


if __name__ == "__main__":
    sys.exit(main())
