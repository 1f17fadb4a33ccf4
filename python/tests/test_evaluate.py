"""Evaluations from Python: the files of the command, and controls of one's own."""

import json

import pytest

import skyhaul as sh

PAPER = """
schema = 1
title = "What is asked"
row = [{ id = "1", says = "It delivers" }, { id = "2", says = "It is liked" }]

[[open]]
id = "2"
says = "What users think"
why = "nobody was asked"
"""

CASE = """
schema = 1
title = "Alone"
scenario = "preset:peach-geo"
set = { duration = "8 s", record = {}, "links.sat.error.p" = 0 }
seeds = { first = 1, count = 3 }

[[axis]]
name = "control"
path = "flows.bulk.cc"
values = ["candidate", "sack"]

[[metric]]
name = "goodput"
from = "flow.unique_segments / run.duration"
over = "sum"
unit = "segments/s"

[[claim]]
id = "1 half"
says = "It delivers at least half of what SACK does"

[claim.check]
kind = "greater"
metric = "goodput"
left = { control = "candidate" }
right = { control = "sack" }
by = -0.5
"""


class Timid(sh.Control):
    """Its window does not grow."""

    def slow_start(self, ack):
        return 0.0

    def increase(self, ack):
        return 0.0


class Broken(sh.Control):
    """It fails at the first acknowledgement."""

    def slow_start(self, ack):
        raise ValueError("no idea")


@pytest.fixture
def options(tmp_path):
    folder = tmp_path / "cases/asked"
    folder.mkdir(parents=True)
    (folder / "paper.toml").write_text(PAPER)
    (folder / "alone.toml").write_text(CASE)
    return {"cases": tmp_path / "cases", "out": tmp_path / "out", "cache": tmp_path / "cache"}


def test_a_built_in_control(options):
    found = sh.evaluate("sack", **options)
    first, second = found.requirements
    assert (first.section, first.title, first.verdict) == ("1", "It delivers", "met")
    assert [c["id"] for c in first.claims] == ["1 half"]
    assert (second.verdict, second.not_measured[0]["why"]) == ("not-measured", "nobody was asked")
    assert json.loads((found.folder / "evaluation.json").read_text()) == found.summary
    assert found.counts["met"] == 1
    assert "It delivers" in found.page.read_text()
    assert "It delivers" in str(found)
    assert "It delivers" in found._repr_html_()
    assert "sack" in repr(found)


def test_a_table_with_options(options):
    found = sh.evaluate({"name": "gaimd", "alpha": 1.0, "beta": 0.5}, **options)
    assert found.counts["failed"] == 0


def test_controls_of_ones_own(options):
    found = sh.evaluate("user:timid", controls={"timid": Timid}, **options)
    assert found.requirements[0].verdict == "not-met"
    table = {"name": "user", "control": "timid"}
    again = sh.evaluate(table, controls={"timid": Timid}, **options)
    assert again.requirements[0].claims == found.requirements[0].claims


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_control_that_fails_is_said_to(options):
    found = sh.evaluate("user:broken", controls={"broken": Broken}, **options)
    assert found.requirements[0].verdict == "failed"
    assert "no idea" in json.dumps(found.summary["failed_cells"])


def test_progress_and_the_cache(options):
    calls = []
    sh.evaluate("newreno", progress=lambda done, total, _: calls.append((done, total)), **options)
    assert calls[-1] == (6, 6)
    calls.clear()
    sh.evaluate("newreno", progress=lambda done, total, _: calls.append((done, total)), **options)
    assert len(calls) <= 1


@pytest.mark.parametrize(
    ("control", "names", "more", "words"),
    [
        ("sakc", (), {}, "did you mean"),
        ("user:mine", (), {}, "mine"),
        ("sack", ("together",), {}, "alone"),
        ("sack", (), {"seeds": 0}, "seeds"),
        ({"alpha": 1.0}, (), {}, "name"),
    ],
)
def test_bad_input_is_one_line(options, control, names, more, words):
    with pytest.raises(sh.SkyhaulError, match=words) as e:
        sh.evaluate(control, *names, **options, **more)
    assert "\n" not in str(e.value)
