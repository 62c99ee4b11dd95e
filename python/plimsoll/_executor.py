"""Points, and links of approximate runs, as tasks of an executor: other processes, or other machines.

A task of ``map_points`` is a shard of one point. It runs in a folder of its own, whose files travel back as bytes and
are merged by their digests, so that a task that was executed twice counts once. A task of ``LinkTasks`` simulates some
links of a point, and its answer is text.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, CancelledError, Executor, Future, as_completed, wait
from pathlib import Path
from typing import Any

from . import _plimsoll
from ._mechanisms import Mechanisms
from ._progress import Report

Files = dict[str, bytes]


def map_points(
    scenario: _plimsoll.Scenario,
    executor: Executor,
    threads: int,
    memory_max: int | None,
    out: str | None,
    force: bool,
    mechanisms: Mechanisms,
    report: Report | None,
) -> _plimsoll.Outcomes:
    """Run each point that ``out`` does not have as a task of ``executor``, and merge what comes back."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = out or str(Path(temporary) / "merged")
        # Makes or resumes the run directory, and runs nothing: the shard is that of no point.
        points = len(scenario.points)
        empty = _plimsoll.run(scenario, [], f"{points + 1}/{points + 1}", 1, memory_max, folder, force, None, None, None)
        have = {(variant, tuple(sweep), replicate) for variant, sweep, replicate, *_ in empty.points}
        text = scenario.recorded()
        command = empty.command
        futures: list[Future[Files]] = []
        seen = set(have)
        for index, (variant, sweep, replicate, *_) in enumerate(scenario.points):
            key = (variant, tuple(sweep), replicate)
            if key not in seen:
                seen.add(key)
                shard = f"{index + 1}/{points}"
                futures.append(executor.submit(run_shard, text, shard, threads, memory_max, command, mechanisms))
        error = _collect(futures, folder, Path(temporary) / "shard", report)
        if error is not None:
            raise error
        # Every point is there, so that this only reads and summarizes them.
        return _plimsoll.run(scenario, [], None, 1, memory_max, folder, False, command, None, None)


def _collect(futures: list[Future[Files]], folder: str, shard: Path, report: Report | None) -> BaseException | None:
    """Keep each finished point at once, and return the first error; what has finished by then is kept, too."""
    error: BaseException | None = None
    done = 0
    try:
        for future in as_completed(futures):
            failed = CancelledError() if future.cancelled() else future.exception()
            if failed is None:
                _keep(future.result(), folder, shard)
                done += 1
            elif error is None:
                error = failed
            if error is None and report and report(done, len(futures), float(done), 0, "") is False:
                error = _plimsoll.Cancelled("the progress function returned False")
            if error is not None:
                _cancel(futures)
    except BaseException:
        _cancel(futures)
        raise
    return error


def _cancel(futures: Sequence[Future[Any]]) -> None:
    for future in futures:
        future.cancel()


def run_shard(
    text: str, shard: str, threads: int, memory_max: int | None, command: str, mechanisms: Mechanisms
) -> Files:
    """Run a shard, and return the files of its run directory. This is what a worker executes."""
    scenario = _plimsoll.Scenario.parse("scenario.toml", text, ".", [], None, None, mechanisms, {})
    with tempfile.TemporaryDirectory() as folder:
        _plimsoll.run(scenario, [], shard, threads, memory_max, folder, False, command, None, None)
        root = Path(folder)
        return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if _is_kept(path)}


def _is_kept(path: Path) -> bool:
    return path.is_file() and path.name not in {".lock", "report.html"}


def _keep(files: Files, folder: str, shard: Path) -> None:
    for name, content in files.items():
        path = shard / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    _plimsoll.merge(folder, [str(shard)])
    # The next shard has its own files only.
    for name in files:
        (shard / name).unlink()
    for path in sorted(shard.rglob("*"), reverse=True):
        path.rmdir()


_LINKS_OF_A_TASK = 8
"""So many links share one reading of the scenario."""


class LinkTasks:
    """Links of the points of a scenario, as tasks of an executor."""

    def __init__(self, scenario: _plimsoll.Scenario, executor: Executor, mechanisms: Mechanisms) -> None:
        self._text = scenario.recorded()
        self._executor = executor
        self._mechanisms = mechanisms

    def __call__(self, point: int, links: list[str]) -> SubmittedLinks:
        parts = [links[at : at + _LINKS_OF_A_TASK] for at in range(0, len(links), _LINKS_OF_A_TASK)]
        return SubmittedLinks(
            [(self._executor.submit(run_links, self._text, point, part, self._mechanisms), len(part)) for part in parts]
        )


class SubmittedLinks:
    """Tasks whose answers are awaited, each with the number of its links."""

    def __init__(self, tasks: list[tuple[Future[list[str]], int]]) -> None:
        self._tasks = tasks

    def wait(self, seconds: float) -> int:
        """Wait for at most this long, and return how many links are done; raise the first error of a task."""
        futures = [future for future, _ in self._tasks]
        done = wait(futures, seconds, FIRST_EXCEPTION).done
        try:
            for future in done:
                future.result()
        except BaseException:
            _cancel(futures)
            raise
        return sum(links for future, links in self._tasks if future in done)

    def cancel(self) -> None:
        _cancel([future for future, _ in self._tasks])

    def answers(self) -> list[str]:
        return [answer for future, _ in self._tasks for answer in future.result()]


def run_links(text: str, point: int, links: list[str], mechanisms: Mechanisms) -> list[str]:
    """Simulate links of a point, and return their answers. This is what a worker executes."""
    scenario = _plimsoll.Scenario.parse("scenario.toml", text, ".", [], None, None, mechanisms, {})
    return _plimsoll.run_links(scenario, point, links)


__all__ = ["LinkTasks", "map_points", "run_links", "run_shard"]
