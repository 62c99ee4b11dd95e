"""Distributions of times and sizes that are functions or samples in Python."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Literal, Union

#: A function that draws one value by the random numbers that it gets.
Draw = Callable[[random.Random], float]
#: What can be a distribution: one, a function that draws microseconds, or samples in microseconds.
Drawn = Union["Distribution", Draw, Iterable[float]]
Unit = Literal["ps", "ns", "us", "ms", "s", "bytes"]

_UNITS = ("ps", "ns", "us", "ms", "s", "bytes")
_DRAWS_MAX = 1_000_000


class Distribution:
    """Samples of times or sizes, from which a workload draws.

    ``of`` is a function of a ``random.Random``, called ``draws`` times with one that has the seed ``seed``, or the
    samples themselves. ``unit`` is that of the samples: ``us`` (the default), another unit of time, or ``bytes``.

    A workload draws each sample with the same probability and nothing else, so that its mean is ``mean``. The
    simulator makes no call into Python.
    """

    def __init__(
        self, of: Draw | Iterable[float], *, unit: Unit = "us", draws: int = 10_000, seed: int = 1
    ) -> None:
        if unit not in _UNITS:
            raise ValueError(f"invalid unit {unit!r}; allowed: {', '.join(_UNITS)}")
        if callable(of):
            if not 1 <= draws <= _DRAWS_MAX:
                raise ValueError(f"invalid draws={draws}; allowed: 1 to {_DRAWS_MAX:,}")
            numbers = random.Random(seed)
            of = [of(numbers) for _ in range(draws)]
        self.unit: Unit = unit
        #: The samples, sorted.
        self.samples: list[float] = sorted(self._checked(at, sample) for at, sample in enumerate(of))
        if not 1 <= len(self.samples) <= _DRAWS_MAX:
            raise ValueError(f"{len(self.samples)} samples; allowed: 1 to {_DRAWS_MAX:,}")

    def _checked(self, at: int, sample: float) -> float:
        least = 1 if self.unit == "bytes" else 0
        try:
            number = float(sample)
        except (TypeError, ValueError):
            raise ValueError(f"sample {at} is {sample!r}; allowed: numbers of {self.unit}") from None
        if not (math.isfinite(number) and number >= least):
            raise ValueError(f"sample {at} is {sample!r} {self.unit}; allowed: finite numbers of at least {least}")
        return number

    @property
    def mean(self) -> float:
        """The mean of the samples, which is that of what a workload draws."""
        return statistics.fmean(self.samples)

    @property
    def standard_error(self) -> float:
        """The standard error of the mean as an estimate of the function's: the standard deviation / sqrt(samples)."""
        count = len(self.samples)
        return statistics.stdev(self.samples) / math.sqrt(count) if count > 1 else math.inf

    @property
    def csv(self) -> str:
        """The cumulative distribution as a scenario reads it: a step at each sample."""
        rows = [f"{self.unit},cdf"]
        count, below = len(self.samples), 0
        for value, same in groupby(format(sample, ".12g") for sample in self.samples):
            upto = below + sum(1 for _ in same)
            rows += [f"{value},{below / count:.10g}", f"{value},{upto / count:.10g}"]
            below = upto
        return "\n".join(rows) + "\n"

    def __repr__(self) -> str:
        return f"<Distribution of {len(self.samples)} samples: mean {self.mean:.4g} {self.unit}>"


def file_of(name: str, drawn: Drawn) -> str:
    """Return the text of the file ``name`` that a distribution takes the place of."""
    try:
        return (drawn if isinstance(drawn, Distribution) else Distribution(drawn)).csv
    except ValueError as error:
        raise ValueError(f"distributions[{name!r}]: {error}") from error
    except TypeError as error:
        if callable(drawn):
            raise
        allowed = "a function of a random.Random, samples, or a plimsoll.Distribution"
        raise TypeError(f"distributions[{name!r}] is {drawn!r}; allowed: {allowed}") from error
