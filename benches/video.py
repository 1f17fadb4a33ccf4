#!/usr/bin/env python3
"""Instructions per packet of a cell with video, relative to a cell with bulk transfers.

    cargo build --profile packaged
    python3 benches/video.py
    python3 benches/video.py --check      # exit status 1 if video costs more than it may
    python3 benches/video.py --json FILE

Twenty flows of SACK share the GEO channel of `instructions.py`: greedy, or each with a film of 320 kbit/s and
its viewer, which watches every packet. As in `instructions.py`, each runs for two durations under callgrind,
so that start-up does not count. Packets are those of data that were sent: a film's frames end in short
packets, so the cost of a delivered byte is another quantity. Films over TFRC are compared with greedy flows
over TFRC.

A second ratio separates the cost of video from that of any sender limited by its application: it is against
frames of constant size, which end in short packets as a film's do, and which nobody watches. Bulk data in
packets of a film's mean length is shown, too. Every cell over TCP acknowledges each packet.
"""

import sys

from packets import ending, measured, options, per_packet
from skyhaul_cli import DATAGRAMS, Unusable, exit_unusable, scenario_command, skyhaul_command

SHORT, LONG = 22, 110
# A viewer judges one frame at a time: a study of films may take half as long again as one of bulk data.
BOUND = 1.8
FILM = 'flows.bulk.app={ kind = "video", rate = "320 kbit/s" }'
# As many frames a second as the film has, each of its mean size.
FRAMES = 'flows.bulk.app={ kind = "cbr", rate = "320 kbit/s", packet = "1600 B" }'
SHORT_PACKETS = 'flows.bulk.endpoint.mss="700 B"'
LOSSES = (0, 1e-3, 1e-2)


def over_datagrams(binary, duration, loss, *sets):
    """A run of the scenario of datagrams that keep to a rate."""
    settings = [f"duration={duration} s", f"links.sat.error.p={loss}", *sets]
    return scenario_command(binary, DATAGRAMS, settings)


def stream(binary, duration, loss, *sets):
    """A run of the scenario of greedy flows of SACK."""
    command = skyhaul_command(binary, flows=20, variant="sack", loss=loss, duration=duration, seed=1)
    return [*command[:-1], *[x for s in sets for x in ("--set", s)], "--json"]


# name -> (how it is run, with what, what it is held against, and as a second ratio)
CELLS = {
    "bulk over SACK": (stream, [], None, None),
    "the same, short": (stream, [SHORT_PACKETS], "bulk over SACK", None),
    "frames over SACK": (stream, [FRAMES], "bulk over SACK", None),
    "video over SACK": (stream, [FILM], "bulk over SACK", "frames over SACK"),
    "bulk over TFRC": (over_datagrams, [], None, None),
    "video over TFRC": (over_datagrams, [FILM], "bulk over TFRC", None),
}
# Datagrams cost less than segments: a viewer weighs more beside them. The bound is for films over TCP.
BOUNDED = {"video over SACK"}


def measure(binary, name, loss):
    """Instructions per packet sent."""
    run, sets, *_ = CELLS[name]
    return per_packet(name, lambda duration: run(binary, duration, loss, *sets), SHORT, LONG)


def main():
    args = options(__doc__)
    cells = [(name, loss) for name in CELLS for loss in LOSSES]
    try:
        found = measured(args, cells, lambda cell: measure(args.skyhaul, *cell))
    except Unusable as error:
        return exit_unusable(error)
    over = []
    print(
        f"{'cell':16} {'loss':>6} {'instructions/packet':>20} {'against bulk':>13} {'bound':>6}"
        f" {'against frames':>15}"
    )
    for name, loss in cells:
        ratios = [found[name, loss] / found[other, loss] if other else None for other in CELLS[name][2:]]
        bound = BOUND if name in BOUNDED else None
        against, frames = ("" if ratio is None else f"{ratio:.2f}" for ratio in ratios)
        shown = "" if bound is None else f"{bound:g}"
        print(f"{name:16} {loss:6g} {found[name, loss]:20.0f} {against:>13} {shown:>6} {frames:>15}")
        if bound is not None and ratios[0] > bound:
            over.append(f"{name} at {loss:g} ({against})")
    return ending(
        args,
        [{"cell": n, "loss": loss, "per_packet": cost} for (n, loss), cost in found.items()],
        over,
    )


if __name__ == "__main__":
    sys.exit(main())
