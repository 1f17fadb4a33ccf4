"""Comparison of two results."""

import json
import os
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from . import _core, _html
from ._reproduce import Reproduction
from ._run import Result
from ._study import Outcome

Results = str | os.PathLike[str] | Result | Outcome | Reproduction
"""A results directory, or a result in memory."""


@dataclass(frozen=True)
class Difference:
    """A metric whose value differs between the two sides."""

    study: str
    """The study; empty for a single study and for runs."""
    cell: str
    """The label of the cell."""
    metric: str
    """The metric, with its unit if it has one."""
    a: float | None
    """Mean on the left."""
    b: float | None
    """Mean on the right."""
    difference: float | None
    """Right minus left."""
    ci95: float | None
    """Half the length of the 95 % interval of the difference."""
    n: int
    """Number of pairs of runs, or of runs on the smaller side."""
    paired: bool
    """Whether runs were compared seed by seed."""
    status: Literal["within", "unknown", "different"]
    """Whether the interval contains zero ("within") or not; "unknown" for two runs with unlike seeds."""


class Comparison:
    """The differences between two results. True as a condition if none is significant."""

    def __init__(self, values: dict[str, Any], text: str) -> None:
        self.summary = values
        """The whole comparison as plain values, as `skyhaul compare --json` prints it."""
        self._text = text

    @property
    def equal(self) -> bool:
        """Whether no difference is significant and both sides have the same studies, cells and metrics."""
        return bool(self.summary["equal"])

    @cached_property
    def differences(self) -> list[Difference]:
        """All metrics that are not identical; `status` says which differ significantly."""
        return [Difference(study=s["name"], **d) for s in self.summary["studies"] for d in s["differences"]]

    def _verdict(self, certain: int) -> str:
        return "equal" if self.equal else f"not equal, metrics that differ significantly: {certain}"

    def __bool__(self) -> bool:
        return self.equal

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        certain = sum(d.status == "different" for d in self.differences)
        return f"<Comparison: {self._verdict(certain)}>"

    def _repr_html_(self) -> str:
        certain = [d for d in self.differences if d.status == "different"]
        html = _html.head("Comparison", self._verdict(len(certain)))
        if certain:
            rows = [
                (d.study, d.cell, d.metric, d.a, d.b, _html.estimate(d.difference, d.ci95)) for d in certain
            ]
            html += _html.table(["study", "cell", "metric", "A", "B", "B − A"], rows)
        verdicts = (
            f"{s['name']} {v['claim']}: {v['a']} → {v['b']}"
            for s in self.summary["studies"]
            for v in s["verdicts"]
        )
        return html + _html.lines("verdicts that changed", verdicts)


def compare(a: Results, b: Results, *, across_versions: bool = False) -> Comparison:
    """Finds the significant differences between two results, as `skyhaul compare` does.

    Each side is a results directory, a `Result`, an `Outcome` or a `Reproduction`; both must be of the same
    kind. Equal seeds are compared seed by seed. Results of different engines are compared only with
    `across_versions`.
    """
    with ExitStack() as stack:
        left, right = _folder(a, stack), _folder(b, stack)
        values, text = _core.compare(left, right, across_versions)
        found = json.loads(values)
        for name, side, folder in (("a", a, left), ("b", b, right)):
            if isinstance(side, Result | Outcome):
                # The temporary folder is removed: the result is named instead.
                label = side._head() if isinstance(side, Outcome) else repr(side)
                found[name]["path"] = label
                text = text.replace(str(folder), label)
    return Comparison(found, text)


def _folder(side: Results, stack: ExitStack) -> Path:
    """The folder of the results; results in memory are written into a temporary folder."""
    if isinstance(side, Reproduction):
        return side.folder
    if not isinstance(side, Result | Outcome):
        return Path(side)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="skyhaul-"))) / "results"
    if isinstance(side, Result):
        side.save(folder)
    else:
        side._core.save(folder, None)
    return folder
