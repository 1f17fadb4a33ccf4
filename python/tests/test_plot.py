"""Figures of the recorded series of a run."""

import json

import pytest

import skyhaul as sh


@pytest.fixture(scope="module")
def result():
    return sh.run(
        "preset:peach-geo",
        set={
            "duration": "20 s",
            "flows.bulk.count": 12,
            "record.series": ["cwnd", "queue", "in-flight"],
            "record.sample": "5 ms",
        },
    )


def curves(figure):
    return {row["curve"] for row in figure.spec["data"]["values"]}


def test_a_series_is_a_method(result):
    figure = result.plot.cwnd()
    assert figure.title == "TCP-Peach over GEO"
    assert figure.spec["encoding"]["y"]["title"] == "cwnd (segments)"
    assert curves(figure) == {f"bulk[{i}]" for i in range(12)}
    assert curves(result.plot.in_flight(of="bulk[3]")) == {"bulk[3]"}
    assert {"cwnd", "queue", "in_flight"} <= set(dir(result.plot))


@pytest.mark.parametrize("of", ["links.sat.forward", "sat.forward", "links.*.forward"])
def test_of_chooses_objects(result, of):
    assert curves(result.plot.queue(of=of)) == {"sat.forward"}
    assert len(curves(result.plot("cwnd", of="bulk"))) == 12


def test_series_of_one_unit_share_a_figure(result):
    both = result.plot("cwnd", "in-flight", of="bulk[0]")
    assert curves(both) == {"bulk[0] cwnd", "bulk[0] in-flight"}
    with pytest.raises(sh.SkyhaulError, match=r"cannot share an axis: cwnd \(segments\), queue \(packets\)"):
        result.plot("cwnd", "queue")


def test_no_colour_and_dash_come_twice(result):
    encoding = result.plot.cwnd().spec["encoding"]
    colors, dashes = (encoding[c]["scale"]["range"] for c in ("color", "strokeDash"))
    assert len({(c, tuple(d)) for c, d in zip(colors, dashes, strict=True)}) == 12


def test_thinning_keeps_peaks_and_cuts(result):
    rows = result.plot.cwnd(of="bulk[0]").spec["data"]["values"]
    drawn = [r["value"] for r in rows if r["value"] is not None]
    table = result.series
    rows = zip(table["object"], table["series"], table["value"], strict=True)
    all_of_it = [v for thing, series, v in rows if (thing, series) == ("flows.bulk[0]", "cwnd") and v]
    assert len(drawn) < len(all_of_it) / 2
    assert (min(drawn), max(drawn)) == (min(all_of_it), max(all_of_it))


def test_what_was_not_recorded_is_said(result):
    with pytest.raises(AttributeError, match=r"recorded no series srtt \(recorded: cwnd, "):
        _ = result.plot.srtt
    with pytest.raises(sh.SkyhaulError, match=r"add it to record\.series"):
        result.plot("srtt")
    with pytest.raises(sh.SkyhaulError, match=r'nothing called "web" has cwnd'):
        result.plot.cwnd(of="web")
    silent = sh.run("preset:peach-geo", set={"duration": "1 s", "record.series": []})
    with pytest.raises(sh.SkyhaulError, match=r"set record\.series"):
        silent.plot()


def test_figures_are_saved(result, tmp_path):
    figure = result.plot.cwnd(of="bulk[0]", title="One window")
    path = figure.save(tmp_path / "window.json")
    assert path == tmp_path / "window.json"
    assert json.loads(path.read_text())["title"]["text"] == "One window"
    pytest.importorskip("vl_convert")
    assert b"One window" in figure.save(str(tmp_path / "window.svg")).read_bytes()
