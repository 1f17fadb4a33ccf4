"""The programs: whether they are there, which version they are, how one run is started, what it prints."""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from skyhaul_cli import DATAGRAMS, SCENARIO, Unusable, require_skyhaul, run_child

HERE = Path(__file__).resolve().parent
TCL = HERE / "ns2" / "geo_bulk.tcl"
CC = HERE / "ns3" / "geo_bulk.cc"
NS3_LIBRARIES = ["point-to-point", "internet", "traffic-control", "network", "core"]


class Missing(Unusable):
    """A peer is not installed; the message names the package."""


@dataclass(frozen=True)
class Result:
    """What a run delivered: segments acknowledged in order, and counters of all flows together."""

    segments: int
    retransmissions: int
    timeouts: int


def digest(*paths):
    """Hash of the content of files."""
    sha = hashlib.sha256()
    for path in paths:
        sha.update(Path(path).read_bytes())
    return sha.hexdigest()[:16]


def last_object(text, program):
    """The JSON object in the last line of what a peer printed."""
    lines = text.strip().splitlines()
    try:
        return json.loads(lines[-1])
    except (IndexError, ValueError) as error:
        raise Unusable(f"{program} printed no JSON object in its last line") from error


def of_peer(text, program):
    """The result in what a peer printed."""
    try:
        o = last_object(text, program)
        if o.get("connections_that_died"):
            raise Unusable(f"{program}: {o['connections_that_died']} connections were given up")
        return Result(o["total_acked_segments"], o["total_retransmitted_packets"], o["total_timeouts"])
    except (KeyError, TypeError, AttributeError) as error:
        raise Unusable(f"the output of {program} is not as benches/peers expects: {error!r}") from error


def of_skyhaul(text):
    """The result in what `skyhaul run --json` printed."""
    try:
        flows = json.loads(text)["flows"]
        total = [sum(f[key] for f in flows) for key in ("unique_segments", "retransmissions", "timeouts")]
    except (ValueError, KeyError, TypeError) as error:
        raise Unusable(f"the output of skyhaul is not as benches/peers expects: {error!r}") from error
    return Result(int(total[0]), *total[1:])


def package_version(package):
    """Version of a Debian package, None where there is no dpkg or no such package."""
    if shutil.which("dpkg-query") is None:
        return None
    query = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True)
    return query.stdout.strip() or None


class Ns2:
    """ns-2, started with ns2/geo_bulk.tcl."""

    name = "ns2"

    def __init__(self):
        if shutil.which("ns") is None:
            raise Missing("ns-2 is not installed; on Debian and Ubuntu: apt-get install ns2")
        with tempfile.NamedTemporaryFile("w", suffix=".tcl") as script:
            script.write("puts [ns-version]\n")
            script.flush()
            self.version = run_child(["ns", script.name]).stdout.strip()
        self.package = package_version("ns2")
        self.files = digest(TCL)

    def command(self, run):
        return [
            "ns", TCL, "-variant", run.pair.theirs, "-loss", run.loss, "-seed", run.seed,
            "-duration", f"{run.duration:g}", "-window", run.pair.window,
            *(part for key, value in run.pair.options for part in (f"-{key}", value)),
        ]  # fmt: skip

    def result(self, text):
        return of_peer(text, "ns2/geo_bulk.tcl")


class Ns3:
    """ns-3, started with the program compiled from ns3/geo_bulk.cc."""

    name = "ns3"

    def __init__(self, folder):
        self.package = package_version("libns3-dev")
        self.version = self._version()
        self.files = digest(CC)
        compiler = os.environ.get("CXX", "g++")
        if shutil.which(compiler) is None:
            raise Missing(f"ns-3 needs a C++ compiler, and there is no {compiler}: apt-get install g++")
        self.program = Path(folder) / f"ns3-geo-bulk-{self.version}-{self.files}"
        if not self.program.is_file():
            self._compile(compiler)

    @staticmethod
    def _version():
        missing = Missing(
            "ns-3 is not installed; on Debian and Ubuntu: apt-get install libns3-dev g++ pkg-config"
        )
        if shutil.which("pkg-config") is None:
            raise missing
        for name in ("ns3-core", "libns3-core"):
            query = subprocess.run(["pkg-config", "--modversion", name], capture_output=True, text=True)
            if query.returncode == 0:
                return query.stdout.strip()
        raise missing

    def _compile(self, compiler):
        self.program.parent.mkdir(parents=True, exist_ok=True)
        # Beside its final name, so that an interrupted compilation leaves nothing that looks finished.
        with tempfile.TemporaryDirectory(dir=self.program.parent) as folder:
            fresh = Path(folder) / "program"
            libraries = [f"-lns3-{name}" for name in NS3_LIBRARIES]
            run_child([compiler, "-std=c++17", "-O2", "-o", fresh, CC, *libraries])
            fresh.replace(self.program)

    def command(self, run):
        return [
            self.program, f"--cc={run.pair.theirs}", f"--loss={run.loss!r}", f"--seed={run.seed}",
            f"--duration={run.duration:g}", f"--window={run.pair.window}",
            *(f"--{key}={value}" for key, value in run.pair.options),
        ]  # fmt: skip

    def result(self, text):
        return of_peer(text, "ns3/geo_bulk.cc")


class Skyhaul:
    """The program under test."""

    name = "skyhaul"

    def __init__(self, binary):
        require_skyhaul(binary)
        self.binary = Path(binary)
        self.version = run_child([self.binary, "--version"]).stdout.split()[-1]
        self.package = None
        # Any change of the program may change results.
        self.files = digest(self.binary, SCENARIO, DATAGRAMS)

    def command(self, run):
        if run.pair.transport:
            settings = {
                "links.sat.error.p": repr(run.loss),
                "flows.bulk.transport": run.pair.transport,
                "duration": f"{run.duration:g} s",
            }
            return self._run(DATAGRAMS, settings, run.seed)
        settings = {
            "links.sat.error.p": repr(run.loss),
            "flows.bulk.cc": run.pair.control,
            "flows.bulk.endpoint": "{ " + run.pair.endpoint + " }",
            "flows.bulk.rwnd": f"{run.pair.window} segments",
            "flows.bulk.handshake": "true",
            "duration": f"{run.duration:g} s",
        }
        if run.pair.queue:
            settings["links.sat.queue"] = run.pair.queue
        return self._run(SCENARIO, settings, run.seed)

    def _run(self, scenario, settings, seed):
        sets = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
        return [self.binary, "run", scenario, *sets, "--seed", seed, "--json"]

    def result(self, text):
        return of_skyhaul(text)


def simulate(simulator, run):
    """One run, from start to result."""
    return simulator.result(run_child(simulator.command(run)).stdout)
