"""From results to cells, verdict and tables."""

import math
import statistics
from dataclasses import dataclass

from peers import plan

# Student's t for a two-sided 95 % interval, by degrees of freedom; beyond the table the last one, which is
# wider than needed.
T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
)  # fmt: skip


@dataclass(frozen=True)
class Mean:
    """Mean over seeds with half of its 95 % interval (None for a single seed)."""

    mean: float
    half: float | None
    values: tuple

    @classmethod
    def of(cls, values):
        values = tuple(values)
        if len(values) < 2:
            return cls(values[0], None, values)
        t = T95[min(len(values) - 1, len(T95)) - 1]
        return cls(statistics.fmean(values), t * statistics.stdev(values) / math.sqrt(len(values)), values)

    def __str__(self):
        return f"{self.mean:.1f}" + ("" if self.half is None else f" ± {self.half:.1f}")


@dataclass(frozen=True)
class Cell:
    """One algorithm at one loss rate, on both sides. Goodput in segments/s; counters are means over seeds."""

    pair: plan.Pair
    loss: float
    ours: Mean
    theirs: Mean
    our_retransmissions: float
    their_retransmissions: float
    our_timeouts: float
    their_timeouts: float

    @property
    def peer(self):
        return self.pair.peer

    @property
    def algorithm(self):
        return self.pair.algorithm

    @property
    def difference(self):
        """Ours against the peer's, percent."""
        if self.theirs.mean == 0:
            return math.inf if self.ours.mean else 0.0
        return 100 * (self.ours.mean / self.theirs.mean - 1)

    @property
    def uncertainty(self):
        """Half of the 95 % interval of the difference, percentage points (0 for single seeds)."""
        if self.theirs.mean == 0 or self.ours.mean == 0:
            return 0.0
        relative = math.hypot(
            (self.ours.half or 0) / self.ours.mean, (self.theirs.half or 0) / self.theirs.mean
        )
        return 100 * relative * self.ours.mean / self.theirs.mean

    @property
    def notable(self):
        return abs(self.difference) > plan.NOTABLE_PERCENT

    @property
    def required(self):
        return (
            self.peer == "ns2"
            and not self.pair.note
            and self.algorithm in plan.REQUIRED_ALGORITHMS
            and self.loss >= plan.REQUIRED_LOSS
        )

    def violated(self, quick):
        """A required agreement does not hold; with the few seeds of `quick`, not even within the interval."""
        allowed = plan.REQUIRED_PERCENT + (self.uncertainty if quick else 0.0)
        return self.required and abs(self.difference) > allowed


def cell(pair, loss, duration, ours, theirs):
    """The cell of two lists of results."""

    def goodput(results):
        return Mean.of(r.segments / duration for r in results)

    def mean(results, key):
        return statistics.fmean(getattr(r, key) for r in results)

    return Cell(
        pair,
        loss,
        goodput(ours),
        goodput(theirs),
        mean(ours, "retransmissions"),
        mean(theirs, "retransmissions"),
        mean(ours, "timeouts"),
        mean(theirs, "timeouts"),
    )


def loss_text(loss):
    """5e-3 as in scenarios, not 0.005."""
    if loss == 0:
        return "0"
    mantissa, exponent = f"{loss:e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"


def markdown(cells, titles, reason):
    """The comparison, one table per peer: a row per control, with our goodput and the difference at each loss
    rate. `reason(cell)` explains a notable difference, or gives None."""

    def why(row_cells):
        found = [reason(c) or "**not explained**" for c in row_cells if c.notable]
        return "; ".join(dict.fromkeys(found))

    return _tables(cells, titles, lambda c: f"{c.ours.mean:.0f}, {_difference(c)}", why)


def isolations(cells, titles):
    """The experiments that take a cause away, with what both sides had to send again."""

    def text(c):
        return f"{_difference(c)}; {c.our_retransmissions:.0f}, {c.their_retransmissions:.0f}"

    return _tables(cells, titles, text)


def _difference(c):
    return f"{c.difference:+.1f} ± {c.uncertainty:.1f} %"


def _tables(cells, titles, text, why=None):
    blocks = []
    for peer, title in titles.items():
        found = [c for c in cells if c.peer == peer]
        if not found:
            continue
        losses = list(dict.fromkeys(c.loss for c in found))
        head = [f"against {title}, at a loss of", *(loss_text(loss) for loss in losses)]
        head += ["why"] if why else []
        lines = [row(head), "|" + "---|" * len(head)]
        for label in dict.fromkeys(c.pair.label for c in found):
            own = {c.loss: c for c in found if c.pair.label == label}
            fields = [text(own[loss]) if loss in own else "" for loss in losses]
            lines.append(row([label, *fields, *([why(list(own.values()))] if why else [])]))
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def row(fields):
    """One line of a Markdown table."""
    return "| " + " | ".join(fields) + " |"


def record(c, reason):
    """The cell for the JSON file."""

    def mean(m):
        half = None if m.half is None else round(m.half, 3)
        return {"mean": round(m.mean, 3), "half_95": half, "values": [round(v, 4) for v in m.values]}

    return {
        "peer": c.peer,
        "algorithm": c.algorithm,
        "isolation": c.pair.note or None,
        "loss": c.loss,
        "skyhaul_segments_per_s": mean(c.ours),
        "peer_segments_per_s": mean(c.theirs),
        "difference_percent": round(c.difference, 2),
        "difference_half_95_percent": round(c.uncertainty, 2),
        "retransmissions": [c.our_retransmissions, c.their_retransmissions],
        "timeouts": [c.our_timeouts, c.their_timeouts],
        "why": reason(c) if c.notable and not c.pair.note else None,
    }
