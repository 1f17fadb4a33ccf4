"""How the bench scripts call the skyhaul program. This file alone knows

  - the scenario file,
  - the names of the settings in it (for --set key=value) and how their values are written,
  - the fields of the JSON that `skyhaul run ... --json` prints.

When the scenario format or the result format changes, this file changes and no other script does.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Times are those of the program that packages contain. Instructions are counted in that of a checkout,
# which CI builds anyway.
DEFAULT_BINARY = ROOT / "target" / "packaged" / "skyhaul"
CHECKOUT_BINARY = ROOT / "target" / "release" / "skyhaul"

SCENARIO = ROOT / "benches" / "scenarios" / "ns2-geo-sack.toml"
DATAGRAMS = ROOT / "benches" / "scenarios" / "geo-tfrc.toml"
LOW_ORBIT = ROOT / "benches" / "scenarios" / "leo-bulk.toml"

# our parameter -> (key for --set, how its value is written)
SETTINGS = {
    "flows": ("flows.bulk.count", str),
    "variant": ("flows.bulk.cc", str),
    "sack": ("flows.bulk.endpoint.sack", lambda on: "true" if on else "false"),
    "rate": ("links.sat.rate", lambda packets: f"{packets:.0f} packets/s"),
    "endpoint": ("flows.bulk.endpoint.preset", str),
    "handshake": ("flows.bulk.handshake", lambda on: "true" if on else "false"),
    "queue": ("links.sat.queue.kind", str),
    "buffer": ("links.sat.queue.limit", lambda packets: f"{packets:.0f} packets"),
    "loss": ("links.sat.error.p", str),
    "duration": ("duration", lambda seconds: f"{seconds:g} s"),
    "seed": ("seed", str),
}


def segments(flow):
    """Distinct segments acknowledged, of one flow in that JSON. Older programs say `segments_acked`."""
    return flow["unique_segments"] if "unique_segments" in flow else flow["segments_acked"]


def delivered_segments(result):
    """The same over all flows, from the parsed JSON of one run."""
    return sum(segments(flow) for flow in result["flows"])


class Unusable(Exception):
    """A program or file that is needed is missing or does not work; the script exits with 2."""


@dataclass
class Child:
    """One finished program: what it printed, its CPU seconds (user + system) and its memory."""

    stdout: str
    cpu_s: float
    peak_kib: int | None = None


def run_child(command, *, memory=False):
    """Runs `command` and waits for it with wait4.

    The peak that wait4 reports for a direct child is never below this interpreter's own peak,
    because the child shares its memory until exec. So, with memory=True, GNU time starts the
    program and reports its peak; the CPU time then includes GNU time's own (under 1 ms).
    """
    command = [str(part) for part in command]
    with (
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
        tempfile.NamedTemporaryFile("r") as peak,
    ):
        full = ["/usr/bin/time", "-o", peak.name, "-f", "%M", *command] if memory else command
        try:
            child = subprocess.Popen(full, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        except OSError as error:
            hint = " (GNU time; on Debian and Ubuntu: apt-get install time)" if memory else ""
            raise Unusable(f"cannot start {full[0]}{hint}: {error.strerror}") from error
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if child.returncode != 0:
            output = err.read().strip()[-2000:]
            raise Unusable(f"exit status {child.returncode} from: {' '.join(command)}\n{output}")
        kib = int(peak.read().split()[-1]) if memory else None
        return Child(out.read(), usage.ru_utime + usage.ru_stime, kib)


def require_skyhaul(binary):
    """Raises Unusable unless the program and the scenario file are there."""
    binary = Path(binary)
    if not (binary.is_file() and os.access(binary, os.X_OK)):
        raise Unusable(
            f"no skyhaul program at {binary}; build it with: cargo build --profile {binary.parent.name} "
            "(or name another one with --skyhaul)"
        )
    if not SCENARIO.is_file():
        raise Unusable(f"the scenario file {SCENARIO.relative_to(ROOT)} is missing")


def skyhaul_command(binary, **parameters):
    """The command line of one run; parameters are keys of SETTINGS."""
    command = [str(binary), "run", str(SCENARIO)]
    for name, value in parameters.items():
        key, write = SETTINGS[name]
        command += ["--set", f"{key}={write(value)}"]
    return [*command, "--json"]


def scenario_command(binary, scenario, settings):
    """The command line of a run of another scenario file, with `settings` as KEY=VALUE."""
    return [str(binary), "run", str(scenario), *[x for s in settings for x in ("--set", s)], "--json"]


def parse_delivered(stdout):
    """The delivered segments from what `skyhaul run --json` printed."""
    try:
        return delivered_segments(json.loads(stdout))
    except (ValueError, KeyError, TypeError) as error:
        raise Unusable(
            f"the output of skyhaul is not as benches/skyhaul_cli.py expects: {error!r}"
        ) from error


def exit_unusable(error):
    """Prints what is missing; returns the exit status for it."""
    print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
    return 2
