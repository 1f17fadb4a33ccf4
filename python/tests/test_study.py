import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import pytest

import skyhaul as sh

STUDY = """
schema = 1
title = "Small"
scenario = "preset:peach-geo"
set = { duration = "8 s", "flows.bulk.count" = 2 }
seeds = { first = 1, count = 3 }

[[axis]]
name = "cc"
path = "flows.bulk.cc"
values = [{ value = "sack" }, { value = "peach" }]

[[metric]]
name = "goodput"
from = "flow.unique_segments / run.duration"
over = "sum"
unit = "segments/s"

[[claim]]
id = "1"
says = "Peach is faster in the first seconds"
check = { kind = "greater", metric = "goodput", left = { cc = "peach" }, right = { cc = "sack" } }

[[figure]]
file = "start"
x = "cc"
y = "goodput"
"""


def small(**options):
    return sh.study("small.toml", text=STUDY, **options)


def test_cells_claims_figures_report(tmp_path):
    st = small()
    assert len(st) == 6
    calls = []
    o = st.run(jobs=2, progress=lambda done, total, label: calls.append((done, total)))
    assert calls[0] == (0, 6)
    assert calls[-1] == (6, 6)
    assert len(o.cells) == 6
    assert o.cells["seed"] == [1, 2, 3, 1, 2, 3]
    (claim,) = o.claims
    assert (claim.id, claim.verdict) == ("1", "holds")
    assert o.figures["start"].spec["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
    assert "holds" in str(o)
    assert o.summary["counts"]["holds"] == 1
    page = tmp_path / "page.html"
    assert o.report(page) == [page]
    assert "<html" in page.read_text()[:200]


def test_pictures_are_drawn(tmp_path):
    pytest.importorskip("vl_convert")
    o = small(seeds=2).run()
    written = {p.name for p in o.report(tmp_path / "results")}
    assert {"start.png", "start.svg", "report.html", "cells.parquet", "manifest.json"} <= written
    assert (tmp_path / "results/figures/start.png").read_bytes().startswith(b"\x89PNG")
    o.figures["start"].save(tmp_path / "a.svg")
    assert "<svg" in (tmp_path / "a.svg").read_text()
    o.figures["start"].save(tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text()) == o.figures["start"].spec
    with pytest.raises(ValueError, match="known: png, svg, pdf"):
        o.figures["start"].save(tmp_path / "a.gif")


def test_executors_give_the_same_cells(tmp_path):
    here = small().run()
    with ThreadPoolExecutor(2) as threads:
        assert small().run(executor=threads).summary == here.summary
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        there = small().run(executor=processes, cache=tmp_path)
    assert there.summary == here.summary
    # The cache has all cells.
    assert small()._core.jobs(tmp_path) == ([], [])
    assert small().run(executor=None, cache=tmp_path).summary == here.summary


def test_a_job_has_one_answer():
    study = small()._core
    job = study.jobs(None)[0][0]
    answer = sh._core.run_cell(job)
    with pytest.raises(sh.StudyError, match="cell 0 has two answers"):
        study.collect([(job, answer), (job, answer)], None)


def test_a_damaged_cell_runs_again(tmp_path):
    first = small().run(cache=tmp_path)
    cell = next(p for p in tmp_path.rglob("*.json"))
    cell.write_text("{ not what it was")
    with pytest.warns(RuntimeWarning, match=f"{cell.name}.*runs again"):
        again = small().run(cache=tmp_path)
    assert again.summary == first.summary


@pytest.mark.parametrize(
    ("wrong", "right", "words"),
    [
        ('path = "flows.bulk.cc"', 'path = "flows.bulk.colour"', "colour"),
        ('x = "cc"', 'x = "loss"', "there is no axis `loss`"),
        ('left = { cc = "peach" }', 'left = { cc = "peech" }', "peech"),
        ("flow.unique_segments", "flow.unique_seqments", "unique_seqments"),
        ("schema = 1", "schema = 1\ncolour = 1", "colour"),
    ],
)
def test_what_is_wrong_is_found_before_anything_runs(wrong, right, words):
    with pytest.raises(sh.StudyError) as e:
        sh.study("small.toml", text=STUDY.replace(wrong, right, 1))
    assert "small.toml" in str(e.value)
    assert words in str(e.value)
    assert "\n" not in str(e.value)


def test_a_negative_number_of_threads_is_refused():
    with pytest.raises(sh.SkyhaulError, match=r"^jobs: -1: write a whole number from 0"):
        small().run(jobs=-1)


def test_a_report_leaves_other_files_alone(tmp_path):
    o = small(seeds=2).run()
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(OSError, match="holds files"):
        o.report(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_unknown_study():
    with pytest.raises(sh.SkyhaulError, match="peach-2001/fig11"):
        sh.study("peach-2001/fig99")


LONG = """
import signal, skyhaul as sh, sys
# A parent in the background may have had the signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
st = sh.study("small.toml", text=sys.argv[1], seeds=400, set={"duration": "500 s", "flows.bulk.count": 20})
print("go", flush=True)
st.run(cache=sys.argv[2])
"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_keeps_finished_cells(tmp_path):
    pipe = subprocess.PIPE
    args = [sys.executable, "-c", LONG, STUDY, tmp_path]
    with subprocess.Popen(args, stdout=pipe, stderr=pipe, text=True) as child:
        assert child.stdout.readline() == "go\n"
        deadline = time.monotonic() + 60
        while not any(tmp_path.rglob("*.json")) and time.monotonic() < deadline:
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
    assert "KeyboardInterrupt" in err
    assert any(tmp_path.rglob("*.json"))
