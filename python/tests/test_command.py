"""The command of the package is the command of the compiled program; what it does is tested there."""

import importlib.metadata
import subprocess
import sys

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
