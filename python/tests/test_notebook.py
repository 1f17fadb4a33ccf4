"""The notebook runs from top to bottom, and the programs that show it show its figure."""

import base64
import contextlib
import os
import re
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from pixels import browser, near, png, screenshot

from skyhaul._plot import PALETTE

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

PATH = Path(__file__).parents[2] / "examples/satellite-tcp.ipynb"


def text_of(cell):
    """What a cell printed, and its value in words."""
    texts = (o.get("text") or o.get("data", {}).get("text/plain", "") for o in cell.outputs)
    return "".join(texts)


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """The notebook with its outputs."""
    notebook = nbformat.read(PATH, as_version=4)
    nbformat.validate(notebook)
    # It is kept without outputs, which would change with every version.
    code = [c for c in notebook.cells if c.cell_type == "code"]
    assert all(c.execution_count is None and c.outputs == [] for c in code)
    where = {"metadata": {"path": str(tmp_path_factory.mktemp("notebook"))}}
    nbclient.NotebookClient(notebook, timeout=600, resources=where).execute()
    nbformat.validate(notebook)
    return notebook


def figure_of(notebook):
    """The output of the cell that shows the figure."""
    (shown,) = [
        o
        for c in notebook.cells
        if c.cell_type == "code"
        for o in c.outputs
        if "application/vnd.vegalite.v6+json" in o.get("data", {})
    ]
    return shown


def test_the_notebook_runs(executed):
    first, table, _figure, losses, claim, own = (c for c in executed.cells if c.cell_type == "code")
    assert "peach" in text_of(first)
    assert "cuts_error" in text_of(table)
    assert "bursts" in text_of(losses)
    assert text_of(claim).split(" - ")[0] in {"holds", "differs", "undecided"}
    assert text_of(own).strip().endswith("Mbit/s")


def test_the_figure_has_its_specification_and_an_image(executed):
    pytest.importorskip("vl_convert")
    shown = figure_of(executed)
    assert shown["data"]["application/vnd.vegalite.v6+json"]["$schema"].endswith(".json")
    width, height, colours = png(base64.b64decode(shown["data"]["image/png"]))
    assert shown["metadata"]["image/png"] == {"width": width // 2, "height": height // 2}
    assert all(near(colours, color) > 100 for color in PALETTE[:5])


def test_nbconvert_shows_the_figure(executed, tmp_path):
    nbconvert = pytest.importorskip("nbconvert")
    if not browser():
        pytest.skip("no Chromium")
    html, _ = nbconvert.HTMLExporter().from_notebook_node(executed)
    (image,) = re.findall(r'<img[^>]* src="data:image/png;base64,([^"]+)"[^>]*>', html)
    assert base64.b64decode(image).startswith(b"\x89PNG")
    page = tmp_path / "page.html"
    page.write_text(html, encoding="utf-8")
    _, _, colours = screenshot(page.as_uri(), tmp_path)
    # Colours of the curves, which nothing else on the page has.
    assert all(near(colours, color) > 50 for color in PALETTE[:5]), colours.most_common(20)
    # Without the image they are not there.
    page.write_text(re.sub(r"<img[^>]*>", "", html), encoding="utf-8")
    _, _, colours = screenshot(page.as_uri(), tmp_path)
    assert not any(near(colours, color, by=2) > 50 for color in PALETTE[:5])


@contextlib.contextmanager
def jupyterlab(folder, token):
    """The address of a server that shows the notebooks of a folder."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    line = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}"]
    line += ["--ip=127.0.0.1", f"--ServerApp.root_dir={folder}", f"--IdentityProvider.token={token}"]
    homes = {f"JUPYTER_{name}_DIR": str(folder / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(line, env={**os.environ, **homes}, stdout=log, stderr=log)
        try:
            address = f"http://127.0.0.1:{port}"
            deadline = time.monotonic() + 120
            while True:
                try:
                    urllib.request.urlopen(f"{address}/api/status?token={token}", timeout=5).close()
                    break
                except (urllib.error.URLError, OSError):
                    assert server.poll() is None, (folder / "server.log").read_text()
                    assert time.monotonic() < deadline, (folder / "server.log").read_text()
                    time.sleep(0.5)
            yield address
        finally:
            server.terminate()
            server.wait()


@pytest.mark.optional
def test_jupyterlab_shows_the_figure(executed, tmp_path):
    """JupyterLab 4.6 draws specifications up to version 5: without the image it shows the name alone."""
    pytest.importorskip("jupyterlab")
    pytest.importorskip("vl_convert")
    if not browser():
        pytest.skip("no Chromium")
    folder = tmp_path / "notebooks"
    folder.mkdir()
    # The figure alone. Without the metadata of a kernel, JupyterLab would open a dialog above it.
    cell = nbformat.v4.new_code_cell("outcome", outputs=[figure_of(executed)])
    alone = nbformat.v4.new_notebook(cells=[cell], metadata=executed.metadata)
    nbformat.write(alone, folder / "figure.ipynb")
    token = secrets.token_hex(16)
    with jupyterlab(folder, token) as address:
        page = f"{address}/lab/tree/figure.ipynb?token={token}"
        _, _, colours = screenshot(page, tmp_path, size=(1400, 1000), wait_ms=60_000)
    assert all(near(colours, color) > 50 for color in PALETTE[:5]), colours.most_common(20)
