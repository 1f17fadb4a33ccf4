#!/usr/bin/env python3
"""Measures skyhaul against ns-2 on the same long bulk transfers, in one interleaved run.

    cargo build --profile packaged
    python3 benches/compare_ns2.py                     # table, and benches/results/compare-ns2.json
    python3 benches/compare_ns2.py --check             # exit status 1 if a target is missed

Needs ns-2 (apt-get install ns2) and GNU time (apt-get install time). Exit status 2: something that
is needed is missing or failed.

Every repetition runs every program once, one after the other, in alternating order, with the
repetition's number as the seed; ratios are taken within a repetition. CPU time is user + system
of the whole process, start-up included. ns-2 runs in two set-ups: "usual" (each source on a node
of its own, all packet headers) and "lean" (agents on the bottleneck node, only the headers in
use, "stripped" in the documentation), which is the fastest and smallest it gets. The costs of other
controls and of the endpoint preset `modern` are relative to `sack` with the scenario's own endpoint.

    python3 benches/compare_ns2.py --htsim CHECKOUT    # beside htsim, too (github.com/Broadcom/csg-htsim)

htsim is the fastest packet simulator we know. It has no channel losses, SACK or delayed acknowledgements:
both programs run without losses. `make -C CHECKOUT/sim libhtsim.a` first; the driver is compiled here.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from skyhaul_cli import (
    DEFAULT_BINARY,
    ROOT,
    Unusable,
    exit_unusable,
    parse_delivered,
    require_skyhaul,
    run_child,
    skyhaul_command,
)

NS_SCRIPT = ROOT / "benches" / "peers" / "ns2" / "geo_bulk.tcl"
HTSIM_DRIVER = ROOT / "benches" / "peers" / "htsim" / "geo_bulk.cpp"
NS_SETUPS = {"usual": [], "lean": ["-access", "0", "-lean", "1"]}
RATE_PER_FLOW = 65  # packets/s: 1300 for 20 flows
BUFFER_PER_FLOW = 2.5  # packets: 50 for 20 flows

# What runs beside SACK at 20 flows: the settings, and the most that a segment may cost, SACK's being 1.
PRIORITY = {"queue": "strict-pushout"}
BESIDE = {
    "cubic": ({"variant": "cubic"}, 1.3),
    "peach": ({"variant": "peach", **PRIORITY}, 1.3),
    "peach-plus": ({"variant": "peach-plus", **PRIORITY}, 1.3),
    "modern": ({"endpoint": "modern"}, 1.3),
    "bbr": ({"variant": "bbr"}, 1.6),
}

TARGET_CPU = {"usual": 15.0, "lean": 8.0}
TARGET_SHARE = 1 / 3
TARGET_MEMORY = 0.5


def scenario(flows, duration, seed):
    return {
        "flows": flows,
        "rate": int(RATE_PER_FLOW * flows),
        "buffer": int(BUFFER_PER_FLOW * flows),
        "duration": duration,
        "seed": seed,
    }


def ns_command(setup, **parameters):
    command = ["ns", NS_SCRIPT, "-variant", "TCP/Sack1", *NS_SETUPS[setup]]
    for key, value in parameters.items():
        command += [f"-{key}", value]
    return command


def run_ns(setup, memory=False, **parameters):
    child = run_child(ns_command(setup, **parameters), memory=memory)
    return child, json.loads(child.stdout.splitlines()[-1])["total_acked_segments"]


def compile_htsim(checkout, folder):
    """The driver of an htsim checkout."""
    sim, driver = checkout / "sim", Path(folder) / "geo_bulk"
    library = sim / "libhtsim.a"
    if not library.is_file():
        raise Unusable(f"there is no {library}; build it with: make -C {sim} libhtsim.a")
    command = ["g++", "-O3", "-std=c++11", "-I", sim, HTSIM_DRIVER, library, "-o", driver]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Unusable(f"{HTSIM_DRIVER.name} does not compile with {sim}:\n{done.stderr[-2000:]}")
    return driver


def run_htsim(driver, **parameters):
    command = [driver]
    for key, value in parameters.items():
        command += [f"-{key}", value]
    child = run_child(command)
    return child, json.loads(child.stdout.splitlines()[-1])["total_acked_segments"]


def run_skyhaul(binary, memory=False, **parameters):
    child = run_child(skyhaul_command(binary, **parameters), memory=memory)
    return child, parse_delivered(child.stdout)


def repetition(args, number):
    """Runs everything once; {name: {"cpu_s", "segments", "peak_kib"}}."""
    sky = args.skyhaul
    small = scenario(20, args.duration, number)
    middle = scenario(200, args.memory_duration, number)
    large = scenario(20_000, args.large_duration, number)
    jobs = [
        ("ns2-usual-20", lambda: run_ns("usual", **small)),
        ("skyhaul-20", lambda: run_skyhaul(sky, **small)),
        ("ns2-lean-20", lambda: run_ns("lean", **small)),
        ("skyhaul-20000", lambda: run_skyhaul(sky, **large)),
        ("skyhaul-20-startup", lambda: run_skyhaul(sky, **{**small, "duration": args.startup_duration})),
        ("skyhaul-20000-startup", lambda: run_skyhaul(sky, **{**large, "duration": args.startup_duration})),
        ("ns2-usual-20-startup", lambda: run_ns("usual", **{**small, "duration": args.startup_duration})),
        ("ns2-lean-20-startup", lambda: run_ns("lean", **{**small, "duration": args.startup_duration})),
        ("ns2-usual-200-memory", lambda: run_ns("usual", memory=True, **middle)),
        ("skyhaul-200-memory", lambda: run_skyhaul(sky, memory=True, **middle)),
        ("ns2-lean-200-memory", lambda: run_ns("lean", memory=True, **middle)),
    ]
    if args.htsim_driver:
        jobs.append(("htsim-20-lossless", lambda: run_htsim(args.htsim_driver, **small)))
        jobs.append(("skyhaul-20-lossless", lambda: run_skyhaul(sky, **small, loss=0)))
    for name, (settings, _) in BESIDE.items():
        jobs.append((f"{name}-20", lambda settings=settings: run_skyhaul(sky, **small, **settings)))
    if number % 2 == 0:
        jobs.reverse()
    measured = {}
    for name, job in jobs:
        child, segments = job()
        measured[name] = {"cpu_s": round(child.cpu_s, 6), "segments": segments}
        if child.peak_kib is not None:
            measured[name]["peak_kib"] = child.peak_kib
        print(
            f"  {number}/{args.repetitions} {name:24} {child.cpu_s:9.3f} s CPU {segments:>10} segments"
            + (f" {child.peak_kib:>8} KiB" if child.peak_kib is not None else ""),
            file=sys.stderr,
            flush=True,
        )
    for name, job in measured.items():
        if job["segments"] == 0 and not name.endswith("-startup"):
            raise Unusable(f"{name} delivered no segments")
    return measured


def summary(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "values": values}


def per_segment_ns(job):
    return 1e9 * job["cpu_s"] / job["segments"]


def running_ns(measured, name):
    """The same without the start-up cost, which is that of a run of next to no length."""
    job, startup = measured[name], measured[f"{name}-startup"]
    return 1e9 * (job["cpu_s"] - startup["cpu_s"]) / job["segments"]


def evaluate(rounds):
    """The ratios over the repetitions, each with its target (None: reported only)."""
    rows = []

    def row(key, text, values, target=None, at_least=True):
        entry = {"key": key, "what": text, **summary(values), "target": target}
        if target is not None:
            entry["target_is"] = "at least" if at_least else "at most"
            entry["met"] = entry["median"] >= target if at_least else entry["median"] <= target
        rows.append(entry)

    for setup in NS_SETUPS:
        row(
            f"cpu_{setup}",
            f"CPU time, 20 SACK flows: ns-2 ({setup}) / skyhaul",
            [r[f"ns2-{setup}-20"]["cpu_s"] / max(r["skyhaul-20"]["cpu_s"], 1e-6) for r in rounds],
            TARGET_CPU[setup],
        )
    if "htsim-20-lossless" in rounds[0]:
        row(
            "cpu_htsim",
            "CPU per delivered segment, 20 flows without losses: htsim / skyhaul",
            [
                per_segment_ns(r["htsim-20-lossless"]) / max(per_segment_ns(r["skyhaul-20-lossless"]), 1e-6)
                for r in rounds
            ],
        )
    row(
        "share_large",
        "CPU per delivered segment: skyhaul 20000 flows / ns-2 (lean) 20",
        [per_segment_ns(r["skyhaul-20000"]) / per_segment_ns(r["ns2-lean-20"]) for r in rounds],
        TARGET_SHARE,
        at_least=False,
    )
    row(
        "share_large_running",
        "the same without the start-up and the output of both",
        [running_ns(r, "skyhaul-20000") / running_ns(r, "ns2-lean-20") for r in rounds],
    )
    for name, (_, most) in BESIDE.items():
        row(
            f"cost_{name}",
            f"CPU per delivered segment, 20 flows: {name} / sack",
            [per_segment_ns(r[f"{name}-20"]) / max(per_segment_ns(r["skyhaul-20"]), 1e-6) for r in rounds],
            most,
            at_least=False,
        )
    row(
        "cost_growth",
        "CPU per delivered segment, skyhaul: 20000 flows / 20 flows",
        [per_segment_ns(r["skyhaul-20000"]) / max(per_segment_ns(r["skyhaul-20"]), 1e-6) for r in rounds],
    )
    for setup in NS_SETUPS:
        row(
            f"memory_{setup}",
            f"peak memory, 200 flows: skyhaul / ns-2 ({setup})",
            [r["skyhaul-200-memory"]["peak_kib"] / r[f"ns2-{setup}-200-memory"]["peak_kib"] for r in rounds],
            TARGET_MEMORY,
            at_least=False,
        )
    for setup in NS_SETUPS:
        row(
            f"goodput_{setup}",
            f"delivered segments, 20 flows: skyhaul / ns-2 ({setup})",
            [r["skyhaul-20"]["segments"] / r[f"ns2-{setup}-20"]["segments"] for r in rounds],
        )
    return rows


def absolutes(rounds):
    rows = []
    for name in sorted(rounds[0]):
        jobs = [r[name] for r in rounds]
        entry = {
            "name": name,
            "cpu_s": summary([j["cpu_s"] for j in jobs]),
            "segments": summary([j["segments"] for j in jobs]),
        }
        if not name.endswith("-startup"):
            entry["ns_per_segment"] = summary([round(per_segment_ns(j), 2) for j in jobs])
        if "peak_kib" in jobs[0]:
            entry["peak_kib"] = summary([j["peak_kib"] for j in jobs])
        rows.append(entry)
    return rows


def print_tables(ratios, values):
    print(
        f"\n{'program and scenario':24} {'CPU s: median':>13} {'min':>8} {'max':>8} "
        f"{'ns/segment':>10} {'segments':>10} {'peak KiB':>9}"
    )
    for v in values:
        cost = f"{v['ns_per_segment']['median']:.1f}" if "ns_per_segment" in v else ""
        peak = f"{v['peak_kib']['median']:.0f}" if "peak_kib" in v else ""
        print(
            f"{v['name']:24} {v['cpu_s']['median']:13.4f} {v['cpu_s']['min']:8.4f} {v['cpu_s']['max']:8.4f} "
            f"{cost:>10} {v['segments']['median']:>10.0f} {peak:>9}"
        )
    print(f"\n{'ratio within a repetition':64} {'median':>7} {'min':>7} {'max':>7}  target")
    for r in ratios:
        target = (
            ""
            if r["target"] is None
            else f"{r['target_is']} {r['target']:.3g}: {'met' if r['met'] else 'MISSED'}"
        )
        print(f"{r['what']:64} {r['median']:7.3f} {r['min']:7.3f} {r['max']:7.3f}  {target}")


def machine():
    model = platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    commit = (
        subprocess.run(
            ["git", "-C", str(ROOT), "describe", "--always", "--dirty"], capture_output=True, text=True
        ).stdout.strip()
        or None
    )
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "load_average": os.getloadavg(),
        "commit": commit,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--skyhaul", type=Path, default=DEFAULT_BINARY, help="the skyhaul program")
    parser.add_argument(
        "--htsim", type=Path, metavar="CHECKOUT", help="a checkout of htsim, as a second peer"
    )
    parser.add_argument("-n", "--repetitions", type=int, default=5)
    parser.add_argument("--duration", type=float, default=550, help="simulated seconds, 20 flows")
    parser.add_argument("--memory-duration", type=float, default=55, help="simulated seconds, 200 flows")
    parser.add_argument("--large-duration", type=float, default=11, help="simulated seconds, 20000 flows")
    parser.add_argument(
        "--startup-duration",
        type=float,
        default=0.001,
        help="simulated seconds of the runs that show the start-up cost",
    )
    parser.add_argument("--out", type=Path, default=ROOT / "benches" / "results" / "compare-ns2.json")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    args = parser.parse_args()
    if args.repetitions < 1:
        parser.error("--repetitions must be at least 1")
    try:
        if shutil.which("ns") is None:
            raise Unusable("ns-2 is not installed; on Debian and Ubuntu: apt-get install ns2")
        require_skyhaul(args.skyhaul)
        before = machine()
        with tempfile.TemporaryDirectory() as folder:
            args.htsim_driver = compile_htsim(args.htsim, folder) if args.htsim else None
            rounds = [repetition(args, number) for number in range(1, args.repetitions + 1)]
    except Unusable as error:
        return exit_unusable(error)
    ratios, values = evaluate(rounds), absolutes(rounds)
    print_tables(ratios, values)
    large = statistics.median(r["skyhaul-20000"]["segments"] for r in rounds)
    if large < 2_000_000:
        print(f"\nonly {large:.0f} segments at 20000 flows; raise --large-duration for a fair comparison")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(
        json.dumps(
            {
                "machine": before,
                "repetitions": args.repetitions,
                "simulated_s": {
                    "20": args.duration,
                    "200": args.memory_duration,
                    "20000": args.large_duration,
                    "startup": args.startup_duration,
                },
                "ratios": ratios,
                "values": values,
                "rounds": rounds,
            },
            indent=1,
        )
        + "\n"
    )
    print(f"\nwritten: {args.out}")
    return 1 if args.check and not all(r.get("met", True) for r in ratios) else 0


if __name__ == "__main__":
    sys.exit(main())
