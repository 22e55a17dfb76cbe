"""Holds docs/reference/tools.md against --help: every option and command that a
tool prints stands in its section of the page, and the page names no other."""
import re
import sys

from takt import ROOT, run

PAGE = ROOT / "docs/reference/tools.md"
OPTION = re.compile(r"(?<![\w-])(--?[a-z][\w-]*)")


def options_in(text):
    """Of lines that begin with options: '-o,--output TEXT  where to write'."""
    found = set()
    for line in text.splitlines():
        declared = re.match(r"\s+(-[\w-]+(?:,\s?--?[\w-]+)*)", line)
        if declared:
            found.update(OPTION.findall(declared.group(1)))
    return found


def commands_in(text):
    part = text.partition("Subcommands:\n")[2].partition("\n\n")[0]
    return re.findall(r"^  ([a-z][\w-]*) ", part, re.M)


def sections():
    parts = re.split(r"^## ", PAGE.read_text(), flags=re.M)
    return {part.split("\n", 1)[0]: part for part in parts}


def main():
    faults = []
    page = sections()
    general = set(OPTION.findall(page["# Tools"]))
    for tool in ("taktc", "takt-run", "takt-plan"):
        text = run(tool, "--help").stdout
        printed = options_in(text)
        for command in commands_in(text):
            printed |= options_in(run(tool, command, "--help").stdout)
            if not re.search(rf"`(?:{tool} )?{command}\b", page[tool]):
                faults.append(f"{tool} {command} is not on the page")
        written = set(OPTION.findall(page[tool])) | general
        faults += [f"{tool}: {option} is not on the page"
                   for option in sorted(printed - written)]
        # Options of other tools may be mentioned, with the tool's name.
        foreign = set(re.findall(r"`takt[\w-]* (--[\w-]+)`", page[tool]))
        faults += [f"{tool}: {option} is on the page only"
                   for option in sorted(set(OPTION.findall(page[tool])) -
                                        printed - foreign)]
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)


main()
