"""Studies in one call, and results side by side."""

import subprocess
import sys
from pathlib import Path

import pytest

import skyhaul as sh

SHORT = {"duration": "5 s", "flows.bulk.count": 2}


def test_a_sweep_runs_every_combination():
    out = sh.sweep(
        "preset:peach-geo",
        {"flows.bulk.cc": ["sack", "peach"], "links.sat.error.p": [0, 1e-3, 1e-2]},
        {"goodput": "sum(flow.goodput)", "busy": "link.sat.forward.utilization"},
        set=SHORT,
        seeds=2,
        first_seed=7,
    )
    assert len(out.cells) == 2 * 3 * 2
    assert set(out.cells["seed"]) == {7, 8}
    assert set(out.cells["cc"]) == {"sack", "peach"}
    # The same as a run by hand.
    by_hand = sh.run(
        "preset:peach-geo", set={**SHORT, "flows.bulk.cc": "peach", "links.sat.error.p": 1e-2}, seed=8
    )
    rows = zip(*(out.cells[c] for c in ("cc", "p_x", "seed", "goodput")), strict=True)
    assert [g for cc, p, seed, g in rows if (cc, p, seed) == ("peach", 1e-2, 8)] == [
        by_hand.summary["goodput_bit_s"]
    ]
    figure = out.figures["goodput"].spec
    assert figure["layer"][-1]["encoding"]["x"]["scale"]["type"] == "log"
    assert figure["layer"][-1]["encoding"]["y"]["title"] == "goodput (bit/s)"


def test_names_of_values_tables_and_axes_of_one_name():
    out = sh.sweep(
        "preset:peach-geo",
        {
            "links.sat.delay": {"GEO": "275 ms", "LEO": "25 ms"},
            "flows.bulk.cc": ["sack", {"name": "peach", "recovery": "newreno"}],
            "links.sat.reverse.delay": ["20 ms", "30 ms"],
        },
        ["flow.mean_srtt"],
        set=SHORT,
        seeds=1,
    )
    assert len(out.cells) == 8
    assert set(out.cells["links_sat_delay"]) == {"GEO", "LEO"}
    assert {"links_sat_reverse_delay", "mean_srtt"} <= set(out.cells)
    # The third axis has a figure for each of its values.
    assert set(out.figures) == {"mean_srtt-0", "mean_srtt-1"}


def texts(outcome, *columns):
    return list(zip(*(outcome.cells[c] for c in columns), strict=True))


def test_axes_come_from_numpy_pandas_and_polars():
    np = pytest.importorskip("numpy")
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")

    def sweep(loss, count, cc):
        axes = {"links.sat.error.p": loss, "flows.bulk.count": count, "flows.bulk.cc": cc}
        return sh.sweep("preset:peach-geo", axes, set={"duration": "2 s"}, seeds=1)

    plain = sweep([0.0, 0.001, 0.01], [1, 2], ["sack", "peach"])
    losses, counts, names = [0.0, 0.001, 0.01], [1, 2], ["sack", "peach"]
    others = [
        (np.array(losses), np.array(counts, dtype=np.uint8), np.array(names)),
        (pandas.Series(losses), pandas.Index(counts), pandas.Series(names, dtype="category")),
        (polars.Series(losses), polars.Series(counts), polars.Series(names)),
        # Lists of numpy's scalars, and a mapping from names to them.
        (list(np.array(losses)), {"one": np.int64(1), "two": np.uint16(2)}, tuple(np.array(names))),
    ]
    for other in others:
        found = sweep(*other)
        assert found.cells["goodput"] == plain.cells["goodput"]
        assert found.cells["p_x"] == plain.cells["p_x"]
        # Figures take them for numbers, too.
        assert found.figures.keys() == plain.figures.keys()
    assert sweep(*others[0]).summary["values"] == plain.summary["values"]
    with pytest.raises(sh.StudyError, match="is a single value"):
        sweep(np.float64(0.5), counts, names)


def test_settings_come_from_numpy():
    np = pytest.importorskip("numpy")
    change = {
        "flows.bulk.count": np.int64(3),
        "flows.bulk.handshake": np.bool_(True),
        "links.sat.error.p": np.float64(0),
    }
    r = sh.run("preset:peach-geo", set={"duration": "2 s", "record.series": np.array(["cwnd"]), **change})
    assert len(r.flows) == 3
    assert "handshake = true" in r.scenario
    assert set(r.series["series"]) <= {"cwnd"}


def test_outcomes_show_their_numbers():
    """Printed, at the prompt, in a notebook and by the command: the same numbers, rounded in one way."""
    axes = {"flows.bulk.cc": ["sack", "peach"], "links.sat.error.p": [0, 1e-2]}
    metrics = {"goodput": "sum(flow.goodput)", "busy": "link.sat.forward.utilization"}
    out = sh.sweep("preset:peach-geo", axes, metrics, set=SHORT, seeds=2)
    printed, prompt, notebook = str(out), repr(out), out._repr_html_()
    assert "no claims" in printed
    assert "no claims" in prompt.splitlines()[0]
    _, _, rows = out._core.values()
    cells = [cell for _, _, shown in rows for cell in shown]
    assert len(cells) == 8
    page = out._core.html()
    sets = ["flows.bulk.cc=sack,peach", "links.sat.error.p=0,1e-2", *(f"{k}={v}" for k, v in SHORT.items())]
    names = [f"{name}={expression}" for name, expression in metrics.items()]
    options = [part for s in sets for part in ("--set", s)] + [
        part for m in names for part in ("--metric", m)
    ]
    done = subprocess.run(
        [sys.executable, "-m", "skyhaul", "sweep", "preset:peach-geo", *options, "--seeds", "2"],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    for cell in cells:
        places = {
            "print": printed,
            "prompt": prompt,
            "notebook": notebook,
            "page": page,
            "command": done.stdout,
        }
        assert [name for name, text in places.items() if cell not in text] == [], cell
    # Four digits of a mean with its interval, as in the files.
    first = out.summary["values"][0]["metrics"]["goodput (bit/s)"]
    assert cells[0] == sh._core.estimate(first["mean"], first["ci95"])
    # At the prompt only the first lines.
    long = sh.sweep(
        "preset:peach-geo", {"links.sat.error.p": [i / 1000 for i in range(40)]}, set=SHORT, seeds=1
    )
    assert repr(long).splitlines()[-1] == "… and 17 more lines: print() shows all"
    assert len(str(long).splitlines()) > 40


SKEWED = """
schema = 1
title = "Long tails"
scenario = "preset:peach-geo"
seeds = { count = 8 }
[[axis]]
name = "loss"
path = "links.sat.error.p"
values = [1e-3, 1e-2]
[[metric]]
name = "wait"
from = "exp(sum(flow.goodput) / 2e5)"
unit = "s"
[[metric]]
name = "busy"
from = "link.sat.forward.utilization"
summary = "median"
"""


def test_medians_are_alike_everywhere():
    out = sh.study("skewed", text=SKEWED, set=SHORT).run()
    _, metrics, rows = out._core.values()
    assert metrics == ["wait (s)", "busy"]
    cells = [cell for _, _, shown in rows for cell in shown]
    assert all(cell.startswith("median ") for cell in cells), cells
    printed, notebook, page = str(out), out._repr_html_(), out._core.html()
    assert all(cell in text for cell in cells for text in (printed, notebook, page))
    value = out.summary["values"][0]["metrics"]["busy"]
    assert value["low"] <= value["median"] <= value["high"]


def test_a_file_own_controls_and_paths(tmp_path, monkeypatch):
    class Gentle(sh.Control):
        def reduction(self, loss):
            return 0.9

    (tmp_path / "rates.csv").write_text("time_s,rate_mbit_s\n0,1\n")
    Path(tmp_path / "geo.toml").write_text('schema = 1\nextends = "preset:peach-geo"\nduration = "5 s"\n')
    monkeypatch.chdir(tmp_path)
    out = sh.sweep(
        Path("geo.toml"),
        {"flows.bulk.cc": ["user:gentle", "sack"]},
        set={"links.sat.rate": {"trace": tmp_path / "rates.csv"}},
        seeds=1,
        controls={"gentle": Gentle},
        cache=tmp_path / "cache",
    )
    assert not out.failed
    assert all(0 < g < 1e6 for g in out.cells["goodput"])


def test_what_is_wrong_is_said():
    with pytest.raises(sh.StudyError, match=r"axes: a sweep needs at least one key"):
        sh.sweep("preset:peach-geo", {})
    with pytest.raises(sh.StudyError, match=r"'sack' is a single value"):
        sh.sweep("preset:peach-geo", {"flows.bulk.cc": "sack"})
    with pytest.raises(sh.StudyError, match=r"goodputt"):
        sh.sweep("preset:peach-geo", {"flows.bulk.cc": ["sack"]}, ["flow.goodputt"])


def test_results_are_compared(tmp_path):
    first = sh.run("preset:peach-geo", set=SHORT, seed=1)
    same = sh.compare(first, sh.run("preset:peach-geo", set=SHORT, seed=1))
    assert same
    assert same.differences == []
    assert "Identical." in str(same)
    assert repr(first) in str(same)
    other = sh.run("preset:peach-geo", set={**SHORT, "links.sat.error.p": 0.02}, seed=1)
    # A folder on one side, memory on the other.
    found = sh.compare(first.save(tmp_path / "first"), other)
    assert not found
    goodput = next(d for d in found.differences if d.metric.endswith("goodput_bit_s"))
    assert goodput.status == "different"
    assert goodput.difference == pytest.approx(goodput.b - goodput.a)
    assert "B − A" in found._repr_html_()
    with pytest.raises(sh.SkyhaulError, match="nowhere"):
        sh.compare(tmp_path / "nowhere", other)


def test_studies_are_compared():
    def sweep(p):
        return sh.sweep(
            "preset:peach-geo", {"flows.bulk.cc": ["sack"]}, set={**SHORT, "links.sat.error.p": p}, seeds=3
        )

    assert sh.compare(sweep(0), sweep(0))
    assert not sh.compare(sweep(0), sweep(0.1))
