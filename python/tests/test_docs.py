"""The examples of the documentation run as they are, and print what it says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import matplotlib
import pytest

matplotlib.use("Agg")

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["docs/python.md", "python/README.md"])
def test_examples_run_and_print_what_the_page_says(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks: list[tuple[str, str]] = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "example"}
    printed = ""
    ran = 0
    for language, text in blocks:
        if language == "text":
            assert printed.strip() == text.strip(), f"after example {ran} of {page}"
            continue
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(text, f"{page}, example {ran + 1}", "exec"), names)
        printed = "\n".join(line.rstrip() for line in out.getvalue().splitlines())
        ran += 1
    assert ran > 0
