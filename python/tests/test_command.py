"""The command of the package is the command of the compiled program; what it does is tested there."""

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

import skyhaul


def command(*args):
    return subprocess.run(
        [sys.executable, "-m", "skyhaul", *args], capture_output=True, text=True, timeout=120, check=False
    )


def test_version():
    assert command("--version").stdout == f"skyhaul {skyhaul.__version__}\n"
    assert importlib.metadata.version("skyhaul") == skyhaul.__version__


def test_run_and_status():
    done = command("run", "preset:peach-geo", "--set", "duration=2s")
    assert done.returncode == 0
    assert all(line.startswith("skyhaul: warning: ") for line in done.stderr.splitlines())
    assert "bulk" in done.stdout
    bad = command("run", "preset:peach-geo", "--set", "links.sat.error.p=1.2")
    assert bad.returncode == 2
    assert bad.stdout == ""
    assert bad.stderr.count("\n") == 1


def test_the_console_script_is_there():
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="skyhaul")
    assert script.load() is not None


def test_the_report_of_a_study_has_pictures(tmp_path):
    pytest.importorskip("vl_convert")
    out = tmp_path / "out"
    args = ["--seeds", "2", "--set", "duration=5s", "--cache", str(tmp_path / "cache"), "--out", str(out)]
    done = command("study", "report", "peach-2001/fig11", *args)
    assert (done.returncode, done.stderr) == (0, "")
    assert list((out / "figures").glob("*.png"))


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs Linux and root")
def test_programs_run_behind_an_emulated_link(tmp_path):
    """The command starts itself again in the same environment: its script, a link to it, the module."""
    scenario = tmp_path / "short.toml"
    scenario.write_text(
        'schema = 1\nduration = "60 s"\n[links.sat]\nrate = "10 Mbit/s"\ndelay = "5 ms"\n'
        'queue = "50 packets"\n[flows.bulk]\ncc = "sack"\n'
    )

    def run(line):
        return subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)

    script = Path(sys.executable).with_name("skyhaul")
    link = tmp_path / "linked"
    link.symlink_to(script)
    for front in ([script], [link], [sys.executable, "-m", "skyhaul"]):
        line = ["unshare", "-n", *front, "emulate", scenario, "--"]
        done = run([*line, "sh", "-c", "echo here; exit 3"])
        assert (done.returncode, done.stdout) == (3, "here\n"), done.stderr
        assert "ModuleNotFoundError" not in done.stderr
        done = run([*line, "/no/such/program"])
        assert done.returncode == 127
        lines = [text for text in done.stderr.splitlines() if "warning: " not in text]
        assert lines == ["skyhaul: cannot start /no/such/program: no such program"]
