"""The part of the Rust crates that Python needs."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, final

from typing_extensions import disjoint_base

from ._control import Policy

__all__ = [
    "Ack",
    "Control",
    "ControlError",
    "Evaluated",
    "Evaluating",
    "Found",
    "Loss",
    "Lost",
    "Outcome",
    "Probe",
    "Random",
    "RateSample",
    "Reproduced",
    "Reproduction",
    "RunResult",
    "ScenarioError",
    "Sent",
    "SkyhaulError",
    "Start",
    "Study",
    "StudyError",
    "Table",
    "Transmit",
    "__version__",
    "attack",
    "cache_dir",
    "check",
    "closed_form",
    "closed_forms",
    "compare",
    "estimate",
    "fit_video",
    "jain",
    "main",
    "number",
    "predict_rate",
    "presets",
    "quantities",
    "run",
    "run_cell",
    "schema",
    "short",
    "studies",
    "sweep_text",
    "transmission_period",
]

__version__: str

class SkyhaulError(Exception):
    """Base class of the errors that Skyhaul raises."""

class ScenarioError(SkyhaulError):
    """A scenario that cannot be run; one line with file, line, key and accepted forms."""

class StudyError(SkyhaulError):
    """A study that cannot be run or written; one line with file, line, key and accepted forms."""

class ControlError(SkyhaulError):
    """A congestion control that failed during a run; its cause is the exception that the control raised."""

    time_s: float
    """Simulated time, s."""
    flow: str | None
    """The flow, as in "bulk[3]"; None, as `method` and the cause, if the failure is not from Python."""
    method: str | None
    """Class and method, as in "MyControl.on_ack"."""

@final
class RateSample:
    """Delivery-rate sample (draft-ietf-ccwg-bbr, section on delivery rate)."""

    @property
    def delivered(self) -> int:
        """Bytes delivered over the interval."""
    @property
    def interval(self) -> float:
        """The longer of the send and the acknowledgement interval, s."""
    @property
    def rate(self) -> int | None:
        """`delivered / interval`, bit/s; None where the interval is shorter than the minimum RTT."""
    @property
    def app_limited(self) -> bool:
        """Whether the application limited the sender during the interval."""
    @property
    def prior_delivered(self) -> int:
        """`Control.delivered` when the newest segment of the sample was sent, bytes."""
    @property
    def lost(self) -> int:
        """Bytes marked lost between that moment and now."""
    @property
    def in_flight(self) -> int:
        """Bytes in flight when that segment was sent."""

@final
class Ack:
    """One arriving acknowledgement. Amounts are in segments of the sender's maximum size."""

    @property
    def kind(self) -> Literal["new", "partial", "full", "duplicate"]:
        """Whether it advances the window's left edge, and in which state.

        "new" advances outside a recovery, "partial" within one, "full" ends one, "duplicate" does not.
        """
    @property
    def acked(self) -> float:
        """Newly acknowledged cumulatively, segments."""
    @property
    def sacked(self) -> float:
        """Newly acknowledged selectively, segments."""
    @property
    def lost(self) -> float:
        """Newly marked lost, segments."""
    @property
    def rtt(self) -> float | None:
        """RTT sample, s, if it carries a valid one and the policy asks for them (`rtt_samples`)."""
    @property
    def rate(self) -> RateSample | None:
        """Delivery-rate sample, if the policy asks for them (`rate_samples`)."""
    @property
    def receiver_rate(self) -> int | None:
        """Arrival rate that the receiver measured, bit/s, if it reports one."""
    @property
    def ece(self) -> bool:
        """Whether it carries an ECN echo."""
    @property
    def cwnd_limited(self) -> bool:
        """Whether the window was in use before it arrived (RFC 7661); True if the endpoint does not check."""
    @property
    def duplicates(self) -> int:
        """Duplicates in a row, including this one; 0 if it is not a duplicate."""
    @property
    def new_sack(self) -> bool:
        """Whether it is a duplicate with selective acknowledgements not seen before."""
    @property
    def dsack(self) -> bool:
        """Whether it is a duplicate that reports a duplicate segment (RFC 2883)."""

@final
class Loss:
    """A reason to reduce the window."""

    @property
    def kind(self) -> Literal["loss", "ecn", "corruption", "timeout"]:
        """What showed it: "loss" (by acknowledgements), "ecn", "corruption" or "timeout"."""

@final
class Start:
    """Why data transmission starts."""

    @property
    def kind(self) -> Literal["established", "idle"]:
        """Why: "established", or "idle" after nothing was outstanding for longer than the RTO."""
    @property
    def rtt(self) -> float | None:
        """RTT of the handshake, s; None if it was not modelled or its SYN was retransmitted."""
    @property
    def syn_lost(self) -> bool:
        """Whether the SYN was retransmitted: RFC 5681 then requires an initial window of one segment."""

@final
class Probe:
    """An answer to probes, or the news that the peer does not answer them."""

    @property
    def supported(self) -> bool:
        """Whether the peer answers probes; if it does not, no more will be sent."""
    @property
    def count(self) -> int:
        """Number of probes that this answer acknowledges."""
    @property
    def stale(self) -> bool:
        """Whether they were sent before the current recovery or start began."""
    @property
    def newly_acked(self) -> int:
        """Bytes of the stream that the probe's payload delivered."""

@final
class Lost:
    """A segment that was marked lost, with the state of the path when it was last sent."""

    @property
    def length(self) -> int:
        """Its payload, bytes."""
    @property
    def in_flight(self) -> int:
        """Bytes in flight when it was sent, itself included."""
    @property
    def lost(self) -> int:
        """Bytes marked lost between that moment and now, itself included."""
    @property
    def app_limited(self) -> bool:
        """Whether the application limited the sender when it was sent."""
    @property
    def same_gap(self) -> bool:
        """Whether it directly follows the segment marked lost before it."""

@final
class Sent:
    """A data segment that was sent."""

    @property
    def length(self) -> int:
        """Payload, bytes."""
    @property
    def retransmission(self) -> bool:
        """Whether it is a retransmission."""

@final
class Transmit:
    """A run of the send loop."""

    @property
    def sent(self) -> int:
        """Data segments sent, without the one that fast retransmit forces."""
    @property
    def clock(self) -> Literal["ack", "probe", "timer", "app"]:
        """What made it run: "ack", "probe", "timer" or "app"."""
    @property
    def blocked(self) -> Literal["app", "burst", "cwnd", "pacing", "rwnd"]:
        """Why it stopped: "app", "burst", "cwnd", "pacing" or "rwnd"."""

@final
class Random:
    """The random stream of a connection: a function of seed and flow, independent of everything else."""

    def random(self) -> float:
        """Uniform on [0, 1).

        Outside of an event, such as in `__init__`, this and the other methods raise `RuntimeError`.
        """
    def uniform(self, low: float, high: float) -> float:
        """Uniform on [low, high)."""
    def below(self, n: int) -> int:
        """A whole number uniform on 0 … n - 1; 0 for `n` = 0."""
    def exponential(self, mean: float) -> float:
        """Exponentially distributed with this mean, in its unit."""
    def normal(self) -> float:
        """Normally distributed with mean 0 and standard deviation 1."""

@disjoint_base
class Control:
    """Base class of your own congestion controls: override what differs from NewReno with SACK.

    There is one instance per connection; options of the scenario are keyword arguments of `__init__`. The
    simplest way is to override `increase` and `reduction`; every event can be overridden too, and `super()`
    does what is usual. Windows are numbers of segments, times are seconds of simulated time, rates are bit/s.

    Events of one arriving segment come in this order: `on_ack`, `on_probe`, `on_recovered`, `on_undo`,
    `on_congestion`, `on_sent` per segment, `on_transmit`. A method that the class does not define costs
    nothing.
    """

    policy: ClassVar[Policy | dict[str, Any] | None]
    """Sender mechanisms that the control requires; see `Policy`. Recovery with SACK by default."""

    cwnd: float
    """Congestion window, segments; finite, 1 or more, or else `ValueError`."""
    ssthresh: float
    """Slow start threshold, segments, above 0, or else `ValueError`; may be infinite."""

    def __new__(cls, *args: Any, **options: Any) -> Control: ...
    @property
    def pacing(self) -> int | None:
        """Departure rate of data, bit/s, 1 or more, or else `ValueError`; None (default) is ACK clocking."""
    @pacing.setter
    def pacing(self, value: float | None) -> None: ...
    @property
    def in_slow_start(self) -> bool:
        """Whether cwnd is below ssthresh."""
    @property
    def flow(self) -> str:
        """The flow, as in "bulk[3]"."""
    @property
    def now(self) -> float:
        """Simulated time, s."""
    @property
    def smss(self) -> int:
        """Sender maximum segment size, bytes of payload."""
    @property
    def rwnd(self) -> float:
        """Limit other than cwnd: the peer's window or the send buffer, segments."""
    @property
    def in_flight(self) -> float:
        """FlightSize of RFC 5681, segments."""
    @property
    def pipe(self) -> float:
        """Data in the network according to the scoreboard (RFC 6675), segments; FlightSize without SACK."""
    @property
    def queued(self) -> float:
        """Data written but not yet sent, segments; infinite for a greedy source."""
    @property
    def srtt(self) -> float | None:
        """Smoothed RTT (RFC 6298), s; None before the first sample."""
    @property
    def rttvar(self) -> float:
        """RTT variation (RFC 6298), s."""
    @property
    def min_rtt(self) -> float | None:
        """Smallest RTT sample of the connection, s."""
    @property
    def round(self) -> int:
        """Packet-timed rounds completed."""
    @property
    def delivered(self) -> int:
        """Bytes delivered so far, cumulatively or selectively acknowledged."""
    @property
    def lost(self) -> int:
        """Bytes marked lost so far."""
    @property
    def head_age(self) -> float | None:
        """Age of the oldest outstanding segment's last copy, s; None unless the policy has `watch_head`."""
    @property
    def head_retransmissions(self) -> int | None:
        """Number of retransmissions of that segment; None unless the policy has `watch_head`."""
    @property
    def phase(self) -> Literal["open", "recovery", "loss"]:
        """What is repaired: "open" nothing, "recovery" a loss by acknowledgements, "loss" one by timeout."""
    @property
    def after_timeout(self) -> bool:
        """Whether the slow start after a timeout is in progress, that is, until cwnd reaches ssthresh."""
    @property
    def app_limited(self) -> bool:
        """Whether the application, not the window, limits the sender."""
    @property
    def probes(self) -> Literal["unknown", "yes", "no"]:
        """Whether the peer answers probes; "unknown" before its first answer."""
    @property
    def rng(self) -> Random:
        """The connection's own random stream, for use in events."""

    def probe_now(
        self,
        count: int,
        source: Literal["last-segment", "one-byte", "unacked-round-robin", "unacked-modulo"] | None = None,
    ) -> None:
        """Sends probes after this event: copies of the last segment, or unacknowledged data in turn.

        Raises `ValueError` if the policy of the class has no `probes`, or if `count` is below 1.
        """
    def train(
        self,
        count: int,
        first: float,
        spacing: float,
        source: Literal["last-segment", "one-byte", "unacked-round-robin", "unacked-modulo"] | None = None,
    ) -> None:
        """Starts a train of probes: after `first` seconds, then every `spacing` seconds; replaces another.

        Raises `ValueError` if the policy of the class has no `probes`, if `count` is below 1, or if a time is
        negative.
        """
    def stop_probes(self) -> None:
        """Stops the train in progress."""
    def wake_at(self, time: float | None) -> None:
        """Asks for `on_wake` at a simulated time, s; replaces an earlier request, None cancels.

        Raises `ValueError` if the time is before `now`. A control woken 1000 times at one instant is ended.
        """
    def retransmit_head(self) -> None:
        """Marks the oldest outstanding segment lost; outside a recovery `on_congestion` follows."""
    def rewind(self) -> None:
        """Goes back to the oldest outstanding segment without backing off the timer."""

    def increase(self, ack: Ack) -> float:
        """Segments to add to cwnd in congestion avoidance; Reno's one per window.

        A negative number shrinks cwnd, to no less than one segment, and ssthresh with it.
        Called once per acknowledgement that advances, outside fast recovery, while the window is in use.
        """
    def slow_start(self, ack: Ack) -> float:
        """Segments to add to cwnd below ssthresh; by default by the endpoint preset (RFC 5681, RFC 3465)."""
    def reduction(self, loss: Loss) -> float:
        """The window after a loss; 0.5 is Reno.

        A value below 1 is the fraction of the window that is kept (of cwnd or of FlightSize, as the preset
        says, at least two segments); a value of 1 or more is the new window in segments. After a timeout it
        sets ssthresh, and cwnd is one segment.
        """

    def on_start(self, start: Start) -> None:
        """The connection is established, or about to send after idling. Sets the initial window."""
    def on_ack(self, ack: Ack) -> None:
        """An acknowledgement was processed. Calls `slow_start` or `increase`."""
    def on_probe(self, probe: Probe) -> None:
        """A probe was answered, or the peer turned out not to answer. Does nothing."""
    def on_congestion(self, loss: Loss) -> None:
        """A loss was detected: once per episode, before the retransmission. Calls `reduction`."""
    def on_recovered(self) -> None:
        """The recovery is over. Sets the window that the reduction chose."""
    def on_timeout(self, backoff: int) -> None:
        """The retransmission timer expired, `backoff` times in a row. Calls `reduction` the first time."""
    def on_undo(self) -> None:
        """The last reduction was spurious. Reverts it."""
    def on_lost(self, lost: Lost) -> None:
        """A segment was marked lost. Raised only for classes that define it."""
    def on_sent(self, sent: Sent) -> None:
        """A data segment was sent. Raised only for classes that define it."""
    def on_transmit(self, transmit: Transmit) -> None:
        """The send loop has run. Raised only for classes that define it."""
    def on_wake(self) -> None:
        """The time set with `wake_at` has come."""
    def priority(self, offset: int, retransmission: bool) -> Literal["normal", "low"]:
        """Network priority of the segment that starts `offset` bytes into the stream; "normal" by default."""
    def telemetry(self) -> dict[str, float]:
        """Variables for the series `telemetry.NAME` if the scenario records `telemetry`; none by default."""

@final
class Table:
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __len__(self) -> int: ...
    @property
    def column_names(self) -> list[str]: ...
    def column(self, name: str) -> list[Any]: ...

@final
class RunResult:
    def flows(self) -> Table: ...
    def links(self) -> Table: ...
    def series(self) -> Table: ...
    def transfers(self) -> Table: ...
    def summary_json(self) -> str: ...
    def ended_early(self) -> str | None: ...
    def report(self) -> str: ...
    def tables(self) -> list[list[list[str]]]: ...
    def scenario_toml(self) -> str: ...
    def save(self, folder: Path) -> None: ...

@final
class Study:
    def __new__(
        cls,
        study: str,
        text: str | None = None,
        set: list[tuple[str, str]] = ...,
        first_seed: int | None = None,
        seeds: int | None = None,
        controls: list[tuple[str, type[Control], str | None]] = ...,
    ) -> Study: ...
    @property
    def title(self) -> str: ...
    def __len__(self) -> int: ...
    def jobs(self, cache: Path | None = None) -> tuple[list[str], list[str]]: ...
    def store(self, cache: Path, job: str, answer: str) -> None: ...
    def collect(self, answers: list[tuple[str, str]], cache: Path | None = None) -> Outcome: ...
    def run(
        self,
        jobs: int = 0,
        cache: Path | None = None,
        progress: Callable[[int, int, str], object] | None = None,
        warn: Callable[[str], object] | None = None,
    ) -> Outcome: ...

@final
class Outcome:
    def cells(self) -> Table: ...
    def summary_json(self) -> str: ...
    def claims_json(self) -> str: ...
    def figures(self) -> list[tuple[str, str, str]]: ...
    def text(self) -> str: ...
    def counts(self) -> str: ...
    def means(self) -> str: ...
    def values(self) -> tuple[list[str], list[str], list[tuple[str, list[str], list[str]]]]: ...
    def html(self) -> str: ...
    def save(self, folder: Path, render: Callable[[str, Path], object] | None = None) -> list[Path]: ...

@final
class Found:
    @property
    def folder(self) -> Path: ...
    def summary_json(self) -> str: ...
    def text(self) -> str: ...

def attack(
    control: str,
    goal: str,
    budget: str,
    bounds: Path | None = None,
    bounds_text: str | None = None,
    seed: int = 1,
    jobs: int = 0,
    out: Path | None = None,
    controls: list[tuple[str, type[Control], str | None]] = ...,
    progress: Callable[[int, int, str], object] | None = None,
) -> Found: ...

@final
class Evaluating:
    def __new__(
        cls,
        control: str,
        names: list[str],
        quick: bool = False,
        cases: Path | None = None,
        seeds: int | None = None,
        out: Path | None = None,
        cache: Path | None = None,
        controls: list[tuple[str, type[Control], str | None]] = ...,
    ) -> Evaluating: ...
    @property
    def refused(self) -> list[str]: ...
    def run(
        self,
        jobs: int = 0,
        progress: Callable[[int, int, str], object] | None = None,
        warn: Callable[[str], object] | None = None,
    ) -> None: ...
    def qlog(self) -> list[Path]: ...
    def report(self, render: Callable[[str, Path], object] | None = None) -> Evaluated: ...

@final
class Evaluated:
    @property
    def folder(self) -> Path: ...
    def summary_json(self) -> str: ...
    def text(self) -> str: ...

@final
class Reproduction:
    def __new__(
        cls,
        names: list[str],
        quick: bool = False,
        studies: Path | None = None,
        seeds: int | None = None,
        max_cells: int | None = None,
        out: Path | None = None,
        cache: Path | None = None,
    ) -> Reproduction: ...
    @property
    def refused(self) -> list[str]: ...
    def sizes(self) -> list[int]: ...
    def jobs(self, study: int) -> tuple[list[str], list[str]]: ...
    def answer(self, study: int, job: str, answer: str) -> tuple[str, str | None]: ...
    def run(
        self,
        jobs: int = 0,
        progress: Callable[[int, int, str], object] | None = None,
        warn: Callable[[str], object] | None = None,
    ) -> None: ...
    def report(self, render: Callable[[str, Path], object] | None = None) -> Reproduced: ...

@final
class Reproduced:
    @property
    def folder(self) -> Path: ...
    def claims(self) -> Table: ...
    def summary_json(self) -> str: ...
    def refused(self) -> list[tuple[str, str]]: ...
    def text(self) -> str: ...

def run(
    scenario: str,
    text: str | None = None,
    set: list[tuple[str, str]] = ...,
    seed: int | None = None,
    digest: bool = False,
    controls: list[tuple[str, type[Control], str | None]] = ...,
) -> RunResult: ...
def check(
    scenario: str,
    text: str | None = None,
    set: list[tuple[str, str]] = ...,
    controls: list[tuple[str, type[Control], str | None]] = ...,
) -> tuple[str, str]: ...
def fit_video(trace: Path, coupled: bool, flow: str) -> tuple[str, str]: ...
def closed_forms() -> list[tuple[str, list[str], str]]: ...
def closed_form(name: str, *arguments: float) -> float: ...
def jain(values: Sequence[float]) -> float: ...
def predict_rate(
    fair_share: float, window: float, loss: float, return_link: float
) -> tuple[float, Literal["fair_share", "loss", "none", "return_link", "window"]]: ...
def transmission_period(
    forward: float,
    reverse: float,
    packet: float,
    ack: float,
    propagation: float,
    w: float,
    acks: float | None = None,
    d: float = 0.0,
) -> tuple[float, float, float, float, Literal["acks", "data", "rtt"]]: ...
def compare(a: Path, b: Path, across_versions: bool = False) -> tuple[str, str]: ...
def schema(kind: str) -> str: ...
def presets() -> list[str]: ...
def cache_dir() -> Path: ...
def quantities() -> list[tuple[str, str, str, str, str]]: ...
def studies() -> list[str]: ...
def sweep_text(
    scenario: str,
    title: str,
    axes: list[tuple[str, list[tuple[str | None, str]]]],
    metrics: list[tuple[str | None, str]],
) -> str: ...
def number(x: float) -> str: ...
def estimate(mean: float, half: float | None = None) -> str: ...
def short(x: float) -> str: ...
def run_cell(job: str, controls: list[tuple[str, type[Control], str | None]] = ...) -> str: ...
def main(args: list[str], render: Callable[[str, Path], object] | None, own_command: list[str]) -> int: ...
