"""Studies on a cluster: the same results, even if a worker is killed."""

import os
import signal
import threading
from pathlib import Path

import pytest

import skyhaul as sh
from skyhaul._elsewhere import answers

distributed = pytest.importorskip("distributed")

TEXT = """
schema = 1
title = "On a cluster"
scenario = "preset:peach-geo"
set = { duration = "40 s", record = {} }
seeds = { first = 1, count = 8 }

[[axis]]
name = "loss"
path = "links.sat.error.p"
values = [1e-3, 1e-2]

[[axis]]
name = "cc"
path = "flows.bulk.cc"
values = ["sack", "peach"]

[[metric]]
name = "goodput"
from = "flow.goodput_segments"
over = "sum"
unit = "segments/s"

[[claim]]
id = "more"
says = "Peach delivers more"
at = { loss = "1e-2" }
check = { kind = "greater", metric = "goodput", left = { cc = "peach" }, right = { cc = "sack" } }

[[figure]]
file = "loss"
x = "loss"
y = "goodput"
series = "cc"
"""


@pytest.fixture
def client():
    """Two workers in processes of their own, on the loopback interface."""
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def files(folder: Path) -> dict[str, bytes]:
    """The files of a results directory without the manifest, which has host and date."""
    found = (p for p in folder.rglob("*") if p.is_file() and p.name != "manifest.json")
    return {str(p.relative_to(folder)): p.read_bytes() for p in found}


def test_a_worker_that_is_killed_changes_nothing(client, tmp_path):
    workers = client.run(os.getpid)
    assert len(set(workers.values())) == 2
    victim = next(iter(workers.values()))
    killed = []

    def kill_one(done, total, label):
        # In the middle: some cells are stored, others are running, most are to come.
        if done == 4:
            os.kill(victim, signal.SIGKILL)
            killed.append(label)

    there = sh.study("cluster", text=TEXT).run(executor=client, cache=tmp_path / "cache", progress=kill_one)
    assert len(killed) == 1
    here = sh.study("cluster", text=TEXT).run(jobs=2)
    assert there.summary == here.summary
    assert there.cells.to_pandas().equals(here.cells.to_pandas())
    there.report(tmp_path / "there")
    here.report(tmp_path / "here")
    a, b = files(tmp_path / "there"), files(tmp_path / "here")
    assert sorted(a) == sorted(b)
    pages = {"report.html", "report.txt"}
    assert [name for name in a if a[name] != b[name] and name not in pages] == []
    # Every cell was stored as it came in.
    assert sh.study("cluster", text=TEXT)._core.jobs(tmp_path / "cache") == ([], [])


def test_workers_of_another_engine_refuse(client):
    todo, _ = sh.study("cluster", text=TEXT)._core.jobs(None)
    other = todo[0].replace('"engine":"', '"engine":"9.9.9-', 1)
    assert other != todo[0]
    with pytest.raises(sh.StudyError, match="this is engine"):
        list(answers(client, sh._core.run_cell, [other]))


def test_a_class_that_no_pickler_takes_is_named_before_anything_is_submitted(client):
    class Locked(sh.Control):
        lock = threading.Lock()

    own = TEXT.replace('"peach"]', '"user:mine"]').replace('{ cc = "peach" }', '{ cc = "user:mine" }')
    with pytest.raises(sh.StudyError, match=r'controls\["mine"\].*Locked.*top level of a module'):
        sh.study("cluster", text=own, controls={"mine": Locked}).run(executor=client)
    assert client.futures == {}


def test_no_more_than_a_few_jobs_are_handed_out_at_a_time():
    class Lazy:
        """Runs a call when its result is asked for."""

        def __init__(self):
            self.out = self.most = 0

        def submit(self, fn, arg):
            self.out += 1
            self.most = max(self.most, self.out)
            return Later(self, fn, arg)

    class Later:
        def __init__(self, owner, fn, arg):
            self.owner, self.fn, self.arg, self.cancelled = owner, fn, arg, False

        def add_done_callback(self, call):
            call(self)

        def result(self):
            self.owner.out -= 1
            return self.fn(self.arg)

        def cancel(self):
            self.cancelled = True

    lazy = Lazy()
    jobs = [str(i) for i in range(1000)]
    found = list(answers(lazy, lambda job: job * 2, jobs, in_flight=16))
    assert sorted(found) == sorted((job, job * 2) for job in jobs)
    assert lazy.most == 16
