"""The rows of a page of published systems against the labels of ctest's tests,
which come on standard input as `ctest --show-only=json-v1` writes them."""
import collections
import json
import re
import sys

# What labels say besides rows.
OTHER_LABELS = {"fuzz"}


def rows_of(page):
    """(row, system, place) of each line of the table."""
    with open(page, encoding="utf-8") as text:
        for line in text:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if line.startswith("|") and re.fullmatch(r"[AB](\d+|T)", cells[0]):
                yield cells[0], cells[1], cells[3]


def tests_by_label(tests):
    count = collections.Counter()
    for test in tests:
        for known in test.get("properties", []):
            if known["name"] == "LABELS":
                count.update(known["value"])
    return count


def main(page):
    tests = json.load(sys.stdin)["tests"]
    # A program that is not built has one entry without labels.
    missing = [test["name"] for test in tests
               if test["name"].endswith("_NOT_BUILT")]
    if missing:
        print(f"coverage: not built: {', '.join(missing)}", file=sys.stderr)
        return 2
    count = tests_by_label(tests)
    faults, tested, rows = [], 0, list(rows_of(page))
    for row, system, place in rows:
        print(f"{row:4} {count[row]:4} tests  {system}"
              + (f"  ({place.replace('`', '')})" if place else ""))
        tested += count[row] > 0
        if place and not count[row]:
            faults.append(f"row {row} names {place}, but no test has its label")
        if count[row] and not place:
            faults.append(f"row {row} has tests, but names no place")
    known = {row for row, _, _ in rows} | OTHER_LABELS
    faults += [f"label '{label}' is no row of {page}"
               for label in sorted(set(count) - known)]
    print(f"{tested} of {len(rows)} rows have tests")
    for fault in faults:
        print(f"coverage: {fault}", file=sys.stderr)
    return 1 if faults or not rows else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
