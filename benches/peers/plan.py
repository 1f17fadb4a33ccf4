"""What is compared with what: the algorithms, the loss rates, how long and how often.

Both sides simulate 20 greedy flows over the GEO channel of preset:peach-geo: 1300 packets/s of 1000 bytes
(10.4 Mbit/s), 550 ms, a drop-tail queue of 50 packets, a window of 64 segments, independent losses behind the
queue, flows that start at random within one RTT, with a handshake. The settings of both sides are written
here, and nowhere else.
"""

from dataclasses import dataclass

LOSSES = (0.0, 1e-4, 5e-4, 1e-3, 5e-3, 1e-2, 5e-2)
# 1000 RTT. At the lowest loss rate above 0 that is some 60 losses per run, at the highest some 5000.
DURATION = 550.0
SEEDS = {"ns2": 5, "ns3": 3}

QUICK_LOSSES = (1e-3, 1e-2)
QUICK_DURATION = 275.0
QUICK_SEEDS = 3

# At these loss rates loss, not the queue, sets the window, and these two have to agree.
REQUIRED_ALGORITHMS = ("newreno", "sack")
REQUIRED_LOSS = 5e-3
REQUIRED_PERCENT = 5.0
# A difference above this is explained (reasons.py).
NOTABLE_PERCENT = 10.0

# Differences are taken apart at these.
ISOLATION_LOSSES = (1e-3, 1e-2, 5e-2)

# Endpoint of ns-2.35 as it comes: RTOmin 0.2 s, clock of 10 ms, initial window 2, limited transmit.
NS2_ENDPOINT = "preset = 'ns2-2004'"
NS2_OPTIONS = (("minrto", 0.2), ("iw", 2), ("limited", 1))
# ns-3 measures every segment, halves what is in flight, keeps the scoreboard over a timeout and sends up to
# four SACK blocks; the rest as above, set explicitly there (ns3/geo_bulk.cc). RTOmin is 2 s on both sides:
# ns-3 does not restart the timer with a fast retransmission, whose acknowledgement may come two RTT (1.1 s)
# after the last one.
NS3_ENDPOINT = (
    "preset = 'ns2-2004', rtt-source = 'every-ack', halving-base = 'flight-size', "
    "keep-sack-after-rto = true, sack-blocks = 4, rto-min = '2 s'"
)
NS3_OPTIONS = (("minrto", 2), ("iw", 2))
# Repetitions in recoveries as RFC 6675 has them. The controls called calm do not grow with the
# acknowledgement that ends a recovery, and in slow start by a segment per acknowledgement at most
# (ns3/geo_bulk.cc).
NS3_CALM = (("nextseg", "rfc"),)
NS3_BYTES = NS3_ENDPOINT + ", growth = 'byte-counting'"


# Random early detection as Floyd recommends it, gentle, with the thresholds that its paper takes for
# 50 packets of room. ns-2 counts between signals in another way unless wait_ is off
# (ns2/geo_bulk.tcl). Both sides drop; neither marks.
RED = (
    "{ kind = 'red', limit = '50 packets', min-threshold = '5 packets', max-threshold = '15 packets', "
    "max-probability = 0.1, weight = 0.002, gentle = true, packet-size = '1000 B', ecn = false }"
)
NS2_RED = (("queue", "RED"), ("minth", 5), ("maxth", 15), ("maxp", 0.1), ("weight", 0.002))


@dataclass(frozen=True)
class Pair:
    """One algorithm in a peer and in Skyhaul."""

    peer: str
    algorithm: str
    theirs: str
    """Its name in the peer."""
    control: str
    """`flows.bulk.cc` in Skyhaul."""
    endpoint: str
    """`flows.bulk.endpoint` in Skyhaul, without braces."""
    options: tuple
    """Parameters of the peer's script or program."""
    window: int = 64
    """Segments that may be outstanding."""
    transport: str = ""
    """`flows.bulk.transport` in Skyhaul; empty for TCP. Another one ignores `control` and `endpoint`."""
    queue: str = ""
    """`links.sat.queue` in Skyhaul; empty for the drop-tail queue of the preset."""
    note: str = ""
    """What an isolating experiment changes; empty for the comparison itself."""

    @property
    def label(self):
        return f"{self.algorithm}: {self.note}" if self.note else self.algorithm


WESTWOOD = "{ name = 'westwood-plus', recovery = 'sack' }"
CUBIC = "{ name = 'cubic', hystart = false }"
LINUX_VEGAS = "{ name = 'vegas', flavour = 'linux' }"

# ns-2 puts the timer of a TCP into the equation, which on a steady path is little more than R;
# the RFC, and we, 4 R.
TFRC = "{ kind = 'tfrc', packet = '1000 B' }"
TFRC_OPTIONS = (("minrto", 2.2),)

PAIRS = (
    Pair("ns2", "tahoe", "TCP", "'tahoe'", NS2_ENDPOINT, NS2_OPTIONS),
    Pair("ns2", "reno", "TCP/Reno", "'reno'", NS2_ENDPOINT, NS2_OPTIONS),
    Pair("ns2", "newreno", "TCP/Newreno", "'newreno'", NS2_ENDPOINT, NS2_OPTIONS),
    Pair("ns2", "sack", "TCP/Sack1", "'sack'", NS2_ENDPOINT, NS2_OPTIONS),
    Pair("ns2", "vegas", "TCP/Vegas", "'vegas'", NS2_ENDPOINT, NS2_OPTIONS),
    Pair("ns2", "newreno-red", "TCP/Newreno", "'newreno'", NS2_ENDPOINT, NS2_OPTIONS + NS2_RED, queue=RED),
    Pair("ns2", "tfrc", "TFRC", "", "", TFRC_OPTIONS, transport=TFRC),
    Pair("ns3", "westwood-plus", "westwood-plus", WESTWOOD, NS3_ENDPOINT, NS3_OPTIONS),
    Pair("ns3", "hybla", "hybla", "'hybla'", NS3_BYTES, NS3_OPTIONS),
    Pair("ns3", "cubic", "cubic", CUBIC, NS3_BYTES, NS3_OPTIONS),
    Pair("ns3", "vegas", "vegas", LINUX_VEGAS, NS3_ENDPOINT, NS3_OPTIONS),
)

# One cause taken away, on one side or on both: what remains of the difference?
ISOLATIONS = (
    Pair(
        "ns2",
        "vegas",
        "TCP/Vegas",
        "'vegas'",
        NS2_ENDPOINT + ", rto-min = '1 s'",
        (("minrto", 1), ("iw", 2), ("limited", 1)),
        note="RTOmin 1 s on both sides",
    ),
    Pair(
        "ns2",
        "tfrc",
        "TFRC",
        "",
        "",
        (("minrto", 0),),
        transport=TFRC,
        note="ns-2 with the timer of its TCP in the equation",
    ),
    Pair(
        "ns3",
        "westwood-plus",
        "westwood-plus",
        WESTWOOD,
        NS3_ENDPOINT,
        NS3_OPTIONS,
        window=1000,
        note="window 1000 on both sides",
    ),
    Pair(
        "ns3",
        "westwood-plus",
        "westwood-plus-once",
        WESTWOOD,
        NS3_ENDPOINT,
        NS3_OPTIONS,
        window=1000,
        note="window 1000 on both sides, and ns-3 counts delivered data once",
    ),
    Pair(
        "ns3",
        "hybla",
        "hybla",
        "{ name = 'hybla', rtt0-ms = 550 }",
        NS3_BYTES,
        NS3_OPTIONS,
        note="rho 1 in Skyhaul",
    ),
    Pair(
        "ns3",
        "hybla",
        "hybla",
        "{ name = 'hybla', rtt0-ms = 550 }",
        NS3_BYTES,
        (*NS3_OPTIONS, ("rrtt", 0.55)),
        note="rho 1 on both sides",
    ),
    Pair(
        "ns3",
        "hybla",
        "hybla-calm",
        "{ name = 'hybla', rtt0-ms = 550 }",
        NS3_BYTES,
        (*NS3_OPTIONS, *NS3_CALM, ("rrtt", 0.55)),
        note="rho 1 on both sides, and ns-3 is calm",
    ),
    Pair("ns3", "hybla", "hybla-rho", "'hybla'", NS3_BYTES, NS3_OPTIONS, note="rho 22 in ns-3"),
    Pair(
        "ns3", "cubic", "cubic", CUBIC, NS3_BYTES, NS3_OPTIONS, window=1000, note="window 1000 on both sides"
    ),
    Pair(
        "ns3",
        "cubic",
        "cubic",
        CUBIC,
        NS3_BYTES,
        (*NS3_OPTIONS, *NS3_CALM),
        note="ns-3 retransmits by RFC 6675",
    ),
    Pair(
        "ns3",
        "cubic",
        "cubic-calm",
        CUBIC,
        NS3_BYTES,
        (*NS3_OPTIONS, *NS3_CALM),
        note="the same, and ns-3 is calm",
    ),
    Pair(
        "ns3",
        "vegas",
        "vegas-halving",
        LINUX_VEGAS,
        NS3_ENDPOINT,
        NS3_OPTIONS,
        note="ns-3 halves after a loss",
    ),
)


@dataclass(frozen=True)
class Run:
    """One simulation on one side."""

    side: str
    """"ns2", "ns3" or "skyhaul"."""
    pair: Pair
    loss: float
    seed: int
    duration: float

    def parameters(self):
        """Everything that decides the result, for the key under which it is kept."""
        what = {
            "loss": self.loss,
            "seed": self.seed,
            "duration": self.duration,
            "window": self.pair.window,
        }
        if self.side == "skyhaul" and self.pair.transport:
            return {**what, "transport": self.pair.transport}
        if self.side == "skyhaul":
            queue = {"queue": self.pair.queue} if self.pair.queue else {}
            return {**what, "control": self.pair.control, "endpoint": self.pair.endpoint, **queue}
        return {**what, "algorithm": self.pair.theirs, "options": dict(self.pair.options)}


def runs(jobs, seeds, duration):
    """The runs of both sides for [(pair, losses)], cell after cell, with `seeds` seeds per peer."""
    return [
        Run(side, pair, loss, seed, duration)
        for pair, losses in jobs
        for loss in losses
        for side in (pair.peer, "skyhaul")
        for seed in range(1, seeds[pair.peer] + 1)
    ]
