"""Reproduction: all studies, and one report about them."""

import os
from collections.abc import Iterator
from functools import cached_property

from . import _core, _html
from ._draw import renderer
from ._elsewhere import Executor, answers
from ._progress import Progress, reporter
from ._report import Report, path
from ._settings import count
from ._study import _warn
from ._table import Table


class Reproduction(Report[_core.Reproduced]):
    """The results of a reproduction.

    `summary` has every verdict under every reading, as `summary.json`. `counts` is the number of claims per
    verdict: `holds`, `differs`, `undecided`, `not_evaluable`, `not_in_profile`, `elsewhere` (a unit test
    proves them), `open`, and `total`.
    """

    @cached_property
    def claims(self) -> Table:
        """One row per claim and reading, as in `claims.parquet`."""
        return Table(self._core.claims())

    @property
    def refused(self) -> dict[str, str]:
        """The studies that could not be run, by name, with the reason; the others ran."""
        return dict(self._core.refused())

    @property
    def failed_cells(self) -> int:
        """Number of cells without a result; the report names them."""
        return int(self.summary["failed_cells"])

    def _repr_html_(self) -> str:
        rows = [(k.replace("_", " "), n) for k, n in self.counts.items()]
        html = _html.head("Reproduction", f"report in {self.page}") + _html.table(["claims", "number"], rows)
        return html + _html.lines("refused studies", (f"{k}: {why}" for k, why in self.refused.items()))

    def __repr__(self) -> str:
        return f"<Reproduction in {self.folder}: {self._some_counts()}>"


def reproduce(
    *names: str,
    quick: bool = False,
    studies: str | os.PathLike[str] | None = None,
    seeds: int | None = None,
    max_cells: int | None = None,
    jobs: int = 0,
    executor: Executor | None = None,
    out: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    progress: bool | Progress = False,
) -> Reproduction:
    """Runs all studies, or those named (`"peach-2001"`, `"peach-2001/fig11"`), and writes one report.

    It does the same as the command `skyhaul reproduce` and writes the same files; only dates and durations
    differ. `quick` selects the quick profile of each study: fewer seeds and shorter runs. `seeds` replaces
    the studies' numbers of seeds, and `max_cells` their limits of cells. `studies` is a folder with your own
    studies, instead of the built-in ones. `out` is the folder for the report, by default `results/reproduce`
    or `results/reproduce-quick`.

    `jobs`, `executor` and `progress` are those of `Study.run`: cells run on local threads, on an executor of
    concurrent.futures, or on a Dask cluster. Unlike there, finished cells are always kept: with `cache` None
    in the command's folder (`$SKYHAUL_CACHE`, `$XDG_CACHE_HOME/skyhaul`, `~/.cache/skyhaul`). After an
    interruption, the same call continues where it stopped.

    A study that cannot be read, or a cell that fails, raises a warning; the others continue.
    """

    core = _core.Reproduction(
        list(names),
        quick,
        path(studies),
        count("seeds", seeds),
        count("max_cells", max_cells),
        path(out),
        path(cache),
    )
    for line in core.refused:
        _warn(line)
    report = reporter(progress)
    if executor is None:
        core.run(count("jobs", jobs, 0) or 0, report, _warn)
    else:
        _run_on(executor, core, report)
    return Reproduction(core.report(renderer()))


def _run_on(executor: Executor, core: _core.Reproduction, report: Progress | None) -> None:
    """Runs the cells of all studies on an executor."""
    sizes = core.sizes()
    total = sum(sizes)
    done = 0
    # The jobs in flight and their studies: a job contains the name of its study, so no two are equal.
    study_of: dict[str, int] = {}

    def jobs() -> Iterator[str]:
        # A study is opened once all jobs of the study before it are in flight: few studies are in memory.
        nonlocal done
        for number, size in enumerate(sizes):
            cells, warnings = core.jobs(number)
            for line in warnings:
                _warn(line)
            done += size - len(cells)
            for cell in cells:
                study_of[cell] = number
                yield cell

    for job, answer in answers(executor, _core.run_cell, jobs()):
        label, failure = core.answer(study_of.pop(job), job, answer)
        done += 1
        if failure is not None:
            _warn(failure)
        if report is not None:
            report(done, total, label)
