"""Progress: a function of the caller's, or a bar."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Union


class Progress(NamedTuple):
    """The progress of a call."""

    #: The number of finished runs.
    done: int
    #: The number of all runs; 0 where it is not known, as in the search for a load line.
    total: int
    #: The finished runs and the shares of those under way.
    completed: float
    #: Packets that have completed a link.
    packet_hops: int
    #: What is known so far, in words.
    message: str


#: A function that is called about ten times a second, and cancels the call by returning False; None for a bar on a
#: terminal or in a notebook, if tqdm is installed; False for nothing.
Callback = Union[Callable[[Progress], bool | None], bool, None]
Report = Callable[[int, int, float, int, str], bool | None]


@contextmanager
def reporting(progress: Callback, unit: str = "run") -> Iterator[Report | None]:
    """Yield the function that the compiled module calls."""
    if callable(progress):
        told = progress
        yield lambda *now: told(Progress(*now))
        return
    bar = None if progress is False else _bar(unit, forced=progress is True)
    if bar is None:
        yield None
        return

    def report(done: int, total: int, completed: float, packet_hops: int, message: str) -> None:
        bar.total = total or None
        bar.n = round(completed, 2) if total else done
        if message:
            bar.set_postfix_str(message, refresh=False)
        elif packet_hops:
            bar.set_postfix_str(f"{packet_hops / 1e6:.1f} M packet-hops", refresh=False)
        bar.refresh()

    try:
        yield report
    finally:
        bar.close()


def _bar(unit: str, forced: bool) -> Any:
    in_notebook = "ipykernel" in sys.modules
    if not (forced or in_notebook or sys.stderr.isatty()):
        return None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(total=None, unit=unit, leave=False, bar_format="{l_bar}{bar}| {n:.3g}/{total} {unit}s {postfix}")
