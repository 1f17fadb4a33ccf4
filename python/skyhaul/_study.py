"""Studies: scenarios × axes × seeds, with claims and figures."""

import functools
import json
import os
import pickle
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from . import _core, _html
from ._control import Controls, Spec, run_cell, spec
from ._core import SkyhaulError, StudyError
from ._draw import renderer
from ._elsewhere import Executor, answers
from ._figure import Figure
from ._progress import Progress, reporter
from ._settings import Value, count, settings
from ._table import Table

MOST_LINES = 24
"""Largest number of lines of means in the short form of an outcome."""


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, with its verdict."""

    id: str
    """Its name within the study."""
    says: str
    """The statement, in our words."""
    verdict: str
    """"holds", "differs", "undecided", "not-evaluable" or, in the quick profile, "not-in-profile"."""
    ours: str
    """Our measurement, in one line."""
    paper: str | None
    """The value that the source gives."""
    where: str | None
    """The place in the source."""
    outcomes: list[dict[str, Any]]
    """The outcome of each reading, case by case."""


@dataclass(frozen=True)
class FailedCell:
    """A cell without a result."""

    cell: str
    """The label of the combination."""
    seed: int
    """The seed of the run."""
    message: str
    """The error in one line, with the simulated time."""
    traceback: str | None
    """The Python traceback, if Python code failed."""


class Outcome:
    """The results of a study."""

    def __init__(self, core: _core.Outcome) -> None:
        self._core = core

    @cached_property
    def cells(self) -> Table:
        """One row per cell: reading, axes, seed, metrics; if cells failed, the column `failed` says why."""
        return Table(self._core.cells())

    @cached_property
    def claims(self) -> list[Claim]:
        """The claims with their verdicts under the default reading."""
        return [
            Claim(
                id=c["id"],
                says=c["says"],
                verdict=c["outcomes"][0]["verdict"],
                ours=c["outcomes"][0]["ours"],
                paper=c["paper"],
                where=c["where"],
                outcomes=c["outcomes"],
            )
            for c in json.loads(self._core.claims_json())
        ]

    @cached_property
    def figures(self) -> dict[str, Figure]:
        """The figures by name."""
        return {name: Figure(name, title, json.loads(spec)) for name, title, spec in self._core.figures()}

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Provenance, verdicts and means with intervals, as plain values."""
        summary: dict[str, Any] = json.loads(self._core.summary_json())
        return summary

    @cached_property
    def failed(self) -> list[FailedCell]:
        """The cells that failed; claims over them are not evaluated."""
        return [
            FailedCell(f["cell"], f["seed"], f["message"], f["detail"]) for f in self.summary["failed_cells"]
        ]

    def report(self, path: str | os.PathLike[str]) -> list[Path]:
        """Writes the report; returns the files written.

        A path that ends in `.html` gets one self-contained page; any other path becomes a results directory
        with the page, figures, images and tables. A directory with other files raises `OSError`.
        """
        path = Path(path)
        if path.suffix == ".html":
            path.write_text(self._core.html(), encoding="utf-8")
            return [path]
        return self._core.save(path, renderer())

    def _repr_html_(self) -> str:
        s = self.summary
        html = _html.head(s["title"], self._core.counts(), *self._size())
        if self.claims:
            rows = [(c.id, c.says, c.verdict, c.ours, c.paper) for c in self.claims]
            html += _html.table(["claim", "says", "verdict", "ours", "paper"], rows)
        axes, metrics, values = self._core.values()
        if values:
            html += _html.table(*_values(axes, metrics, values))
        return html + _html.lines(
            "failed cells", (f"{f.cell}, seed {f.seed}: {f.message}" for f in self.failed)
        )

    def __str__(self) -> str:
        return self._core.text()

    def __repr__(self) -> str:
        # The first lines of the table of means: at a prompt, all would be too many.
        lines = self._core.means().splitlines()
        more = (
            [f"… and {len(lines) - MOST_LINES} more lines: print() shows all"] if lines[MOST_LINES:] else []
        )
        return "\n".join([self._head(), *lines[:MOST_LINES], *more])

    def _head(self) -> str:
        """The outcome in one line: title, verdicts and size."""
        return f"<Outcome of {self.summary['title']}: {self._core.counts()}, {', '.join(self._size())}>"

    def _size(self) -> tuple[str, str]:
        p = self.summary["provenance"]
        return _count(p["cells"], "cell"), _count(p["seeds"], "seed")


def _count(n: int, one: str) -> str:
    """A number with its noun."""
    return f"{n} {one}" if n == 1 else f"{n} {one}s"


def _values(
    axes: list[str], metrics: list[str], rows: list[tuple[str, list[str], list[str]]]
) -> tuple[list[str], list[list[object]]]:
    """Header and rows of the table of values: axes, then metrics, rounded as in print and in the report."""
    several = len({reading for reading, _, _ in rows}) > 1
    head = [*(["reading"] if several else []), *axes, *metrics]
    return head, [
        [*([reading] if several else []), *at, *map(_html.Number, shown)] for reading, at, shown in rows
    ]


class Study:
    """A study, resolved and fully checked."""

    def __init__(self, core: _core.Study, controls: Spec) -> None:
        self._core = core
        self._controls = controls

    @property
    def title(self) -> str:
        """Its title."""
        return self._core.title

    def __len__(self) -> int:
        """Number of cells."""
        return len(self._core)

    def __repr__(self) -> str:
        return f"<Study {self.title}: {_count(len(self), 'cell')}, not run yet: .run()>"

    def _repr_html_(self) -> str:
        return _html.head(self.title, _count(len(self), "cell"), "not run yet: .run()")

    def run(
        self,
        *,
        jobs: int = 0,
        cache: str | os.PathLike[str] | bool | None = None,
        progress: bool | Progress = False,
        executor: Executor | None = None,
    ) -> Outcome:
        """Runs the missing cells and evaluates the study.

        `jobs` is the number of threads (0: one per processor). `cache` is a folder that keeps finished cells,
        so that an interrupted study can continue, or True for the folder that the command uses. `progress` is
        a function, or True for a bar in a notebook, a line on a terminal or a few lines in a pipe. An
        `executor` runs the cells elsewhere: an executor of concurrent.futures or a Dask client. Its workers
        need the same version of this package, and refuse jobs of another. Cells are stored as they finish.

        A cell that fails raises a warning and is listed in `Outcome.failed`; the others continue.
        """
        report = reporter(progress)
        if isinstance(cache, bool):
            cache = _core.cache_dir() if cache else None
        folder = None if cache is None else Path(cache)
        if executor is None:
            return Outcome(self._core.run(count("jobs", jobs, 0) or 0, folder, report, _warn))
        todo, damaged = self._core.jobs(folder)
        for line in damaged:
            _warn(line)
        if self._controls:
            work: Callable[[str], str] = functools.partial(run_cell, controls=self._controls)
        else:
            work = _core.run_cell
        found: list[tuple[str, str]] = []
        try:
            for job, answer in answers(executor, work, todo):
                found.append((job, answer))
                if folder is not None:
                    self._core.store(folder, job, answer)
                if report is not None:
                    report(len(self) - len(todo) + len(found), len(self), str(json.loads(job)["label"]))
        except Exception as e:
            self._explain(e)
            raise
        outcome = Outcome(self._core.collect(found, folder))
        for f in outcome.failed:
            _warn(f"cell {f.cell} (seed {f.seed}) failed: {f.message}")
        return outcome

    def _explain(self, error: Exception) -> None:
        """Explains the error of an executor that cannot send a class, and what to do about it."""
        if isinstance(error, SkyhaulError):
            return
        for name, cls, _ in self._controls:
            try:
                pickle.dumps(cls)
                if cls.__module__ != "__main__":
                    continue
            except Exception:  # Pickling may raise anything.
                pass
            raise StudyError(
                f'controls["{name}"]: the executor cannot send {cls.__qualname__} of {cls.__module__} to '
                "its workers: define the class at the top level of a module that workers can import, or run "
                "without executor"
            ) from error


def study(
    study: str | os.PathLike[str],
    *,
    set: Mapping[str, Value] | None = None,
    seeds: int | None = None,
    first_seed: int | None = None,
    text: str | None = None,
    controls: Controls | None = None,
) -> Study:
    """Reads a study: a file, or the name of a built-in study (see `studies()`).

    `set` changes keys of its scenario, `seeds` the number of seeds. With `text`, the study is this text and
    the first argument is only a name for messages.

    `controls` are your own congestion controls, as for `run`: an axis may list `"user:mine"` next to
    `"sack"`. The cache identifies their cells by the source code of the class; without source code, they are
    not cached.
    """
    own = spec(controls)
    return Study(
        _core.Study(
            os.fspath(study),
            text,
            settings(set),
            count("first_seed", first_seed, 0),
            count("seeds", seeds),
            own,
        ),
        own,
    )


def _warn(line: str) -> None:
    warnings.warn(line, RuntimeWarning, stacklevel=4)
