"""Why a difference above 10 % is there: isolated by an experiment or read in the source (docs/peers.md)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Reason:
    """Explains cells of one algorithm whose loss rate lies in a range; the text is the label of a section."""

    peer: str
    algorithm: str
    least_loss: float
    most_loss: float
    text: str


REASONS = ()


def why(cell):
    """The reason for a cell, None where none is known."""
    for reason in REASONS:
        same = (reason.peer, reason.algorithm) == (cell.peer, cell.algorithm)
        if same and reason.least_loss <= cell.loss <= reason.most_loss:
            return reason.text
    return None
