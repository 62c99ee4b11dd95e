"""Congestion controllers in Python."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from typing import Any, get_type_hints

import pytest
from controllers import Broken, Fixed, NoInteger, Vegas

import plimsoll
from plimsoll import schema


def scenario(small: dict[str, Any], **tables: dict[str, Any]) -> plimsoll.Scenario:
    """The small network with a variant for each controller."""
    variants = {
        name: {"transport": {"kind": name, **({name: table} if table else {})}} for name, table in tables.items()
    }
    own = {"vegas": Vegas, "fixed": Fixed, "broken": Broken, "no-integer": NoInteger}
    return plimsoll.Scenario({**small, "variant": {"TCP": small["variant"]["TCP"], **variants}}, controllers=own)


def test_vegas_keeps_the_queue_short(small: dict[str, Any]) -> None:
    checked = scenario(small, vegas={"alpha": 1})
    result = plimsoll.run(checked, progress=False)
    tcp, vegas = (result.cell(name)["queues"][0]["mean_us"]["value"] for name in ("TCP", "vegas"))
    assert vegas < tcp / 2
    assert plimsoll.run(checked, threads=1).digest == result.digest
    other = plimsoll.run(scenario(small, vegas={"alpha": 4, "beta": 8}))
    assert other.digest != result.digest, "parameters reach the controller"


def test_a_controller_may_set_the_window(small: dict[str, Any]) -> None:
    observed = {**small, "observe": {**small["observe"], "flow_series": "5ms"}}
    result = plimsoll.run(scenario(observed, fixed={"segments": 3}), variants=["fixed"])
    windows = set(result.series.to_dict()["cwnd_bytes"])
    segment = min(windows) // 3
    assert 3 * segment in windows and max(windows) <= 10 * segment


def test_an_exception_ends_the_run(small: dict[str, Any]) -> None:
    with pytest.raises(ArithmeticError, match="no window"):
        plimsoll.run(scenario(small, broken={}))
    with pytest.raises(TypeError, match="integer"):
        plimsoll.run(scenario(small, **{"no-integer": {}}))
    with pytest.raises(TypeError, match="unexpected keyword argument 'gamma'"):
        plimsoll.run(scenario(small, vegas={"gamma": 1}))
    with pytest.raises(ArithmeticError, match="no window"):
        plimsoll.line(scenario(small, broken={}), "p99(small) < 2ms", replicates_max=2)


def test_names_are_checked(small: dict[str, Any], capfd: pytest.CaptureFixture[str]) -> None:
    transport = get_type_hints(schema.TransportParams)
    assert "min_rto" in transport
    for name in ("", "Vegas", "tcp", "dctcp", *transport):
        with pytest.raises(plimsoll.PlimsollError, match="cannot be called .*; allowed: lower-case letters"):
            plimsoll.Scenario(small, controllers={name: Vegas})
    assert capfd.readouterr().err == "", "it is an error and no panic"
    for wrong in (dict, Vegas()):
        with pytest.raises(TypeError, match=r"controllers\['x'\] is .*; allowed: a subclass of plimsoll.Controller"):
            plimsoll.Scenario(small, controllers={"x": wrong})  # type: ignore[dict-item]
    with pytest.raises(plimsoll.ScenarioError, match="vegas"):
        plimsoll.Scenario({**small, "variant": {"V": {"transport": {"kind": "vegas"}}}})


def test_controllers_travel_to_other_processes(small: dict[str, Any]) -> None:
    checked = scenario(small, vegas={})
    here = plimsoll.run(checked)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert plimsoll.sweep(checked, executor=pool, progress=False).digest == here.digest
