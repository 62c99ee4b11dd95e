"""Checks of arguments: what the command line rejects is rejected here, by the names that it has in Python."""

from __future__ import annotations

import operator
from typing import Any

from ._plimsoll import PlimsollError

#: The least and the greatest value of each whole number.
_RANGES = {
    "seed": (0, 2**64 - 1),
    "replicates": (1, 2**32 - 1),
    "replicates_max": (2, 4096),
    "messages": (1, 2**64 - 1),
    "threads": (1, 2**16 - 1),
    "memory_max": (0, 2**64 - 1),
}


def check(**numbers: object) -> None:
    """Check whole numbers by their names. None stands for the default."""
    for name, value in numbers.items():
        low, high = _RANGES[name]
        if value is not None and not low <= _whole(name, value) <= high:
            raise PlimsollError(f"{name}={value!r}: expected a whole number from {low} to {high}")


def _whole(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}={value!r}: expected a whole number") from None
