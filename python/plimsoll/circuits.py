"""Schedules of the circuits of a hybrid network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from . import _plimsoll

Scheduler = Literal["solstice", "bvn", "islip", "tms", "eclipse", "rotor"]


@dataclass(frozen=True)
class Configuration:
    """The circuits of a day, and its length."""

    #: The receiver of each sender; None where the sender has no circuit.
    receivers: list[int | None]
    duration_us: float


@dataclass(frozen=True)
class Schedule:
    """Configurations in their order, and what they leave to the packet switch."""

    configurations: list[Configuration]
    #: The bytes that no circuit has time for: a row for each sender.
    residue: list[list[int]]
    #: The length of all days and nights.
    total_us: float
    #: How long the circuit switch is dark before each configuration.
    night_us: float


def schedule(
    demand: Sequence[Sequence[int]] | Any,
    scheduler: Scheduler = "solstice",
    *,
    circuit_rate: str = "100Gbps",
    packet_rate: str = "10Gbps",
    night: str = "20us",
    window: str = "3ms",
) -> Schedule:
    """Compute the circuits that serve a demand: a square matrix of bytes, with a row for each sender.

    ``demand`` is a list of lists or an array. ``packet_rate`` is that of a port's link to the packet switch, ``night``
    how long the circuit switch is dark before each configuration, and ``window`` the time in which the demand comes
    together.
    """
    matrix: Any = demand
    try:
        rows: list[list[int]] = [list(row) for row in (matrix.tolist() if hasattr(matrix, "tolist") else matrix)]
    except TypeError:
        raise TypeError(f"the demand is {demand!r}; allowed: a row of bytes for each sender") from None
    try:
        answer = _plimsoll.schedule(rows, scheduler, circuit_rate, packet_rate, night, window)
    except (OverflowError, TypeError):
        _check_bytes(rows)
        raise
    days, residue, total_ps, night_ps = answer
    configurations = [Configuration(receivers, duration_ps / 1e6) for duration_ps, receivers in days]
    return Schedule(configurations, residue, total_ps / 1e6, night_ps / 1e6)


def _check_bytes(rows: list[list[Any]]) -> None:
    """Check that each value of a demand is a whole number of bytes."""
    for sender, row in enumerate(rows):
        for receiver, size in enumerate(row):
            if not (hasattr(size, "__index__") and 0 <= size < 2**64):
                where = f"the demand of sender {sender} to receiver {receiver}"
                raise _plimsoll.ModelError(f"{where} is {size!r}; allowed: a whole number of bytes of at least 0")
