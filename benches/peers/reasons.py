"""Why a difference above 10 % is there: isolated by an experiment or read in the source (docs/peers.md)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Reason:
    """Explains cells of one algorithm whose loss rate lies in a range."""

    peer: str
    algorithm: str
    least_loss: float
    most_loss: float
    text: str


REASONS = (
    Reason(
        "ns3",
        "westwood-plus",
        0.0,
        1.0,
        "ns-3 counts delivered data twice, and retransmits segments that are not lost",
    ),
    Reason("ns3", "hybla", 0.0, 1.0, "rho stays 1 in ns-3"),
    Reason(
        "ns3", "cubic", 1e-2, 1.0, "in ns-3 the window grows by everything that the end of a recovery covers"
    ),
    Reason("ns3", "vegas", 0.0, 1.0, "ns-3 does not halve after a loss"),
)


def why(cell):
    """The reason for a cell, None where none is known."""
    for reason in REASONS:
        same = (reason.peer, reason.algorithm) == (cell.peer, cell.algorithm)
        if same and reason.least_loss <= cell.loss <= reason.most_loss:
            return reason.text
    return None
