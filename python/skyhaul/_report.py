"""The common parts of reports over several studies."""

import json
import os
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar


class Core(Protocol):
    """The results of a report, in Rust."""

    @property
    def folder(self) -> Path: ...
    def summary_json(self) -> str: ...
    def text(self) -> str: ...


C = TypeVar("C", bound=Core)


class Report(Generic[C]):
    """A folder with one page and its results."""

    def __init__(self, core: C) -> None:
        self._core = core

    @property
    def folder(self) -> Path:
        """The results directory."""
        return self._core.folder

    @property
    def page(self) -> Path:
        """The report: one self-contained HTML file."""
        return self.folder / "report.html"

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Every verdict, as in the JSON file of the folder."""
        summary: dict[str, Any] = json.loads(self._core.summary_json())
        return summary

    @property
    def counts(self) -> dict[str, int]:
        """The number of verdicts of each kind."""
        counts: dict[str, int] = self.summary["counts"]
        return counts

    def _some_counts(self) -> dict[str, int]:
        """The counts above zero."""
        return {k: n for k, n in self.counts.items() if n}

    def __str__(self) -> str:
        return self._core.text()


def path(folder: str | os.PathLike[str] | None) -> Path | None:
    """The argument as a path; None stays None."""
    return None if folder is None else Path(folder)
