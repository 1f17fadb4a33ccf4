"""Why a difference above 10 % is there. Each was isolated by an experiment or read from the source;
see docs/peers.md.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Reason:
    """Explains cells of one algorithm whose loss rate lies in a range; the text is the label of a section."""

    peer: str
    algorithm: str
    least_loss: float
    most_loss: float
    text: str


REASONS = (
    Reason(
        "ns2", "vegas", 1e-3, 1e-3, "RTOmin of 0.2 s: with 1 s on both sides the difference is gone (below)"
    ),
)


def why(cell):
    """The reason for a cell, None where none is known."""
    for reason in REASONS:
        same = (reason.peer, reason.algorithm) == (cell.peer, cell.algorithm)
        if same and reason.least_loss <= cell.loss <= reason.most_loss:
            return reason.text
    return None
