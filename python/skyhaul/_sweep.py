"""A study in one call: a scenario, keys that vary, and metrics."""

import os
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
    named: list[tuple[str | None, str]] = (
        [*metrics.items()] if isinstance(metrics, Mapping) else [(None, m) for m in metrics]
    )
    return _core.sweep_text(base, title, [(path, _written(v)) for path, v in axes.items()], named)


def _written(values: Listed) -> list[tuple[str | None, str]]:
    """The values of an axis as TOML, each with its name if it has one."""
    if isinstance(values, Mapping):
        return [(str(name), toml(value)) for name, value in values.items()]
    return [(None, toml(value)) for value in values]
