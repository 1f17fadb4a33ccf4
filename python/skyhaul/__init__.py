"""TCP over satellite paths: a deterministic simulator and studies that reproduce papers.

import skyhaul as sh

r = sh.run("preset:peach-geo", set={"links.sat.error.p": 1e-2}, seed=3)
r.flows.to_pandas()

st = sh.study("peach-2001/fig11", seeds=5).run(progress=True)
print(st)

everything = sh.reproduce(quick=True)
everything.claims.to_pandas()
"""

from . import analysis, video
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
from ._reproduce import Reproduction, reproduce
from ._run import Check, Quantity, Result, check, quantities, run, schema
from ._study import Claim, FailedCell, Figure, Outcome, Study, study
from ._table import Table

__all__ = [
    "Ack",
    "Check",
    "Claim",
    "Control",
    "ControlError",
    "FailedCell",
    "Figure",
    "Loss",
    "Lost",
    "Outcome",
    "Policy",
    "Probe",
    "Quantity",
    "Random",
    "RateSample",
    "Reproduction",
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
    "check",
    "presets",
    "quantities",
    "reproduce",
    "run",
    "schema",
    "studies",
    "study",
    "video",
]
