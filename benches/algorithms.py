#!/usr/bin/env python3
"""Instructions per segment of every built-in congestion control, relative to NewReno with SACK.

    cargo build --profile packaged
    python3 benches/algorithms.py              # exit status 1 if a control costs more than it may
    python3 benches/algorithms.py --json FILE

Twenty flows share the GEO channel of scenarios/ns2-geo-sack.toml, at two loss rates. As in `instructions.py`,
each runs for two durations under callgrind, so that start-up does not count. Two costs are given: per
*delivered* segment, which charges a control for its retransmissions, its probes and the time that it leaves
the channel empty, and per *sent* packet of data or probe, which is closer to what its code costs. The bound
is on the first: 1.5 times `sack`, and 2 times for those that keep a model of the path or a history of
acknowledgements (BBR, ABSE).
"""

import argparse
import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from instructions import count
from skyhaul_cli import (
    DEFAULT_BINARY,
    Unusable,
    exit_unusable,
    require_skyhaul,
    segments,
    skyhaul_command,
)

SHORT, LONG = 22, 55
LOSSES = (1e-3, 1e-2)
BOUND, WIDE_BOUND = 1.5, 2.0
WIDE = {"bbr", "bbr3", "westwood-abse"}
# These controls need a queue with priorities; that of the scenario has none.
PRIORITY = {"peach", "peach-plus", "fast-start"}


def controls(binary):
    """The names of all built-in controls, from the schema that the program prints."""
    done = subprocess.run([binary, "schema", "scenario"], capture_output=True, text=True)
    if done.returncode != 0:
        raise Unusable(f"{binary} schema scenario: {done.stderr.strip()}")
    names = set()

    def walk(node):
        if isinstance(node, dict):
            name = node.get("properties", {}).get("name", {})
            if isinstance(name, dict) and "const" in name:
                names.add(name["const"])
            for child in node.values():
                walk(child)
        elif isinstance(node, list):
            for child in node:
                walk(child)

    walk(json.loads(done.stdout))
    return sorted(names - {"user"})


def totals(stdout):
    """Segments delivered, and packets of data and probes sent."""
    flows = json.loads(stdout)["flows"]
    return (
        sum(segments(f) for f in flows),
        sum(f["segments_sent"] + f["probes_sent"] for f in flows),
    )


def measure(binary, name, loss):
    points = []
    for duration in (SHORT, LONG):
        command = skyhaul_command(binary, flows=20, variant=name, loss=loss, duration=duration, seed=1)
        if name in PRIORITY:
            command += ["--set", "links.sat.queue.kind=strict-pushout"]
        instructions, out = count(command)
        points.append((instructions, *totals(out)))
    (few, few_delivered, few_sent), (many, many_delivered, many_sent) = points
    if many_delivered <= few_delivered:
        raise Unusable(f"{name}: nothing is delivered between {SHORT} and {LONG} s")
    return {
        "per_delivered": (many - few) / (many_delivered - few_delivered),
        "per_sent": (many - few) / (many_sent - few_sent),
        "delivered_per_s": (many_delivered - few_delivered) / (LONG - SHORT),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--skyhaul", type=Path, default=DEFAULT_BINARY, help="the skyhaul program")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--json", type=Path, help="write the numbers here")
    args = parser.parse_args()
    try:
        if shutil.which("valgrind") is None:
            raise Unusable("valgrind is not installed; on Debian and Ubuntu: apt-get install valgrind")
        require_skyhaul(args.skyhaul)
        names = controls(args.skyhaul)
        if "sack" not in names:
            raise Unusable(f"the schema lists no `sack` among {', '.join(names)}")
        cells = [(name, loss) for name in names for loss in LOSSES]
        with ThreadPoolExecutor(args.jobs) as pool:
            found = dict(zip(cells, pool.map(lambda c: measure(args.skyhaul, *c), cells), strict=True))
    except Unusable as error:
        return exit_unusable(error)
    over = []
    heads = "".join(f" | loss {loss:g}: delivered     sent  segments/s" for loss in LOSSES)
    print(f"{'control':14}{heads} | bound")
    for name in names:
        bound = WIDE_BOUND if name in WIDE else BOUND
        line = f"{name:14}"
        for loss in LOSSES:
            here, base = found[name, loss], found["sack", loss]
            ratio = here["per_delivered"] / base["per_delivered"]
            sent = here["per_sent"] / base["per_sent"]
            line += f" | {ratio:20.2f} {sent:8.2f} {here['delivered_per_s']:11.0f}"
            if ratio > bound:
                over.append(f"{name} at {loss:g} ({ratio:.2f})")
        print(f"{line} | {bound:g}")
    for loss in LOSSES:
        print(f"1 is {found['sack', loss]['per_delivered']:.0f} instructions at {loss:g}")
    if args.json:
        rows = [{"control": n, "loss": loss, **row} for (n, loss), row in found.items()]
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    if over:
        print(f"over the bound: {', '.join(over)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
