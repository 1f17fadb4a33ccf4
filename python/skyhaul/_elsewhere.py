"""Execution of cells elsewhere: in other processes or on other machines."""

import concurrent.futures
import pickle
import queue
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

IN_FLIGHT = 512
"""Jobs in flight at a time: enough for the workers of a cluster, few enough to keep a scheduler fast."""


class Executor(Protocol):
    """Anything that runs functions elsewhere: an executor of concurrent.futures, a client of Dask.

    Its futures have `result()`, `cancel()` and `add_done_callback()`.
    """

    def submit(self, fn: Callable[[str], str], arg: str, /) -> Any:
        """Starts a call and returns a future."""


def pickler(executor: Executor) -> Callable[[object], object] | None:
    """The function with which an executor serializes calls; None if it does not, or if that is unknown."""
    names = ("ProcessPoolExecutor", "InterpreterPoolExecutor")  # The second since Python 3.14.
    pools = tuple(getattr(concurrent.futures, n) for n in names if hasattr(concurrent.futures, n))
    if isinstance(executor, pools):
        return pickle.dumps
    dask = sys.modules.get("distributed")
    if dask is not None and isinstance(executor, dask.Client):
        serialize: Callable[[object], object] = dask.protocol.pickle.dumps
        return serialize
    return None


def answers(
    executor: Executor, work: Callable[[str], str], jobs: Iterable[str], in_flight: int = IN_FLIGHT
) -> Iterator[tuple[str, str]]:
    """Yields jobs with their answers, in the order of completion; no two jobs may be equal.

    A bounded number is in flight at a time, so that a study of any size needs little memory here and on a
    scheduler. When the caller stops, or a call fails, calls that have not begun are cancelled.

    A function that cannot be serialized raises its error before anything is submitted: pools of processes up
    to Python 3.11.4 wait for such a call for ever when they are closed.
    """
    if dumps := pickler(executor):
        dumps(work)
    done: queue.SimpleQueue[Any] = queue.SimpleQueue()
    waiting = iter(jobs)
    running: dict[int, tuple[str, Any]] = {}

    def submit_next() -> None:
        job = next(waiting, None)
        if job is None:
            return
        future = executor.submit(work, job)
        running[id(future)] = (job, future)
        future.add_done_callback(done.put)

    try:
        for _ in range(in_flight):
            submit_next()
        while running:
            # With a time limit, so that Ctrl-C gets through on every platform.
            try:
                future = done.get(timeout=0.5)
            except queue.Empty:
                continue
            # Dask may pass another object of the same future.
            job, _ = running.pop(id(future), (None, None))
            if job is None:
                continue
            answer = str(future.result())
            submit_next()
            yield job, answer
    finally:
        for _, future in running.values():
            future.cancel()
