#!/usr/bin/env python3
"""Writes the table of the quick profile into docs/studies.md.

skyhaul reproduce --quick --studies studies --out results/quick
python3 tools/quick_tables.py results/quick
"""

import json
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "studies.md"
BEGIN, END = "<!-- quick: begin -->\n", "<!-- quick: end -->\n"
KINDS = ("holds", "differs", "undecided", "not_in_profile")


def row(name, numbers):
    return f"| {name} | " + " | ".join(str(n) for n in numbers) + " |"


def table(summary):
    """The number of cells, and the verdicts by paper."""
    studies = [s for p in summary["papers"] for s in p["studies"]]
    cells = sum(s["provenance"]["cells"] for s in studies)
    of_paper = (*KINDS, "elsewhere", "open", "total")
    lines = [
        f"{len(studies)} studies, {cells} cells.",
        "",
        "| paper | hold | differ | undecided | not in the profile | unit test | open | all |",
        "|---|---|---|---|---|---|---|---|",
        *(row(f"`{p['name']}`", (p["counts"][k] for k in of_paper)) for p in summary["papers"]),
        row("all", (summary["counts"][k] for k in of_paper)),
    ]
    return "\n".join(lines)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    summary = json.loads((Path(sys.argv[1]) / "summary.json").read_text())
    if summary["profile"] != "quick":
        sys.exit(f"{sys.argv[1]}: not the quick profile but {summary['profile']}")
    page = PAGE.read_text()
    try:
        before, rest = page.split(BEGIN)
        _, after = rest.split(END)
    except ValueError:
        sys.exit(f"{PAGE}: needs one line {BEGIN.strip()} and, below, one line {END.strip()}")
    PAGE.write_text(f"{before}{BEGIN}\n{table(summary)}\n\n{END}{after}")


if __name__ == "__main__":
    main()
