"""Closed forms of TCP over long, asymmetric and lossy paths: reference values for a simulation.

    from skyhaul import analysis

    analysis.pftk(p=1e-2, rtt=0.55, t0=1.0, wm=64)  # 21.1 packets/s

Times are in seconds, rates in packets per second or bit/s as stated, sizes in bytes or bits as stated. `p`
is the loss probability of a packet, `b` the number of data packets per acknowledgement, `t0` the first
retransmission timeout, `wm` the largest window in packets, `alpha` the increase of the window in packets
per RTT, `beta` the fraction of it that remains after a loss, `c` the constant of `mathis`. An argument
outside the domain raises `ValueError`; no function returns NaN. The functions take numbers; for arrays use
`numpy.vectorize`:

    np.vectorize(analysis.pftk)(np.logspace(-4, -1), rtt=0.55, t0=1.0)

Sources: [Peach] Akyildiz, Morabito, Palazzo 2001; [PapTsa] Papadimitriou, Tsaoussidis 2007; [YL] Yang, Lam,
ICNP 2000; [Mathis] Mathis et al., CCR 27(3), 1997; [PFTK] Padhye et al., SIGCOMM 1998; [LM] Lakshman, Madhow,
ToN 1997.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from . import _core

__all__ = [
    "MATHIS_PERIODIC",
    "MATHIS_PERIODIC_DELAYED",
    "MATHIS_RANDOM",
    "MATHIS_RANDOM_DELAYED",
    "AsymmetricPath",
    "Period",
    "acks_every",
    "aimd",
    "aimd_timeouts",
    "asymmetry",
    "clean_utilization",
    "critical_loss",
    "friendly_alpha",
    "friendly_alpha_without_timeouts",
    "goodput_ratio",
    "jain",
    "lossy_utilization",
    "mathis",
    "no_fast_retransmit",
    "normalized_throughput",
    "packet_loss",
    "pftk",
    "pftk_approximate",
    "predict",
    "return_cap",
    "rtt_bias",
    "sawtooth_period",
    "slow_start_rounds",
    "slow_start_time",
    "steady_run",
    "tail_cost",
    "tfrc",
    "transfer_floor",
    "transfer_time",
    "transient_rate",
    "two_or_more",
    "window_knee",
    "window_limit",
]

_form = _core.closed_form

MATHIS_PERIODIC: Final = math.sqrt(3 / 2)
"""Constant of `mathis` for periodic losses, with one acknowledgement per packet."""
MATHIS_PERIODIC_DELAYED: Final = math.sqrt(3 / 4)
"""Constant of `mathis` for periodic losses, with one acknowledgement per two packets."""
MATHIS_RANDOM: Final = 1.31
"""Constant of `mathis` for independent random losses, one acknowledgement per packet; limit for p → 0."""
MATHIS_RANDOM_DELAYED: Final = 0.93
"""Constant of `mathis` for independent random losses, one acknowledgement per two packets."""


def slow_start_time(rtt: float, rate: float, bits: float = 8000) -> float:
    """Seconds that slow start takes to reach `rate` bit/s from one packet of `bits` bits ([Peach] Eq. 1)."""
    return _form("slow_start_time", rtt, rate, bits)


def slow_start_rounds(n: int, w1: float = 1, growth: float = 2) -> int:
    """Round trips for `n` packets without loss from a window of `w1`; growth 1.5 with delayed ACKs."""
    return int(_form("slow_start_rounds", n, w1, growth))


def transfer_time(n: int, rtt: float, w1: float = 1, growth: float = 2, *, handshake: bool = False) -> float:
    """Seconds of a transfer of `n` packets in `slow_start_rounds` round trips; a handshake adds one RTT."""
    if not (math.isfinite(rtt) and rtt > 0):
        raise ValueError(f"rtt is {rtt}: write a number above 0")
    return (slow_start_rounds(n, w1, growth) + handshake) * rtt


def transient_rate(w0: float, duration: float, rtt: float, b: float = 1) -> float:
    """Mean packets/s over `duration` s of undisturbed congestion avoidance from a window of `w0` packets."""
    return _form("transient_rate", w0, duration, b, rtt)


def window_limit(window: float, rtt: float) -> float:
    """One window per RTT, in the unit of `window` per second."""
    return _form("window_limit", window, rtt)


def window_knee(rate: float, rtt: float) -> float:
    """Window in bytes that fills a link of `rate` bit/s; a larger one adds nothing."""
    return _form("window_knee", rate, rtt)


def transfer_floor(size: float, window: float, rtt: float, rate: float = math.inf) -> float:
    """Least seconds for `size` bytes with a window of `window` bytes at `rate` bit/s, without slow start."""
    return _form("transfer_floor", size, window, rtt, rate)


def return_cap(rate: float, ack: float = 40, b: float = 1) -> float:
    """Data packets/s that a return link of `rate` bit/s can acknowledge with packets of `ack` bytes."""
    return _form("return_cap", rate, ack, b)


def asymmetry(forward: float, reverse: float, packet: float = 1000, ack: float = 40) -> float:
    """Normalized asymmetry k (RFC 3449), rates in bit/s, sizes in bytes; above `b` the return link limits."""
    return _form("asymmetry", forward, reverse, packet, ack)


def aimd(p: float, rtt: float, alpha: float, beta: float, b: float = 1) -> float:
    """Packets/s of AIMD under periodic losses; for Reno, (alpha, beta) is (1, 0.5) ([YL])."""
    return _form("aimd", p, rtt, b, alpha, beta)


def aimd_timeouts(p: float, rtt: float, t0: float, alpha: float, beta: float, b: float = 1) -> float:
    """Packets/s of AIMD as in `aimd`, with timeouts ([YL])."""
    return _form("aimd_timeouts", p, rtt, t0, b, alpha, beta)


def friendly_alpha(beta: float) -> float:
    """TCP-friendly increase in packets per RTT if losses end in timeouts: 4(1 - beta²)/3 ([YL])."""
    return _form("friendly_alpha", beta)


def friendly_alpha_without_timeouts(beta: float) -> float:
    """TCP-friendly increase in packets per RTT without timeouts: 3(1 - beta)/(1 + beta) (Floyd 2000)."""
    return _form("friendly_alpha_without_timeouts", beta)


def mathis(p: float, rtt: float, c: float = MATHIS_RANDOM) -> float:
    """Packets/s by the square-root law c/(rtt √p) ([Mathis])."""
    return _form("mathis", p, rtt, c)


def pftk(p: float, rtt: float, t0: float, b: float = 1, wm: float = math.inf) -> float:
    """Packets sent per second by the full formula of [PFTK]; about (1 - p) times as many arrive."""
    return _form("pftk", p, rtt, t0, b, wm)


def pftk_approximate(p: float, rtt: float, t0: float, b: float = 1, wm: float = math.inf) -> float:
    """Packets sent per second by the approximate formula of [PFTK]."""
    return _form("pftk_approximate", p, rtt, t0, b, wm)


def tfrc(p: float, rtt: float, t0: float | None = None, b: float = 1) -> float:
    """Packets/s by the equation of TFRC (RFC 5348 §3.1); `t0` is 4 rtt unless given."""
    return _form("tfrc", p, rtt, 4 * rtt if t0 is None else t0, b)


def clean_utilization(bdp: float, buffer: float, beta: float = 0.5) -> float:
    """Utilization of a loss-free drop-tail link by synchronized flows; `bdp` and `buffer` in packets."""
    return _form("clean_utilization", bdp, buffer, beta)


def sawtooth_period(flows: float, rtt: float, bdp: float, buffer: float, beta: float = 0.5) -> float:
    """Seconds between losses of `flows` synchronized flows on a loss-free drop-tail link."""
    return _form("sawtooth_period", flows, rtt, bdp, buffer, beta)


def lossy_utilization(flows: float, x: float, p: float, capacity: float) -> float:
    """Utilization of a link of `capacity` packets/s by flows that send `x` packets/s each, with loss `p`."""
    return _form("lossy_utilization", flows, x, p, capacity)


def critical_loss(bdp: float, c: float = MATHIS_PERIODIC) -> float:
    """Loss probability above which one flow cannot fill a path of `bdp` packets ([LM])."""
    return _form("critical_loss", c, bdp)


def rtt_bias(short: float, long: float) -> tuple[float, float]:
    """Bounds of the rate ratio that favours the shorter RTT at a shared drop-tail queue ([LM])."""
    for name, rtt in (("short", short), ("long", long)):
        if not 0 < rtt <= 1e100:
            raise ValueError(f"{name} is {rtt}: write a number above 0, at most 1e100")
    if long < short:
        raise ValueError(f"long is {long}: write an RTT not shorter than the other one")
    ratio = long / short
    return ratio, ratio * ratio


def packet_loss(ber: float, size: float) -> float:
    """Probability that a packet of `size` bytes has a bit error."""
    return _form("packet_loss", ber, size)


def two_or_more(w: int, p: float) -> float:
    """Probability that a window of `w` packets loses two or more."""
    return _form("two_or_more", w, p)


def no_fast_retransmit(w: int, q: float) -> float:
    """Probability that a loss in a window of `w` packets yields fewer than three duplicate acknowledgements.

    Each of them is lost with probability `q`.
    """
    return _form("no_fast_retransmit", w, q)


def tail_cost(p: float, rtt: float, t0: float) -> float:
    """Mean seconds that the loss of the last packet of a transfer adds without a tail loss probe."""
    return _form("tail_cost", p, rtt, t0)


def steady_run(p: float, x: float) -> float:
    """Least seconds of a run that represents a steady state: 50 losses of a flow sending `x` packets/s."""
    return _form("steady_run", p, x)


def jain(values: Sequence[float]) -> float:
    """Jain's fairness index of rates; 1 if all are equal."""
    return _core.jain(list(values))


def goodput_ratio(x: float, y: float) -> float:
    """Goodput of one class over that of another; 1 is fair ([Peach] Eq. 6)."""
    return _form("goodput_ratio", x, y)


def normalized_throughput(x: float, capacity: float, flows: float) -> float:
    """Mean rate of a class divided by a fair share of `capacity` among all `flows` ([PapTsa] §4.2)."""
    return _form("normalized_throughput", x, capacity, flows)


def predict(
    *,
    fair_share: float = math.inf,
    window: float = math.inf,
    loss: float = math.inf,
    return_link: float = math.inf,
) -> tuple[float, Literal["fair_share", "loss", "none", "return_link", "window"]]:
    """Rate of a flow, the smallest of its limits (packets/s), and which one that is."""
    return _core.predict_rate(fair_share, window, loss, return_link)


@dataclass(frozen=True)
class Period:
    """A transmission period ([PapTsa] Eqs. 5 and 9)."""

    rtt: float
    """RTT, or RTT' = RTT + d if acknowledgements are delayed, s."""
    data: float
    """T: time to send the window over the forward link, s."""
    acks: float
    """T', or T'' with fewer acknowledgements than packets: time to send them over the return link, s."""
    length: float
    """The longest of the three, s."""
    governs: Literal["acks", "data", "rtt"]
    """Which of the three is the longest."""


@dataclass(frozen=True)
class AsymmetricPath:
    """A path in the model of transmission periods ([PapTsa] §3).

    AsymmetricPath(forward=10e6, reverse=256e3, propagation=0.27).period(800).governs  # 'acks'
    """

    forward: float
    """Rate of the forward link, bit/s."""
    reverse: float
    """Rate of the return link, bit/s."""
    propagation: float
    """Propagation delay each way, s."""
    packet: float = 1000
    """Size of a data packet, bytes."""
    ack: float = 40
    """Size of an acknowledgement, bytes."""

    def period(self, w: float, acks: float | None = None, d: float = 0.0) -> Period:
        """The period of `w` packets with `acks` acknowledgements that are delayed by `d` s (Eqs. 1-9).

        By default there is one acknowledgement per packet.
        """
        path = (self.forward, self.reverse, self.packet, self.ack, self.propagation)
        return Period(*_core.transmission_period(*path, w, acks, d))

    def rate(self, w: float, acks: float | None = None, d: float = 0.0) -> float:
        """Rate of a window of `w` packets, bit/s."""
        return 8 * self.packet * w / self.period(w, acks, d).length

    def data_time_after_loss(self, w: float, beta: float) -> float:
        """T(k+1), s: T of the window that a loss leaves, `beta` times `w` packets (Eq. 6)."""
        if not 0 < beta < 1:
            raise ValueError(f"beta is {beta}: write a number between 0 and 1, both excluded")
        return beta * self.period(w).data

    def acks_by_timer(self, w: float, d: float) -> float:
        """L: acknowledgements for `w` packets, one per `d` s."""
        return _form("acks_by_timer", w, d, self.forward, self.packet)

    def delayed_acks(self, w: float, b: float, d: float) -> float:
        """L of a receiver that acknowledges every `b`-th packet, and after `d` s at the latest."""
        return max(acks_every(w, b), self.acks_by_timer(w, d))


def acks_every(w: float, b: float) -> float:
    """L: acknowledgements for `w` packets, one per `b` packets ([PapTsa] §3)."""
    return _form("acks_every", w, b)
