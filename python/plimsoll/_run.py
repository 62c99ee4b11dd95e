"""Runs, sweeps, load lines, comparisons and reproductions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, Union

from . import _plimsoll, _toml
from ._arguments import check
from ._controller import Controller
from ._discipline import Discipline
from ._distribution import Drawn
from ._executor import LinkTasks, map_points
from ._progress import Callback, reporting
from ._results import Comparison, LoadLines, Reproduction, Result
from ._scenario import Scenario, Source

Folder = Union[str, "os.PathLike[str]"]

_UNITS = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def run(
    scenario: Source,
    *,
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    replicates: int | None = None,
    controllers: Mapping[str, type[Controller]] | None = None,
    disciplines: Mapping[str, type[Discipline]] | None = None,
    distributions: Mapping[str, Drawn] | None = None,
    variants: Sequence[str] = (),
    shard: str | None = None,
    threads: int | None = None,
    memory_max: int | str | None = None,
    out: Folder | None = None,
    force: bool = False,
    progress: Callback = None,
    executor: Executor | None = None,
) -> Result:
    """Run every variant, sweep point and replicate of a scenario, on all cores.

    ``set`` overrides keys, ``variants`` runs only these, and ``shard="1/4"`` only the first quarter of the points.
    ``controllers``, ``disciplines`` and ``distributions`` are those of ``Scenario``. ``threads`` does not change
    results. A scenario that needs more memory than ``memory_max`` (``"8GB"``; half of the free memory by default) is
    rejected.

    Results stay in memory; ``out`` also names a run directory, which keeps every finished point: the same call resumes
    after any stop, and ``plimsoll compare`` and ``plimsoll.load`` read it. ``force`` runs all again.

    ``progress`` is called about ten times a second with a ``Progress``, and cancels the call by returning False. By
    default there is a bar if tqdm is installed and stderr is a terminal; False shows none. Ctrl-C raises
    ``KeyboardInterrupt`` as soon as the runs have stopped.

    With ``executor``, such as ``dask.distributed.Client.get_executor()``, its tasks simulate the sampled links of
    approximate runs (``run.approximate``), which all points must be. The outcome does not depend on it.
    """
    check(threads=threads)
    checked = Scenario(
        scenario,
        set=set,
        seed=seed,
        replicates=replicates,
        controllers=controllers,
        disciplines=disciplines,
        distributions=distributions,
    )
    with reporting(progress) as report:
        outcomes = _plimsoll.run(
            checked._checked,
            list(variants),
            shard,
            threads,
            _bytes(memory_max),
            _path(out),
            force,
            None,
            LinkTasks(checked._checked, executor, checked._mechanisms) if executor else None,
            report,
        )
    return Result(outcomes)


def sweep(
    scenario: Source,
    over: Mapping[str, Sequence[Any]] | None = None,
    *,
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    replicates: int | None = None,
    controllers: Mapping[str, type[Controller]] | None = None,
    disciplines: Mapping[str, type[Discipline]] | None = None,
    distributions: Mapping[str, Drawn] | None = None,
    threads: int | None = None,
    memory_max: int | str | None = None,
    out: Folder | None = None,
    force: bool = False,
    progress: Callback = None,
    executor: Executor | None = None,
) -> Result:
    """Run a scenario at every combination of values: ``sweep("quickstart", {"run.warmup": ["1s", "2s"]})``.

    ``over`` is added to the table ``sweep`` of the scenario. The other arguments are those of ``run``.

    With ``executor``, such as a ``concurrent.futures.ProcessPoolExecutor`` or
    ``dask.distributed.Client.get_executor()``, each point is a task of it, and runs on ``threads`` threads (one by
    default). A finished point is checked against its digest and kept in ``out`` before the next, so that no stop loses
    one and the same call resumes.
    """
    check(threads=threads)
    if over is not None and not over:
        raise _plimsoll.PlimsollError(f"over={over!r}: expected at least one key with its values")
    settings = dict(set or {})
    for name, values in (over or {}).items():
        settings[f"sweep.{_toml.value(name)}"] = list(values)
    checked = Scenario(
        scenario,
        set=settings,
        seed=seed,
        replicates=replicates,
        controllers=controllers,
        disciplines=disciplines,
        distributions=distributions,
    )
    if executor is None:
        return run(checked, threads=threads, memory_max=memory_max, out=out, force=force, progress=progress)
    with reporting(progress, "point") as report:
        outcomes = map_points(
            checked._checked,
            executor,
            threads or 1,
            _bytes(memory_max),
            _path(out),
            force,
            checked._mechanisms,
            report,
        )
    return Result(outcomes)


def line(
    scenario: Source,
    slo: str | Sequence[str] = (),
    *,
    over: str | None = None,
    at: float | str | None = None,
    within: tuple[float | str, float | str] | None = None,
    precision: float = 0.05,
    replicates_max: int = 32,
    messages: int | None = None,
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    controllers: Mapping[str, type[Controller]] | None = None,
    disciplines: Mapping[str, type[Discipline]] | None = None,
    distributions: Mapping[str, Drawn] | None = None,
    threads: int | None = None,
    memory_max: int | str | None = None,
    out: Folder | None = None,
    force: bool = False,
    progress: Callback = None,
) -> LoadLines:
    """Find the highest load at which every objective is met, for every variant.

    ``slo`` is an objective, or several: ``"p99(query) < 1ms"``; by default those of the scenario. ``over`` is the key
    of the load to search, ``at`` the load to judge, ``within`` the lowest and the highest load, and ``precision`` the
    largest width of a line's interval as a share of the load. ``messages`` chooses the length of a run by the messages
    that it has. ``controllers``, ``disciplines`` and ``distributions`` are those of ``Scenario``. ``out`` names a run
    directory, which keeps every finished run: the same call resumes after any stop.
    """
    check(threads=threads, replicates_max=replicates_max, messages=messages)
    if not 0.001 <= precision <= 1:
        raise _plimsoll.PlimsollError(f"precision={precision!r}: expected a share from 0.001 to 1")
    checked = Scenario(
        scenario,
        set=set,
        seed=seed,
        replicates=1,
        controllers=controllers,
        disciplines=disciplines,
        distributions=distributions,
    )
    objectives = [slo] if isinstance(slo, str) else list(slo)
    ends = None if within is None else f"{within[0]}..{within[1]}"
    with reporting(progress) as report:
        lines = _plimsoll.line(
            checked._checked,
            objectives,
            over,
            None if at is None else str(at),
            ends,
            precision,
            replicates_max,
            messages,
            threads,
            _bytes(memory_max),
            _path(out),
            force,
            report,
        )
    return LoadLines(lines)


def load(path: Folder) -> Result:
    """Read the finished runs of a run directory."""
    return Result(_plimsoll.load(os.fspath(path)))


def compare(first: Result | Folder, *others: Result | Folder, names: Sequence[str] | None = None) -> Comparison:
    """Compare each variant of the first result with the same variant of the others.

    Every paired difference comes with its 95 % confidence interval. A run that several results contain counts once.
    ``names`` names the results in tables; by default the names of their folders, or numbers.
    """
    results = [each if isinstance(each, Result) else load(each) for each in (first, *others)]
    if names is None:
        names = [result.path.name if result.path else str(at + 1) for at, result in enumerate(results)]
        if len({*names}) < len(names):
            names = [str(result.path or at + 1) for at, result in enumerate(results)]
    if len(names) != len(results):
        raise ValueError(f"{len(results)} results have {len(names)} names")
    return Comparison(_plimsoll.compare([result._outcomes for result in results], list(names)))


def reproduce(
    study: str,
    *,
    quick: bool = False,
    only: str | Sequence[str] = (),
    seed: int = 1,
    threads: int | None = None,
    servers: Folder | None = None,
    out: Folder | None = None,
    progress: Callback = None,
) -> Reproduction:
    """Run a paper's experiments beside their published values: ``reproduce("hull", quick=True)``.

    ``quick`` makes short runs whose tails are not reliable. ``only`` names figures, or some of their points:
    ``"fig9@0.2,0.5"``. ``out`` names a folder for the page, its figures and a journal of finished runs, which the same
    call resumes. Studies whose name ends in ``-kernel`` need a Linux kernel to themselves, and ``servers`` names the
    folder of those programs that they run.
    """
    check(seed=seed, threads=threads)
    parts = [only] if isinstance(only, str) else list(only)
    with reporting(progress) as report:
        rows, ledger, files = _plimsoll.reproduce(
            study, quick, parts, threads, seed, _path(servers), _path(out), report
        )
    return Reproduction(study, rows, ledger, files)


def _path(folder: Folder | None) -> str | None:
    return None if folder is None else str(Path(folder))


def _bytes(size: int | str | None) -> int | None:
    if isinstance(size, str):
        number = size.rstrip("BkKMGT").strip()
        try:
            size = int(float(number) * _UNITS[size[len(number) :].strip()])
        except (ValueError, KeyError, OverflowError):
            raise ValueError(f"memory_max={size!r}: write a size such as '8GB'") from None
    check(memory_max=size)
    return size
