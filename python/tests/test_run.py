import json
import os
import pickle
from pathlib import Path

import pytest

import skyhaul as sh

SHORT = {"duration": "5 s"}


def test_a_run_gives_tables_and_a_summary():
    r = sh.run("preset:peach-geo", set={**SHORT, "flows.bulk.count": 3}, seed=3)
    assert len(r.flows) == 3
    assert r.flows["group"] == ["bulk"] * 3
    assert all(x > 0 for x in r.flows["goodput_bit_s"])
    assert r.links["direction"] == ["forward", "reverse"]
    assert {"time_s", "object", "series", "value"} == set(r.series)
    assert r.summary["seed"] == 3
    assert r.summary["groups"][0]["flows"] == 3
    assert "bulk" in str(r)
    assert "TCP-Peach" in repr(r)


def test_values_of_python_become_settings():
    r = sh.run(
        Path("preset:peach-geo"),
        set={
            "duration": "2 s",
            "title": 'quotes " and \\ and ü',
            "flows.bulk.cc": {"name": "peach", "recovery": "newreno"},
            "flows.bulk.count": 2,
            "flows.bulk.handshake": True,
            "links.sat.error.p": 1e-3,
            "record.series": ["cwnd"],
        },
    )
    assert r.summary["title"] == 'quotes " and \\ and ü'
    assert 'recovery = "newreno"' in r.scenario
    assert set(r.series["series"]) == {"cwnd"}


def test_links_may_follow_files(tmp_path):
    trace = tmp_path / "slow.csv"
    trace.write_text("time_s,rate_mbit_s\n0,1\n2,0.5\n")
    follows = {**SHORT, "links.sat.rate": {"trace": str(trace)}, "record.series": ["rate"]}
    r = sh.run("preset:peach-geo", set=follows)
    rows = zip(r.series["object"], r.series["value"], strict=True)
    assert [rate for name, rate in rows if name == "links.sat.forward"][-1] == 0.5e6
    # The resolved scenario holds what was in the file.
    trace.unlink()
    again = sh.run("resolved", text=r.scenario)
    assert again.summary["goodput_bit_s"] == r.summary["goodput_bit_s"]
    with pytest.raises(sh.ScenarioError, match="cannot read"):
        sh.run("preset:peach-geo", set=follows)


def test_the_same_seed_gives_the_same_events_and_another_seed_others():
    def digest(seed):
        return sh.run("preset:peach-geo", set=SHORT, seed=seed, digest=True).summary["digest"]

    assert digest(1) == digest(1) != digest(2)


def test_the_resolved_scenario_runs_to_the_same_result():
    first = sh.run("preset:peach-geo", set=SHORT, seed=5, digest=True)
    again = sh.run("again", text=first.scenario, seed=5, digest=True)
    assert first.summary["digest"] == again.summary["digest"]
    assert first.summary["scenario"] == again.summary["scenario"]


def test_a_file_is_read_and_named_in_errors(tmp_path):
    file = tmp_path / "geo.toml"
    file.write_text('schema = 1\nextends = "preset:peach-geo"\nduration = "3 s"\n')
    assert sh.run(file).summary["duration_s"] == 3
    file.write_text('schema = 1\nextends = "preset:peach-geo"\ndurration = "3 s"\n')
    with pytest.raises(
        sh.ScenarioError, match=r"geo\.toml:3: durration: unknown key, did you mean \"duration\""
    ) as e:
        sh.run(file)
    assert "\n" not in str(e.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"links.sat.error.p": 1.2}, "1.2 is not a probability"),
        ({"links.sat.rate": "10"}, "no unit"),
        ({"links.sat.delay": "10 parsecs"}, "parsecs"),
        ({"flows.bulk.cc": "peech"}, 'did you mean "peach"'),
        ({"links.sat.eror": "none"}, 'did you mean "error"'),
        ({"flows.web.cc": "sack"}, "there is no flows.web"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(change, words):
    with pytest.raises(sh.ScenarioError) as e:
        sh.run("preset:peach-geo", set=change)
    assert words in str(e.value)
    assert "\n" not in str(e.value)


def test_missing_file():
    with pytest.raises(sh.ScenarioError, match=r"nowhere\.toml.*no such file"):
        sh.run("nowhere.toml")


def test_check_derives_and_warns():
    c = sh.check("preset:peach-geo")
    assert c["links"][0]["forward"]["rate_packets_s"] == pytest.approx(1300)
    assert any("links.sat.queue" in w for w in c.warnings)
    assert "BDP" in str(c)


def test_schemas():
    assert sh.schema("scenario")["title"] == "Skyhaul scenario"
    assert sh.schema("study")["properties"]["axis"]
    with pytest.raises(sh.SkyhaulError, match="known: scenario, study"):
        sh.schema("results")


def test_save_writes_a_results_directory(tmp_path):
    r = sh.run("preset:peach-geo", set=SHORT)
    folder = tmp_path / "results"
    r.save(folder)
    names = {p.name for p in folder.iterdir()}
    assert names == {
        ".skyhaul",
        "manifest.json",
        "scenario.resolved.toml",
        "summary.json",
        "flows.parquet",
        "links.parquet",
        "series.parquet",
        "transfers.parquet",
    }
    assert json.loads((folder / "summary.json").read_text()) == r.summary
    r.save(folder)  # Replaces older results.
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").touch()
    with pytest.raises(OSError, match="holds files"):
        r.save(foreign)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_link_among_the_results_is_replaced_and_not_followed(tmp_path):
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "manifest.json").write_text("{}")
    os.symlink("/dev/full", folder / "summary.json")
    sh.run("preset:peach-geo", set=SHORT).save(folder)
    assert not (folder / "summary.json").is_symlink()


def test_transfers_have_a_row_each():
    pages = {"kind": "pages", "segments": 20, "idle": "1 s"}
    r = sh.run("preset:peach-geo", set={"duration": "20 s", "flows.bulk.count": 2, "flows.bulk.app": pages})
    t = r.transfers
    assert list(t) == ["group", "index", "number", "start_s", "bytes", "end_s", "completed", "duration_s"]
    flows = r.flows
    assert sum(t["completed"]) == sum(flows["pages"]) > 2
    assert len(t) - sum(t["completed"]) == sum(flows["pages_unfinished"])
    rows = list(zip(*(t[c] for c in t), strict=True))
    assert [row[:3] for row in rows] == sorted(row[:3] for row in rows)
    for _, _, _, start, size, end, completed, duration in rows:
        assert size == 20 * 960
        assert (end is None) == (not completed)
        assert duration == pytest.approx((20 if end is None else end) - start)
    again = pickle.loads(pickle.dumps(r))
    assert again.transfers["duration_s"] == t["duration_s"]
    assert len(sh.run("preset:peach-geo", set=SHORT).transfers) == 0


def test_delays_of_packets_are_measured_where_they_are_asked_for():
    plain = sh.run("preset:peach-geo", set=SHORT)
    assert plain.flows["packet_delay_p95_s"] == [None] * len(plain.flows)
    timed = sh.run("preset:peach-geo", set={**SHORT, "record.packet-delay": True})
    for delay, queueing in zip(
        timed.flows["packet_delay_p95_s"], timed.flows["queueing_delay_p95_s"], strict=True
    ):
        # Propagation and the transmission of 1000 bytes at 1300 packets per second.
        assert delay - queueing == pytest.approx(0.275 + 1 / 1300, abs=1e-3)
    assert timed.flows["goodput_bit_s"] == plain.flows["goodput_bit_s"]
    # A sweep turns the measurement on.
    out = sh.sweep(
        "preset:peach-geo", {"flows.bulk.count": [1, 2]}, ["max(flow.packet_delay_p99)"], set=SHORT, seeds=1
    )
    assert all(p99 > 0.275 for p99 in out.cells["packet_delay_p99"])


def test_every_quantity_is_a_column():
    r = sh.run("preset:peach-geo", set={"duration": "2 s", "flows.bulk.count": 2})
    of = {q: {x.column for x in sh.quantities() if x.of == q} for q in ["flow", "group", "link", "run"]}
    assert set(r.flows) == of["flow"] | {"group", "index"}
    assert set(r.links) == of["link"] | {"link", "direction"}
    s = r.summary
    assert set(s["flows"][0]) == of["flow"] | {"group", "index"}
    assert set(s["groups"][0]) >= of["group"]
    assert set(s) >= of["run"]
    assert all(q.says for q in sh.quantities())


def test_a_result_can_be_pickled():
    r = sh.run("preset:peach-geo", set={**SHORT, "record.series": ["cwnd"]})
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(r))))
    assert again.summary == r.summary
    assert again.scenario == r.scenario
    assert str(again) == str(r)
    for name in ("flows", "links", "series"):
        table, other = getattr(r, name), getattr(again, name)
        assert list(table) == list(other)
        assert len(table) == len(other)
        assert repr([table[c] for c in table]) == repr([other[c] for c in other])
    with pytest.raises(sh.SkyhaulError, match="save it before pickling"):
        again.save("nowhere")


def test_errors_use_the_words_of_python():
    with pytest.raises(sh.ScenarioError, match=r"^set: links.sat.error.p: 7"):
        sh.run("preset:peach-geo", set={"links.sat.error.p": 7})
    for seed in (-1, 2**63):
        with pytest.raises(sh.SkyhaulError, match=rf"^seed: {seed}: write a whole number from 0 to "):
            sh.run("preset:peach-geo", seed=seed)
    with pytest.raises(sh.SkyhaulError, match=r"^seeds: 0: write a whole number from 1"):
        sh.study("peach-2001/fig11", seeds=0)
    with pytest.raises(TypeError, match=r"^seed: 1\.5: write a whole number, at least 0$"):
        sh.run("preset:peach-geo", seed=1.5)


def test_a_value_that_no_file_can_hold_is_named_with_its_key():
    with pytest.raises(
        TypeError, match=r"^set: duration: <object .*> cannot be written as TOML: write text, "
    ):
        sh.run("preset:peach-geo", set={"duration": object()})


def test_what_needs_too_much_memory_is_refused_before_it_starts():
    with pytest.raises(
        sh.ScenarioError, match=r"record.sample: this run needs about .* GB of memory, more than 4 GB"
    ):
        sh.run("preset:peach-geo", set={"record.sample": "1 ns"})
    assert sh.check("preset:peach-geo")["memory"]["flows"] > 0


VAST = """
duration = "5 s"
max-memory = "1 MB"
[links.sat]
rate = "unlimited"
delay = "1 s"
[flows.bulk]
path = ["sat"]
transport = "udp"
app = { kind = "cbr", rate = "100 Mbit/s", packet = "1000 B" }
"""


def test_a_run_that_uses_up_its_memory_ends_with_what_was_reached() -> None:
    with pytest.warns(UserWarning, match="max-memory: the run ended at 0"):
        r = sh.run("vast", text=VAST)
    assert r.ended_early is not None
    assert r.ended_early.startswith("max-memory: ")
    assert 0 < r.summary["duration_s"] < 1
    assert len(r.flows) == 1
    assert sh.run("vast", text=VAST, set={"max-memory": "4 GB"}).ended_early is None
