"""Progress of a study: a bar in a notebook, one line on a terminal, a few lines in a pipe or a file."""

import shutil
import sys
import time
from collections.abc import Callable
from html import escape
from typing import Any

Progress = Callable[[int, int, str], None]
"""Called with the number of finished cells, the number of all cells, and the label of the last cell."""

UPDATE_INTERVAL = 0.1
"""Least time between two updates of a display, s."""

STEPS = 10
"""Number of lines written to a pipe or file, without the last one."""


def reporter(progress: bool | Progress) -> Progress | None:
    """The function to call for each cell: `progress` itself, or for True one that suits the output."""
    if not isinstance(progress, bool):
        return progress
    if not progress:
        return None
    if _in_notebook():
        return _Notebook()
    return _Terminal() if sys.stderr.isatty() else _Lines()


def _in_notebook() -> bool:
    """Whether the interpreter is a notebook kernel; IPython on a terminal is not."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return getattr(shell, "kernel", None) is not None


class _Terminal:
    """One line that overwrites itself, cut to the terminal's width: a longer one could not be erased."""

    def __init__(self) -> None:
        self._next = 0.0

    def __call__(self, done: int, total: int, label: str) -> None:
        now = time.monotonic()
        if done < total and now < self._next:
            return
        self._next = now + UPDATE_INTERVAL
        width = max(20, shutil.get_terminal_size().columns - 1)
        line = f"{done} of {total} cells  {label}"[:width]
        end = "\n" if done == total else ""
        print(f"\r{line:{width}}", end=end, file=sys.stderr, flush=True)


class _Lines:
    """A line for each tenth of the cells, without control characters."""

    def __init__(self) -> None:
        self._step = -1

    def __call__(self, done: int, total: int, label: str) -> None:
        step = STEPS * done // total if total else STEPS
        if step > self._step:
            self._step = step
            print(f"{done} of {total} cells", file=sys.stderr, flush=True)


class _Notebook:
    """A bar below the notebook cell, updated in place."""

    def __init__(self) -> None:
        self._next = 0.0
        self._handle: Any = None

    def __call__(self, done: int, total: int, label: str) -> None:
        now = time.monotonic()
        if done < total and now < self._next:
            return
        self._next = now + UPDATE_INTERVAL
        words = f"{done} of {total} cells"
        bar = f'<progress value="{done}" max="{max(total, 1)}"></progress>'
        shown = {"text/plain": words, "text/html": f"{bar} {words} <small>{escape(label)}</small>"}
        if self._handle is None:
            from IPython.display import display

            show: Any = display
            self._handle = show(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)
