"""The comparison with other simulators (benches/compare_peers.py): parsing, statistics, tables, kept runs,
and one run of each peer that is installed.
"""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHES = Path(__file__).resolve().parents[2] / "benches"
sys.path.insert(0, str(BENCHES))

import compare_peers  # noqa: E402
from peers import plan, reasons, simulators, table  # noqa: E402
from peers.finished import Finished, key  # noqa: E402
from peers.simulators import Missing, Ns2, Ns3, Result, Skyhaul, simulate  # noqa: E402
from skyhaul_cli import Unusable  # noqa: E402

NS2_NEWRENO = next(p for p in plan.PAIRS if (p.peer, p.algorithm) == ("ns2", "newreno"))
NS3_CUBIC = next(p for p in plan.PAIRS if (p.peer, p.algorithm) == ("ns3", "cubic"))


def cell(pair, loss, ours, theirs):
    """A cell of runs of 10 s with these goodputs, in segments/s.

    Our runs have 4 retransmissions and 2 timeouts each, theirs 8 and 1.
    """
    return table.cell(
        pair, loss, 10.0, [Result(10 * g, 4, 2) for g in ours], [Result(10 * g, 8, 1) for g in theirs]
    )


def of(peer, algorithm):
    """The pair that is compared under these names."""
    return next(p for p in plan.PAIRS if (p.peer, p.algorithm) == (peer, algorithm))


def test_a_peer_prints_its_result_in_the_last_line():
    last = '{"total_acked_segments": 7, "total_retransmitted_packets": 2, "total_timeouts": 1}'
    assert simulators.of_peer(f"warning: something\n{last}\n", "peer") == Result(7, 2, 1)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no JSON object in its last line"),
        ("{}\nsomething else\n", "no JSON object in its last line"),
        ('{"total_acked_segments": 7}\n', "not as benches/peers expects"),
        ("7\n", "not as benches/peers expects"),
        ('{"connections_that_died": 3}\n', "3 connections were given up"),
    ],
)
def test_what_is_no_result_is_refused(text, says):
    with pytest.raises(Unusable, match=says):
        simulators.of_peer(text, "peer")


def test_the_flows_of_skyhaul_are_added_up():
    flows = [
        {"unique_segments": 5.0, "retransmissions": 1, "timeouts": 0},
        {"unique_segments": 7.0, "retransmissions": 2, "timeouts": 1},
    ]
    assert simulators.of_skyhaul(json.dumps({"flows": flows})) == Result(12, 3, 1)
    for text in ["", "{}", '{"flows": [{}]}']:
        with pytest.raises(Unusable, match="not as benches/peers expects"):
            simulators.of_skyhaul(text)


def test_means_have_students_interval():
    mean = table.Mean.of([1.0, 2.0, 3.0])
    # Deviation 1, three values: 4.303 / sqrt(3); 4.303 is Student's t at 95 % with 2 degrees of freedom.
    assert (mean.mean, mean.half) == (2.0, pytest.approx(2.4843, abs=1e-4))
    assert table.Mean.of([5.0]).half is None
    assert str(table.Mean.of([5.0])) == "5.0"
    assert str(mean) == "2.0 ± 2.5"


def test_a_cell_knows_its_difference_and_how_sure_it_is():
    c = cell(NS2_NEWRENO, 5e-3, [99, 101, 100], [110, 108, 112])
    assert c.difference == pytest.approx(100 * (100 / 110 - 1))
    # The deviations are 1 and 2; 2.4843 as in the test above.
    relative = (2.4843 / 100) ** 2 + (2 * 2.4843 / 110) ** 2
    assert c.uncertainty == pytest.approx(100 * relative**0.5 * 100 / 110, abs=1e-2)
    assert (c.our_retransmissions, c.their_retransmissions, c.our_timeouts, c.their_timeouts) == (4, 8, 2, 1)


@pytest.mark.parametrize(
    ("peer", "algorithm", "loss", "ours", "violated"),
    [
        ("ns2", "newreno", 5e-3, 104.9, False),
        ("ns2", "newreno", 5e-3, 105.1, True),
        ("ns2", "sack", 5e-2, 94.9, True),
        ("ns2", "sack", 1e-3, 50.0, False),
        ("ns2", "tahoe", 5e-3, 50.0, False),
        ("ns3", "cubic", 5e-3, 50.0, False),
    ],
)
def test_newreno_and_sack_have_to_agree_where_loss_sets_the_window(peer, algorithm, loss, ours, violated):
    assert cell(of(peer, algorithm), loss, [ours, ours], [100, 100]).violated(quick=False) == violated


def test_a_quick_comparison_allows_the_interval_of_its_few_seeds_too():
    c = cell(NS2_NEWRENO, 5e-3, [100, 114], [100, 100])
    assert c.difference == pytest.approx(7.0)
    assert c.violated(quick=False)
    assert not c.violated(quick=True)


def test_loss_rates_are_written_as_in_scenarios():
    assert [table.loss_text(p) for p in plan.LOSSES] == ["0", "1e-4", "5e-4", "1e-3", "5e-3", "1e-2", "5e-2"]
    assert table.loss_text(2.5e-3) == "2.5e-3"


def test_the_table_explains_what_differs():
    cells = [cell(NS2_NEWRENO, 1e-3, [104], [100]), cell(NS2_NEWRENO, 1e-2, [80], [100])]
    text = table.markdown(cells, {"ns2": "ns-2", "ns3": "ns-3"}, lambda c: "the reason")
    assert text.splitlines() == [
        "| against ns-2, at a loss of | 1e-3 | 1e-2 | why |",
        "|---|---|---|---|",
        "| newreno | 104, +4.0 ± 0.0 % | 80, -20.0 ± 0.0 % | the reason |",
    ]
    assert "**not explained**" in table.markdown(cells, {"ns2": "ns-2"}, lambda c: None)


def test_isolations_say_what_was_changed_and_are_no_requirement():
    pair = next(p for p in plan.ISOLATIONS if p.theirs == "vegas-halving")
    text = table.isolations([cell(pair, 1e-3, [104], [100])], {"ns3": "ns-3"})
    assert "| vegas: ns-3 halves after a loss | +4.0 ± 0.0 %; 4, 8 |" in text
    isolated = dataclasses.replace(NS2_NEWRENO, note="a change")
    assert cell(NS2_NEWRENO, 5e-3, [50], [100]).violated(quick=False)
    assert not cell(isolated, 5e-3, [50], [100]).violated(quick=False)


def test_reasons_belong_to_what_is_compared():
    known = {(p.peer, p.algorithm) for p in plan.PAIRS}
    for reason in reasons.REASONS:
        assert (reason.peer, reason.algorithm) in known
        assert 0 <= reason.least_loss <= reason.most_loss
        inside = cell(of(reason.peer, reason.algorithm), reason.least_loss, [1], [2])
        assert reasons.why(inside) is not None
    assert reasons.why(cell(of("ns2", "sack"), 1e-3, [1], [2])) is None


def test_every_run_is_done_once_and_on_both_sides():
    runs = plan.runs([(NS2_NEWRENO, (1e-3, 1e-2)), (NS3_CUBIC, (1e-2,))], {"ns2": 3, "ns3": 2}, 1.0)
    # Loss rates, sides, seeds of ns-2; sides, seeds of ns-3.
    assert len(runs) == len(set(runs)) == 2 * 2 * 3 + 2 * 2
    assert {r.side for r in runs if r.pair is NS3_CUBIC} == {"ns3", "skyhaul"}


class Simulator:
    """Stands for a program."""

    name, package = "ns2", None

    def __init__(self, version="1", files="a"):
        self.version, self.files = version, files


def test_finished_runs_are_found_again_unless_something_changed(tmp_path):
    finished, result = Finished(tmp_path), Result(3, 2, 1)
    run = plan.Run("ns2", NS2_NEWRENO, 1e-3, 1, 10.0)
    assert finished.get(Simulator(), run) is None
    finished.put(Simulator(), run, result)
    assert Finished(tmp_path).get(Simulator(), run) == result
    others = [
        (Simulator(version="2"), run),
        (Simulator(files="b"), run),
        (Simulator(), plan.Run("ns2", NS2_NEWRENO, 1e-3, 2, 10.0)),
        (Simulator(), plan.Run("ns2", NS2_NEWRENO, 1e-3, 1, 20.0)),
        (Simulator(), plan.Run("ns2", of("ns2", "sack"), 1e-3, 1, 10.0)),
    ]
    assert all(finished.get(*other) is None for other in others)
    # A truncated file counts as none.
    (tmp_path / f"{key(Simulator(), run)}.json").write_text('{"segments": 3')
    assert finished.get(Simulator(), run) is None


def test_what_finished_before_an_interruption_is_not_run_again(tmp_path, monkeypatch):
    runs = plan.runs([(NS2_NEWRENO, (1e-3,))], {"ns2": 3}, 10.0)
    both = {"ns2": Simulator(), "skyhaul": Simulator(version="s")}
    done = []

    def stops_at_the_third(simulator, run):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(run)
        return Result(run.seed, 0, 0)

    monkeypatch.setattr(compare_peers, "simulate", stops_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        compare_peers.run_all(both, runs, Finished(tmp_path), 1)
    before = list(done)
    monkeypatch.setattr(
        compare_peers, "simulate", lambda simulator, run: done.append(run) or Result(run.seed, 0, 0)
    )
    results = compare_peers.run_all(both, runs, Finished(tmp_path), 1)
    assert sorted(done, key=runs.index) == runs
    assert len(before) == 2
    assert [results[r].segments for r in runs] == [r.seed for r in runs]


def test_tables_in_the_page_are_replaced():
    page = "text\n<!-- tables: begin -->\nold\n<!-- tables: end -->\nmore\n"
    new = compare_peers.replace_tables(page, "new\n")
    assert new == "text\n<!-- tables: begin -->\n\nnew\n\n<!-- tables: end -->\nmore\n"
    assert compare_peers.replace_tables(new, "new\n") == new
    with pytest.raises(Unusable, match="tables: begin"):
        compare_peers.replace_tables("nothing\n", "new")


def run_command(*args, **environment):
    return subprocess.run(
        [sys.executable, str(BENCHES / "compare_peers.py"), *map(str, args)],
        capture_output=True,
        text=True,
        env=environment or None,
    )


def program():
    """The skyhaul program that belongs to the interpreter of the tests."""
    path = Path(sys.executable).parent / "skyhaul"
    if not path.is_file():
        pytest.skip("no skyhaul program beside the interpreter")
    return path


def test_a_missing_peer_is_named_with_its_package(tmp_path):
    done = run_command("--skyhaul", program(), "--cache", tmp_path, "--quick", PATH=str(tmp_path))
    assert done.returncode == 2
    assert "ns-2 is not installed; on Debian and Ubuntu: apt-get install ns2" in done.stderr
    assert "ns-3 is not installed; on Debian and Ubuntu: apt-get install libns3-dev" in done.stderr
    assert "nothing to compare" in done.stderr


def test_wrong_arguments_are_named():
    done = run_command("--algorithm", "bbr")
    assert done.returncode == 2
    assert "--algorithm bbr: not compared (known: cubic, hybla," in done.stderr
    done = run_command("--docs", "--quick")
    assert "--docs is for a full comparison" in done.stderr


@pytest.mark.peers
@pytest.mark.parametrize("pair", [NS2_NEWRENO, NS3_CUBIC], ids=lambda p: p.peer)
def test_one_cell_of_each_peer(pair, tmp_path):
    """20 s: enough for the link to fill, so that an error in rate, delay, window or parsing shows."""
    try:
        peer = Ns2() if pair.peer == "ns2" else Ns3(tmp_path)
    except Missing as why:
        pytest.skip(str(why))
    skyhaul = Skyhaul(program())
    delivered = {}
    for simulator, side in [(peer, pair.peer), (skyhaul, "skyhaul")]:
        result = simulate(simulator, plan.Run(side, pair, 1e-3, 1, 20.0))
        delivered[side] = result.segments
        assert result.retransmissions > 0
    # A wide bound: single runs differ by chance.
    assert delivered["skyhaul"] == pytest.approx(delivered[pair.peer], rel=0.25)
    # The link carries 1300 packets/s.
    assert delivered["skyhaul"] < 1300 * 20
