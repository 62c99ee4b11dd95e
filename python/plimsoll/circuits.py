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
    rows: list[list[int]] = matrix.tolist() if hasattr(matrix, "tolist") else [list(row) for row in matrix]
    days, residue, total_ps, night_ps = _plimsoll.schedule(rows, scheduler, circuit_rate, packet_rate, night, window)
    configurations = [Configuration(receivers, duration_ps / 1e6) for duration_ps, receivers in days]
    return Schedule(configurations, residue, total_ps / 1e6, night_ps / 1e6)
