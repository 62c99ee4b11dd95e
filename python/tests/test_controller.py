"""Congestion controllers in Python."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from typing import Any, get_type_hints

import pytest
from controllers import Broken, Fixed, Fraction, NoNumber, Vegas

import plimsoll
from plimsoll import schema


OWN = {"vegas": Vegas, "fixed": Fixed, "broken": Broken, "fraction": Fraction, "no-number": NoNumber}


def scenario(small: dict[str, Any], **tables: dict[str, Any]) -> plimsoll.Scenario:
    """The small network with a variant for each controller."""
    variants = {
        name: {"transport": {"kind": name, **({name: table} if table else {})}} for name, table in tables.items()
    }
    return plimsoll.Scenario({**small, "variant": {"TCP": small["variant"]["TCP"], **variants}}, controllers=OWN)


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
    with pytest.raises(ArithmeticError, match="no window"):
        plimsoll.line(scenario(small, broken={}), "p99(small) < 2ms", replicates_max=2)


def test_windows_are_rounded_to_whole_bytes(small: dict[str, Any]) -> None:
    observed = {**small, "observe": {**small["observe"], "flow_series": "5ms"}}
    result = plimsoll.run(scenario(observed, fraction={}), variants=["fraction"])
    assert all(isinstance(window, int) for window in result.series.to_dict()["cwnd_bytes"])
    for wrong, shown in (("nan", "'nan'"), (-0.6, "-0.6"), (-1, "-1"), (1e30, "1e[+]30")):
        with pytest.raises(plimsoll.ScenarioError, match=f"a controller set it to {shown}") as caught:
            plimsoll.run(scenario(small, **{"no-number": {"window": wrong}}))
        assert caught.value.key == "window.cwnd"
        assert caught.value.allowed == "a number of bytes from 0 to 2^64 - 1, which is rounded to a whole one"


def test_arguments_are_checked_before_the_run(small: dict[str, Any]) -> None:
    for name, table, key, message, allowed, hint in [
        ("vegas", {"gamma": 1}, "transport.vegas.gamma", "Vegas has no argument `gamma`", "alpha, beta", None),
        ("vegas", {"alfa": 1}, "transport.vegas.alfa", "Vegas has no", "alpha, beta", "did you mean `alpha`?"),
        ("broken", {"a": 1}, "transport.broken.a", "the class Broken has no argument `a`", "none", None),
        ("fixed", {}, "transport.fixed", "rejects its arguments: missing a required argument: 'segments'", None, None),
        ("fraction", {"gain": 0}, "transport.fraction", "rejects its arguments: gain=0: expected more", None, None),
    ]:
        with pytest.raises(plimsoll.ScenarioError, match=message) as caught:
            scenario(small, **{name: table})
        error = caught.value
        assert (error.key, error.allowed, error.hint) == (key, allowed, hint)
        assert isinstance(error.__cause__, (TypeError, ValueError))


def test_a_dict_takes_controllers_in_every_call(small: dict[str, Any]) -> None:
    own = {**small, "variant": {"fixed": {"transport": {"kind": "fixed", "fixed": {"segments": 3}}}}}
    digest = plimsoll.run(plimsoll.Scenario(own, controllers=OWN)).digest
    assert plimsoll.run(own, controllers=OWN).digest == digest
    swept = plimsoll.sweep(own, {"transport.fixed": [{"segments": 3}, {"segments": 6}]}, controllers=OWN)
    assert len({point.digest for point in swept.points}) == 2
    lines = plimsoll.line(own, "p99(small) < 2s", within=(0.1, 0.2), replicates_max=2, controllers=OWN)
    assert [line.name for line in lines.variants] == ["fixed"]


def test_help_describes_every_field() -> None:
    for described in (plimsoll.Window, plimsoll.Ack, plimsoll.Cut):
        fields = {name: field for name, field in vars(described).items() if not name.startswith("_")}
        assert fields and all(getattr(field, "__doc__") for field in fields.values()), fields


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
