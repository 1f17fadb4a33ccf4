"""Reports of progress: in a pipe, on a terminal, in a notebook, and to a function."""

import io
import subprocess
import sys
import types

import pytest

from skyhaul import _progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def reported(monkeypatch, stream, total=200):
    """What a reporter writes to standard error."""
    monkeypatch.setattr(sys, "stderr", stream)
    report = _progress.reporter(True)
    for done in range(total + 1):
        report(done, total, "cc = sack, loss = 1e-2 " * 20)
    return stream.getvalue()


def test_a_pipe_gets_few_whole_lines(monkeypatch):
    lines = reported(monkeypatch, io.StringIO()).splitlines()
    assert lines == [f"{n} of 200 cells" for n in range(0, 201, 20)]


def test_a_terminal_gets_one_line_no_wider_than_it_is(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    text = reported(monkeypatch, Terminal())
    assert text.count("\n") == 1
    assert text.endswith("\n")
    *_, last = text.strip("\n").split("\r")
    assert last.startswith("200 of 200 cells")
    assert max(map(len, text.split("\r"))) <= 60


def test_a_function_is_called_as_it_is_and_false_reports_nothing():
    def own(done, total, label):
        pass

    assert _progress.reporter(own) is own
    assert _progress.reporter(False) is None


def test_a_notebook_gets_one_output_that_changes(monkeypatch):
    display = pytest.importorskip("IPython.display")
    outputs = []

    class Handle:
        def update(self, shown, raw):
            outputs[-1] = shown

    def first(shown, raw, display_id):
        outputs.append(shown)
        return Handle()

    monkeypatch.setattr(display, "display", first)
    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: shell)
    assert reported(monkeypatch, io.StringIO()) == ""
    assert len(outputs) == 1
    assert outputs[0]["text/plain"] == "200 of 200 cells"
    assert 'value="200" max="200"' in outputs[0]["text/html"]


def test_a_study_in_a_pipe():
    program = (
        "import skyhaul as sh; axes = {'flows.bulk.count': [1, 2]};"
        "sh.sweep('preset:peach-geo', axes, set={'duration': '1 s'}, seeds=1, progress=True)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "\r" not in done.stderr
    assert done.stderr.splitlines()[-1] == "2 of 2 cells"
