"""Figures of a run: of its recorded series, and of its transfers."""

import fnmatch
import itertools
from collections.abc import Callable
from typing import Any

from . import _core
from ._figure import Figure
from ._table import Table

POINTS = 1200
"""Largest number of samples drawn per curve: more than a plot is pixels wide."""

PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#882255"]
"""The palette of Okabe and Ito, as in the figures of studies."""

DASHES: list[list[int]] = [[], [6, 3], [2, 3], [8, 3, 2, 3], [12, 4]]
"""Dash patterns, so that curves never differ by colour alone; no combination repeats within 40 curves."""

STATES = ["in progress at the end", "complete"]
"""What became of a page or transfer."""

Sample = tuple[float, float | None]


class Plots:
    """Figures of the recorded series of a run: `r.plot("queue")`, or `r.plot.queue()`.

    Every series that the run recorded is a method, with `_` for `-`; `dir(r.plot)` lists them.
    `completion_times` and `completion_cdf` draw pages and random transfers, which need not be recorded.
    """

    def __init__(self, series: Table, title: str, transfers: Callable[[], Table]) -> None:
        self._table = series
        self._title = title
        self._transfers = transfers

    def __call__(self, *series: str, of: str | None = None, title: str | None = None) -> Figure:
        """A figure of one series or several that share a unit, over simulated time.

        `of` chooses objects: a group of flows (`"bulk"`), a flow (`"flows.bulk[3]"`), a direction of a link
        (`"links.sat.forward"`), or a pattern such as `"links.*"`. Without a series it is the first one that
        was recorded.
        """
        recorded = self._recorded()
        if not recorded:
            raise _core.SkyhaulError(
                "this run recorded no series: set record.series and record.sample, for example "
                'set={"record.series": ["cwnd"], "record.sample": "100 ms"}'
            )
        names = [self._known(name, recorded) for name in series or recorded[:1]]
        units = {name: _unit(name) for name in names}
        if len(set(units.values())) > 1:
            names_units = ", ".join(f"{name} ({unit or 'a count'})" for name, unit in units.items())
            raise _core.SkyhaulError(f"series with different units cannot share an axis: {names_units}")
        curves = self._curves(names, of)
        if not curves:
            objects = ", ".join(sorted(set(self._table["object"])))
            raise _core.SkyhaulError(f'of: nothing called "{of}" has {", ".join(names)} (known: {objects})')
        unit = units[names[0]]
        y_title = ", ".join(names) + (f" ({unit})" if unit else "")
        title = self._title if title is None else title
        return Figure("-".join(names), title, _spec(curves, title, y_title, _steps(names)))

    def __getattr__(self, name: str) -> Callable[..., Figure]:
        series = name.replace("_", "-")
        if name.startswith("_") or series not in (recorded := self._recorded()):
            known = "" if name.startswith("_") else f" (recorded: {', '.join(recorded) or 'none'})"
            raise AttributeError(f"this run recorded no series {series}{known}", name=name, obj=self)

        def plot(*, of: str | None = None, title: str | None = None) -> Figure:
            return self(series, of=of, title=title)

        plot.__doc__ = f"A figure of the series {series} over simulated time."
        return plot

    def cwnd(self, *, of: str | None = None, title: str | None = None) -> Figure:
        """A figure of the congestion windows over simulated time."""
        return self("cwnd", of=of, title=title)

    def queue(self, *, of: str | None = None, title: str | None = None) -> Figure:
        """A figure of the queue lengths over simulated time."""
        return self("queue", of=of, title=title)

    def completion_times(self, *, of: str | None = None, title: str | None = None) -> Figure:
        """A figure of the completion times of pages and transfers (s) over the time at which they began.

        `of` chooses flows as in a figure of series. What was in progress at the end of the run has another
        shape, at the time that it had taken.
        """
        rows = self._rows(of)
        groups = list(dict.fromkeys(name for name, *_ in rows))
        values = []
        for name, state in itertools.product(groups, STATES):
            points: list[Sample] = [
                (start, took) for group, start, took, done in rows if (group, STATES[done]) == (name, state)
            ]
            values += [
                {"start": start, "took": took, "curve": name, "state": state}
                for start, took in _thin(sorted(points))
            ]
        shape = {"domain": STATES, "range": ["triangle-up", "circle"]}
        encoding = {
            "x": {"field": "start", "type": "quantitative", "title": "Start (s)"},
            "y": {"field": "took", "type": "quantitative", "title": "Completion time (s)"},
            "color": _nominal("curve", groups, PALETTE, {} if len(groups) > 1 else None),
            "shape": {
                "field": "state",
                "type": "nominal",
                "title": None,
                "scale": shape,
                "legend": {} if any(not done for *_, done in rows) else None,
            },
        }
        mark = {"type": "point", "size": 30, "strokeWidth": 1.5}
        return Figure("completion-times", *self._drawn(title, values, mark, encoding))

    def completion_cdf(self, *, of: str | None = None, title: str | None = None) -> Figure:
        """A figure of the distribution of completion times (s) of pages and transfers, one curve per group.

        A curve shows the share of all pages or transfers that were complete within a time. What was in
        progress at the end of the run counts among all: the curve then stays below 1.
        """
        rows = self._rows(of)
        groups = list(dict.fromkeys(name for name, *_ in rows))
        longest = max(took for _, _, took, _ in rows)
        values = []
        for name in groups:
            took = sorted(took for group, _, took, done in rows if group == name and done)
            count = sum(group == name for group, *_ in rows)
            steps = [(0.0, 0.0), *((t, (i + 1) / count) for i, t in enumerate(took))]
            # Each curve keeps its last step, and goes on at its level to the longest time.
            kept = [*steps[:: -(-len(steps) // POINTS)], steps[-1], (longest, steps[-1][1])]
            values += [{"took": t, "share": share, "curve": name} for t, share in kept]
        encoding = {
            "x": {"field": "took", "type": "quantitative", "title": "Completion time (s)"},
            "y": {
                "field": "share",
                "type": "quantitative",
                "title": "Share complete",
                "scale": {"domain": [0, 1]},
            },
            "color": _nominal("curve", groups, PALETTE, {} if len(groups) > 1 else None),
            "strokeDash": _nominal("curve", groups, DASHES, {} if len(groups) > 1 else None),
        }
        mark = {"type": "line", "strokeWidth": 2, "interpolate": "step-after"}
        return Figure("completion-cdf", *self._drawn(title, values, mark, encoding))

    def _rows(self, of: str | None) -> list[tuple[str, float, float, bool]]:
        """Group, start, duration and completion of the pages and transfers of some flows."""
        table = self._transfers()
        if not len(table):
            raise _core.SkyhaulError(
                "this run has no pages and no transfers: give a flow an application that loads some, for "
                'example set={"flows.web.app": {"kind": "pages", "segments": 50}}'
            )
        names = ("group", "index", "start_s", "duration_s", "completed")
        rows = [
            (group, start, took, bool(done))
            for group, index, start, took, done in zip(*(table[c] for c in names), strict=True)
            if of is None or _matches(f"flows.{group}[{index}]", of)
        ]
        if not rows:
            flows = ", ".join(
                dict.fromkeys(f"{g}[{i}]" for g, i in zip(table["group"], table["index"], strict=True))
            )
            raise _core.SkyhaulError(f'of: nothing called "{of}" has pages or transfers (known: {flows})')
        return rows

    def _drawn(
        self, title: str | None, values: list[dict[str, Any]], mark: dict[str, Any], encoding: dict[str, Any]
    ) -> tuple[str, dict[str, Any]]:
        """Title and specification of a figure."""
        title = self._title if title is None else title
        return title, {**_frame(title), "data": {"values": values}, "mark": mark, "encoding": encoding}

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name.replace("-", "_") for name in self._recorded())})

    def __repr__(self) -> str:
        return f"<Plots of {', '.join(self._recorded()) or 'nothing recorded'}>"

    def _recorded(self) -> list[str]:
        return list(dict.fromkeys(self._table["series"]))

    def _known(self, name: str, recorded: list[str]) -> str:
        if name not in recorded:
            if name in {q.name for q in _series()}:
                hint = f'add it to record.series, for example set={{"record.series": ["{name}"]}}'
            else:
                hint = f"recorded: {', '.join(recorded)}"
            raise _core.SkyhaulError(f'this run recorded no series "{name}": {hint}')
        return name

    def _curves(self, names: list[str], of: str | None) -> dict[str, list[Sample]]:
        """The samples of each curve by its name, in the order of the table."""
        curves: dict[str, list[Sample]] = {}
        table = self._table
        columns = (table[c] for c in ("time_s", "object", "series", "value"))
        for time, thing, series, value in zip(*columns, strict=True):
            if series in names and (of is None or _matches(thing, of)):
                name = thing.removeprefix("flows.").removeprefix("links.")
                curves.setdefault(name if len(names) == 1 else f"{name} {series}", []).append((time, value))
        # Curves without values, such as the queue of a link without one, need no place in the legend.
        return {name: _thin(c) for name, c in curves.items() if any(v is not None for _, v in c)}


class _Named:
    """Name and unit of a series."""

    def __init__(self, name: str, unit: str) -> None:
        self.name = name
        self.unit = unit


def _series() -> list[_Named]:
    return [_Named(name, unit) for of, name, _, unit, _ in _core.quantities() if of == "series"]


def _unit(series: str) -> str:
    return next((q.unit for q in _series() if q.name == series), "")


def _steps(names: list[str]) -> bool:
    """Whether the value holds until the next sample, such as the up/down state of a link."""
    return set(names) <= {"rate", "up"}


def _matches(thing: str, of: str) -> bool:
    """Whether an object matches: by full name, without its kind, by its group, or by a pattern."""
    short = thing.split(".", 1)[-1]
    group = short.split("[", 1)[0]
    return of in (thing, short, group, short.split(".", 1)[0]) or fnmatch.fnmatchcase(
        thing.replace("[", "<"), of.replace("[", "<")
    )


def _thin(samples: list[Sample]) -> list[Sample]:
    """At most about `POINTS` samples: the smallest and the largest of each time slot, in order of time.

    A mean would hide the peaks and reductions of a window.
    """
    if len(samples) <= POINTS:
        return samples
    width = -(-2 * len(samples) // POINTS)
    kept: list[Sample] = []
    for start in range(0, len(samples), width):
        slot = samples[start : start + width]
        known = [(v, i) for i, (_, v) in enumerate(slot) if v is not None]
        places = sorted({min(known)[1], max(known)[1]}) if known else [0]
        kept.extend(slot[i] for i in places)
    return kept


def _spec(curves: dict[str, list[Sample]], title: str, y_title: str, steps: bool) -> dict[str, Any]:
    names = list(curves)
    legend = {"symbolStrokeWidth": 2, "columns": 1 + len(names) // 20} if len(names) > 1 else None

    return {
        **_frame(title),
        "data": {
            "values": [
                {"time": t, "value": v, "curve": name} for name, curve in curves.items() for t, v in curve
            ]
        },
        "mark": {
            "type": "line",
            "strokeWidth": 2 if len(names) <= 4 else 1.2,
            "interpolate": "step-after" if steps else "linear",
        },
        "encoding": {
            "x": {"field": "time", "type": "quantitative", "title": "Time (s)", "scale": {"nice": False}},
            "y": {"field": "value", "type": "quantitative", "title": y_title},
            "color": _nominal("curve", names, PALETTE, legend),
            "strokeDash": _nominal("curve", names, DASHES, legend),
            "tooltip": [
                {"field": "curve", "title": "of"},
                {"field": "time", "type": "quantitative", "title": "Time (s)", "format": ".4~g"},
                {"field": "value", "type": "quantitative", "title": y_title, "format": ".5~g"},
            ],
        },
    }


def _nominal(
    field: str, names: list[str], values: list[Any], legend: dict[str, Any] | None
) -> dict[str, Any]:
    """A channel whose values repeat over the names of a field."""
    scale = {"domain": names, "range": [values[i % len(values)] for i in range(len(names))]}
    return {"field": field, "type": "nominal", "title": None, "scale": scale, "legend": legend}


def _frame(title: str) -> dict[str, Any]:
    """What all figures share."""
    axis = {"labelFontSize": 12, "titleFontSize": 13, "titleFontWeight": "normal", "gridColor": "#e6e6e6"}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": {"text": title, "anchor": "start", "fontSize": 14},
        "width": 560,
        "height": 320,
        "background": "white",
        "config": {"axis": axis, "view": {"stroke": None}},
    }
