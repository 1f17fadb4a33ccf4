"""Scenarios: run, check, schema."""

import json
import os
import warnings
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from . import _core, _html
from ._control import Controls, spec
from ._plot import Plots
from ._settings import Value, count, settings
from ._table import Table


class _Pickled:
    """The contents of a pickled result."""

    def __init__(
        self,
        tables: dict[str, Table],
        summary: str,
        report: str,
        scenario: str,
        printed: list[list[list[str]]],
    ) -> None:
        self._tables = tables
        self._texts = summary, report, scenario
        self._printed = printed

    def flows(self) -> Table:
        return self._tables["flows"]

    def links(self) -> Table:
        return self._tables["links"]

    def series(self) -> Table:
        return self._tables["series"]

    def transfers(self) -> Table:
        return self._tables["transfers"]

    def summary_json(self) -> str:
        return self._texts[0]

    def report(self) -> str:
        return self._texts[1]

    def scenario_toml(self) -> str:
        return self._texts[2]

    def tables(self) -> list[list[list[str]]]:
        return self._printed

    def save(self, folder: Path) -> None:
        raise _core.SkyhaulError(
            "a pickled result cannot be saved: save it before pickling, or run its scenario again"
        )


class Result:
    """The results of a run. Pickling keeps only its tables and texts."""

    def __init__(self, core: _core.RunResult | _Pickled) -> None:
        self._core = core

    def __reduce__(self) -> tuple[type["Result"], tuple[_Pickled]]:
        tables = {
            "flows": self.flows,
            "links": self.links,
            "series": self.series,
            "transfers": self.transfers,
        }
        core = self._core
        texts = core.summary_json(), core.report(), core.scenario_toml()
        return Result, (_Pickled(tables, *texts, core.tables()),)

    @staticmethod
    def _table(table: _core.Table | Table) -> Table:
        return table if isinstance(table, Table) else Table(table)

    @cached_property
    def flows(self) -> Table:
        """One row per flow."""
        return self._table(self._core.flows())

    @cached_property
    def links(self) -> Table:
        """One row per link direction, with losses by their true cause."""
        return self._table(self._core.links())

    @cached_property
    def series(self) -> Table:
        """The samples: one row per time, object and series."""
        return self._table(self._core.series())

    @cached_property
    def transfers(self) -> Table:
        """One row per page and random transfer: flow, number, start, size, end, duration.

        `end_s` is missing for one in progress at the end, which has `completed` 0 and the time until then as
        `duration_s`.
        """
        return self._table(self._core.transfers())

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The output of `skyhaul run --json`: quantities of the run, of each flow, flow group and link."""
        summary: dict[str, Any] = json.loads(self._core.summary_json())
        return summary

    @property
    def ended_early(self) -> str | None:
        """Why the run ended early, with results up to that time; `None` if it ran to its end."""
        why: str | None = self.summary.get("ended_early")
        return why

    @property
    def scenario(self) -> str:
        """The fully resolved scenario as TOML; running it gives the same result."""
        return self._core.scenario_toml()

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Writes a results directory: manifest, scenario, summary, tables as Parquet. Returns its path."""
        folder = Path(folder)
        self._core.save(folder)
        return folder

    @cached_property
    def plot(self) -> Plots:
        """Figures: of recorded series, `r.plot.cwnd()`, and of transfers, `r.plot.completion_cdf()`."""
        return Plots(self.series, str(self.summary["title"] or ""), lambda: self.transfers)

    def _repr_html_(self) -> str:
        s = self.summary
        html = _html.head(s["title"] or "A run", _duration(s), f"seed {s['seed']}")
        for first, *rows in self._core.tables():
            # Cells that begin with a digit are numbers, and are aligned as such.
            cells = ([_html.Number(c) if c[:1].isdigit() else c for c in row] for row in rows)
            html += _html.table(first, cells)
        return html

    def __str__(self) -> str:
        return self._core.report()

    def __repr__(self) -> str:
        s = self.summary
        title = s["title"] or "a run"
        return f"<Result of {title}: {len(self.flows)} flows, {_duration(s)}, seed {s['seed']}>"


def _duration(summary: dict[str, Any]) -> str:
    """The duration of a run, as the other outputs write it."""
    return f"{_core.short(summary['duration_s'])} s"


def run(
    scenario: str | os.PathLike[str],
    *,
    set: Mapping[str, Value] | None = None,
    seed: int | None = None,
    digest: bool = False,
    text: str | None = None,
    controls: Controls | None = None,
) -> Result:
    """Runs a scenario: a file or "preset:NAME".

    `set` changes keys, such as `{"flows.bulk.cc": "peach", "links.sat.rate": "10 Mbit/s"}`; `seed` replaces
    the scenario's seed; `digest` adds a hash of all events, `summary["digest"]`. With `text`, the scenario is
    this text and the first argument is only a name for messages.

    `controls` are your own congestion controls: with `{"mine": MyControl}` the scenario may say
    `cc = "user:mine"`, or `{ name = "user", control = "mine", options = { … } }` with keyword arguments for
    the class. An exception in one of them raises `ControlError`.

    A run that reaches the memory limit of its scenario (`max-memory`) ends there, with a warning;
    `ended_early` of its result says why.
    """
    core = _core.run(os.fspath(scenario), text, settings(set), count("seed", seed, 0), digest, spec(controls))
    result = Result(core)
    if (why := core.ended_early()) is not None:
        warnings.warn(why, stacklevel=2)
    return result


class Check(dict[str, Any]):
    """What a scenario implies, as plain values; as a string, the output of `skyhaul check`."""

    def __init__(self, values: dict[str, Any], text: str) -> None:
        super().__init__(values)
        self._text = text

    @property
    def warnings(self) -> list[str]:
        """Warnings of likely mistakes, as text."""
        return [f"{w['key']}: {w['message']}" for w in self["warnings"]]

    def _repr_html_(self) -> str:
        return _html.verbatim(self._text)

    def __str__(self) -> str:
        return self._text


def check(
    scenario: str | os.PathLike[str],
    *,
    set: Mapping[str, Value] | None = None,
    text: str | None = None,
    controls: Controls | None = None,
) -> Check:
    """Computes what a scenario implies before it runs: BDP, RTT, queueing delay, bounds, warnings.

    `controls` as for `run`; unknown names and options that a class does not accept are refused.
    """
    values, words = _core.check(os.fspath(scenario), text, settings(set), spec(controls))
    return Check(json.loads(values), words)


def schema(kind: str) -> dict[str, Any]:
    """The JSON Schema of a kind of file: "scenario" or "study"."""
    value: dict[str, Any] = json.loads(_core.schema(kind))
    return value


class Quantity(NamedTuple):
    """A quantity that a run measures."""

    of: str
    """The object it describes: "flow", "group", "link", "run", or "series"."""
    name: str
    """Its name, as in the metrics of studies."""
    column: str
    """Its name in tables and in `Result.summary`: with the unit appended, unless the name implies it."""
    unit: str
    """Its unit; empty for counts."""
    says: str
    """Its definition."""


def quantities() -> list[Quantity]:
    """All quantities that a run measures."""
    return [Quantity(*row) for row in _core.quantities()]
