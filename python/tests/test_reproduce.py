"""The whole reproduction from Python: the files of the command, wherever the cells run."""

import os
import signal
import subprocess
import sys
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

import skyhaul as sh

STUDY = """
schema = 1
title = "Small"
scenario = "preset:peach-geo"
set = { duration = "8 s", "flows.bulk.count" = 2, record = {} }
seeds = { first = 1, count = 3 }
quick = { seeds = 2, set = { duration = "6 s" } }

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

PAPER = """
schema = 1
title = "A paper"
published = "1999"
order = ["two", "one"]

[[open]]
id = "9"
says = "Nobody knows"
why = "the figure is missing"
"""

CELLS = 12


@pytest.fixture
def studies(tmp_path):
    """Two studies of a paper. They share no cell, and their cells have equal names and numbers."""
    folder = tmp_path / "studies/old"
    folder.mkdir(parents=True)
    (folder / "paper.toml").write_text(PAPER)
    (folder / "one.toml").write_text(STUDY)
    (folder / "two.toml").write_text(STUDY.replace("8 s", "9 s"))
    return tmp_path / "studies"


def files(folder: Path) -> dict[str, bytes]:
    """What a reproduction wrote, but for the lines that say when and how long."""
    found = {}
    for path in (p for p in folder.rglob("*") if p.is_file()):
        content = path.read_bytes()
        if path.name in ("manifest.json", "report.html"):
            dated = (b'"created"', b'"wall_s"', b"<time>")
            content = b"\n".join(
                line for line in content.split(b"\n") if not any(word in line for word in dated)
            )
        found[str(path.relative_to(folder))] = content
    return found


@pytest.fixture
def command(studies, tmp_path):
    """What the command writes."""

    def run(*options: str) -> dict[str, bytes]:
        out = tmp_path / "command"
        args = [
            "reproduce",
            "--studies",
            studies,
            "--out",
            out,
            "--cache",
            tmp_path / "command-cache",
            *options,
        ]
        subprocess.run([sys.executable, "-m", "skyhaul", *args], check=True, capture_output=True)
        return files(out)

    return run


def assert_same(here: dict[str, bytes], there: dict[str, bytes]) -> None:
    assert sorted(here) == sorted(there)
    assert [name for name in here if here[name] != there[name]] == []
    assert {"report.html", "summary.json", "claims.csv", "claims.parquet", "manifest.json"} <= set(here)
    assert "studies/old/two/cells.parquet" in here


def test_here_and_in_processes_the_files_are_those_of_the_command(studies, command, tmp_path):
    expected = command()
    calls = []
    here = sh.reproduce(
        studies=studies,
        out=tmp_path / "here",
        cache=tmp_path / "a",
        jobs=2,
        progress=lambda done, total, label: calls.append((done, total)),
    )
    assert_same(files(here.folder), expected)
    assert (calls[0], calls[-1]) == ((0, CELLS), (CELLS, CELLS))

    calls.clear()
    labels = []

    def report(done, total, label):
        calls.append((done, total))
        labels.append(label)

    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        there = sh.reproduce(
            studies=studies, out=tmp_path / "there", cache=tmp_path / "b", executor=pool, progress=report
        )
    assert_same(files(there.folder), expected)
    assert calls == [(n, CELLS) for n in range(1, CELLS + 1)]
    assert {label.split(":")[0] for label in labels} == {"old/one", "old/two"}
    assert there.summary == here.summary
    assert str(there) == str(here)


def test_what_comes_back(studies, tmp_path):
    everything = sh.reproduce(studies=studies, out=tmp_path / "out", cache=tmp_path / "cache")
    assert everything.counts["holds"] == 2
    assert (everything.counts["open"], everything.counts["total"]) == (1, 3)
    claims = everything.claims
    assert claims["study"] == ["two", "one", ""]
    assert claims["verdict"] == ["holds", "holds", "open"]
    assert claims["mean"][0] > 0
    assert claims["mean"][2] is None
    frame = claims.to_pandas()
    assert list(frame[frame.verdict == "holds"].study) == ["two", "one"]
    assert everything.page == tmp_path / "out/report.html"
    assert "A paper" in everything.page.read_text()
    assert (everything.refused, everything.failed_cells) == ({}, 0)
    assert "old" in str(everything)
    assert "holds" in repr(everything)


def test_the_quick_profile_names_and_seeds(studies, command, tmp_path):
    expected = command("--quick", "--seeds", "4", "old/two")
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        quick = sh.reproduce(
            "old/two",
            quick=True,
            seeds=4,
            studies=studies,
            out=tmp_path / "out",
            cache=tmp_path / "cache",
            executor=pool,
        )
    assert_same(files(quick.folder), expected)
    (paper,) = quick.summary["papers"]
    (study,) = paper["studies"]
    assert (study["name"], study["provenance"]["profile"]) == ("two", "quick")
    assert (study["provenance"]["seeds"], study["provenance"]["cells"]) == (4, 8)


class Once:
    """An executor that runs each call at once and breaks after some."""

    def __init__(self, calls: int | None = None) -> None:
        self.left = calls
        self.ran = 0

    def submit(self, fn, arg, /):
        future = Future()
        if self.left is not None and self.ran >= self.left:
            future.set_exception(RuntimeError("the cluster is gone"))
        else:
            self.ran += 1
            future.set_result(fn(arg))
        return future


def test_what_was_interrupted_goes_on(studies, command, tmp_path):
    expected = command()
    options = {"studies": studies, "out": tmp_path / "out", "cache": tmp_path / "cache"}
    with pytest.raises(RuntimeError, match="the cluster is gone"):
        sh.reproduce(**options, executor=Once(5))
    assert '"complete": false' in (tmp_path / "out/manifest.json").read_text()
    rest = Once()
    calls = []
    again = sh.reproduce(
        **options, executor=rest, progress=lambda done, total, _: calls.append((done, total))
    )
    assert rest.ran == CELLS - 5
    assert calls[-1] == (CELLS, CELLS)
    assert_same(files(again.folder), expected)
    # Nothing is left to do.
    nothing = Once()
    assert_same(files(sh.reproduce(**options, executor=nothing).folder), expected)
    assert nothing.ran == 0


def test_a_damaged_cell_runs_again_and_a_broken_study_is_told(studies, tmp_path):
    options = {"studies": studies, "out": tmp_path / "out", "cache": tmp_path / "cache"}
    first = sh.reproduce(**options)
    cell = next(p for p in (tmp_path / "cache").rglob("*.json"))
    cell.write_text("{ not what it was")
    once = Once()
    with pytest.warns(RuntimeWarning, match=f"{cell.name}.*runs again"):
        again = sh.reproduce(**options, executor=once)
    assert once.ran == 1
    assert again.summary == first.summary
    (studies / "old/three.toml").write_text(STUDY.replace('x = "cc"', 'x = "loss"'))
    with pytest.warns(RuntimeWarning, match="three.toml.*there is no axis `loss`"):
        broken = sh.reproduce(**options, executor=Once())
    assert list(broken.refused) == ["old/three"]
    assert "there is no axis `loss`" in broken.refused["old/three"]
    assert broken.counts["holds"] == 2


@pytest.mark.parametrize(
    ("names", "options", "words"),
    [
        (["luigi"], {}, "luigi: there is no such paper \\(known: .*peach-2001"),
        (["peach-2001/fig99"], {}, "no such study \\(known: .*peach-2001/fig11"),
        ([], {"studies": "nowhere"}, "nowhere: no such file or directory"),
        ([], {"seeds": 0}, "seeds: 0: write a whole number from 1 to"),
    ],
)
def test_wrong_input_is_refused_before_anything_runs(names, options, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(sh.SkyhaulError, match=words) as e:
        sh.reproduce(*names, **options)
    assert "\n" not in str(e.value)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_other_files_is_refused(studies, tmp_path):
    other = tmp_path / "thesis"
    other.mkdir()
    (other / "chapter.tex").write_text("important")
    with pytest.raises(sh.SkyhaulError, match=r"thesis holds files but no manifest\.json of skyhaul"):
        sh.reproduce(studies=studies, out=other, cache=tmp_path / "cache")
    assert [p.name for p in other.iterdir()] == ["chapter.tex"]


def test_on_a_cluster_whose_worker_is_killed(studies, command, tmp_path):
    distributed = pytest.importorskip("distributed")
    expected = command()
    killed = []
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        workers = client.run(os.getpid)
        assert len(set(workers.values())) == 2
        victim = next(iter(workers.values()))

        def kill_one(done, total, label):
            if done == 4 and hasattr(signal, "SIGKILL"):
                os.kill(victim, signal.SIGKILL)
                killed.append(label)

        there = sh.reproduce(
            studies=studies,
            out=tmp_path / "there",
            cache=tmp_path / "cache",
            executor=client,
            progress=kill_one,
        )
    assert len(killed) == 1
    assert_same(files(there.folder), expected)
