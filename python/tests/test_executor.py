"""Sweeps on executors: nothing is lost or done twice."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest

import plimsoll
from plimsoll import _executor

LOADS = {"workload.background.load": [0.1, 0.2, 0.3]}
SPAWN = multiprocessing.get_context("spawn")


def test_processes_give_the_same_as_threads_here(small: dict[str, Any], tmp_path: Path) -> None:
    here = plimsoll.sweep(small, LOADS, progress=False)
    seen: list[tuple[int, int]] = []

    def progress(now: plimsoll.Progress) -> None:
        seen.append((now.done, now.total))

    with ProcessPoolExecutor(2, mp_context=SPAWN) as pool:
        there = plimsoll.sweep(small, LOADS, executor=pool, out=tmp_path / "run", progress=progress)
        assert there.digest == here.digest and there.summary == here.summary
        assert there.missing == 0 and (tmp_path / "run" / "report.html").exists()
        assert seen[-1] == (6, 6)
        seen.clear()
        again = plimsoll.sweep(small, LOADS, executor=pool, out=tmp_path / "run", progress=progress)
    assert again.digest == here.digest and seen == [], "a finished point is not run again"


class Counting(ThreadPoolExecutor):
    """Counts the points that it is given, and fails for those of ``fails``."""

    def __init__(self, fails: int) -> None:
        super().__init__(1)
        self.points = 0
        self.fails = fails

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.points += 1
        if self.points == self.fails:
            return super().submit(lambda: 1 / 0)
        return super().submit(function, *args, **kwargs)


def test_what_was_finished_before_a_failure_is_kept(small: dict[str, Any], tmp_path: Path) -> None:
    here = plimsoll.sweep(small, LOADS, progress=False)
    first = Counting(fails=4)
    with first, pytest.raises(ZeroDivisionError):
        plimsoll.sweep(small, LOADS, executor=first, out=tmp_path / "run", progress=False)
    kept = len(plimsoll.load(tmp_path / "run").points)
    assert 3 <= kept <= 5
    second = Counting(fails=0)
    with second:
        whole = plimsoll.sweep(small, LOADS, executor=second, out=tmp_path / "run", progress=False)
    assert second.points == 6 - kept and whole.digest == here.digest


def dies_once(mark: str, *args: Any) -> Any:
    """Runs a point, but the first call ends its process in the middle."""
    if not os.path.exists(mark):
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return _executor.run_shard(*args)


def test_a_process_that_dies_loses_nothing(
    small: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = plimsoll.sweep(small, LOADS, progress=False)
    mark = str(tmp_path / "died")

    class Dying(ProcessPoolExecutor):
        def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            return super().submit(dies_once, mark, *args)

    with Dying(1, mp_context=SPAWN) as pool, pytest.raises(BrokenProcessPool):
        plimsoll.sweep(small, LOADS, executor=pool, out=tmp_path / "run", progress=False)
    with Dying(1, mp_context=SPAWN) as pool:
        whole = plimsoll.sweep(small, LOADS, executor=pool, out=tmp_path / "run", progress=False)
    assert whole.digest == here.digest and len(whole.points) == 6


def test_a_cluster_of_dask_survives_a_worker(small: dict[str, Any], tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    longer = {"run.duration": "3s"}
    here = plimsoll.sweep(small, LOADS, set=longer, progress=False)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=str(tmp_path)
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())
        killed: list[int] = []

        def progress(now: plimsoll.Progress) -> None:
            if now.done == 1 and not killed:
                os.kill(pids[0], signal.SIGKILL)
                killed.append(pids[0])

        there = plimsoll.sweep(
            small, LOADS, set=longer, executor=client.get_executor(), out=tmp_path / "run", progress=progress
        )
        deadline = time.monotonic() + 30
        while pids[0] in client.run(os.getpid).values() and time.monotonic() < deadline:
            pass
        assert killed == [pids[0]]
    assert there.digest == here.digest and len(there.points) == 6 and there.missing == 0
