"""The notebooks of the examples run, in a small form."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

import plimsoll

ROOT = Path(__file__).parents[2]
STUDIES = ["bullettrains", "chronos", "detail", "hull", "qjump", "reactor", "solstice"]
SMALL = 'duration, precision, replicates_max, loads = "1200ms", 0.5, 2, [0.2, 0.4]'


def executed(name: str, folder: Path, parameters: str | None = None) -> list[Any]:
    """Execute a notebook, and return the outputs of its cells."""
    notebook = nbformat.read(ROOT / "examples" / f"{name}.ipynb", as_version=4)
    assert all(not cell.outputs for cell in notebook.cells if cell.cell_type == "code"), "git has no outputs"
    if parameters is not None:
        (cell,) = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
        cell.source = parameters
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def test_the_notebook_draws_a_load_line(tmp_path: Path) -> None:
    outputs = executed("load_line", tmp_path, SMALL)
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    tables = [output for output in outputs if "<table>" in output.get("data", {}).get("text/html", "")]
    assert len(pictures) >= 2 and tables
    assert not any("IProgress not found" in output.get("text", "") for output in outputs)


def test_the_notebook_of_a_training_job_names_links_of_its_critical_path(tmp_path: Path) -> None:
    outputs = executed("training", tmp_path, "iterations, loads = 1, [0.02, 0.2]")
    assert any("image/png" in output.get("data", {}) for output in outputs)
    printed = "".join(output.get("text", "") for output in outputs)
    assert re.search(r"HPCC, random: \d+ us, waited at \S+ -> \S+ \d+ us", printed), printed


def test_the_extra_of_notebooks_has_what_their_progress_bar_needs() -> None:
    required = metadata.requires("plimsoll-net") or []
    notebook = [re.split("[<>= ;]", line)[0] for line in required if line.rstrip("'\"").endswith("notebook")]
    assert {*notebook} >= {"tqdm", "ipywidgets", "ipykernel", "matplotlib"}


@pytest.mark.parametrize("study", STUDIES)
def test_the_notebook_of_a_study_shows_measured_beside_published(study: str, tmp_path: Path) -> None:
    outputs = executed(study, tmp_path)
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert any("</p>" in output.get("data", {}).get("text/html", "") for output in outputs)
    printed = "".join(output.get("text", "") for output in outputs)
    assert re.search(r": \S+ \S+, published \S+", printed), printed


@pytest.mark.parametrize("study", STUDIES)
def test_the_notebook_of_a_study_has_the_counts_of_its_page(study: str) -> None:
    page = (ROOT / "docs" / "reproductions" / f"{study}.md").read_text(encoding="utf-8")
    ledger = re.search(r"\*\*(\d+) held, (\d+) explained, (\d+) open\*\* of (\d+) published", page)
    notebook = nbformat.read(ROOT / "examples" / f"{study}.ipynb", as_version=4)
    counts = re.search(
        r"(\d+) held, (\d+) explained and (\d+)\sopen of (\d+) published", notebook.cells[-1].source
    )
    assert ledger is not None and counts is not None and counts.groups() == ledger.groups()


def test_each_simulated_study_has_a_notebook() -> None:
    with pytest.raises(plimsoll.StudyError) as caught:
        plimsoll.reproduce("none")
    known = re.findall(r"[a-z]+(?:-kernel)?", str(caught.value).split("allowed: ")[1])
    assert sorted(name for name in known if not name.endswith("-kernel")) == STUDIES
