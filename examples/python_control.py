#!/usr/bin/env python3
"""A custom congestion control compared with built-in ones: python examples/python_control.py

Constant-rate growth (Floyd 1991; Henderson, Sahouria, McCanne, Katz 1998): in congestion avoidance a
connection gains the same rate per second regardless of its RTT. The same control in Rust is
examples/rust-control.
"""

import sys

import skyhaul as sh


class ConstantRate(sh.Control):
    """Adds (RTT / reference)² segments per RTT, at most `most`; a loss leaves the fraction `beta`."""

    def __init__(self, reference_rtt_ms: float = 100.0, most: float = 20.0, beta: float = 0.5) -> None:
        if reference_rtt_ms <= 0:
            raise ValueError("reference-rtt-ms is a time in milliseconds, above 0")
        self.reference = reference_rtt_ms / 1000  # s
        self.most = most
        self.beta = beta

    def increase(self, ack: sh.Ack) -> float:
        rtts = (self.srtt or self.reference) / self.reference
        per_rtt = min(max(rtts * rtts, 1.0), self.most)
        return per_rtt * min(ack.acked, self.cwnd) / self.cwnd

    def reduction(self, loss: sh.Loss) -> float:
        return self.beta


STUDY = """
schema = 1
title = "Constant-rate growth over a GEO link"
scenario = "preset:peach-geo"
set = { duration = "60 s", "flows.bulk.count" = 5, "flows.bulk.rwnd" = "256 segments" }
seeds = { first = 1, count = 3 }

[[axis]]
name = "loss"
path = "links.sat.error.p"
values = [1e-3, 1e-2]

[[axis]]
name = "cc"
path = "flows.bulk.cc"
values = [
  "newreno",
  "hybla",
  { value = "user:constant-rate", label = "constant rate" },
  { value = { name = "user", control = "constant-rate", options = { most = 5 } }, label = "at most 5" },
]

[[metric]]
name = "goodput"
from = "flow.unique_segments / run.duration"
over = "sum"
unit = "segments/s"

[[claim]]
id = "1"
says = "It is ahead of NewReno at both loss rates"
for_each = ["loss"]
check = { kind = "greater", metric = "goodput", left = { cc = "constant rate" }, right = { cc = "newreno" } }
"""


def main() -> int:
    study = sh.study("constant-rate", text=STUDY, controls={"constant-rate": ConstantRate})
    outcome = study.run()
    print(outcome)
    for row in outcome.summary["values"]:
        at, goodput = row["at"], row["metrics"]["goodput (segments/s)"]
        print(f"{at['loss']:>6}  {at['cc']:<14} {goodput['mean']:8.1f}")
    return 2 if outcome.failed else 0


if __name__ == "__main__":
    sys.exit(main())
