"""The command that the wheel installs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas

import plimsoll


def command(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("plimsoll")
    return subprocess.run([str(program), *words], cwd=folder, capture_output=True, text=True)


def test_the_command_runs_a_built_in_scenario(tmp_path: Path) -> None:
    ran = command("run", "quickstart", "--set", "run.duration=1200ms", folder=tmp_path)
    assert ran.returncode == 0 and ran.stdout.startswith("Completion times"), ran.stderr
    assert "Repeat   plimsoll run quickstart --set run.duration=1200ms --seed 1" in ran.stderr
    (out,) = (tmp_path / "results").iterdir()
    assert plimsoll.load(out).command.startswith("plimsoll run quickstart")


def test_parquet_is_in_the_wheel_and_reads_back(tmp_path: Path) -> None:
    words = ("run", "quickstart", "--set", "run.duration=1200ms", "--out")
    for columns in ("csv", "parquet"):
        ran = command(*words, columns, "--columns", columns, folder=tmp_path)
        assert ran.returncode == 0, ran.stderr
    text, typed = plimsoll.load(tmp_path / "csv"), plimsoll.load(tmp_path / "parquet")
    assert text.digest == typed.digest
    first = sorted((tmp_path / "parquet" / "points").glob("*/messages.parquet"))[0]
    frame = pandas.read_parquet(first)
    beside = pandas.read_csv(tmp_path / "csv" / first.relative_to(tmp_path / "parquet").with_suffix(".csv"))
    assert len(frame) > 100 and frame["completed_ps"].sum() == beside["completed_ps"].sum()


def test_exit_statuses(tmp_path: Path) -> None:
    assert command("--version", folder=tmp_path).stdout.startswith("plimsoll ")
    missing = command("run", "quikstart", folder=tmp_path)
    assert missing.returncode == 2 and "did you mean `quickstart`?" in missing.stderr
    assert command("scenario", "list", folder=tmp_path).returncode == 0
    words = ["line", "quickstart", "--slo", "p99(small) < 1us", "--at", "0.4", "--set", "run.duration=1100ms"]
    assert command(*words, "--replicates-max", "2", folder=tmp_path).returncode == 1
