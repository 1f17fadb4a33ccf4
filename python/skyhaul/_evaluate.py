"""Evaluation: what RFC 9743 asks of a proposal for congestion control."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from . import _core, _html
from ._control import Controls, spec
from ._draw import renderer
from ._progress import Progress, reporter
from ._report import Report, path
from ._settings import Value, count, toml
from ._study import _warn


@dataclass(frozen=True)
class Requirement:
    """A section of the document, with its verdict."""

    section: str
    """The number of the section, as in "5.1"."""
    title: str
    """Its title, shortened."""
    verdict: str
    """"met", "not-met", "undecided", "failed" or "not-measured"."""
    claims: list[dict[str, Any]]
    """The claims about it: `case`, `id`, `says`, `measured`, `verdict`, and `cases` with intervals."""
    not_measured: list[dict[str, str]]
    """The parts that were not measured: `says` and `why`."""


class Evaluation(Report[_core.Evaluated]):
    """The results of an evaluation: `summary` is `evaluation.json`, `counts` the requirements per verdict."""

    @cached_property
    def requirements(self) -> list[Requirement]:
        """The requirements in the order of the document."""
        return [
            Requirement(r["section"], r["title"], r["verdict"], r["claims"], r["not_measured"])
            for r in self.summary["requirements"]
        ]

    @property
    def refused(self) -> dict[str, str]:
        """The cases that could not be run, by name, with the reason; the others ran."""
        return {r["case"]: r["why"] for r in self.summary["refused"]}

    def _repr_html_(self) -> str:
        rows = [(r.section, r.title, r.verdict.replace("-", " ")) for r in self.requirements]
        head = _html.head(f"Evaluation of {self.summary['control']}", f"report in {self.page}")
        html = head + _html.table(["section", "requirement", "verdict"], rows)
        return html + _html.lines("refused cases", (f"{k}: {why}" for k, why in self.refused.items()))

    def __repr__(self) -> str:
        return f"<Evaluation of {self.summary['control']} in {self.folder}: {self._some_counts()}>"


def evaluate(
    control: str | Mapping[str, Value],
    *names: str,
    quick: bool = False,
    cases: str | os.PathLike[str] | None = None,
    seeds: int | None = None,
    controls: Controls | None = None,
    jobs: int = 0,
    out: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    qlog: bool = False,
    progress: bool | Progress = False,
) -> Evaluation:
    """Measures what RFC 9743 asks of a congestion control, and writes one page and one JSON file.

    It does the same as the command `skyhaul evaluate`. `control` is a name (`"sack"`), a table with `name`
    and options, or `"user:mine"` for a class of your own: `controls={"mine": Mine}`, as for `run`. `names`
    selects cases; `cases` is a folder with your own cases, instead of the built-in ones. `quick` selects the
    quick profile, and `seeds` replaces the numbers of seeds. `out` is the folder for the report, by default
    `results/evaluate-NAME`, with the options of the control behind its name. `qlog` writes the events of one
    cell of each case, in `studies/…/CASE/qlog`.

    `jobs` is the number of threads (0: one per processor). Cells that call Python run one at a time.
    Finished cells are kept in `cache`, by default the command's folder: after an interruption, the same call
    continues.

    A cell that fails raises a warning. Its requirement has the verdict "failed", and the others are judged.
    """

    core = _core.Evaluating(
        control if isinstance(control, str) else toml(control),
        list(names),
        quick,
        path(cases),
        count("seeds", seeds),
        path(out),
        path(cache),
        spec(controls),
    )
    for line in core.refused:
        _warn(line)
    core.run(count("jobs", jobs, 0) or 0, reporter(progress), _warn)
    if qlog:
        core.qlog()
    return Evaluation(core.report(renderer()))
