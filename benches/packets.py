"""What benchmarks of instructions per packet share: options, how cells run and are counted, the output."""

import argparse
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from instructions import count
from skyhaul_cli import DEFAULT_BINARY, Unusable, require_skyhaul


def options(about):
    """The options of the command line; `about` is the docstring of the benchmark."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--skyhaul", type=Path, default=DEFAULT_BINARY, help="the skyhaul program")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a bound is missed")
    parser.add_argument("--json", type=Path, help="write the numbers here")
    return parser.parse_args()


def per_packet(name, command, short, long):
    """Instructions per packet of data that is sent between `short` and `long` seconds.

    `command` makes the command line of a run of so many seconds. The difference of two excludes start-up.
    """
    points = []
    for duration in (short, long):
        instructions, out = count(command(duration))
        points.append((instructions, sum(f["segments_sent"] for f in json.loads(out)["flows"])))
    (few, few_packets), (many, many_packets) = points
    if many_packets <= few_packets:
        raise Unusable(f"{name}: nothing is sent between {short} and {long} s")
    return (many - few) / (many_packets - few_packets)


def measured(args, cells, measure):
    """{cell: what `measure` gives for it}; several cells are measured at a time."""
    if shutil.which("valgrind") is None:
        raise Unusable("valgrind is not installed; on Debian and Ubuntu: apt-get install valgrind")
    require_skyhaul(args.skyhaul)
    with ThreadPoolExecutor(args.jobs) as pool:
        return dict(zip(cells, pool.map(measure, cells), strict=True))


def ending(args, rows, over):
    """Writes the numbers, says which bounds are missed, and returns the exit status."""
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    if over:
        print(f"bound MISSED: {', '.join(over)}")
    return 1 if args.check and over else 0
