"""Adversarial search: the case, within bounds, in which a congestion control does worst."""

import json
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from . import _core, _html
from ._control import Controls, spec
from ._progress import Progress, reporter
from ._report import path
from ._settings import Value, count, toml

Goal = Literal["harm", "starve", "collapse", "queue"]
"""What "worst" means: see `docs/attack.md`."""


class Estimate(NamedTuple):
    """A mean over seeds, with the half-width of its 95 % interval."""

    mean: float
    """The mean, in the unit of the goal."""
    half_95: float
    """Half the length of the 95 % interval, in the same unit."""
    seeds: int
    """Number of seeds."""


class Attack:
    """What a search found: the worst case, as numbers and as a scenario file that replays it."""

    def __init__(self, core: _core.Found) -> None:
        self._core = core

    @property
    def folder(self) -> Path:
        """The results directory."""
        return self._core.folder

    @property
    def scenario(self) -> Path:
        """The worst case as a scenario file: `skyhaul.run` gives the same numbers."""
        return self.folder / "worst.toml"

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The content of `report.json`."""
        summary: dict[str, Any] = json.loads(self._core.summary_json())
        return summary

    @property
    def value(self) -> float:
        """The value of the goal in the worst case, with the seed of the search."""
        value: float = self.summary["worst"]["value"]
        return value

    @property
    def fresh(self) -> Estimate | None:
        """The value over seeds that the search did not use; None if no run with such a seed has a value."""
        fresh = self.summary["worst"]["fresh"]
        return None if fresh is None else Estimate(fresh["mean"], fresh["half_95"], fresh["seeds"])

    @property
    def case(self) -> dict[str, str]:
        """The worst case: the keys that were searched, with their values."""
        case: dict[str, str] = self.summary["worst"]["case"]
        return case

    @property
    def trouble(self) -> list[dict[str, Any]]:
        """Cases in which the control failed or fell silent: `case` and `why`."""
        trouble: list[dict[str, Any]] = self.summary["trouble"]
        return trouble

    def __str__(self) -> str:
        return self._core.text()

    def __repr__(self) -> str:
        goal, control = self.summary["goal"], self.summary["control"]
        return f"<Attack on {control} in {self.folder}: {goal} {_core.short(self.value)}>"

    def _repr_html_(self) -> str:
        goal, control = self.summary["goal"], self.summary["control"]
        head = _html.head(
            f"Attack on {control}: {goal} {_core.short(self.value)}", f"results in {self.folder}"
        )
        return head + _html.table(["key", "worst"], list(self.case.items()))


def attack(
    control: str | Mapping[str, Value],
    goal: Goal,
    budget: str | int,
    *,
    bounds: Mapping[str, Value] | str | os.PathLike[str] | None = None,
    seed: int = 1,
    controls: Controls | None = None,
    jobs: int = 0,
    out: str | os.PathLike[str] | None = None,
    progress: bool | Progress = False,
) -> Attack:
    """Searches for the scenario, within bounds, in which a congestion control does worst.

    It does the same as the command `skyhaul attack`. `control` is a name (`"newreno"`), a table with `name`
    and options, or `"user:mine"` for a class of your own: `controls={"mine": Mine}`, as for `run`. `budget`
    is a time (`"10min"`) or a number of runs (`400`, or `"400 runs"`); with a number of runs the search
    repeats. `bounds` is a dict (`{"rate": ["1 Mbit/s", "10 Mbit/s"], "loss": 0}`) or a file; keys that it
    lacks have the built-in bounds. `out` is the folder for the worst case, the report and the journal, by
    default `results/attack-CONTROL-GOAL`, with the options of the control behind its name.

    `jobs` is the number of threads (0: one per processor). Cases that call Python run one at a time. After
    Ctrl-C, the same call continues from the journal.
    """

    text = None
    if isinstance(bounds, Mapping):
        text = "".join(f"{toml(str(key))} = {toml(value)}\n" for key, value in bounds.items())
        bounds = None
    found = _core.attack(
        control if isinstance(control, str) else toml(control),
        goal,
        budget if isinstance(budget, str) else f"{budget} runs",
        path(bounds),
        text,
        count("seed", seed, 0) or 0,
        count("jobs", jobs, 0) or 0,
        path(out),
        spec(controls),
        reporter(progress),
    )
    return Attack(found)
