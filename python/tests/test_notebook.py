"""The notebook runs from top to bottom."""

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

PATH = Path(__file__).parents[2] / "examples/satellite-tcp.ipynb"


def text_of(cell):
    """What a cell printed, and its value in words."""
    texts = (o.get("text") or o.get("data", {}).get("text/plain", "") for o in cell.outputs)
    return "".join(texts)


def test_the_notebook_runs(tmp_path):
    notebook = nbformat.read(PATH, as_version=4)
    nbformat.validate(notebook)
    code = [c for c in notebook.cells if c.cell_type == "code"]
    # It is kept without outputs, which would change with every version.
    assert all(c.execution_count is None and c.outputs == [] for c in code)
    client = nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    first, table, figure, losses, claim, own = code
    assert "peach" in text_of(first)
    assert "cuts_error" in text_of(table)
    (shown,) = figure.outputs
    spec = shown["data"]["application/vnd.vegalite.v6+json"]
    assert spec["$schema"].endswith(".json")
    assert "bursts" in text_of(losses)
    assert text_of(claim).split(" - ")[0] in {"holds", "differs", "undecided"}
    assert text_of(own).strip().endswith("Mbit/s")
