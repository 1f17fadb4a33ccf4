#!/usr/bin/env python3
"""Counts the instructions skyhaul executes per delivered segment, and compares with a record.

    cargo build --release
    python3 benches/instructions.py              # exit status 1 if a scenario costs over 5 % more
    python3 benches/instructions.py --quick      # without the scenarios of 20,000 flows, in half the time
    python3 benches/instructions.py --record     # rewrites benches/instructions.json

Each scenario runs for two durations under `valgrind --tool=callgrind`; the difference of the
instruction counts divided by the difference of the delivered segments is the cost of a segment,
free of start-up. Instruction counts hardly depend on the machine's load, so this works in CI,
where times do not. They do depend on the compiler: record again when it changes. At 20,000 flows
the runs are short, since valgrind is some 40 times slower; most of these flows still open their windows.

Exit status 2: something that is needed (valgrind, the program, the scenario file, a record) is
missing or failed.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from skyhaul_cli import (
    CHECKOUT_BINARY,
    ROOT,
    Unusable,
    exit_unusable,
    parse_delivered,
    require_skyhaul,
    skyhaul_command,
)

RECORD = ROOT / "benches" / "instructions.json"
TOLERANCE_PERCENT = 5.0

# Without a handshake, as with ns-2's agents; and with one, as scenarios have it unless they say otherwise.
TWENTY = {"flows": 20}
CONNECTED = {**TWENTY, "handshake": True}
MANY = {"flows": 20_000, "rate": 1_300_000, "buffer": 50_000}
# What Peach and Peach+ need so that probes give way to data.
PRIORITY = {"queue": "strict-pushout"}
# The readings with most dummies and NIL segments.
PEACH = '{ name = "peach", reading = "improved" }'
PEACH_PLUS = '{ name = "peach-plus", reading = "improved" }'

# name -> (the settings that differ from the scenario file, short duration, long duration), in seconds;
# those that take longest come first.
SCENARIOS = {
    "peach-20000": ({**MANY, **PRIORITY, "variant": PEACH}, 1.2, 1.5),
    "bbr-20000": ({**MANY, "variant": "bbr"}, 1.5, 3),
    "sack-20000": (MANY, 1.5, 3),
    "cubic-20000": ({**MANY, "variant": "cubic"}, 1.5, 3),
    "sack-200": ({"flows": 200, "rate": 13000, "buffer": 500}, 5.5, 11),
    "sack-20-lossy": ({**TWENTY, "loss": 0.01}, 22, 110),
    "sack-20": (TWENTY, 22, 55),
    "sack-20-lossless": ({**TWENTY, "loss": 0}, 22, 55),
    "sack-20-modern": ({**TWENTY, "endpoint": "modern"}, 22, 55),
    "newreno-20": ({**TWENTY, "variant": "newreno", "sack": False}, 22, 55),
    "cubic-20": ({**TWENTY, "variant": "cubic"}, 22, 55),
    "peach-20": ({**TWENTY, **PRIORITY, "variant": PEACH}, 22, 55),
    "peach-plus-20": ({**TWENTY, **PRIORITY, "variant": PEACH_PLUS}, 22, 55),
    "bbr-20": ({**TWENTY, "variant": "bbr"}, 22, 55),
    "sack-20-connected": (CONNECTED, 22, 55),
    "sack-20-modern-connected": ({**CONNECTED, "endpoint": "modern"}, 22, 55),
    "cubic-20-connected": ({**CONNECTED, "variant": "cubic"}, 22, 55),
    "peach-20-connected": ({**CONNECTED, **PRIORITY, "variant": PEACH}, 22, 55),
    "peach-plus-20-connected": ({**CONNECTED, **PRIORITY, "variant": PEACH_PLUS}, 22, 55),
    "bbr-20-connected": ({**CONNECTED, "variant": "bbr"}, 22, 55),
}


def count(command):
    """(instructions, standard output) of one run under callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "callgrind.out"
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env={**os.environ, "LC_ALL": "C"},
        )
        if done.returncode != 0:
            raise Unusable(
                f"exit status {done.returncode} under valgrind from: {' '.join(command)}\n"
                f"{done.stderr.strip()[-2000:]}"
            )
        totals = re.search(r"^(?:summary|totals):\s+(\d+)", profile.read_text(errors="replace"), re.M)
    if totals is None:
        raise Unusable("callgrind wrote no instruction count")
    return int(totals.group(1)), done.stdout


def measure(binary, name):
    settings, short, long = SCENARIOS[name]
    points = []
    for duration in (short, long):
        instructions, out = count(skyhaul_command(binary, **settings, duration=duration, seed=1))
        points.append((instructions, parse_delivered(out)))
    (few, few_segments), (many, many_segments) = points
    if many_segments <= few_segments:
        raise Unusable(f"{name}: {few_segments} segments in {short} s but {many_segments} in {long} s")
    per_segment = (many - few) / (many_segments - few_segments)
    return {
        "instructions_per_segment": round(per_segment, 2),
        "startup_instructions": round(few - per_segment * few_segments),
        "segments": many_segments - few_segments,
    }


def compilers():
    rustc = (
        subprocess.run(["rustc", "--version"], capture_output=True, text=True, cwd=ROOT).stdout.strip()
        if shutil.which("rustc")
        else None
    )
    valgrind = subprocess.run(["valgrind", "--version"], capture_output=True, text=True).stdout.strip()
    return {"rustc": rustc, "valgrind": valgrind}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--skyhaul", type=Path, default=CHECKOUT_BINARY, help="the skyhaul program")
    parser.add_argument("--record", action="store_true", help="rewrite the recorded numbers")
    parser.add_argument(
        "--only", action="append", choices=sorted(SCENARIOS), help="compare this scenario only"
    )
    parser.add_argument("--quick", action="store_true", help="leave out the scenarios of 20,000 flows")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="scenarios at a time")
    parser.add_argument("--file", type=Path, default=RECORD, help="the recorded numbers")
    args = parser.parse_args()
    if args.record and args.only:
        parser.error("--record rewrites every scenario; leave --only away")
    if args.quick and (args.record or args.only):
        parser.error("--quick goes neither with --record nor with --only")
    try:
        if shutil.which("valgrind") is None:
            raise Unusable("valgrind is not installed; on Debian and Ubuntu: apt-get install valgrind")
        require_skyhaul(args.skyhaul)
        record = None
        if not args.record:
            if not args.file.is_file():
                raise Unusable(f"no recorded numbers at {args.file}; write them with --record")
            record = json.loads(args.file.read_text())
        failed, cheaper = [], []
        print(f"{'scenario':24} {'instructions/segment':>20} {'recorded':>10} {'change':>8} {'start-up':>12}")
        names = args.only or [n for n in SCENARIOS if not (args.quick and n.endswith("-20000"))]
        for name in names:
            if record is not None and name not in record["scenarios"]:
                raise Unusable(f"no recorded number for {name}; write it with --record")
        with ThreadPoolExecutor(args.jobs) as pool:
            found = pool.map(lambda name: measure(args.skyhaul, name), names)
            measured = dict(zip(names, found, strict=True))
        for name, now in measured.items():
            cost = now["instructions_per_segment"]
            before = change = ""
            if record is not None:
                old = record["scenarios"][name]["instructions_per_segment"]
                percent = 100 * (cost / old - 1)
                before, change = f"{old:.1f}", f"{percent:+.2f} %"
                if percent > TOLERANCE_PERCENT:
                    failed.append(name)
                elif percent < -TOLERANCE_PERCENT:
                    cheaper.append(name)
            print(
                f"{name:24} {cost:20.1f} {before:>10} {change:>8} {now['startup_instructions']:>12}",
                flush=True,
            )
        tools = compilers()
    except Unusable as error:
        return exit_unusable(error)
    if args.record:
        args.file.write_text(
            json.dumps(
                {
                    "what": "instructions per delivered segment, start-up excluded",
                    "produced_by": "python3 benches/instructions.py --record",
                    **tools,
                    "scenarios": measured,
                },
                indent=1,
            )
            + "\n"
        )
        print(f"written: {args.file}")
        return 0
    if cheaper:
        print(f"over {TOLERANCE_PERCENT:g} % cheaper than recorded, record again: {', '.join(cheaper)}")
    if failed:
        print(f"over {TOLERANCE_PERCENT:g} % more instructions than recorded: {', '.join(failed)}")
        if record.get("rustc") != tools["rustc"]:
            print(
                f"(recorded with {record.get('rustc')}, now {tools['rustc']}: the compiler may be the cause)"
            )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
