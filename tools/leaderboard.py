#!/usr/bin/env python3
"""Records a table of skyhaul evaluate --all in docs/leaderboard.json, and writes docs/leaderboard.md.

    tools/leaderboard.py results/evaluate-all-quick/leaderboard.json
    tools/leaderboard.py

Without a file it writes the page again from what is recorded. Rows of a control of one's own, which no
command repeats, are refused.
"""

import json
import math
import pathlib
import sys

DOCS = pathlib.Path(__file__).parents[1] / "docs"
RECORD = DOCS / "leaderboard.json"
PAGE = DOCS / "leaderboard.md"
BEGIN = "<!-- From here on written by tools/leaderboard.py -->\n"
END = "<!-- Until here written by tools/leaderboard.py -->\n"
SCHEMA = "skyhaul.leaderboard/1"
MARKS = {"met": "✓", "not-met": "✗", "undecided": "?", "failed": "!", "not-measured": "–"}


def number(value: dict | None) -> str:
    """A mean with its interval, with the digits that the interval justifies."""
    if value is None:
        return "–"
    mean, half = value["mean"], value["ci95"]
    if not half:
        return f"{mean:.4g}".replace("-", "−")
    # At most four significant digits of the mean, and two of the interval.
    places = min(decimals(half, 2), decimals(mean, 4) if mean else 8, 8)
    text = f"{mean:.{places}f}".replace("-", "−")
    width = f"{half:.{places}f}"
    return f"{text} ± {width}" if float(width) else text


def decimals(x: float, significant: int) -> int:
    """The number of decimals with which `x` shows `significant` significant digits."""
    return max(0, significant - 1 - math.floor(math.log10(abs(x))))


def heading(column: dict) -> str:
    return f"{column['title']} ({column['unit']})" if column["unit"] else column["title"]


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    line = [f"| {' | '.join(row)} |" for row in [head, *rows]]
    return [line[0], "|" + "---|" * len(head), *line[1:]]


def generated(record: dict) -> str:
    """The generated part of the page."""
    rows = record["rows"]
    counts = [("met", "met"), ("not met", "not-met"), ("undecided", "undecided")]

    def counted(row: dict) -> list[str]:
        return [str(list(row["verdicts"].values()).count(verdict)) for _, verdict in counts]

    numbers, requirements = record["numbers"], record["requirements"]
    words = ", ".join(f"{mark} {verdict.replace('-', ' ')}" for verdict, mark in MARKS.items())
    seeds = sorted({n["n"] for row in rows for n in row["numbers"].values()})
    lines = [
        f"Recorded {record['created'][:10]} with Skyhaul {record['version']} (engine {record['engine']}) on "
        f"{record['processor']}, profile {record['profile']}, {' or '.join(map(str, seeds))} seeds:",
        "",
        "```text",
        record["command"],
        "```",
        "",
        "Requirements by verdict, and means over the seeds with 95 % intervals:",
        "",
        *table(
            ["control", *(word for word, _ in counts), *(heading(n) for n in numbers)],
            [
                [
                    f"`{row['control']}`",
                    *counted(row),
                    *(number(row["numbers"].get(n["title"])) for n in numbers),
                ]
                for row in rows
            ],
        ),
        "",
        f"Verdict on each requirement ({words}):",
        "",
        *table(
            ["control", *(r["section"] for r in requirements)],
            [
                [
                    f"`{row['control']}`",
                    *(MARKS[row["verdicts"].get(r["section"], "not-measured")] for r in requirements),
                ]
                for row in rows
            ],
        ),
        "",
        "What repeats a cell of a control is `skyhaul evaluate CONTROL CASE …"
        + (f" {record['options']}" if record["options"] else "")
        + "` with the cases of the column:",
        "",
        *table(
            ["column", "title", "cases"],
            [
                *([r["section"], r["title"], ", ".join(f"`{c}`" for c in r["cases"])] for r in requirements),
                *(["number", heading(n), f"`{n['case']}`"] for n in numbers),
            ],
        ),
        "",
    ]
    if record["not_measured"]:
        left = "; ".join(f"{s['section']} {s['title']}" for s in record["not_measured"])
        lines += [f"Not measured, for any control: {left}.", ""]
    return "\n".join(lines)


def page(record: dict, old: str) -> str:
    """The page with its generated part written again."""
    before, rest = old.split(BEGIN)
    return before + BEGIN + "\n" + generated(record) + "\n" + END + rest.split(END)[1]


def main() -> None:
    if len(sys.argv) > 2:
        sys.exit("leaderboard: name one leaderboard.json of skyhaul evaluate --all, or none")
    source = pathlib.Path(sys.argv[1]) if len(sys.argv) == 2 else RECORD
    try:
        record = json.loads(source.read_text(encoding="utf-8"))
        if record["schema"] != SCHEMA:
            sys.exit(f"leaderboard: {source}: schema is {record['schema']!r}; accepted: {SCHEMA!r}")
        for row in record["rows"]:
            if "command" not in row:
                sys.exit(
                    f"leaderboard: {source}: no command repeats the row {row['control']!r}: leave it out"
                )
        text = page(record, PAGE.read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"leaderboard: {source} is no table of skyhaul evaluate --all: {error}")
    # Pages of single evaluations are not recorded.
    for row in record["rows"]:
        row.pop("page", None)
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(text, encoding="utf-8")
    print(f"leaderboard: {len(record['rows'])} controls in docs/leaderboard.json and docs/leaderboard.md")


if __name__ == "__main__":
    main()
