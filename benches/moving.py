#!/usr/bin/env python3
"""Instructions per packet of a link whose satellites move, relative to one with a constant delay.

    cargo build --profile packaged
    python3 benches/moving.py
    python3 benches/moving.py --check      # exit status 1 if a moving link costs more than it may
    python3 benches/moving.py --json FILE

Twenty greedy flows share one link in low orbits. A link that moves has its satellites looked for each
second, its delay computed ten times a second, and an event for each packet that waits, since nobody
knows yet how long it will take; one that stays foresees departures. As in `instructions.py`, each runs
for two durations under callgrind, so that start-up does not count, and a packet is one of data that was
sent.
"""

import sys

from packets import ending, measured, options, per_packet
from skyhaul_cli import LOW_ORBIT, Unusable, exit_unusable, scenario_command

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

    def command(duration):
        return scenario_command(binary, LOW_ORBIT, [f"duration={duration} s", CELLS[name][0]])

    return per_packet(name, command, SHORT, LONG)


def main():
    args = options(__doc__)
    try:
        found = measured(args, CELLS, lambda name: measure(args.skyhaul, name))
    except Unusable as error:
        return exit_unusable(error)
    over = []
    print(f"{'link':16} {'instructions/packet':>20} {'against fixed':>14} {'bound':>6}")
    for name, (_, bounded) in CELLS.items():
        ratio = found[name] / found["fixed"]
        print(f"{name:16} {found[name]:20.0f} {ratio:14.2f} {f'{BOUND:g}' if bounded else '':>6}")
        if bounded and ratio > BOUND:
            over.append(f"{name} ({ratio:.2f})")
    return ending(args, [{"link": name, "per_packet": cost} for name, cost in found.items()], over)


if __name__ == "__main__":
    sys.exit(main())
