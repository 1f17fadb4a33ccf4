"""Congestion controls of one's own, in Python."""

import math
import traceback

import pytest
from own_controls import Fragile, Gentle, Reno, Written

import skyhaul as sh

PATH = {
    "duration": "60 s",
    "flows.bulk.count": 3,
    "flows.bulk.endpoint": "modern",
    "links.sat.error.p": 5e-3,
}


def run(control, *, options=None, seed=3, **changes):
    """A run with this class, on a lossy path."""
    cc = {"name": "user", "control": "mine", **({"options": options} if options else {})}
    return sh.run(
        "preset:peach-geo",
        set={**PATH, "flows.bulk.cc": cc, **changes},
        seed=seed,
        digest=True,
        controls={"mine": control},
    )


def digest(result):
    return result.summary["digest"]


def built_in(cc, seed=3, **changes):
    return sh.run("preset:peach-geo", set={**PATH, "flows.bulk.cc": cc, **changes}, seed=seed, digest=True)


# Behaviour


@pytest.mark.parametrize("cls", [sh.Control, Reno, Written])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"links.sat.error.p": 5e-2},
        {"flows.bulk.handshake": True, "flows.bulk.app": {"kind": "pages", "segments": 30}},
        {"links.sat.error": {"kind": "bursts", "loss": 0.02, "burst": 8.0}},
    ],
    ids=["lossy", "timeouts", "pages", "bursts"],
)
def test_reno_in_python_is_reno_in_rust_event_for_event(cls, changes):
    theirs = built_in("sack", **changes)
    ours = run(cls, **changes)
    assert digest(ours) == digest(theirs)
    assert ours.summary["flows"] == theirs.summary["flows"]
    assert theirs.summary["groups"][0]["retransmissions"] > 5


def test_there_are_timeouts_in_what_was_compared():
    assert built_in("sack", **{"links.sat.error.p": 5e-2}).summary["groups"][0]["timeouts"] > 0


@pytest.mark.parametrize("recovery", ["reno", "newreno", "tahoe"])
def test_the_policy_chooses_how_losses_are_repaired(recovery):
    class Repaired(sh.Control):
        policy = sh.Policy(recovery=recovery)

    class AsDict(sh.Control):
        policy = {"recovery": recovery}  # noqa: RUF012

    want = digest(built_in(recovery))
    assert digest(run(Repaired)) == digest(run(AsDict)) == want != digest(built_in("sack"))


def test_options_are_keyword_arguments():
    gentle = run(Gentle, options={"alpha": 0.2, "beta": 0.875})
    gaimd = built_in({"name": "gaimd", "alpha": 0.2, "beta": 0.875})
    assert gentle.summary["flows"] == gaimd.summary["flows"]
    assert digest(run(Gentle)) == digest(built_in("sack"))
    short = sh.run(
        "preset:peach-geo",
        set={**PATH, "flows.bulk.cc": "user:gentle", "flows.bulk.cc.options.beta": 0.875},
        seed=3,
        controls={"gentle": Gentle},
    )
    assert short.summary["groups"][0]["cc"] == "user:gentle"
    assert "beta = 0.875" in short.scenario
    again = sh.run("again", text=short.scenario, seed=3, controls={"gentle": Gentle})
    assert again.summary["flows"] == short.summary["flows"]


def test_instances_are_one_per_connection():
    made = []

    class Counted(sh.Control):
        def __init__(self):
            made.append(self)

        def on_start(self, start):
            super().on_start(start)
            self.name = self.flow

    run(Counted, duration="20 s")
    assert sorted(c.name for c in made) == ["bulk[0]", "bulk[1]", "bulk[2]"]
    made.clear()
    pages = run(
        Counted, **{"flows.bulk.app": {"kind": "pages", "segments": 20}, "flows.bulk.handshake": True}
    )
    assert len(made) == 3 + pages.summary["groups"][0]["pages"]


def test_events_come_with_their_facts():
    facts = {}

    class Curious(sh.Control):
        policy = sh.Policy(rate_samples=True, watch_head=True)

        def on_start(self, start):
            super().on_start(start)
            facts["start"] = (start.kind, start.rtt, start.syn_lost, self.now, self.cwnd)

        def on_ack(self, ack):
            super().on_ack(ack)
            facts.setdefault("kinds", set()).add(ack.kind)
            if ack.rate and self.round > 5:
                facts["rate"] = (ack.rate.rate, ack.rate.interval, ack.rate.delivered)
            if ack.rtt:
                facts["rtt"] = (ack.rtt, self.srtt, self.min_rtt, self.rttvar)
            facts["path"] = (self.smss, self.rwnd, self.in_flight, self.pipe, self.queued)
            facts["head"] = (self.head_age, self.head_retransmissions)
            facts["count"] = (self.delivered, self.lost, self.round, self.app_limited, self.probes)

        def on_congestion(self, loss):
            super().on_congestion(loss)
            facts["loss"] = (loss.kind, self.phase)

        def on_recovered(self):
            super().on_recovered()
            facts["recovered"] = self.phase

        def on_sent(self, sent):
            facts["sent"] = sent.length
            facts["again"] = facts.get("again", 0) + sent.retransmission

        def on_transmit(self, transmit):
            facts.setdefault("blocked", set()).add(transmit.blocked)
            facts.setdefault("clock", set()).add(transmit.clock)
            assert transmit.sent >= 0

    r = run(Curious, **{"flows.bulk.count": 1})
    kind, rtt, syn_lost, now, cwnd = facts["start"]
    assert (kind, rtt, syn_lost, cwnd) == ("established", 0.55, False, 10)
    assert 0 <= now < 0.55
    assert facts["kinds"] == {"new", "partial", "full", "duplicate"} or facts["kinds"] == {
        "new",
        "full",
        "duplicate",
    }
    rate, interval, delivered = facts["rate"]
    assert rate == int(8 * delivered / interval)
    assert all(0.55 <= t < 0.7 for t in facts["rtt"][:3])
    smss, rwnd, in_flight, pipe, queued = facts["path"]
    flow = r.summary["flows"][0]
    assert smss == flow["bytes_acked"] / flow["unique_segments"]
    assert queued > 0
    assert 0 < pipe <= in_flight <= rwnd
    assert facts["head"][0] < 2
    assert facts["count"][0] >= r.summary["flows"][0]["bytes_acked"]
    assert facts["loss"] == ("loss", "open")
    assert facts["recovered"] == "open"
    assert facts["again"] == r.summary["flows"][0]["retransmissions"]
    assert {"cwnd"} <= facts["blocked"]
    assert {"ack"} <= facts["clock"]
    # Handlers that only record change nothing.
    assert digest(r) == digest(built_in("sack", **{"flows.bulk.count": 1}))


def test_the_full_interface_can_pace_wake_and_probe():
    class Prober(sh.Control):
        policy = sh.Policy(probes=True)

        def on_start(self, start):
            super().on_start(start)
            self.answers = 0
            self.wakes = 0
            self.pacing = 2e6
            self.wake_at(self.now + 1)

        def on_wake(self):
            self.wakes += 1
            self.probe_now(2)
            if self.wakes == 3:
                self.train(4, 0.01, 0.02, "unacked-round-robin")
            if self.wakes < 5:
                self.wake_at(self.now + 1)
            else:
                self.wake_at(None)

        def on_probe(self, probe):
            self.answers += probe.count

        def telemetry(self):
            return {"answers": self.answers, "wakes": self.wakes}

    r = run(
        Prober,
        **{
            "flows.bulk.count": 1,
            "duration": "20 s",
            "links.sat.error": "none",
            "flows.bulk.endpoint": {"preset": "modern", "probes": "paper"},
            "record.series": ["telemetry"],
        },
    )
    flow = r.summary["flows"][0]
    assert flow["probes_sent"] == 5 * 2 + 4
    assert flow["probes_answered"] == 14
    last = dict(zip(r.series["series"], r.series["value"], strict=True))
    assert last == {"telemetry.answers": 14, "telemetry.wakes": 5}
    assert flow["goodput_bit_s"] < 2e6


def test_requests_reach_the_sender():
    class Impatient(sh.Control):
        def on_ack(self, ack):
            super().on_ack(ack)
            if self.round == 8 and self.phase == "open" and not hasattr(self, "done"):
                self.done = True
                self.rewind()
            if self.round == 20 and not hasattr(self, "twice"):
                self.twice = True
                self.retransmit_head()

    r = run(
        Impatient,
        **{"flows.bulk.count": 1, "links.sat.error": "none", "links.sat.queue.limit": "1000 packets"},
    )
    flow = r.summary["flows"][0]
    assert flow["retransmissions"] > 1
    assert (flow["recoveries"], flow["timeouts"]) == (1, 0)


def test_low_priority_is_marked():
    class Polite(sh.Control):
        def priority(self, offset, retransmission):
            return "low" if offset > 50_000 and not retransmission else "normal"

    crowd = {"links.sat.error": "none", "flows.bulk.count": 20, "duration": "30 s"}
    polite = run(Polite, **crowd)
    assert digest(polite) != digest(built_in("sack", **crowd))


# Determinism


def test_random_numbers_belong_to_seed_and_flow():
    class Noisy(sh.Control):
        def increase(self, ack):
            a, b = self.rng.random(), self.rng.uniform(0, 2)
            assert 0 <= a < 1
            assert self.rng.below(3) in (0, 1, 2)
            return (a + b + self.rng.exponential(0.1) + abs(self.rng.normal())) / self.cwnd / 4

    assert digest(run(Noisy)) == digest(run(Noisy)) != digest(run(Noisy, seed=4))

    class TooEarly(sh.Control):
        def __init__(self):
            self.rng.random()

    with pytest.raises(
        sh.ControlError, match=r"TooEarly\.__init__ raised RuntimeError: rng.*not for __init__"
    ):
        run(TooEarly)


# Failures


def test_an_exception_ends_the_run_and_is_the_cause():
    with pytest.raises(sh.ControlError) as e:
        run(Fragile)
    words = str(e.value)
    assert "\n" not in words
    assert "Fragile.on_ack raised LookupError: a hundred were enough (at " in words
    assert isinstance(e.value.__cause__, LookupError)
    lines = "".join(traceback.format_exception(e.value))
    assert 'raise LookupError("a hundred were enough")' in lines
    assert e.value.method == "Fragile.on_ack"
    assert e.value.flow in {"bulk[0]", "bulk[1]", "bulk[2]"}
    assert e.value.flow in words
    assert f"{e.value.time_s:.6f} s" in words
    assert 1 < e.value.time_s < 60
    assert issubclass(sh.ControlError, sh.SkyhaulError)


def setting(name, value):
    class Careless(sh.Control):
        def on_ack(self, ack):
            setattr(self, name, value)

    return Careless


def returning(name, value):
    return type("Careless", (sh.Control,), {name: lambda self, *_: value})


def calling(name, *args):
    def on_ack(self, ack):
        getattr(self, name)(*args)

    return type("Careless", (sh.Control,), {"on_ack": on_ack})


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        (
            setting("cwnd", math.nan),
            "on_ack raised ValueError: cwnd: nan (float) is not accepted: write a finite number",
        ),
        (setting("cwnd", math.inf), "cwnd: inf"),
        (
            setting("cwnd", 0.5),
            "cwnd: 0.5 (float) is not accepted: write a finite number of segments, 1 or more",
        ),
        (setting("cwnd", "10"), "raised TypeError: cwnd: '10' (str) is not accepted"),
        (setting("cwnd", None), "cwnd: None"),
        (setting("ssthresh", 0), "ssthresh: 0 (int) is not accepted: write a number of segments above 0"),
        (setting("ssthresh", math.nan), "ssthresh: nan"),
        (
            setting("pacing", -1),
            "pacing: -1 (int) is not accepted: write a rate in bit/s, 1 or more, or None",
        ),
        (setting("pacing", math.inf), "pacing: inf"),
        (setting("srtt", 1.0), "raised AttributeError"),
        (
            returning("increase", None),
            "Careless.increase raised TypeError: what increase returns: None (NoneType)",
        ),
        (returning("increase", math.nan), "what increase returns: nan"),
        (returning("slow_start", "x"), "Careless.slow_start raised TypeError: what slow_start returns"),
        (returning("reduction", 0), "Careless.reduction raised ValueError: what reduction returns: 0 (int)"),
        (returning("reduction", -3.0), "the fraction of the window that is kept"),
        (
            returning("priority", "high"),
            'what priority returns: \'high\' (str) is not accepted: write "normal" or "low"',
        ),
        (
            calling("wake_at", -1.0),
            "wake_at: -1.0 (float) is not accepted: write a simulated time in seconds, not before",
        ),
        (calling("probe_now", 1), "probe_now: the class does not ask for probes"),
        (
            calling("probe_now", 0),
            "probe_now, count: 0 (int) is not accepted: write a whole number, 1 or more",
        ),
        (
            calling("train", 3, -1.0, 0.1),
            "train, first: -1.0 (float) is not accepted: write a time in seconds",
        ),
        (
            calling("train", 3, 0.1, 0.1, "nowhere"),
            "source: 'nowhere' (str) is not accepted: write \"last-segment\" or",
        ),
    ],
)
def test_bad_values_are_refused_where_they_are_written(cls, words):
    with pytest.raises(sh.ControlError) as e:
        run(cls)
    assert words in str(e.value)
    assert "Careless." in str(e.value)
    assert e.value.__cause__ is not None


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ({"recovry": "sack"}, 'policy: unknown key "recovry" (known: recovery, '),
        (
            {"recovery": "quick"},
            'policy, recovery: \'quick\' (str) is not accepted: write "tahoe" or "reno" or',
        ),
        ({"rate_samples": "yes"}, "policy, rate_samples: write True or False"),
        ({"max_burst": -1}, "policy, max_burst: write a whole number of segments"),
        ("sack", "policy: write a dict, or a skyhaul.Policy"),
    ],
)
def test_a_bad_policy_is_refused(policy, words):
    with pytest.raises(sh.ControlError) as e:
        run(type("Careless", (sh.Control,), {"policy": policy}))
    assert words in str(e.value)


def test_telemetry_is_checked():
    for value, words in [
        (3, "write a dict"),
        ({"a": "b"}, "telemetry, a: 'b' (str)"),
        ({1: 1.0}, "write a dict"),
    ]:
        with pytest.raises(sh.ControlError, match="telemetry") as e:
            run(returning("telemetry", value), **{"record.series": ["telemetry"]})
        assert words in str(e.value)


def test_what_cannot_run_is_refused_before_it_runs():
    with pytest.raises(
        sh.ScenarioError, match=r'flows\.bulk\.cc: nobody provides the control "yours" \(known: mine\)'
    ):
        sh.run("preset:peach-geo", set={"flows.bulk.cc": "user:yours"}, controls={"mine": Reno})
    for call in (sh.run, sh.check):
        with pytest.raises(
            sh.ScenarioError, match=r'\(known: none\): in Python pass controls=\{"mine": YourClass\}'
        ):
            call("preset:peach-geo", set={"flows.bulk.cc": "user:mine"})
        with pytest.raises(
            sh.ScenarioError, match=r"unexpected keyword argument 'gamma' \(known: alpha, beta\)"
        ):
            call(
                "preset:peach-geo",
                set={"flows.bulk.cc": {"name": "user", "control": "mine", "options": {"gamma": 1}}},
                controls={"mine": Gentle},
            )
        with pytest.raises(sh.ScenarioError, match="Reno takes none, since it has no __init__: gamma"):
            call(
                "preset:peach-geo",
                set={"flows.bulk.cc": {"name": "user", "control": "mine", "options": {"gamma": 1}}},
                controls={"mine": Reno},
            )
        for wrong in (Reno(), dict, "Reno", lambda: Reno()):
            with pytest.raises(
                TypeError, match=r'controls\["mine"\].*pass a class that derives from skyhaul\.Control'
            ):
                call("preset:peach-geo", controls={"mine": wrong})
    assert (
        sh.check("preset:peach-geo", set={"flows.bulk.cc": "user:mine"}, controls={"mine": Reno})["flows"][0][
            "cc"
        ]
        == "user:mine"
    )


def test_a_misspelt_method_is_an_error():
    class Slip(sh.Control):
        def reducton(self, loss):
            return 0.5

    with pytest.raises(TypeError, match=r"nothing calls Slip\.reducton: did you mean reduction\?"):
        run(Slip)


def test_a_public_method_that_nothing_calls_is_a_warning():
    class Helped(sh.Control):
        def bandwidth(self):
            return 1.0

        def _own(self):
            return 1.0

    with pytest.warns(UserWarning, match=r"nothing calls Helped\.bandwidth") as caught:
        run(Helped)
    assert len(caught) == 1


# Effects of returned values


class Delay(sh.Control):
    """One segment more or less per RTT, so that some four segments of its own wait in the queue."""

    def increase(self, ack: sh.Ack) -> float:
        queued = self.cwnd * (1 - self.min_rtt / self.srtt)
        return (1.0 if queued < 4 else -1.0) / self.cwnd


def test_a_negative_increase_is_not_given_back_by_slow_start():
    alone = {
        "duration": "200 s",
        "flows.bulk.count": 1,
        "flows.bulk.endpoint": {"preset": "modern", "initial-ssthresh": "570 segments"},
        "flows.bulk.rwnd": "6 MiB",
        "flows.bulk.sndbuf": "6 MiB",
        "links.sat.error": "none",
        "links.sat.queue": "2000 packets",
    }
    result = run(Delay, **alone)
    (link,) = (row for row in result.summary["links"] if row["direction"] == "forward")
    assert link["utilization"] > 0.5
    assert link["mean_queue_packets"] < 40


def test_a_control_that_wakes_itself_at_one_instant_is_ended_by_name():
    class Restless(sh.Control):
        def on_start(self, start):
            super().on_start(start)
            self.wake_at(self.now)

        def on_wake(self):
            self.wake_at(self.now)

    with pytest.raises(
        sh.ControlError, match=r"Restless\.on_wake raised RuntimeError: wake_at: woken 1000 times"
    ):
        run(Restless)

    class Patient(Restless):
        def on_wake(self):
            self.wake_at(self.now + 0.01)

    assert run(Patient).summary["groups"][0]["goodput_bit_s"] > 0
