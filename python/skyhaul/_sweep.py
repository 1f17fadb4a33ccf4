"""A study in one call: a scenario, the keys to vary and the metrics."""

import itertools
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import _core
from ._control import Controls
from ._elsewhere import Executor
from ._progress import Progress
from ._settings import Array, Value, plain, toml
from ._study import Outcome, study

Values = Sequence[Value] | Array | Mapping[str, Value]
"""Values of an axis, such as a list, an array or a series, or a mapping from names to values."""

Listed = list[Value] | Mapping[str, Value]

RESERVED = ("metric", "seed", "reading")
"""Columns of the table of cells that are no axes."""

MOST_FIGURES = 12
"""Largest number of figures per metric if more than two axes vary; with more, the metric has none."""


def sweep(
    scenario: str | os.PathLike[str],
    axes: Mapping[str, Values],
    metrics: Mapping[str, str] | Sequence[str] = ("sum(flow.goodput)",),
    *,
    seeds: int = 5,
    first_seed: int = 1,
    set: Mapping[str, Value] | None = None,
    controls: Controls | None = None,
    title: str = "Sweep",
    jobs: int = 0,
    cache: str | os.PathLike[str] | bool | None = None,
    progress: bool | Progress = False,
    executor: Executor | None = None,
) -> Outcome:
    """Runs a scenario with every combination of values and every seed.

    `axes` are keys of the scenario and their values: `{"flows.bulk.cc": ["sack", "peach"]}`, or with names
    `{"links.sat.delay": {"GEO": "275 ms", "LEO": "25 ms"}}`. Values may come as a list, a numpy array, or a
    series of pandas or polars. In the table of cells, an axis has the name of the last part of its key, or of
    the whole key with `_` for dots if two names would collide.

    `metrics` are expressions as in studies, with or without names: `"sum(flow.goodput)"`,
    `{"busy": "link.sat.forward.utilization"}`. A flow quantity without a function, `"flow.goodput"`, is the
    mean over the flows.

    The result is that of a study without claims: `cells.to_pandas()` has one row per run, and `figures` one
    figure per metric, drawn over the first numeric axis. `set`, `controls`, `jobs`, `cache`, `progress` and
    `executor` are those of `study` and `Study.run`.
    """
    if not axes:
        raise _core.StudyError("axes: a sweep needs at least one key with values; run() makes a single run")
    text = _text(scenario, {path: _listed(path, values) for path, values in axes.items()}, metrics, title)
    plan = study("sweep", text=text, set=set, seeds=seeds, first_seed=first_seed, controls=controls)
    return plan.run(jobs=jobs, cache=cache, progress=progress, executor=executor)


def _listed(path: str, values: Values) -> Listed:
    """The values of an axis as a list or a mapping."""
    found = plain(values)
    if isinstance(found, Mapping):
        return {name: plain(value) for name, value in found.items()}
    if isinstance(found, str) or not isinstance(found, Sequence):
        raise _core.StudyError(
            f'axes["{path}"]: {values!r} is a single value: write a list of values, or use set for a key '
            "that does not vary"
        )
    return [plain(value) for value in found]


def _text(
    scenario: str | os.PathLike[str],
    axes: Mapping[str, Listed],
    metrics: Mapping[str, str] | Sequence[str],
    title: str,
) -> str:
    """The study as TOML."""
    base = os.fspath(scenario)
    if not base.startswith("preset:"):
        # A study looks for its scenario in its own folder, and this study is in none.
        base = str(Path(base).absolute())
    names = _names(axes)
    lines = ["schema = 1", f"title = {toml(title)}", f"scenario = {toml(base)}"]
    for path, values in axes.items():
        listed = values
        if isinstance(values, Mapping):
            listed = [{"label": label, "value": value} for label, value in values.items()]
        elif any(isinstance(v, Mapping) for v in values):
            # In a study, a table of `label` and `value` is a named value: a value that is a table is wrapped.
            listed = [{"value": value} for value in values]
        lines += [
            "[[axis]]",
            f"name = {toml(names[path])}",
            f"path = {toml(path)}",
            f"values = {toml(listed)}",
        ]
    named = metrics if isinstance(metrics, Mapping) else {_name(m): m for m in metrics}
    for name, expression in named.items():
        lines += ["[[metric]]", f"name = {toml(name)}", f"from = {toml(expression)}"]
        if _names_flow(expression) and "(" not in expression:
            lines.append('over = "mean"')
        if unit := _unit(expression):
            lines.append(f"unit = {toml(unit)}")
    for name in named:
        lines += _figures(name, {names[p]: v for p, v in axes.items()})
    return "\n".join(lines) + "\n"


def _names(axes: Mapping[str, Listed]) -> dict[str, str]:
    """The names of the axes, by their keys: the last part of a key, or the whole key if that is taken."""
    short = {path: path.rsplit(".", 1)[-1] for path in axes}
    taken = list(short.values())
    return {
        path: name if taken.count(name) == 1 and name not in RESERVED else path.replace(".", "_")
        for path, name in short.items()
    }


def _name(expression: str) -> str:
    """A name for an expression: that of its last quantity."""
    quantities = re.findall(r"(?:flow|link|run|series)[\w\[\]-]*\.([\w.-]+)", expression)
    return quantities[-1].rsplit(".", 1)[-1] if quantities else "value"


def _names_flow(expression: str) -> bool:
    """Whether an expression has a quantity of flows."""
    return re.search(r"\bflow(\[[^\]]*\])?\.", expression) is not None


def _unit(expression: str) -> str:
    """The unit of an expression that is one quantity, summed or averaged; unknown for others."""
    aggregate = r"(?:(?:sum|mean|min|max)\()?"
    found = re.fullmatch(
        aggregate + r"(flow|link|run)(?:\[[^\]]*\])?\.(?:[\w.-]+\.)?([\w-]+)\)?", expression.strip()
    )
    if found is None:
        return ""
    kind, name = found.groups()
    return next(
        (unit for of, quantity, _, unit, _ in _core.quantities() if (of, quantity) == (kind, name)), ""
    )


def _figures(metric: str, axes: Mapping[str, Listed]) -> list[str]:
    """The figures of a metric: one for each combination of the axes that are neither x nor series."""

    def numbers(values: Listed) -> list[float]:
        # The values if all are numbers, otherwise none.
        plain = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
        return [float(v) for v in plain] if len(plain) == len(values) else []

    x = next((name for name, values in axes.items() if numbers(values)), next(iter(axes)))
    others = [name for name in axes if name != x]
    series, rest = (others[0], others[1:]) if others else (None, [])
    choices = [[(name, label) for label in axes[name]] for name in rest]
    if math.prod(len(c) for c in choices) > MOST_FIGURES or any(
        isinstance(v, Mapping | Sequence) and not isinstance(v, str) for c in choices for _, v in c
    ):
        return []
    positive = [n for n in numbers(axes[x]) if n > 0]
    lines: list[str] = []
    for number, chosen in enumerate(itertools.product(*choices)):
        lines += ["[[figure]]", f"file = {toml(f'{metric}-{number}' if rest else metric)}"]
        lines += [f"x = {toml(x)}", f"y = {toml(metric)}"]
        if series is not None:
            lines.append(f"series = {toml(series)}")
        if chosen:
            lines.append(f"at = {toml(dict(chosen))}")
            lines.append(f"title = {toml(', '.join(f'{n} = {v}' for n, v in chosen))}")
        if positive and max(positive) >= 10 * min(positive):
            lines.append('x_scale = "log"')
    return lines
