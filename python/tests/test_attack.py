"""Searches from Python: the files of the command, and controls of one's own."""

import json

import pytest

import skyhaul as sh

BOUNDS = {
    "duration": "10 s",
    "rate": ["1 Mbit/s", "4 Mbit/s"],
    "rtt": ["20 ms", "80 ms"],
    "buffer": ["0.5 BDP", "4 BDP"],
    "loss": 0,
    "burst": 1,
    "jitter": "0 s",
}


class Timid(sh.Control):
    """Its window does not grow."""

    def slow_start(self, ack):
        return 0.0

    def increase(self, ack):
        return 0.0


class Broken(sh.Control):
    """It fails at its two hundredth acknowledgement."""

    def __init__(self):
        self.acks = 0

    def slow_start(self, ack):
        self.acks += 1
        if self.acks == 200:
            raise ValueError("no idea")
        return 0.0

    def increase(self, ack):
        return self.slow_start(ack)


def test_the_worst_case_replays(tmp_path):
    found = sh.attack("newreno", "queue", 24, bounds=BOUNDS, out=tmp_path / "out")
    assert found.summary["cases"] == 24
    assert json.loads((found.folder / "report.json").read_text()) == found.summary
    assert (found.folder / "report.txt").read_text() == str(found)
    rate = found.case["rate"].split()
    packet = 12_000 / (float(rate[0]) * {"Mbit/s": 1e6, "kbit/s": 1e3}[rate[1]])
    rtt = found.case["rtt"].split()
    rtt = float(rtt[0]) * {"ms": 1e-3, "us": 1e-6}[rtt[1]]
    again = sh.run(found.scenario)
    assert again.summary["links"][0]["mean_queue_packets"] * packet / rtt == pytest.approx(found.value)
    # Nothing comes at random: fresh seeds give the same.
    assert found.fresh == (pytest.approx(found.value), 0.0, 10)
    assert "newreno" in repr(found)
    assert "queue" in found._repr_html_()


def test_a_file_of_bounds_is_the_same_as_a_dict(tmp_path):
    file = tmp_path / "bounds.toml"
    file.write_text("".join(f"{k} = {json.dumps(v)}\n" for k, v in BOUNDS.items()))
    of = [
        sh.attack("cubic", "collapse", "16 runs", bounds=bounds, out=tmp_path / str(i)).summary
        for i, bounds in enumerate([BOUNDS, file])
    ]
    assert of[0] == of[1]


def test_a_control_of_ones_own(tmp_path):
    calls = []
    out = tmp_path / "out"
    # No buffer that its first ten segments overflow: a loss would leave it less than ten.
    bounds = {**BOUNDS, "buffer": "20 BDP"}
    options = {"bounds": bounds, "out": out, "controls": {"timid": Timid}, "jobs": 2}
    progress = lambda done, total, text: calls.append((done, total, text))  # noqa: E731
    found = sh.attack("user:timid", "collapse", 32, progress=progress, **options)
    # Ten segments a round trip: least where the path carries most, at most 120,000 bits in 80 ms of 4 Mbit/s.
    assert (found.case["rate"], found.case["rtt"]) == ("4 Mbit/s", "80 ms")
    assert 0.9 * 0.375 < found.value < 0.375
    assert found.trouble == []
    assert calls[-1][:2] == (32, 32)
    assert "32 cases" in calls[-1][2]
    # The journal has all cases: the same call runs none of them again.
    assert sh.attack("user:timid", "collapse", 32, **options).summary == found.summary


def test_a_control_that_fails_is_a_find(tmp_path):
    def found(name, duration):
        bounds = {**BOUNDS, "duration": duration}
        return sh.attack(
            "user:broken", "collapse", 24, bounds=bounds, out=tmp_path / name, controls={"broken": Broken}
        )

    with pytest.raises(sh.SkyhaulError, match=r"no case could be measured.*raised ValueError: no idea"):
        found("all", "60 s")
    # In a short run, two hundred acknowledgements come where rate and round trip allow it.
    some = found("some", "2 s")
    assert 0 < len(some.trouble) < 24
    assert "no idea" in some.trouble[0]["why"]
    assert (some.folder / "trouble-1.toml").exists()


def test_an_exception_of_the_observer_ends_the_search(tmp_path):
    def stop(*_):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        sh.attack("newreno", "collapse", 2000, bounds=BOUNDS, out=tmp_path / "out", progress=stop)
    # The next call continues the search.
    found = sh.attack("newreno", "collapse", 16, bounds=BOUNDS, out=tmp_path / "out")
    assert found.summary["cases"] == 16


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"goal": "win"}, "goal win: there is no such goal; accepted: harm"),
        ({"budget": "0 runs"}, "budget 0 runs: nothing"),
        ({"budget": 0}, "budget 0 runs: nothing"),
        ({"budget": 5}, "5 runs are too few"),
        ({"budget": "soon"}, "10min"),
        ({"control": "luigi"}, "luigi"),
        ({"control": "user:mine"}, "mine"),
        ({"bounds": {"rats": 1}}, "no such key"),
        ({"bounds": {"rate": [1, 2]}}, "rate.*Mbit/s"),
        ({"bounds": {k: v[0] if isinstance(v, list) else v for k, v in BOUNDS.items()}}, "list of two"),
        ({"bounds": "/nonexistent/b.toml"}, "b.toml"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_input_is_one_line(tmp_path, change, words):
    arguments = {"control": "newreno", "goal": "queue", "budget": 400, "out": tmp_path / "out", **change}
    with pytest.raises(sh.SkyhaulError, match=words) as e:
        sh.attack(**arguments)
    assert "\n" not in str(e.value)
    assert not (tmp_path / "out").exists()
