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


@pytest.fixture
def approximate() -> dict[str, Any]:
    return {
        "version": 1,
        "title": "links as tasks",
        "run": {"duration": "4ms", "approximate": {"links": 10}},
        "topology": {
            "kind": "leaf-spine",
            "leaves": 4,
            "spines": 2,
            "hosts_per_leaf": 4,
            "rate": "10Gbps",
            "fabric_rate": "40Gbps",
            "delay": "1us",
        },
        "transport": {"kind": "dctcp", "connections": "per-message", "handshake": False, "min_rto": "5ms"},
        "port": {"switch": {"ecn": {"threshold": "100KB"}, "buffer": "2MB"}},
        "workload": {"all": {"kind": "all-to-all", "load": 0.4, "size": "20KB"}},
        "sweep": {"run.seed": [1, 2]},
    }


def test_links_in_other_processes_give_the_same_as_threads_here(
    approximate: dict[str, Any], small: dict[str, Any]
) -> None:
    here = plimsoll.run(approximate, progress=False)
    with ProcessPoolExecutor(2, mp_context=SPAWN) as pool:
        there = plimsoll.run(approximate, executor=pool, progress=False)
        assert there.digest == here.digest and there.summary == here.summary
        with pytest.raises(plimsoll.PlimsollError, match="is a whole run"):
            plimsoll.run(small, executor=pool, progress=False)
        with pytest.raises(plimsoll.Cancelled):
            plimsoll.run(approximate, executor=pool, progress=lambda _: False)


def test_an_error_of_a_task_of_links_is_raised(approximate: dict[str, Any]) -> None:
    failing = Counting(fails=2)
    with failing, pytest.raises(ZeroDivisionError):
        plimsoll.run(approximate, executor=failing, progress=False)


def test_a_cluster_of_dask_repeats_the_links_of_a_worker_that_dies(
    approximate: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed")
    here = plimsoll.run(approximate, progress=False)
    mark = str(tmp_path / "died")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=str(tmp_path)
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        executor = client.get_executor()
        submit = executor.submit
        monkeypatch.setattr(executor, "submit", lambda function, *args: submit(links_die_once, mark, *args))
        there = plimsoll.run(approximate, executor=executor, progress=False)
    assert os.path.exists(mark) and there.digest == here.digest


def links_die_once(mark: str, *args: Any) -> Any:
    """Simulates links, but the first call ends its process."""
    if not os.path.exists(mark):
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return _executor.run_links(*args)
