#!/usr/bin/env python3
"""Holds Skyhaul against ns-2 and ns-3 on the same scenario: goodput of nine controls over seven loss rates.

    cargo build --profile packaged -p skyhaul-cli
    python3 benches/compare_peers.py                # `make peers` does both
    python3 benches/compare_peers.py --quick        # two loss rates, three seeds: some minutes
    python3 benches/compare_peers.py --docs         # also renews the tables in docs/peers.md

Finished runs are kept (--cache); after Ctrl-C the same command goes on. Exit status 0: all is well; 1:
NewReno or SACK differ from ns-2 by more than 5 % at a loss of 5e-3 or more; 2: a peer or the program is
missing, or a run failed; 130: stopped.
"""

import argparse
import json
import os
import sys
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path

from peers import plan, reasons, table
from peers.finished import Finished
from peers.simulators import Missing, Ns2, Ns3, Skyhaul, simulate
from skyhaul_cli import DEFAULT_BINARY, ROOT, Unusable, exit_unusable

TITLES = {"ns2": "ns-2", "ns3": "ns-3"}
DOCS = ROOT / "docs" / "peers.md"
BEGIN, END = "<!-- tables: begin -->\n", "<!-- tables: end -->\n"


def installed(cache, wanted):
    """The peers that are there, and why the others are not."""
    make = {"ns2": Ns2, "ns3": lambda: Ns3(cache)}
    there, missing = {}, []
    for name in wanted:
        try:
            there[name] = make[name]()
        except Missing as why:
            missing.append(str(why))
    return there, missing


def run_all(simulators, runs, finished, jobs):
    """{run: result}. What is finished is not run again; what finishes is kept at once."""
    results = {run: finished.get(simulators[run.side], run) for run in runs}
    todo = [run for run, result in results.items() if result is None]
    print(f"{len(runs)} runs, {len(runs) - len(todo)} of them finished before", file=sys.stderr, flush=True)
    began = time.monotonic()
    with ThreadPoolExecutor(jobs) as pool:
        pending = {pool.submit(simulate, simulators[run.side], run): run for run in todo}
        done = 0
        try:
            while pending:
                ready, _ = wait(pending, return_when=FIRST_COMPLETED)
                # Whatever finished is kept before a failure ends the rest.
                for future in sorted(ready, key=lambda f: f.exception() is not None):
                    run = pending.pop(future)
                    results[run] = future.result()
                    finished.put(simulators[run.side], run, results[run])
                    done += 1
                    left = (time.monotonic() - began) / done * (len(todo) - done)
                    print(
                        f"  {done}/{len(todo)}, about {left / 60:.0f} min left: {run.side} {run.pair.algorithm} "  # noqa: E501
                        f"loss {table.loss_text(run.loss)} seed {run.seed}: "
                        f"{results[run].segments / run.duration:.1f} segments/s",
                        file=sys.stderr,
                        flush=True,
                    )
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return results


def jobs_of(args, peers):
    """What to run: [(pair, losses)] of the comparison, and of the experiments that each take a cause away."""

    def wanted(pairs):
        return [
            pair
            for pair in pairs
            if pair.peer in peers and (not args.algorithm or pair.algorithm in args.algorithm)
        ]

    losses = plan.QUICK_LOSSES if args.quick else plan.LOSSES
    compared = [(pair, losses) for pair in wanted(plan.PAIRS)]
    isolated = [] if args.quick else [(pair, plan.ISOLATION_LOSSES) for pair in wanted(plan.ISOLATIONS)]
    return compared, isolated


def cells_of(results, jobs, duration):
    """Cell after cell, in the order of the plan."""
    return [
        table.cell(
            pair,
            loss,
            duration,
            [r for run, r in results.items() if (run.pair, run.loss, run.side) == (pair, loss, "skyhaul")],
            [r for run, r in results.items() if (run.pair, run.loss, run.side) == (pair, loss, pair.peer)],
        )
        for pair, losses in jobs
        for loss in losses
    ]


def settings(pair):
    """How both sides were set, for the record."""
    return {
        "peer": pair.peer,
        "algorithm": pair.algorithm,
        "isolation": pair.note or None,
        "there": {"name": pair.theirs, "window": pair.window, **dict(pair.options)},
        "skyhaul": {
            "control": pair.control,
            "endpoint": pair.endpoint,
            "window": pair.window,
            "queue": pair.queue or None,
        },
    }


def replace_tables(page, tables):
    """The page with other tables between its marks."""
    try:
        before, rest = page.split(BEGIN)
        _, after = rest.split(END)
    except ValueError as error:
        raise Unusable(
            f"{DOCS.name} needs one line {BEGIN.strip()} and, below, one line {END.strip()}"
        ) from error
    return f"{before}{BEGIN}\n{tables}\n{END}{after}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--skyhaul", type=Path, default=DEFAULT_BINARY, help="the skyhaul program")
    parser.add_argument("--peer", choices=sorted(TITLES), action="append", help="only this peer")
    parser.add_argument("--algorithm", action="append", help="only this control; may be repeated")
    parser.add_argument("--quick", action="store_true", help="two loss rates, three seeds, half the time")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at the same time")
    parser.add_argument(
        "--cache", type=Path, default=ROOT / ".cache" / "peers", help="where finished runs are kept"
    )
    parser.add_argument(
        "--out", type=Path, help="without ending; default benches/results/peers, or peers-quick"
    )
    parser.add_argument("--docs", action="store_true", help="renew the tables in docs/peers.md")
    args = parser.parse_args()
    if args.jobs < 1:
        parser.error("--jobs must be at least 1")
    if args.docs and (args.quick or args.peer or args.algorithm):
        parser.error("--docs is for a full comparison: leave --quick, --peer and --algorithm out")
    known = sorted({pair.algorithm for pair in plan.PAIRS})
    for name in args.algorithm or []:
        if name not in known:
            parser.error(f"--algorithm {name}: not compared (known: {', '.join(known)})")
    out = args.out or ROOT / "benches" / "results" / ("peers-quick" if args.quick else "peers")
    duration, seeds = plan.DURATION, plan.SEEDS
    if args.quick:
        duration, seeds = plan.QUICK_DURATION, dict.fromkeys(seeds, plan.QUICK_SEEDS)

    try:
        skyhaul = Skyhaul(args.skyhaul)
        peers, missing = installed(args.cache, args.peer or list(TITLES))
        for why in missing:
            print(f"{Path(sys.argv[0]).name}: {why}", file=sys.stderr)
        compared, isolated = jobs_of(args, peers)
        if not compared:
            raise Unusable("nothing to compare")
        simulators = {**peers, "skyhaul": skyhaul}
        runs = plan.runs(compared + isolated, seeds, duration)
        results = run_all(simulators, runs, Finished(args.cache / "runs"), args.jobs)
        cells = cells_of(results, compared, duration)
        isolations = cells_of(results, isolated, duration)
        tables = table.markdown(cells, TITLES, reasons.why)
        if isolations:
            tables += (
                "\nWith causes taken away; behind each difference the retransmissions of both sides:\n\n"
            )
            tables += table.isolations(isolations, TITLES)
        if args.docs and not missing:
            DOCS.write_text(replace_tables(DOCS.read_text(), tables))
    except Unusable as error:
        return exit_unusable(error)
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on from here", file=sys.stderr)
        return 130

    out.parent.mkdir(parents=True, exist_ok=True)
    out.with_suffix(".md").write_text(tables)
    versions = {s.name: {"version": s.version, "package": s.package} for s in simulators.values()}
    record = {
        "what": "goodput of 20 greedy flows over preset:peach-geo, in Skyhaul and in peers",
        "versions": versions,
        "duration_s": duration,
        "seeds": {name: seeds[name] for name in peers},
        "settings": [settings(pair) for pair, _ in compared + isolated],
        "cells": [table.record(c, reasons.why) for c in cells + isolations],
    }
    out.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
    print(tables)
    print(f"written: {out.with_suffix('.json')}, {out.with_suffix('.md')}")
    unexplained = [c for c in cells if c.notable and reasons.why(c) is None]
    for c in unexplained:
        print(
            f"not explained: {c.peer} {c.algorithm} at loss {table.loss_text(c.loss)}: {c.difference:+.1f} %"
        )
    violated = [c for c in cells if c.violated(args.quick)]
    for c in violated:
        print(
            f"VIOLATED: {c.algorithm} at loss {table.loss_text(c.loss)} differs from ns-2 by {c.difference:+.1f} % "  # noqa: E501
            f"(allowed: {plan.REQUIRED_PERCENT:g} %)"
        )
    if violated:
        return 1
    return 2 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
