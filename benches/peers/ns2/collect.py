#!/usr/bin/env python3
"""Collects what ns-2 says about the bulk scenario of geo_bulk.tcl.

    python3 benches/peers/ns2/collect.py                 # writes goodput.json beside this file
    python3 benches/peers/ns2/collect.py --cost          # CPU time and peak memory, to standard output

Needs ns-2 (Debian and Ubuntu: apt-get install ns2); exit status 2 if it is missing. The goodput
numbers are deterministic for one version of ns-2; the cost is of this machine and this moment.
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
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCRIPT = HERE / "geo_bulk.tcl"
VARIANTS = {"tahoe": "TCP", "reno": "TCP/Reno", "newreno": "TCP/Newreno", "sack": "TCP/Sack1"}
LOSSES = [0.0, 1e-4, 1e-3, 5e-3, 1e-2]
SEEDS = [1, 2, 3]


def run(**options):
    """One ns-2 run: (result, CPU seconds, peak resident KiB)."""
    command = ["ns", str(SCRIPT)]
    for key, value in options.items():
        command += [f"-{key}", str(value)]
    with tempfile.TemporaryFile("w+") as out:
        child = subprocess.Popen(command, stdout=out)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: exit status {child.returncode}")
        out.seek(0)
        result = json.loads(out.read().splitlines()[-1])
    return result, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def ns_version():
    with tempfile.NamedTemporaryFile("w", suffix=".tcl") as script:
        script.write("puts [ns-version]\n")
        script.flush()
        version = subprocess.run(
            ["ns", script.name], check=True, capture_output=True, text=True
        ).stdout.strip()
    package = None
    if shutil.which("dpkg-query"):
        query = subprocess.run(
            ["dpkg-query", "-W", "-f", "${Version}", "ns2"], capture_output=True, text=True
        )
        package = query.stdout.strip() or None
    return {"ns": version, "package": package}


def write(path, data):
    """JSON with one line per row."""
    head = json.dumps({k: v for k, v in data.items() if k != "rows"}, indent=1)
    rows = ",\n".join("  " + json.dumps(row) for row in data["rows"])
    path.write_text(head[: head.rindex("\n}")] + ',\n "rows": [\n' + rows + "\n ]\n}\n")


def collect_goodput(path):
    rows = []
    for name, variant in VARIANTS.items():
        for loss in LOSSES:
            goodput, retransmitted, timeouts, spread = [], [], [], []
            for seed in SEEDS:
                result, _, _ = run(variant=variant, loss=loss, seed=seed)
                goodput.append(result["goodput_segments_per_s"])
                retransmitted.append(result["total_retransmitted_packets"])
                timeouts.append(result["total_timeouts"])
                acked = result["acked_segments"]
                spread.append([min(acked), max(acked)])
            rows.append(
                {
                    "variant": name,
                    "loss": loss,
                    "goodput_segments_per_s": goodput,
                    "mean_goodput_segments_per_s": round(statistics.fmean(goodput), 2),
                    "retransmitted_packets": retransmitted,
                    "timeouts": timeouts,
                    "acked_segments_min_max_per_flow": spread,
                }
            )
            print(
                f"{name:8} loss {loss:<7g} {statistics.fmean(goodput):8.2f} segments/s "
                f"({min(goodput):.2f} .. {max(goodput):.2f})",
                flush=True,
            )
    data = {
        "what": "goodput of 20 bulk flows over one 550 ms path, as ns-2 simulates it",
        "produced_by": "python3 benches/peers/ns2/collect.py",
        "version": ns_version(),
        "parameters": {
            "flows": 20,
            "rate_packets_per_s": 1300,
            "packet_bytes": 1000,
            "buffer_packets_waiting": 50,
            "rtt_s": 0.55,
            "window_segments": 64,
            "initial_window_segments": 1,
            "min_rto_s": 1.0,
            "limited_transmit": False,
            "delayed_ack": False,
            "duration_s": 550,
            "access_links": True,
        },
        "seeds": SEEDS,
        "lists": "one entry per seed",
        "rows": rows,
    }
    write(path, data)
    print(f"written: {path}")


def cost(runs):
    settings = {
        "20 flows": {"flows": 20},
        "20 flows, lean": {"flows": 20, "lean": 1, "access": 0},
        "200 flows": {"flows": 200, "rate": 13000, "buffer": 500},
        "200 flows, lean": {"flows": 200, "rate": 13000, "buffer": 500, "lean": 1, "access": 0},
    }
    print(f"{ns_version()} on {platform.processor() or platform.machine()}, {runs} runs each")
    for name, options in settings.items():
        seconds, memory = [], []
        for _ in range(runs):
            result, cpu, peak = run(**options)
            seconds.append(cpu)
            memory.append(peak)
        segments = result["total_acked_segments"]
        print(
            f"{name:16} CPU min {min(seconds):.3f} s, median {statistics.median(seconds):.3f} s; "
            f"{1e9 * min(seconds) / segments:.0f} ns per acknowledged segment ({segments}); "
            f"peak memory min {min(memory)} KiB, median {statistics.median(memory):.0f} KiB",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cost", action="store_true", help="measure CPU time and peak memory instead")
    parser.add_argument("--runs", type=int, default=5, help="runs per setting with --cost")
    parser.add_argument("--out", type=Path, default=HERE / "goodput.json")
    args = parser.parse_args()
    if shutil.which("ns") is None:
        print("ns-2 is not installed; on Debian and Ubuntu: apt-get install ns2", file=sys.stderr)
        return 2
    if args.cost:
        cost(args.runs)
    else:
        collect_goodput(args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
