"""Ten model files whose placement constraints contradict each other: taktc must
end with exit code 3, name exactly the lines marked `clash N` (one error for each
N), and suggest changes that, applied here, make the file compile to a step of the
time that was promised."""
import json
import re
import sys

from takt import INPUTS, run, temporary_folder

UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def expected_clashes(text):
    clashes = {}
    for number, line in enumerate(text.splitlines(), 1):
        if found := re.search(r"# clash (\d+)$", line):
            clashes.setdefault(found.group(1), set()).add(number)
    return sorted(map(sorted, clashes.values()))


def read_report(path, text):
    """(clashes, {line: new text or None to remove}, promised nanoseconds)"""
    clashes, changes, promised = [], {}, None
    for message in text.splitlines():
        found = re.match(re.escape(str(path)) + r":(\d+):\d+: (.*)", message)
        if not found:
            continue
        line, what = int(found.group(1)), found.group(2)
        if what.startswith("error: no stages fit: "):
            clashes.append({line})
        elif what.startswith("note: with '"):
            clashes[-1].add(line)
        elif way := re.match(r"note: (?:cheapest way out:|and) (change it to|remove)"
                             r" '(.*?)'(?:; 'assigned' is then (\S+) (\S+))?$", what):
            changes[line] = way.group(2) if way.group(1) != "remove" else None
            if way.group(3):
                promised = float(way.group(3)) * UNITS[way.group(4)]
        else:
            sys.exit(f"{path}: not understood: {message}")
    return sorted(map(sorted, clashes)), changes, promised


def apply(text, changes):
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        if number not in changes:
            lines.append(line)
        elif changes[number]:
            lines.append("    - " + changes[number])
    return "\n".join(lines) + "\n"


def check(path, folder):
    text = path.read_text()
    cluster = re.search(r"^# cluster: (\S+)$", text, re.M).group(1)
    done = run("taktc", path, cluster, expect=3)
    clashes, changes, promised = read_report(path, done.stderr)
    if clashes != expected_clashes(text):
        sys.exit(f"{path}: lines {clashes} are named, {expected_clashes(text)} "
                 f"are marked\n{done.stderr}")
    if not changes or promised is None:
        sys.exit(f"{path}: no way out is named\n{done.stderr}")
    relaxed = folder / path.name
    relaxed.write_text(apply(text, changes))
    report = json.loads(run("taktc", relaxed, cluster, "-o", folder / "job.plan",
                            "--format=json").stdout)
    objective = report["objective_ns"]
    if abs(objective - promised) > 1e-3 * promised:
        sys.exit(f"{path}: {promised} ns were promised, {objective} ns are assigned")
    return len(changes)


def main():
    import pathlib
    files = sorted((INPUTS / "contradictions").glob("*.yaml"))
    if len(files) < 10:
        sys.exit(f"{len(files)} contradictory files, ten are wanted")
    with temporary_folder() as folder:
        changes = [check(path, pathlib.Path(folder)) for path in files]
    print(f"{len(files)} contradictory files: every clash named by its lines; "
          f"{sum(changes)} suggested changes applied, all compile")


if __name__ == "__main__":
    main()
