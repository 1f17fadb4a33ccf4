"""Learned congestion control: a satellite path as a Gymnasium environment.

    import gymnasium as gym
    import skyhaul.rl

    env = gym.make("skyhaul/Satellite-v0", scenario="preset:peach-geo")
    observation, info = env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.step(env.action_space.sample())

It needs Gymnasium, the extra [rl]: `pip install 'gymnasium>=1.2,<2'`. The page "Learned congestion control"
of the documentation describes observations, actions and rewards.
"""

import math
import os
import queue
import threading
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from . import _core
from ._control import Policy
from ._core import Ack, Control, ControlError, Loss, ScenarioError, Start
from ._optional import hint
from ._run import Result, check, run
from ._settings import Value

try:
    import gymnasium
    import numpy as np
except ImportError as e:
    raise ImportError(hint("skyhaul.rl", "rl", "gymnasium")) from e

__all__ = ["OBSERVATION", "SatelliteEnv"]

OBSERVATION = ("goodput", "delay", "loss", "window", "in_flight", "action")
"""The names of the numbers in an observation, in order."""

# The bounds of the observation.
LEAST = np.array([0, 0, 0, 0, 0, -1], dtype=np.float32)
MOST = np.array([10, 100, 1, 100, 10, 1], dtype=np.float32)

CONTROL = "gymnasium-agent"
"""Name of the control in the scenario."""


class _Stopped(Exception):
    """Ends a run that is no longer needed."""


class _State(NamedTuple):
    """The state of a connection when a decision is due."""

    time: float
    delivered: int
    lost: int
    cwnd: float
    in_flight: float
    srtt: float | None
    min_rtt: float | None
    smss: int


class _Channel:
    """Joins the environment and the run in its own thread, which wait for each other in turn."""

    def __init__(self) -> None:
        self.states: queue.SimpleQueue[_State | Result | BaseException] = queue.SimpleQueue()
        self.factor: queue.SimpleQueue[float | None] = queue.SimpleQueue()

    def decide(self, state: _State) -> float:
        """Passes a state to the environment, and waits for the factor of the window."""
        self.states.put(state)
        factor = self.factor.get()
        if factor is None:
            raise _Stopped
        return factor


def _control(channel: _Channel, interval: float) -> type[Control]:
    """A control class that asks a channel for decisions."""

    class Agent(Control):
        """Leaves the window to the agent: losses are repaired (RFC 6675), but only a timeout reduces it."""

        policy: ClassVar[Policy | dict[str, Any] | None] = Policy()

        def on_start(self, start: Start) -> None:
            super().on_start(start)
            if start.kind == "established":
                self.wake_at(self.now + interval)

        def on_ack(self, ack: Ack) -> None:
            if self.after_timeout:
                super().on_ack(ack)

        def on_congestion(self, loss: Loss) -> None:
            self.ssthresh = max(2.0, self.cwnd)

        def on_recovered(self) -> None:
            pass

        def on_wake(self) -> None:
            state = _State(
                self.now,
                self.delivered,
                self.lost,
                self.cwnd,
                self.in_flight,
                self.srtt,
                self.min_rtt,
                self.smss,
            )
            factor = channel.decide(state)
            self.cwnd = min(max(1.0, self.cwnd * factor), max(1.0, self.rwnd))
            self.wake_at(self.now + interval)

    return Agent


class SatelliteEnv(gymnasium.Env[Any, Any]):
    """One connection over the links of a scenario, whose congestion window the agent sets.

    Every `interval` the agent observes the last interval and multiplies the congestion window by
    `2 ** action`.

    Observation, a `Box` of six `float32` in the order of `OBSERVATION`: goodput of the interval as a fraction
    of the rate; smoothed RTT divided by the minimum RTT, minus 1; bytes marked lost as a fraction of bytes
    delivered or lost; congestion window divided by the bandwidth-delay product; data in flight divided by the
    window; the last action.

    Action, a `Box(-1, 1)` of one `float32`: 1 doubles the window, 0 keeps it, -1 halves it. The window stays
    between one segment and the receiver's limit.

    Reward per step: `goodput - delay_weight * delay - loss_weight * loss`, from the first three numbers of
    the observation.

    An episode ends, as `truncated`, with the scenario; then `info["result"]` is the `Result` of the run.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (Gymnasium declares it)

    def __init__(
        self,
        scenario: str | os.PathLike[str] = "preset:peach-geo",
        *,
        flow: str = "bulk",
        set: Mapping[str, Value] | None = None,
        text: str | None = None,
        interval: float | None = None,
        rate: float | None = None,
        delay_weight: float = 0.25,
        loss_weight: float = 1.0,
    ) -> None:
        """The agent is the flow `flow[0]`; its group gets one flow, and the other groups are unchanged.

        `set` and `text` are those of `run`. `interval` is the time between two decisions, s, by default the
        base RTT. `rate` is the reference rate for goodput, bit/s, by default that of the bottleneck.
        """
        own: dict[str, Value] = {f"flows.{flow}.count": 1, **(set or {})}
        # The base RTT and the rate do not depend on the control.
        checked = check(scenario, set=own, text=text)
        group = next(f for f in checked["flows"] if f["name"] == flow)
        if group["count"] != 1:
            raise ScenarioError(
                f"set: flows.{flow}.count: an agent controls one connection: write 1, or omit it"
            )
        self._interval = _positive("interval", interval, group["base_rtt_s"])
        self._rate = _positive("rate", rate, _bottleneck(checked, group))
        self._bdp: float = max(1.0, self._rate * group["base_rtt_s"] / 8 / group["packet_bytes"])
        self._weights = delay_weight, loss_weight
        self._scenario = scenario
        self._text = text
        cc: Value = {"name": "user", "control": CONTROL}
        self._set = {**own, f"flows.{flow}.cc": cc}
        self._channel: _Channel | None = None
        self._thread: threading.Thread | None = None
        self._last: _State | None = None
        self._observation = np.zeros(len(OBSERVATION), dtype=np.float32)
        self.observation_space = gymnasium.spaces.Box(LEAST, MOST, dtype=np.float32)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), dtype=np.float32)

    @property
    def interval(self) -> float:
        """Time between two decisions, s."""
        return self._interval

    @property
    def bdp(self) -> float:
        """Bandwidth-delay product that observations divide the window by, packets."""
        return self._bdp

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts a run with its own seed, up to the first decision."""
        super().reset(seed=seed, options=options)
        self.close()
        run_seed = int(self.np_random.integers(2**31))
        channel = _Channel()
        controls = {CONTROL: _control(channel, self._interval)}

        def work() -> None:
            try:
                done = run(self._scenario, set=self._set, text=self._text, seed=run_seed, controls=controls)
                channel.states.put(done)
            except BaseException as e:
                channel.states.put(e)

        self._channel = channel
        self._last = None
        self._thread = threading.Thread(target=work, name="skyhaul-run", daemon=True)
        self._thread.start()
        state = self._next(channel)
        if isinstance(state, Result):
            raise ScenarioError(
                f"interval: {self._interval:g} s: the run ended before the first decision: write a shorter "
                "one, or a longer duration"
            )
        self._observe(state, 0.0)
        return self._observation.copy(), {"time_s": state.time, "cwnd": state.cwnd, "seed": run_seed}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Sets the window and continues the run to the next decision, or to its end."""
        if self._channel is None or self._last is None:
            raise gymnasium.error.ResetNeeded(
                "call reset() before the first step(), and after the end of each episode"
            )
        chosen = float(np.clip(np.asarray(action, dtype=np.float64).reshape(-1)[0], -1.0, 1.0))
        if math.isnan(chosen):
            raise _core.SkyhaulError("action: nan: write a number from -1 to 1")
        self._channel.factor.put(2.0**chosen)
        state = self._next(self._channel)
        if isinstance(state, Result):
            # The time since the last decision is shorter than an interval and not observed: the last reward
            # is repeated.
            info = {"time_s": float(state.summary["duration_s"]), "cwnd": self._last.cwnd, "result": state}
            self.close()
            return self._observation.copy(), self._reward(), False, True, info
        self._observe(state, chosen)
        return (
            self._observation.copy(),
            self._reward(),
            False,
            False,
            {"time_s": state.time, "cwnd": state.cwnd},
        )

    def close(self) -> None:
        """Ends the run in progress."""
        if self._thread is not None and self._channel is not None:
            self._channel.factor.put(None)
            self._thread.join()
        self._thread = None
        self._channel = None

    def _next(self, channel: _Channel) -> _State | Result:
        """The next state of the run, or its result; raises the exception that ended it."""
        state = channel.states.get()
        if isinstance(state, BaseException):
            self._thread = None
            self._channel = None
            if isinstance(state, ControlError) and isinstance(state.__cause__, _Stopped):
                raise gymnasium.error.ResetNeeded("the run was ended; call reset()")
            raise state
        return state

    def _observe(self, state: _State, action: float) -> None:
        """Computes the observation of the interval since the last state."""
        last = self._last
        delivered = state.delivered - (last.delivered if last else 0)
        lost = state.lost - (last.lost if last else 0)
        time = state.time - last.time if last else self._interval
        delay = state.srtt / state.min_rtt - 1 if state.srtt and state.min_rtt else 0.0
        numbers = [
            8 * delivered / (time * self._rate) if time > 0 else 0.0,
            delay,
            lost / (delivered + lost) if delivered + lost else 0.0,
            state.cwnd / self._bdp,
            state.in_flight / state.cwnd,
            action,
        ]
        self._last = state
        self._observation = np.clip(np.array(numbers, dtype=np.float32), LEAST, MOST)

    def _reward(self) -> float:
        goodput, delay, loss = (float(x) for x in self._observation[:3])
        of_delay, of_loss = self._weights
        return goodput - of_delay * delay - of_loss * loss


def _positive(name: str, value: float | None, otherwise: float | None) -> float:
    """A number above 0, or the default from the scenario."""
    if value is None:
        value = otherwise
    if value is None:
        raise ScenarioError(f"{name}: the scenario does not determine it: write a number above 0")
    number = float(value)
    if not 0 < number < math.inf:
        raise ScenarioError(f"{name}: {number:g}: write a number above 0")
    return number


def _bottleneck(checked: Mapping[str, Any], group: Mapping[str, Any]) -> float | None:
    """Rate of the slowest link of a flow group, bit/s, among the links with a constant rate."""
    name = (group["bottleneck"] or {}).get("link")
    return next((link["forward"]["rate_bit_s"] for link in checked["links"] if link["name"] == name), None)


gymnasium.register(id="skyhaul/Satellite-v0", entry_point="skyhaul.rl:SatelliteEnv")
