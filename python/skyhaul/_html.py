"""HTML that notebooks show for results: small tables with escaped text."""

from collections.abc import Iterable, Sequence
from html import escape

MOST = 30
"""Largest number of rows shown."""


def number(value: object) -> str:
    """A value for display: fractions with four digits, missing values as a dash."""
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if value != value:
            return "–"
        whole = value.is_integer() or abs(value) >= 1e4
        return f"{value:,.0f}" if whole and abs(value) < 1e15 else f"{value:.4g}"
    return str(value)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table: numbers right-aligned, text left-aligned; rows beyond `MOST` are only counted."""
    rows = list(rows)

    def cell(value: object) -> str:
        side = "right" if isinstance(value, int | float) and not isinstance(value, bool) else "left"
        return f'<td style="text-align: {side}">{escape(number(value))}</td>'

    first = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows[:MOST])
    more = f"<p>and {len(rows) - MOST} more rows</p>" if len(rows) > MOST else ""
    return f"<table><thead><tr>{first}</tr></thead><tbody>{body}</tbody></table>{more}"


def head(title: str, *facts: str) -> str:
    """A title and a line of facts under it."""
    return f"<p><strong>{escape(title)}</strong><br>{escape(' · '.join(facts))}</p>"


def lines(title: str, texts: Iterable[str]) -> str:
    """A list under a title; nothing if it is empty."""
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f"<p><strong>{escape(title)}</strong></p><ul>{items}</ul>" if items else ""
