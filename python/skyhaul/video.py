"""Movie models fitted to video traces.

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
    """Frames of one type, and how well the model fits them."""

    type: str
    """I, P or B."""
    frames: int
    """Number of frames of this type in the trace."""
    mean_bytes: float
    """Mean size of a frame, bytes."""
    variation: float
    """Coefficient of variation of the frame sizes."""
    least_bytes: int
    """Size of the smallest frame, bytes."""
    most_bytes: int
    """Size of the largest frame, bytes."""
    autocorrelation_error: float
    """Root mean square difference between the two autocorrelations below."""
    autocorrelation_trace: list[float]
    """Autocorrelation of the trace at lags 1, 2, …, in frames of the type."""
    autocorrelation_model: list[float]
    """Autocorrelation of the model at the same lags."""


@dataclass(frozen=True)
class Aggregates:
    """Statistics of all frames of a film."""

    frames: int
    """Number of frames."""
    mean_bytes: float
    """Mean size of a frame, bytes."""
    variation: float
    """Coefficient of variation of the frame sizes."""
    largest_bytes: float
    """Size of the largest frame, bytes."""
    group_variation: float
    """Coefficient of variation of the size of a group of pictures."""


@dataclass(frozen=True)
class Fit:
    """A movie model, and how well it fits the trace."""

    movie: dict[str, Any]
    """The movie as a scenario takes it."""
    types: list[Type]
    """Its types of frames."""
    trace: Aggregates
    """Statistics of the trace."""
    played: Aggregates
    """Statistics of the same number of frames of the movie."""
    group_variation_other_mode: float
    """`group_variation` of the movie in the other mode: "coupled", or with `coupled` "independent"."""
    scenario: str
    """Lines of a scenario that sends the movie."""


def fit(trace: str | PathLike[str], *, coupled: bool = False, flow: str = "video") -> Fit:
    """Fits a movie model to a trace; with `coupled`, large frames of all types occur together.

    `flow` is the flow group in the lines of `Fit.scenario`: letters, digits, `-` and `_`. Another name raises
    `ScenarioError`.
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
