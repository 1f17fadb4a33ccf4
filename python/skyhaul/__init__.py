"""TCP over satellite paths: a deterministic simulator and studies that reproduce papers.

import skyhaul as sh

r = sh.run("preset:peach-geo", set={"links.sat.error.p": 1e-2}, seed=3)
r.flows.to_pandas()
r.plot.cwnd(of="bulk[0]")

found = sh.sweep("preset:peach-geo", {"flows.bulk.cc": ["sack", "peach"], "links.sat.error.p": [1e-3, 1e-2]})

st = sh.study("peach-2001/fig11", seeds=5).run(progress=True)
print(st)

everything = sh.reproduce(quick=True)
everything.claims.to_pandas()
"""

from . import analysis, video
from ._attack import Attack, attack
from ._compare import Comparison, Difference, compare
from ._control import Policy
from ._core import (
    Ack,
    Control,
    ControlError,
    Loss,
    Lost,
    Probe,
    Random,
    RateSample,
    ScenarioError,
    Sent,
    SkyhaulError,
    Start,
    StudyError,
    Transmit,
    __version__,
    presets,
    studies,
)
from ._evaluate import Evaluation, Requirement, evaluate
from ._figure import Figure
from ._plot import Plots
from ._reproduce import Reproduction, reproduce
from ._run import Check, Quantity, Result, check, quantities, run, schema
from ._study import Claim, FailedCell, Outcome, Study, study
from ._sweep import sweep
from ._table import Table

__all__ = [
    "Ack",
    "Attack",
    "Check",
    "Claim",
    "Comparison",
    "Control",
    "ControlError",
    "Difference",
    "Evaluation",
    "FailedCell",
    "Figure",
    "Loss",
    "Lost",
    "Outcome",
    "Plots",
    "Policy",
    "Probe",
    "Quantity",
    "Random",
    "RateSample",
    "Reproduction",
    "Requirement",
    "Result",
    "ScenarioError",
    "Sent",
    "SkyhaulError",
    "Start",
    "Study",
    "StudyError",
    "Table",
    "Transmit",
    "__version__",
    "analysis",
    "attack",
    "check",
    "compare",
    "evaluate",
    "presets",
    "quantities",
    "reproduce",
    "run",
    "schema",
    "studies",
    "study",
    "sweep",
    "video",
]
