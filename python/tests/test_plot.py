"""Figures of the recorded series of a run."""

import json
import os
import subprocess
import sys

import pytest
from pixels import png

import skyhaul as sh
from skyhaul import _draw


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


@pytest.fixture(scope="module")
def pages():
    return sh.run(
        "preset:peach-geo",
        set={
            "duration": "20 s",
            "flows.bulk.count": 3,
            "flows.bulk.app": {"kind": "pages", "segments": 20},
            "flows.big": {"path": ["sat"], "app": {"kind": "pages", "segments": 100000}},
        },
    )


def test_completion_times_are_drawn_with_what_was_in_progress(pages):
    rows = pages.plot.completion_times().spec["data"]["values"]
    assert len(rows) == len(pages.transfers)
    assert {r["curve"] for r in rows} == {"bulk", "big"}
    assert [r["state"] for r in rows if r["curve"] == "big"] == ["in progress at the end"]
    one = pages.plot.completion_times(of="bulk[1]").spec["data"]["values"]
    assert 1 < len(one) < len(rows)


def test_a_distribution_counts_what_did_not_complete(pages):
    figure = pages.plot.completion_cdf(title="Pages")
    assert figure.title == "Pages"
    shares = {}
    for row in figure.spec["data"]["values"]:
        shares.setdefault(row["curve"], []).append(row["share"])
    assert all(s == sorted(s) and s[0] == 0 for s in shares.values())
    table = pages.transfers
    done = [c for group, c in zip(table["group"], table["completed"], strict=True) if group == "bulk"]
    assert shares["bulk"][-1] == pytest.approx(sum(done) / len(done))
    assert 0 < shares["bulk"][-1] < 1
    assert shares["big"][-1] == 0


def test_without_transfers_it_is_said_what_makes_some(result, pages):
    for figure in (result.plot.completion_times, result.plot.completion_cdf):
        with pytest.raises(sh.SkyhaulError, match="has no pages and no transfers"):
            figure()
    with pytest.raises(sh.SkyhaulError, match=r'nothing called "web" has pages.*known: big\[0\], bulk\[0\]'):
        pages.plot.completion_cdf(of="web")


def test_figures_are_saved(result, tmp_path):
    figure = result.plot.cwnd(of="bulk[0]", title="One window")
    path = figure.save(tmp_path / "window.json")
    assert path == tmp_path / "window.json"
    assert json.loads(path.read_text())["title"]["text"] == "One window"
    pytest.importorskip("vl_convert")
    assert b"One window" in figure.save(str(tmp_path / "window.svg")).read_bytes()


def test_notebooks_get_the_specification_and_an_image(result):
    pytest.importorskip("vl_convert")
    figure = result.plot.cwnd(of="bulk[0]")
    data, sizes = figure._repr_mimebundle_(include=None, exclude=None)
    assert data["application/vnd.vegalite.v6+json"] == figure.spec
    width, height, colours = png(data["image/png"])
    assert len(colours) > 20
    # Shown at the size of the figure, drawn with more pixels.
    assert sizes == {"image/png": {"width": width // 2, "height": height // 2}}
    assert width // 2 > 560


def no_package(monkeypatch, path=""):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    monkeypatch.setenv("PATH", str(path))


def test_without_a_renderer_it_is_said_what_to_install(result, tmp_path, monkeypatch):
    no_package(monkeypatch)
    figure = result.plot.cwnd(of="bulk[0]")
    says = r"figures needs vl-convert-python: pip install 'vl-convert-python>=1\.9,<2' \(the extra \[plot\]\)"
    with pytest.raises(ImportError, match=says):
        figure.save(tmp_path / "a.png")
    data, sizes = figure._repr_mimebundle_()
    assert set(data) == {"application/vnd.vegalite.v6+json", "text/plain"}
    assert "pip install" in data["text/plain"]
    assert sizes == {}
    assert _draw.renderer() is None


COMMAND = """#!{python}
import sys
kind = sys.argv[1].removeprefix("vl2")
out = sys.argv[sys.argv.index("--output") + 1]
assert sys.argv[sys.argv.index("--input") + 1] == "-"
spec = sys.stdin.read()
if "Refused" in spec:
    sys.exit("error: the specification is refused")
open(out, "w").write(f"{{kind}} of {{len(spec)}} characters")
"""


@pytest.mark.skipif(os.name != "posix", reason="a script is the command")
def test_the_command_draws_where_the_package_is_not_installed(result, tmp_path, monkeypatch):
    command = tmp_path / "vl-convert"
    command.write_text(COMMAND.format(python=sys.executable))
    command.chmod(0o755)
    no_package(monkeypatch, tmp_path)
    figure = result.plot.cwnd(of="bulk[0]")
    length = len(json.dumps(figure.spec))
    for kind in _draw.KINDS:
        assert figure.save(tmp_path / f"a.{kind}").read_text() == f"{kind} of {length} characters"
    with pytest.raises(OSError, match="the specification is refused"):
        result.plot.cwnd(title="Refused").save(tmp_path / "a.png")
    # A notebook shows the specification all the same.
    with pytest.warns(RuntimeWarning, match="the specification is refused"):
        data, _ = result.plot.cwnd(title="Refused")._repr_mimebundle_()
    assert "image/png" not in data


def test_check_draws_with_the_renderer_of_python(tmp_path):
    pytest.importorskip("vl_convert")

    def check(name, **env):
        args = ["check", "preset:leo-walker-550", "--set", "duration=60s", "--figure", tmp_path / name]
        done = subprocess.run(
            [sys.executable, "-m", "skyhaul", *args],
            env={**os.environ, "PATH": "", **env},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stderr

    assert check("pass.png")[0] == 0
    assert len(png((tmp_path / "pass.png").read_bytes())[2]) > 20
    # A package that cannot be imported counts as missing.
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['vl_convert'] = None\n")
    code, stderr = check(
        "none.png", PYTHONPATH=os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    )
    assert code == 2
    assert "pip install 'vl-convert-python>=1.9,<2'" in stderr.splitlines()[-1]
