"""Scenarios of all kinds, and what their errors say."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy
import pytest
import typed_scenario

import plimsoll
from plimsoll import _toml


def test_a_dict_is_the_text_that_it_describes(small: dict[str, Any], tmp_path: Path) -> None:
    of_dict = plimsoll.Scenario(small)
    file = tmp_path / "small.toml"
    file.write_text(of_dict.text)
    for other in [plimsoll.Scenario(of_dict.text), plimsoll.Scenario(file), plimsoll.Scenario(str(file))]:
        assert [point[-1] for point in other._checked.points] == [point[-1] for point in of_dict._checked.points]
    assert of_dict.variants == ["TCP", "DCTCP"]
    assert len(of_dict) == 2


def test_typed_tables_are_the_text_that_they_describe(small: dict[str, Any]) -> None:
    typed = plimsoll.Scenario(typed_scenario.SCENARIO)
    text = """
version = 1
title = "small"
run = { duration = "200ms", warmup = "20ms" }
topology = { kind = "rack", hosts = 4, rate = "1Gbps", delay = "5us" }
port.switch.buffer = "100 packets"
[workload.small]
kind = "rpc"
request = "100B"
response = "900B"
load = "8Mbps"
[workload.background]
kind = "transfer"
size = "1MB"
load = 0.3
[variant.TCP]
transport.kind = "tcp"
[variant.DCTCP]
transport.kind = "dctcp"
port.switch.ecn.threshold = "20 packets"
[observe.queue]
client = { port = "client", every = "1ms" }
"""
    assert plimsoll.run(typed, progress=False).digest == plimsoll.run(text, progress=False).digest
    assert typed_scenario.SCENARIO == small, "at run time they are dicts"


def test_built_in_scenarios_need_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert plimsoll.Scenario("quickstart").variants == ["TCP", "DCTCP", "HULL"]
    names = plimsoll.built_in()
    assert "hull/dynamic" in names and "hull/source" not in names, "one that is only included cannot be run"


def test_an_error_names_place_value_and_nearest_spelling(small: dict[str, Any]) -> None:
    wrong = {**small, "topology": {**small["topology"], "host": 4}}
    with pytest.raises(plimsoll.ScenarioError) as caught:
        plimsoll.run(wrong)
    error = caught.value
    assert isinstance(error, plimsoll.PlimsollError)
    assert (error.file, error.key, error.value) == ("<dict>", "topology.host", "host")
    assert error.line is not None and _toml.document(wrong).splitlines()[error.line - 1] == "host = 4"
    assert "hosts" in (error.hint or "") + (error.allowed or "")
    assert len(error.errors) == 1 and error.errors[0]["key"] == "topology.host"


def test_an_error_survives_a_process(small: dict[str, Any]) -> None:
    with pytest.raises(plimsoll.ScenarioError) as caught:
        plimsoll.Scenario("quikstart")
    copied = pickle.loads(pickle.dumps(caught.value))
    assert "did you mean `quickstart`?" in copied.hint
    assert str(copied) == str(caught.value)


def test_overrides_are_laid_on_top_of_each_other(small: dict[str, Any]) -> None:
    first = plimsoll.Scenario(small, set={"workload.background.load": 0.6}, seed=7)
    second = plimsoll.Scenario(first, set={"run.duration": "1s"}, replicates=2)
    assert len(second) == 4
    shown = second.show()
    assert "load = 0.6" in shown and 'duration = "1s"' in shown and "seed = 7" in shown


def test_a_scenario_travels_with_its_overrides(small: dict[str, Any]) -> None:
    scenario = plimsoll.Scenario(small, set={"workload.background.load": 0.6}, seed=3, replicates=2)
    copied = pickle.loads(pickle.dumps(scenario))
    assert [point[-1] for point in copied._checked.points] == [point[-1] for point in scenario._checked.points]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, "true"),
        (3, "3"),
        (0.5, "0.5"),
        (1e300, "1e+300"),
        (numpy.float64(0.25), "0.25"),
        (numpy.arange(3), "[0, 1, 2]"),
        ('a "quoted"\nline', '"a \\"quoted\\"\\nline"'),
        (["1s", 2], '["1s", 2]'),
        ({"a b": 1}, '{ "a b" = 1 }'),
    ],
)
def test_values_as_toml(value: object, expected: str) -> None:
    assert _toml.value(value) == expected


def test_what_has_no_form_in_toml_is_an_error() -> None:
    with pytest.raises(TypeError, match="has no form in TOML; allowed"):
        plimsoll.Scenario({"version": object()})


def test_tables_without_keys_are_kept() -> None:
    assert _toml.document({"a": 1, "b": {"c": {}, "d": {"e": 2}}}) == "a = 1\n\n[b]\nc = {  }\n\n[b.d]\ne = 2\n"
