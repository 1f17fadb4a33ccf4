#!/usr/bin/env python3
"""The cost of a control in Python per delivered segment, against the built-in SACK in the same process.

    make bench-python

Every control does what SACK does, so that all runs handle the same events. Each repetition runs all of
them in turn; ratios are taken within a repetition, in CPU time, and given as median (range).
"""

import argparse
import statistics
import sys
import time

import skyhaul as sh


class Simple(sh.Control):
    """Growth and reduction in Python."""

    def increase(self, ack):
        return 1 / self.cwnd

    def reduction(self, loss):
        return 0.5


class EveryAck(sh.Control):
    """Every acknowledgement in Python, with the usual things done by super()."""

    def on_ack(self, ack):
        super().on_ack(ack)


class Everything(Simple):
    """All events in Python, with a look at some facts."""

    def on_start(self, start):
        super().on_start(start)
        self.seen = 0

    def on_ack(self, ack):
        self.seen += 1
        if ack.kind == "new" and self.srtt and self.in_flight > self.cwnd + self.rwnd:
            self.seen = 0
        super().on_ack(ack)

    def on_congestion(self, loss):
        super().on_congestion(loss)

    def on_recovered(self):
        super().on_recovered()

    def on_sent(self, sent):
        self.seen += sent.length

    def on_transmit(self, transmit):
        self.seen += transmit.sent


CONTROLS = {"nothing overridden": sh.Control, "simple": Simple, "on_ack": EveryAck, "everything": Everything}


def measure(cc, duration):
    """(CPU seconds, delivered segments, measurements of the flows) of one run."""
    changes = {"duration": f"{duration} s", "flows.bulk.cc": cc, "flows.bulk.count": 20, "record.series": []}
    controls = {name.replace(" ", "-"): cls for name, cls in CONTROLS.items()}
    before = time.process_time()
    r = sh.run("preset:peach-geo", set=changes, controls=controls)
    took = time.process_time() - before
    return took, sum(f["unique_segments"] for f in r.summary["flows"]), r.summary["flows"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--duration", type=float, default=200, help="simulated seconds")
    args = parser.parse_args()
    costs = {name: [] for name in ["sack", *CONTROLS]}
    for _ in range(args.repetitions):
        results = {}
        for name in costs:
            cc = name if name == "sack" else f"user:{name.replace(' ', '-')}"
            took, segments, results[name] = measure(cc, args.duration)
            costs[name].append(took / segments)
        if any(r != results["sack"] for r in results.values()):
            print("python_control.py: a control in Python does not do what sack does", file=sys.stderr)
            return 1
    print(f"{'control':<20} {'µs per segment':>16}   against sack, median (range of {args.repetitions})")
    for name, all_of in costs.items():
        ratios = [c / s for c, s in zip(all_of, costs["sack"], strict=True)]
        ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} – {max(ratios):.2f})"
        print(f"{name:<20} {1e6 * statistics.median(all_of):>16.2f}   {ratio}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
