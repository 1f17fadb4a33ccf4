"""Congestion controls of one's own in studies: threads, processes, failures, versions, Ctrl-C."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import pytest
from own_controls import Fragile, Gentle, Reno

import skyhaul as sh

STUDY = """
schema = 1
title = "Own"
scenario = "preset:peach-geo"
set = { duration = "12 s", "flows.bulk.count" = 2, "links.sat.error.p" = 5e-3 }
seeds = { first = 1, count = 3 }

[[axis]]
name = "cc"
path = "flows.bulk.cc"
values = ["sack", "user:mine", { value = OWN, label = "0.8" }]

[[metric]]
name = "goodput"
from = "flow.unique_segments / run.duration"
over = "sum"

[[claim]]
id = "gentle"
says = "A gentler reduction is faster"
check = { kind = "greater", metric = "goodput", left = { cc = "0.8" }, right = { cc = "sack" } }

[[claim]]
id = "plain"
says = "No control gets nothing"
check = { kind = "equal", metric = "goodput", value = 100, tolerance = 99, relative = false }
at = { cc = "sack" }
""".replace("OWN", '{ name = "user", control = "mine", options = { beta = 0.8 } }')


def study(control=Gentle, text=STUDY):
    return sh.study("own.toml", text=text, controls={"mine": control})


def test_studies_take_them_beside_built_in_ones_on_any_number_of_threads():
    one = study().run(jobs=1)
    assert one.cells["cc"] == ["sack"] * 3 + ["user:mine"] * 3 + ["0.8"] * 3
    goodput = one.cells["goodput"]
    # With its default options it behaves as SACK: the same numbers on each seed.
    assert goodput[:3] == goodput[3:6] != goodput[6:]
    assert one.failed == []
    assert "failed" not in one.cells.column_names
    assert study().run(jobs=4).summary == one.summary


def test_executors_take_them_along(tmp_path):
    here = study().run().summary
    with ThreadPoolExecutor(2) as threads:
        assert study().run(executor=threads).summary == here
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        assert study().run(executor=processes, cache=tmp_path).summary == here
    assert study()._core.jobs(tmp_path) == ([], [])


class Counted(ProcessPoolExecutor):
    """A pool of processes that counts what is submitted."""

    submitted = 0

    def submit(self, *args, **keys):
        self.submitted += 1
        return super().submit(*args, **keys)


def made_here():
    class Local(Gentle):
        pass

    return Local


@pytest.mark.parametrize(
    "control", [made_here(), type("Nameless", (Gentle,), {"__module__": __name__})], ids=["local", "nameless"]
)
def test_a_class_that_cannot_travel_is_named_before_anything_is_submitted(control):
    why = rf'controls\["mine"\].*{control.__name__}.*top level of a module'
    with (
        Counted(1, mp_context=get_context("spawn")) as processes,
        pytest.raises(sh.StudyError, match=why) as e,
    ):
        study(control).run(executor=processes)
    assert processes.submitted == 0
    assert "\n" not in str(e.value)
    # Threads share the class itself.
    with ThreadPoolExecutor(1) as threads:
        assert study(control).run(executor=threads).failed == []


def test_what_cannot_run_is_refused_before_anything_does():
    with pytest.raises(sh.StudyError, match="nobody provides"):
        sh.study("own.toml", text=STUDY)
    with pytest.raises(sh.StudyError, match="unexpected keyword argument 'beta'"):
        study(Fragile)


FAILING = STUDY.replace("options = { beta = 0.8 }", "options = { when = 30 }").replace('"user:mine", ', "")


def test_in_a_study_the_other_cells_go_on(tmp_path):
    with pytest.warns(
        RuntimeWarning, match=r"cell cc = 0\.8 \(seed \d\) failed: flow bulk.*a hundred were enough \(at"
    ):
        o = study(Fragile, FAILING).run(cache=tmp_path)
    assert [(f.cell, f.seed) for f in o.failed] == [("cc = 0.8", n) for n in (1, 2, 3)]
    assert "s of simulated time" in o.failed[0].message
    assert 'raise LookupError("a hundred were enough")' in o.failed[0].traceback
    assert o.cells["failed"][:3] == [""] * 3
    assert "Fragile.on_ack" in o.cells["failed"][3]
    assert o.cells["goodput"][0] > 0
    assert o.cells["goodput"][3] is None
    gentle, plain = o.claims
    assert gentle.verdict == "not-evaluable"
    assert "failed with seed 1" in json_of(o, 0)
    assert plain.verdict == "holds"
    for page in (str(o), o._core.html()):
        assert "a hundred were enough" in page
        assert "Traceback (most recent call last)" in page
    assert o.summary["missing_cells"] == 0
    # The cache has none of the failed cells.
    assert len(study(Fragile, FAILING)._core.jobs(tmp_path)[0]) == 3
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes,
        pytest.warns(RuntimeWarning, match="a hundred were enough"),
    ):
        there = study(Fragile, FAILING).run(executor=processes)
    assert [f.message for f in there.failed] == [f.message for f in o.failed]
    assert there.claims == o.claims


def json_of(outcome, claim):
    return str(outcome.summary["claims"][claim])


# Versions


MODULE = """
import skyhaul as sh
KEPT = {kept}
def factor(loss):
    return KEPT
class Mine(sh.Control):
    def __init__(self, beta=0.5):
        pass
    def reduction(self, loss):
        return factor(loss)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    import importlib

    monkeypatch.syspath_prepend(tmp_path)
    names = iter(f"version_{i}_of_own" for i in range(9))

    def load(text):
        name = next(names)
        (tmp_path / f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        return importlib.import_module(name).Mine

    return load


def test_the_cache_knows_one_version_of_a_class_from_another(module, tmp_path):
    cache = tmp_path / "cache"
    first = study(module(MODULE.format(kept=0.5))).run(cache=cache)
    # The same text elsewhere is the same control.
    same = study(module(MODULE.format(kept=0.5)))
    assert same._core.jobs(cache) == ([], [])
    # The constant belongs to a function that a method calls.
    other = study(module(MODULE.format(kept=0.9)))
    assert len(other._core.jobs(cache)[0]) == 6
    assert other.run(cache=cache).cells["goodput"][3:] != first.cells["goodput"][3:]
    assert same.run(cache=cache).summary == first.summary


def test_closures_and_attributes_count():
    from skyhaul._control import fingerprint

    def make(kept):
        class Mine(sh.Control):
            def reduction(self, loss):
                return kept

        return Mine

    one, two = make(0.5), make(0.6)
    assert fingerprint(one) == fingerprint(make(0.5)) != fingerprint(two)
    before = fingerprint(one)
    one.extra = 3
    assert fingerprint(one) != before
    assert fingerprint(make(object())) is None
    assert fingerprint(Gentle) != fingerprint(Reno)


def test_a_policy_that_a_class_names_counts():
    from skyhaul._control import fingerprint

    def make(attribute, used):
        class Mine(sh.Control):
            policy = attribute

            def on_start(self, start):
                super().on_start(start)
                self.most = used.max_burst

        return Mine

    one, two = sh.Policy(max_burst=1), sh.Policy(max_burst=2)
    prints = [fingerprint(make(a, b)) for a in (one, two) for b in (one, two)]
    assert None not in prints
    assert len(set(prints)) == 4


def test_a_class_without_source_is_not_cached(tmp_path):
    names = {"sh": sh}
    exec("class Mine(sh.Control):\n    def __init__(self, beta=0.5):\n        pass\n", names)
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match='cells are not cached: .*control "mine"'):
            o = study(names["Mine"]).run(cache=tmp_path)
        assert o.failed == []
    assert len(list(tmp_path.rglob("*.json"))) == 3  # Those with SACK.
    with (
        ThreadPoolExecutor(1) as threads,
        pytest.warns(RuntimeWarning, match="cells are not cached"),
    ):
        study(names["Mine"]).run(executor=threads, cache=tmp_path)
    assert len(list(tmp_path.rglob("*.json"))) == 3


# Ctrl-C


SLOW = """
import signal, time, skyhaul as sh, sys
# A parent in the background may have had the signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
class Mine(sh.Control):
    def increase(self, ack):
        sys.stdout.write("go\\n")
        sys.stdout.flush()
        {wait}
        return 0.1
set = {{"flows.bulk.cc": "user:mine", "duration": "100000 s"}}
{call}
"""
RUN = 'sh.run("preset:peach-geo", set=set, controls={"mine": Mine})'
IN_A_STUDY = """
text = 'schema = 1\\ntitle = "t"\\nscenario = "preset:peach-geo"\\nseeds = { first = 1, count = 4 }'
sh.study("t", text=text, set=set, controls={"mine": Mine}).run(jobs=2)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(
    ("call", "wait"),
    [
        (RUN, "time.sleep(600)"),
        (RUN, "pass"),
        (IN_A_STUDY, "pass"),
        (IN_A_STUDY, "time.sleep(0.01)"),
        (IN_A_STUDY, "while True: pass"),
    ],
    ids=["asleep in a run", "a long run", "a long study", "a slow study", "an endless loop in a study"],
)
def test_ctrl_c_ends_a_control(call, wait):
    code = SLOW.format(wait=wait, call=call)
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdout=pipe, stderr=pipe, text=True) as child:
        assert child.stdout.readline() == "go\n"
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert child.returncode != 0
    assert "ControlError" not in err
