#!/usr/bin/env python3
"""Writes the counts of verdicts in the tables of docs/ again, from the results of skyhaul reproduce.

    tools/verdicts.py results/reproduce/summary.json [...]

A table whose header begins with | study | hold | differ | undecided | has a row for each study of the folder
that the page is about, or, in docs/studies.md, for each folder (in backquotes). The first three numbers of a
row count findings by verdict; a row of a folder has all columns written again. Rows of studies that the
results do not have stay as they are.
"""

import json
import pathlib
import re
import sys

DOCS = pathlib.Path(__file__).parents[1] / "docs"
HEADER = re.compile(r"\| study \| hold \| differ \| undecided \|")
COUNTS = ("holds", "differs", "undecided")
# The folder of the studies in a section whose page is not named after that folder.
SECTIONS = {"Splitting the path": "splitting"}


def rows(paths: list[str]) -> tuple[dict[tuple[str, str], list[int]], dict[str, list[int]]]:
    """Findings by folder and study, and the columns of the table of folders."""
    studies, folders = {}, {}
    for path in paths:
        for paper in json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["papers"]:
            name, counts = paper["name"], paper["counts"]
            for study in paper["studies"]:
                studies[name, study["name"]] = [study["counts"][c] for c in COUNTS]
            found = [counts[c] for c in COUNTS]
            others = [counts[c] for c in ("aside", "elsewhere", "open")]
            folders[name] = [*found, *others, sum(found + others)]
    return studies, folders


def rewritten(page: pathlib.Path, studies: dict, folders: dict) -> str:
    """The text of a page with the counts written again."""
    folder, section, inside, lines = page.stem, "", False, []
    total: list[int] = []
    for line in page.read_text(encoding="utf-8").split("\n"):
        if line.startswith("## "):
            section = line[3:]
        inside = bool(HEADER.match(line)) or (inside and line.startswith("|"))
        cells = [c.strip() for c in line.strip("|").split("|")] if inside else []
        if cells and cells[0].startswith("`"):
            numbers = folders.get(cells[0].strip("`")) or [int(n) for n in cells[1:]]
            total = [a + b for a, b in zip(total or [0] * len(numbers), numbers, strict=True)]
            line = f"| {cells[0]} | " + " | ".join(map(str, numbers)) + " |"
        elif cells and cells[0] == "all":
            line = "| all | " + " | ".join(map(str, total)) + " |"
        elif cells and (found := studies.get((SECTIONS.get(section, folder), cells[0]))):
            line = f"| {cells[0]} | " + " | ".join([*map(str, found), *cells[4:]]) + " |"
        lines.append(line)
    return "\n".join(lines)


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit("verdicts: name a summary.json of skyhaul reproduce, as in results/reproduce/")
    try:
        studies, folders = rows(sys.argv[1:])
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"verdicts: this is no summary of skyhaul reproduce: {error}")
    for page in [DOCS / "studies.md", *sorted(DOCS.glob("papers/*.md"))]:
        before = page.read_text(encoding="utf-8")
        after = rewritten(page, studies, folders)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(f"verdicts: {page.relative_to(DOCS.parent)}")


if __name__ == "__main__":
    main()
