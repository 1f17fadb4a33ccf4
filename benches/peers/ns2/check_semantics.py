#!/usr/bin/env python3
"""Checks geo_bulk.tcl against ns-2's own packet trace.

    python3 benches/peers/ns2/check_semantics.py

The statements: what its header says of -rate, -buffer, -loss, -rtt and -packets, and what the counters and
start times in its result mean. Prints one line per statement; the exit status is 1 if one does not hold, 2 if
ns is missing.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
import itertools

HERE = Path(__file__).resolve().parent
FAILED = []


def check(what, holds, detail):
    print(f"{'ok  ' if holds else 'FAIL'} {what}: {detail}")
    if not holds:
        FAILED.append(what)


def simulate(folder, **options):
    """One traced run: the JSON result and the trace records (event, time, from, to, type, size, fid, seq)."""
    trace = Path(folder) / "trace"
    command = ["ns", str(HERE / "geo_bulk.tcl"), "-trace", str(trace)]
    for key, value in options.items():
        command += [f"-{key}", str(value)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    records = []
    for line in trace.read_text().splitlines():
        f = line.split()
        records.append((f[0], float(f[1]), int(f[2]), int(f[3]), f[4], int(f[5]), int(f[7]), int(f[10])))
    return json.loads(out.splitlines()[-1]), records


def main():
    if shutil.which("ns") is None:
        print("ns-2 is not installed; on Debian and Ubuntu: apt-get install ns2", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        # Lossless, the other parameters at their defaults: sizes, spacing, buffer, starts.
        result, records = simulate(folder, loss=0, duration=120)
        rate, rtt, buffer, flows = (result[key] for key in ("rate", "rtt", "buffer", "flows"))
        # Nodes 0 and 1 are the ends A and B of the link in the header of geo_bulk.tcl.
        forward = [r for r in records if (r[2], r[3]) == (0, 1)]
        syn = {r[5] for r in forward if r[7] == 0}
        data = {r[5] for r in forward if r[7] > 0}
        check("the first packet is a 40-byte SYN", syn == {40}, sorted(syn))
        check("every later packet is 1000 bytes on the wire", data == {1000}, sorted(data))
        # a packet about to be dropped is counted between its '+' and its 'd'
        waiting = full = 0
        for (event, *_), (following, *_) in itertools.pairwise(forward):
            waiting += {"+": 1, "-": -1, "d": -1, "r": 0}[event]
            if not (event == "+" and following == "d"):
                full = max(full, waiting)
        check("at most 'buffer' packets wait (one more is in transmission)", full == buffer, full)
        left = [r[1] for r in forward if r[0] == "-" and r[7] > 0]
        gaps = [b - a for a, b in itertools.pairwise(left)]
        check("the link spaces packets by 1/rate", abs(min(gaps) - 1 / rate) < 1e-5, f"{min(gaps):.6f} s")
        # Reversed, so that of the copies of a retransmitted packet the first counts.
        dequeued = {(r[6], r[7]): r[1] for r in reversed(forward) if r[0] == "-"}
        received = {(r[6], r[7]): r[1] for r in reversed(forward) if r[0] == "r"}
        transit = [received[k] - dequeued[k] for k in received if k[1] > 0]
        check(
            "one crossing takes 1/rate + rtt/2",
            abs(min(transit) - 1 / rate - rtt / 2) < 2e-5 and max(transit) - min(transit) < 1e-4,
            f"{min(transit):.6f} s",
        )
        starts = result["start_s"]
        check(
            "starts lie in [0, rtt]",
            min(starts) >= 0 and max(starts) <= rtt,
            f"{min(starts):.3f} .. {max(starts):.3f} s",
        )
        sends = [r for r in forward if r[0] == "+" and r[7] > 0]
        seen, repeats = set(), 0
        for r in sends:
            repeats += (r[6], r[7]) in seen
            seen.add((r[6], r[7]))
        check(
            "nrexmitpack_ counts every packet sent again",
            repeats == result["total_retransmitted_packets"],
            f"{repeats} in the trace, {result['total_retransmitted_packets']} reported",
        )
        check(
            "ndatapack_ counts data packets and the SYN",
            len(sends) + flows == result["total_sent_packets"],
            f"{len(sends)} + {flows} in the trace, {result['total_sent_packets']} reported",
        )

        # A finite transfer with loss, drained: what left the queue and did not arrive was lost.
        result, records = simulate(folder, loss=0.01, duration=2000, packets=5000, flows=20, buffer=100000)
        forward = [r for r in records if (r[2], r[3]) == (0, 1)]
        count = {e: sum(1 for r in forward if r[0] == e) for e in "+-rd"}
        lost = count["-"] - count["r"]
        # Standard deviation of a binomial count.
        sd = (count["-"] * 0.01 * 0.99) ** 0.5
        check(
            "a finite transfer acknowledges the segments asked for",
            set(result["acked_segments"]) == {5000},
            sorted(set(result["acked_segments"])),
        )
        check("nothing is dropped at a buffer that is large enough", count["d"] == 0, count["d"])
        check(
            "the loss probability is per packet, after the queue",
            abs(lost - 0.01 * count["-"]) < 4 * sd,
            f"{lost} of {count['-']} lost, expected {0.01 * count['-']:.0f} +- {sd:.0f}",
        )
        back = {e: sum(1 for r in records if (r[2], r[3]) == (1, 0) and r[0] == e) for e in "+-rd"}
        check(
            "no acknowledgement is lost",
            back["+"] == back["r"] and back["d"] == 0,
            f"{back['+']} sent, {back['r']} received",
        )

        # Another seed moves the starts; another loss rate does not.
        one, _ = simulate(folder, duration=1, seed=1)
        same, _ = simulate(folder, duration=1, seed=1, loss=0.1)
        other, _ = simulate(folder, duration=1, seed=2)
        check(
            "starts depend on the seed only",
            one["start_s"] == same["start_s"] != other["start_s"],
            f"{one['start_s'][0]} and {other['start_s'][0]} s for the first flow",
        )
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
