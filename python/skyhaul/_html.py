"""HTML that notebooks show for results: small tables with escaped text and the numbers of printed results."""

from collections.abc import Iterable, Sequence
from html import escape

from . import _core

MOST = 30
"""Largest number of rows shown."""


class Number(str):
    """A number with its unit or interval, as text."""


def number(value: object) -> str:
    """A value for display: fractions as reports of studies show them, missing values as a dash."""
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _core.number(value) if isinstance(value, float) else str(value)


def estimate(mean: float | None, half: float | None) -> Number:
    """A mean with the half-width of its 95 % interval, as reports of studies show it."""
    return Number(number(None) if mean is None else _core.estimate(mean, half))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table: numbers right-aligned, other text left-aligned; rows beyond `MOST` are only counted."""
    rows = list(rows)

    def cell(value: object) -> str:
        side = "right" if isinstance(value, int | float | Number) and not isinstance(value, bool) else "left"
        return f'<td style="text-align: {side}">{escape(number(value))}</td>'

    first = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows[:MOST])
    more = f"<p>and {len(rows) - MOST} more rows</p>" if len(rows) > MOST else ""
    return f"<table><thead><tr>{first}</tr></thead><tbody>{body}</tbody></table>{more}"


def verbatim(text: str) -> str:
    """A text with its line breaks and columns."""
    return f'<pre style="line-height: normal">{escape(text)}</pre>'


def head(title: str, *facts: str) -> str:
    """A title and a line of facts under it."""
    return f"<p><strong>{escape(title)}</strong><br>{escape(' · '.join(facts))}</p>"


def lines(title: str, texts: Iterable[str]) -> str:
    """A list under a title; nothing if it is empty."""
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f"<p><strong>{escape(title)}</strong></p><ul>{items}</ul>" if items else ""
