"""Movies from traces of video.

    from skyhaul import video

    found = video.fit("film.txt")
    found.types[0].autocorrelation_error
    print(found.scenario)  # for a scenario file

A trace has lines of number, type, display time in ms and bytes, in the order of coding, or of bytes alone.
A file that is no trace raises `ScenarioError` with its line; one that cannot be read `OSError`.
"""

import json
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from . import _core

__all__ = ["Aggregates", "Fit", "Type", "fit"]


@dataclass(frozen=True)
class Type:
    """Frames of one type, and how well they were met."""

    type: str
    """I, P or B."""
    frames: int
    """How many the trace has."""
    mean_bytes: float
    variation: float
    """Coefficient of variation of their sizes."""
    least_bytes: int
    most_bytes: int
    autocorrelation_error: float
    """Root of the mean squared difference between the two below."""
    autocorrelation_trace: list[float]
    """At lags from 1 on, in frames of the type."""
    autocorrelation_model: list[float]


@dataclass(frozen=True)
class Aggregates:
    """A film over all its frames."""

    frames: int
    mean_bytes: float
    variation: float
    largest_bytes: float
    group_variation: float
    """Coefficient of variation of the bytes of a group of pictures."""


@dataclass(frozen=True)
class Fit:
    """A movie, and how near it comes to the trace."""

    movie: dict[str, Any]
    """As a scenario takes it."""
    types: list[Type]
    trace: Aggregates
    played: Aggregates
    """Of as many frames of the movie."""
    group_variation_other_mode: float
    """That of the groups of pictures of the movie in its other mode."""
    scenario: str
    """Lines of a scenario that send the movie."""


def fit(trace: str | PathLike[str], *, coupled: bool = False, flow: str = "video") -> Fit:
    """The movie that comes nearest to a trace; with `coupled` large frames of all types come together.

    `flow` is the group of flows that the lines of `Fit.scenario` are for.
    """
    text, scenario = _core.fit_video(Path(trace), coupled, flow)
    found = json.loads(text)
    return Fit(
        movie=found["movie"],
        types=[Type(**t) for t in found["types"]],
        trace=Aggregates(**found["trace"]),
        played=Aggregates(**found["played"]),
        group_variation_other_mode=found["group_variation_other_mode"],
        scenario=scenario,
    )
