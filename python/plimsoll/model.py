"""Formulas of the tail of latency, without a simulation: those of ``plimsoll model``, as lists of dicts.

Times are texts with their unit (``"90us"``), shares are numbers or texts (``0.95``, ``"95%"``). The latency of one
request is a distribution by its name (``law``, ``mean``, ``sd``), or measured: ``source`` is a file (a CSV column, an
HDR histogram) or a run directory, of which ``workload`` and ``point`` choose the completion times.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, Literal, Union

from . import _plimsoll

Law = Literal["normal", "exponential", "lognormal", "rtts"]
Unit = Literal["ns", "us", "ms", "s"]
Share = Union[float, str]
File = Union[str, "os.PathLike[str]"]
Rows = list[dict[str, Any]]


def fanout(
    servers: int | Sequence[int] | None = None,
    *,
    law: Law | None = None,
    mean: str | None = None,
    sd: str | None = None,
    source: File | None = None,
    unit: Unit | None = None,
    column: str | None = None,
    workload: str | None = None,
    point: str | None = None,
    repetitions: int | None = None,
    seed: int | None = None,
) -> Rows:
    """Return the latency of a request to so many servers at once, which ends with the last reply."""
    return _rows("fanout", locals())


def sequential(
    load: float | Sequence[float] | None = None,
    *,
    service: str | None = None,
    sd: str | None = None,
    network: str | None = None,
    budget: str | None = None,
    source: File | None = None,
    unit: Unit | None = None,
    column: str | None = None,
    workload: str | None = None,
    point: str | None = None,
) -> Rows:
    """Return how many requests, one after the other, a time budget has room for, by the load of the server (M/G/1)."""
    return _rows("sequential", locals())


def page(
    retrievals: int | Sequence[int] | None = None,
    *,
    width: int | None = None,
    budget: str | None = None,
    share: Share | None = None,
    law: Law | None = None,
    mean: str | None = None,
    sd: str | None = None,
    source: File | None = None,
    unit: Unit | None = None,
    column: str | None = None,
    workload: str | None = None,
    point: str | None = None,
    replicas: int | None = None,
    hedge_at: Share | None = None,
    timeout: str | None = None,
    retries: int | None = None,
) -> Rows:
    """Return the time of a page that retrieves data so many times in sequence, each time ``width`` items at once."""
    return _rows("page", locals())


def replicas(
    copies: int | Sequence[int] | None = None,
    *,
    servers: int | None = None,
    law: Law | None = None,
    mean: str | None = None,
    sd: str | None = None,
    source: File | None = None,
    unit: Unit | None = None,
    column: str | None = None,
    workload: str | None = None,
    point: str | None = None,
) -> Rows:
    """Return the latency of requests that go to several servers at once, where the first reply counts."""
    return _rows("replicas", locals())


def hedge(
    at: Share | Sequence[Share] | None = None,
    *,
    after: str | Sequence[str] | None = None,
    copies: int | None = None,
    servers: int | None = None,
    law: Law | None = None,
    mean: str | None = None,
    sd: str | None = None,
    source: File | None = None,
    unit: Unit | None = None,
    column: str | None = None,
    workload: str | None = None,
    point: str | None = None,
) -> Rows:
    """Return the latency of requests of which a copy goes to another server when the reply takes long."""
    return _rows("hedge", locals())


def retry(
    timeout: str | Sequence[str] | None = None,
    *,
    retries: int | None = None,
    servers: int | None = None,
    law: Law | None = None,
    mean: str | None = None,
    sd: str | None = None,
    source: File | None = None,
    unit: Unit | None = None,
    column: str | None = None,
    workload: str | None = None,
    point: str | None = None,
) -> Rows:
    """Return the latency of requests that are given up after a timeout and sent again."""
    return _rows("retry", locals())


def stragglers(
    servers: int | Sequence[int] | None = None,
    *,
    slow: Share | None = None,
    copies: int | None = None,
) -> Rows:
    """Return the share of requests to so many servers at once that meet at least one slow server."""
    return _rows("stragglers", locals())


def qjump(
    hosts: int,
    *,
    packet: str | None = None,
    rate: str | None = None,
    epsilon: str | None = None,
    assume: float | None = None,
    level: str | Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return QJump's network epoch, and the rate and the latency bound of each level."""
    answer: dict[str, Any] = _answer("qjump", locals())
    return answer


def _rows(name: str, options: dict[str, Any]) -> Rows:
    rows: Rows = _answer(name, options)
    return rows


def _answer(name: str, options: dict[str, Any]) -> Any:
    chosen = {key: value for key, value in options.items() if value is not None}
    if "source" in chosen:
        chosen["from"] = os.fspath(chosen.pop("source"))
    return json.loads(_plimsoll.answer(name, json.dumps(chosen, default=_plain)))


def _plain(value: Any) -> Any:
    """Return a number of numpy, or a sequence that is no list, as JSON has it."""
    return value.tolist() if hasattr(value, "tolist") else list(value)
