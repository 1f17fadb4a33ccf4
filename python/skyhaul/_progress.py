"""How far a study has come: a bar in a notebook, one line on a terminal, few lines in a pipe or a file."""

import shutil
import sys
import time
from collections.abc import Callable
from html import escape
from typing import Any

Progress = Callable[[int, int, str], None]
"""Called with the number of finished cells, of all cells, and the last one in words."""

AGAIN = 0.1
"""Least time between two updates of what is looked at, s."""

STEPS = 10
"""Most lines of what is kept, beside the last."""


def teller(progress: bool | Progress) -> Progress | None:
    """What to call for each cell: a function as it is, or for True whatever suits the place."""
    if not isinstance(progress, bool):
        return progress
    if not progress:
        return None
    if _in_notebook():
        return _Notebook()
    return _Terminal() if sys.stderr.isatty() else _Lines()


def _in_notebook() -> bool:
    """Whether the interpreter is the kernel of a notebook; IPython on a terminal has none."""
    shell = sys.modules.get("IPython")
    here = shell.get_ipython() if shell else None
    return getattr(here, "kernel", None) is not None


class _Terminal:
    """One line that is written over, no longer than the terminal is wide: a longer one would not go away."""

    def __init__(self) -> None:
        self._next = 0.0

    def __call__(self, done: int, total: int, label: str) -> None:
        now = time.monotonic()
        if done < total and now < self._next:
            return
        self._next = now + AGAIN
        width = max(20, shutil.get_terminal_size().columns - 1)
        line = f"{done} of {total} cells  {label}"[:width]
        end = "\n" if done == total else ""
        print(f"\r{line:{width}}", end=end, file=sys.stderr, flush=True)


class _Lines:
    """A line for each tenth of the cells, without control characters."""

    def __init__(self) -> None:
        self._told = -1

    def __call__(self, done: int, total: int, label: str) -> None:
        step = STEPS * done // total if total else STEPS
        if step > self._told:
            self._told = step
            print(f"{done} of {total} cells", file=sys.stderr, flush=True)


class _Notebook:
    """A bar below the cell of the notebook, which stays as one output."""

    def __init__(self) -> None:
        self._next = 0.0
        self._handle: Any = None

    def __call__(self, done: int, total: int, label: str) -> None:
        now = time.monotonic()
        if done < total and now < self._next:
            return
        self._next = now + AGAIN
        words = f"{done} of {total} cells"
        bar = f'<progress value="{done}" max="{max(total, 1)}"></progress>'
        shown = {"text/plain": words, "text/html": f"{bar} {words} <small>{escape(label)}</small>"}
        if self._handle is None:
            from IPython.display import display

            show: Any = display
            self._handle = show(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)
