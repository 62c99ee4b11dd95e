"""Runs: what they return, keep, resume and compare; progress and how they end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import plimsoll
from plimsoll import _results


def test_a_result_has_numbers_with_intervals(result: plimsoll.Result) -> None:
    assert [point.variant for point in result.points] == ["TCP", "DCTCP"]
    assert result.missing == 0 and result.path is None and result.title == "small"
    p50 = result.workload("small", "DCTCP")["completion_us"]["p50"]
    assert 20 < p50["value"] < 1000 and p50["samples"] > 100
    assert "Completion times" in str(result)
    assert '<th colspan="2">queue client (switch 0 -&gt; h0)</th>' in result._repr_html_()
    assert "<code>--replicates N</code>" in result._repr_html_() and "**" not in result._repr_html_()
    assert result.report().startswith("<!doctype html>") or "<html" in result.report()[:200]
    with pytest.raises(KeyError, match="there are TCP, DCTCP"):
        result.cell("HULL")


def test_a_measure_is_one_number_of_each_run(result: plimsoll.Result) -> None:
    measured = result.measure("p99(small)")
    assert [one.point.variant for one in measured] == ["TCP", "DCTCP"]
    for one in measured:
        summary = result.workload("small", one.point.variant)["completion_us"]["p99"]["value"]
        assert one.value == pytest.approx(summary, rel=1e-3) and one.samples > 100
        assert one.interval is None or one.interval[0] <= one.value <= one.interval[1]
    assert result.measure("mean(queue.client)")[0].value is not None
    for wrong, message in [("p99(smal)", "did you mean `small`"), ("p99 small", "p99 small"), ("p9x(small)", "p9x")]:
        with pytest.raises(plimsoll.ObjectiveError, match=message):
            result.measure(wrong)


def test_a_notebook_shows_tables_without_the_marks_of_markdown() -> None:
    markdown = """**a \\| b**

| variant | x \\> y: p50 us | x \\> y: p99 us | runs |
|---|---:|---:|---:|
| TCP\\_2 | **18.1** (16.0 .. 20.2) |  | **always** |

* `a\\_b` & c
"""
    assert _results._tables(markdown) == (
        "<p><b>a | b</b></p><table><thead>"
        '<tr><th rowspan="2">variant</th><th colspan="2">x &gt; y</th><th rowspan="2">runs</th></tr>'
        "<tr><th>p50 us</th><th>p99 us</th></tr></thead><tbody>"
        "<tr><td>TCP_2</td><td><b>18.1</b> (16.0 .. 20.2)</td><td></td><td><b>always</b></td></tr></tbody></table>"
        "<ul><li><code>a_b</code> &amp; c</li></ul>"
    )


def test_a_run_is_that_of_the_command(tmp_path: Path, small: dict[str, Any], result: plimsoll.Result) -> None:
    """The same scenario has the same digests by the command, by another number of threads, and by this module."""
    file = tmp_path / "small.toml"
    file.write_text(plimsoll.Scenario(small).text)
    command = [sys.executable, "-m", "plimsoll", "run", str(file), "--out", str(tmp_path / "run"), "--quiet"]
    subprocess.run(command, check=True, capture_output=True)
    of_command = plimsoll.load(tmp_path / "run")
    assert of_command.digest == result.digest
    assert plimsoll.run(small, threads=1).digest == result.digest
    assert plimsoll.run(small, seed=2).digest != result.digest


def test_a_run_directory_is_kept_and_resumed(tmp_path: Path, small: dict[str, Any], result: plimsoll.Result) -> None:
    out = tmp_path / "run"
    half = plimsoll.run(small, variants=["TCP"], out=out)
    assert half.missing == 1 and len(half.points) == 1
    seen: list[plimsoll.Progress] = []

    def progress(now: plimsoll.Progress) -> None:
        seen.append(now)

    whole = plimsoll.run(small, out=out, progress=progress)
    assert (whole.missing, whole.digest) == (0, result.digest)
    assert seen[-1].done == seen[-1].total == 1, "only the other variant is run"
    assert (out / "report.html").exists() and whole.path == out
    assert plimsoll.load(out).summary == whole.summary
    # The command that a run directory names resumes it.
    words = whole.command.split()
    command = [sys.executable, "-m", *words, "--out", str(out)]
    repeated = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "2 of 2 points are finished already" in repeated.stderr
    with pytest.raises(plimsoll.RunDirectoryError, match="holds another run"):
        plimsoll.run(small, seed=2, out=out)
    assert plimsoll.run(small, seed=2, out=out, force=True).seed == 2


def test_variants_and_shards(small: dict[str, Any]) -> None:
    with pytest.raises(plimsoll.PlimsollError, match="unknown variant `HULL`: expected one of TCP, DCTCP"):
        plimsoll.run(small, variants=["HULL"])
    assert [point.variant for point in plimsoll.run(small, shard="2/2").points] == ["DCTCP"]
    with pytest.raises(plimsoll.PlimsollError, match="write I/N"):
        plimsoll.run(small, shard="3/2")


def test_arguments_that_the_command_rejects_are_rejected(small: dict[str, Any]) -> None:
    for wrong, message in [
        (lambda: plimsoll.run(small, threads=0), "threads=0: expected a whole number from 1 to 65535"),
        (lambda: plimsoll.run(small, replicates=0), "replicates=0: expected a whole number from 1"),
        (lambda: plimsoll.run(small, seed=-1), "seed=-1: expected a whole number from 0"),
        (lambda: plimsoll.run(small, seed=2**64), "seed=18446744073709551616: expected a whole number from 0"),
        (lambda: plimsoll.run(small, memory_max=-1), "memory_max=-1: expected a whole number from 0"),
        (lambda: plimsoll.sweep(small, {}), "over={}: expected at least one key"),
        (lambda: plimsoll.sweep(small, threads=0), "threads=0: expected"),
        (lambda: plimsoll.line(small, replicates_max=1), "replicates_max=1: expected a whole number from 2 to 4096"),
        (lambda: plimsoll.line(small, precision=0), "precision=0: expected a share from 0.001 to 1"),
        (lambda: plimsoll.reproduce("hull", seed=-1), "seed=-1: expected"),
    ]:
        with pytest.raises(plimsoll.PlimsollError, match=re.escape(message)):
            wrong()
    with pytest.raises(TypeError, match="seed='one': expected a whole number"):
        plimsoll.run(small, seed="one")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="the scenario is 3; allowed: a path, the name of a built-in scenario"):
        plimsoll.run(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="memory_max='x GB': write a size such as '8GB'"):
        plimsoll.run(small, memory_max="x GB")


def test_a_sweep_has_a_point_for_each_value(swept: plimsoll.Result) -> None:
    assert len(swept.points) == 4
    assert swept.points[0].sweep == {"workload.background.load": "0.2"}
    mean = [swept.workload("small", "TCP", load=load)["completion_us"]["mean"]["value"] for load in (0.2, 0.4)]
    assert mean[0] < mean[1]
    with pytest.raises(KeyError, match="swept are workload.background.load"):
        swept.cell("TCP", load=0.9)


def test_progress_can_cancel(small: dict[str, Any], tmp_path: Path) -> None:
    long = {"run.duration": "1000s", "workload.background.load": 0.5}
    with pytest.raises(plimsoll.Cancelled, match="returned False"):
        plimsoll.run(small, set=long, progress=lambda now: now.packet_hops == 0)
    with pytest.raises(ZeroDivisionError):
        plimsoll.run(small, set=long, progress=lambda now: bool(1 / 0))


def test_other_threads_of_python_go_on(small: dict[str, Any]) -> None:
    """A run holds no lock of Python: a thread that counts does so meanwhile."""
    counted = [0]
    over = threading.Event()

    def count() -> None:
        while not over.is_set():
            counted[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    thread.start()
    before = counted[0]
    plimsoll.run(small, set={"run.duration": "2s"}, threads=1, progress=False)
    after = counted[0]
    over.set()
    thread.join()
    assert after - before > 100


def test_ctrl_c_ends_a_run_and_keeps_what_is_finished(small: dict[str, Any], tmp_path: Path) -> None:
    script = f"""
import plimsoll
try:
    plimsoll.run({small!r}, set={{"run.duration": "1000s"}}, progress=lambda now: print("under way", flush=True))
except KeyboardInterrupt:
    print("interrupted")
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "under way\n"
    os.kill(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=20)
    assert said.splitlines()[-1] == "interrupted" and process.returncode == 0


def test_memory_is_bounded(small: dict[str, Any]) -> None:
    with pytest.raises(plimsoll.TooLargeError, match="memory_max") as caught:
        plimsoll.run(small, set={"run.duration": "100000s"}, memory_max="100MB")
    assert caught.value.key.startswith("workload.")


def test_results_side_by_side(small: dict[str, Any], result: plimsoll.Result) -> None:
    faster = plimsoll.run(small, set={"workload.background.load": 0.1})
    compared = plimsoll.compare(result, faster, names=["today", "less"])
    assert compared.summary["variants"] == ["TCP (today)", "TCP (less)", "DCTCP (today)", "DCTCP (less)"]
    assert compared.summary["comparisons"] and "TCP (less)" in str(compared)
    again = plimsoll.compare(result, result, names=["one", "two"])
    assert again.summary["variants"] == ["TCP (one)", "DCTCP (one)"], "the same runs count once"


def test_runs_without_a_common_workload_are_not_compared(result: plimsoll.Result, small: dict[str, Any]) -> None:
    other = plimsoll.run({**small, "workload": {"bulk": small["workload"]["background"]}}, progress=False)
    with pytest.raises(plimsoll.PlimsollError, match="2 cannot be compared with 1: no workload is in both"):
        plimsoll.compare(result, other)


def test_the_load_line(small: dict[str, Any]) -> None:
    lines = plimsoll.line(
        small, "p99(small) < 2ms", at=0.3, within=(0.05, 0.9), precision=0.3, replicates_max=8, progress=False
    )
    assert [line.name for line in lines.variants] == ["TCP", "DCTCP"]
    tcp = lines["TCP"]
    assert tcp.found in {"line", "always", "never", "undecided"}
    assert (tcp.load is not None) == (tcp.found == "line")
    assert str(lines).startswith("Load line of workload.background.load for p99(small) < 2ms")
    with pytest.raises(plimsoll.ObjectiveError, match="no workload `smal`") as caught:
        plimsoll.line(small, "p99(smal) < 2ms")
    assert "did you mean" in str(caught.value) and "--" not in str(caught.value)
    with pytest.raises(plimsoll.ObjectiveError, match="did you mean `background`?"):
        plimsoll.line(small, "p99(small) < 2ms", over="backgroundd")


def test_a_reproduction_has_published_values(tmp_path: Path) -> None:
    reproduction = plimsoll.reproduce("solstice", quick=True, only="unit", out=tmp_path, progress=False)
    assert reproduction.rows and (tmp_path / "solstice.md").exists()
    with pytest.raises(plimsoll.StudyError, match="did you mean `hull`"):
        plimsoll.reproduce("hul")
