#!/usr/bin/env python3
"""Instructions per packet of a link whose satellites move, relative to one with a constant delay.

    cargo build --release
    python3 benches/moving.py
    python3 benches/moving.py --check      # exit status 1 if a moving link costs more than it may
    python3 benches/moving.py --json FILE

Twenty greedy flows share one link in low orbits. A link that moves has its satellites looked for each
second, its delay computed ten times a second, and an event for each packet that waits, since nobody
knows yet how long it will take; one that stays foresees departures. As in `instructions.py`, each runs
for two durations under callgrind, so that start-up does not count, and a packet is one of data that was
sent.
"""

import argparse
import json
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from instructions import count
from skyhaul_cli import DEFAULT_BINARY, LOW_ORBIT, Unusable, exit_unusable, require_skyhaul

SHORT, LONG = 5, 25
BOUND = 1.3
ORBIT = 'links.sat.orbit={{ from = "Goonhilly", to = "London", constellation = "leo550", {} }}'

# name -> (what makes the delay, whether the bound holds for it)
CELLS = {
    "fixed": ("links.sat.delay=4 ms", False),
    "moving": (ORBIT.format('switch = "hard"'), True),
    "moving, soft": (ORBIT.format('switch = "soft"'), True),
    "two at a time": (ORBIT.format('diversity = "best"'), False),
}


def measure(binary, name):
    """Instructions per packet sent."""
    points = []
    for duration in (SHORT, LONG):
        settings = [f"duration={duration} s", CELLS[name][0]]
        command = [str(binary), "run", str(LOW_ORBIT), *[x for s in settings for x in ("--set", s)], "--json"]
        instructions, out = count(command)
        points.append((instructions, sum(f["segments_sent"] for f in json.loads(out)["flows"])))
    (few, few_packets), (many, many_packets) = points
    if many_packets <= few_packets:
        raise Unusable(f"{name}: nothing is sent between {SHORT} and {LONG} s")
    return (many - few) / (many_packets - few_packets)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--skyhaul", type=Path, default=DEFAULT_BINARY, help="the skyhaul program")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a bound is missed")
    parser.add_argument("--json", type=Path, help="write the numbers here")
    args = parser.parse_args()
    try:
        if shutil.which("valgrind") is None:
            raise Unusable("valgrind is not installed; on Debian and Ubuntu: apt-get install valgrind")
        require_skyhaul(args.skyhaul)
        with ThreadPoolExecutor(args.jobs) as pool:
            found = dict(zip(CELLS, pool.map(lambda c: measure(args.skyhaul, c), CELLS), strict=True))
    except Unusable as error:
        return exit_unusable(error)
    over = []
    print(f"{'link':16} {'instructions/packet':>20} {'against fixed':>14} {'bound':>6}")
    for name, (_, bounded) in CELLS.items():
        ratio = found[name] / found["fixed"]
        print(f"{name:16} {found[name]:20.0f} {ratio:14.2f} {f'{BOUND:g}' if bounded else '':>6}")
        if bounded and ratio > BOUND:
            over.append(f"{name} ({ratio:.2f})")
    if args.json:
        rows = [{"link": name, "per_packet": cost} for name, cost in found.items()]
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    if over:
        print(f"bound MISSED: {', '.join(over)}")
    return 1 if args.check and over else 0


if __name__ == "__main__":
    sys.exit(main())
