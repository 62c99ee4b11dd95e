"""Points as tasks of an executor: other processes, or other machines.

Each task is a shard of one point. It runs in a folder of its own, whose files travel back as bytes and are merged by
their digests, so that a task that was executed twice counts once.
"""

from __future__ import annotations

import tempfile
from concurrent.futures import CancelledError, Executor, Future, as_completed
from pathlib import Path

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
        empty = _plimsoll.run(scenario, [], f"{points + 1}/{points + 1}", 1, memory_max, folder, force, None, None)
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
        return _plimsoll.run(scenario, [], None, 1, memory_max, folder, False, command, None)


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


def _cancel(futures: list[Future[Files]]) -> None:
    for future in futures:
        future.cancel()


def run_shard(
    text: str, shard: str, threads: int, memory_max: int | None, command: str, mechanisms: Mechanisms
) -> Files:
    """Run a shard, and return the files of its run directory. This is what a worker executes."""
    scenario = _plimsoll.Scenario.parse("scenario.toml", text, ".", [], None, None, mechanisms, {})
    with tempfile.TemporaryDirectory() as folder:
        _plimsoll.run(scenario, [], shard, threads, memory_max, folder, False, command, None)
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


__all__ = ["map_points", "run_shard"]
