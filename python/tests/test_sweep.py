"""Studies in one call, and results side by side."""

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
