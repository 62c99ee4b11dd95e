"""The notebook of the examples runs, in a small form."""

from __future__ import annotations

from pathlib import Path

import nbclient
import nbformat

NOTEBOOK = Path(__file__).parents[2] / "examples" / "load_line.ipynb"
SMALL = 'duration, precision, replicates_max, loads = "1200ms", 0.5, 2, [0.2, 0.4]'


def test_the_notebook_draws_a_load_line(tmp_path: Path) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    (parameters,) = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    parameters.source = SMALL
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    tables = [output for output in outputs if "<table>" in output.get("data", {}).get("text/html", "")]
    assert len(pictures) >= 2 and tables
