#!/usr/bin/env python3
"""Instructions per packet of a link whose satellites move, relative to one with a constant delay.

    cargo build --profile packaged
    python3 benches/moving.py
    python3 benches/moving.py --check      # exit status 1 if a moving link costs more than it may
    python3 benches/moving.py --json FILE

Twenty greedy flows share one link in low orbits. For a link that moves, the simulator searches satellites
every second, computes the delay ten times a second, and needs an event for each packet that waits, since its
departure is not known in advance; for a link with a constant delay it is. As in `instructions.py`, each runs
for two durations under callgrind, so that start-up does not count. Packets are those of data that were sent.
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
