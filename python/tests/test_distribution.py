"""Distributions of times and sizes that are functions or samples in Python."""

from __future__ import annotations

import multiprocessing
import pickle
import random
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import plimsoll


def own(small: dict[str, Any]) -> dict[str, Any]:
    """The small network whose servers draw from ``service.csv``."""
    workload = {**small["workload"], "small": {**small["workload"]["small"], "service": {"cdf": "service.csv"}}}
    return {**small, "workload": workload, "variant": {"TCP": small["variant"]["TCP"]}}


def service(numbers: random.Random) -> float:
    """Microseconds: most requests are short."""
    return 20.0 if numbers.random() < 0.9 else numbers.uniform(100, 300)


def test_service_times_come_from_a_function(small: dict[str, Any]) -> None:
    drawn = plimsoll.Distribution(service, draws=1_000)
    scenario = plimsoll.Scenario(own(small), distributions={"service.csv": drawn}, set={"run.duration": "2s"})
    result = plimsoll.run(scenario, progress=False)
    columns = result.messages.to_dict()
    times = [ps / 1e6 for ps, name in zip(columns["service_ps"], columns["workload"]) if name == "small"]
    assert len(times) > 1_000 and all(any(abs(us - one) < 1e-5 for one in drawn.samples) for us in set(times))
    assert abs(sum(times) / len(times) - drawn.mean) < 5 * drawn.standard_error
    assert plimsoll.run(scenario, threads=1).digest == result.digest


def test_the_digest_is_of_the_samples(small: dict[str, Any]) -> None:
    def digest(drawn: Any) -> str:
        checked = plimsoll.Scenario(own(small), distributions={"service.csv": drawn})
        return str(checked._checked.points[0][-1])

    first = digest(service)
    assert first == digest(plimsoll.Distribution(service, draws=10_000, seed=1))
    assert first != digest(plimsoll.Distribution(service, seed=2)) and first != digest([20.0])
    nanoseconds = plimsoll.Distribution([20_000, 30_000], unit="ns")
    assert digest([20.0, 30.0]) == digest((30, 20)) == digest(nanoseconds)


def test_samples_are_all_that_is_drawn(small: dict[str, Any]) -> None:
    sizes = plimsoll.Distribution([900, 900, 1_800, 40_000], unit="bytes")
    workload = {**small["workload"]["background"], "size": {"cdf": "sizes.csv"}}
    scenario = plimsoll.Scenario(
        {**small, "workload": {"background": workload}, "variant": {}}, distributions={"sizes.csv": sizes}
    )
    columns = plimsoll.run(scenario, progress=False).messages.to_dict()
    drawn = columns["bytes"]
    assert set(drawn) == {900, 1_800, 40_000} and len(drawn) > 500
    assert abs(sum(drawn) / len(drawn) / sizes.mean - 1) < 0.2
    assert abs(drawn.count(900) / len(drawn) - 0.5) < 0.1


def test_a_scenario_travels_and_is_recorded_with_them(small: dict[str, Any], tmp_path: Path) -> None:
    scenario = plimsoll.Scenario(own(small), distributions={"service.csv": service})
    here = plimsoll.run(scenario, out=tmp_path / "run", progress=False)
    assert plimsoll.run(pickle.loads(pickle.dumps(scenario))).digest == here.digest
    assert plimsoll.run(tmp_path / "run" / "scenario.toml").digest == here.digest
    again = plimsoll.Scenario(scenario, set={"run.duration": "100ms"})
    assert "service.csv" in again.self_contained
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert plimsoll.sweep(scenario, executor=pool, progress=False).digest == here.digest
    file = tmp_path / "own.toml"
    file.write_text(scenario.text)
    (tmp_path / "service.csv").write_text("us,cdf\n1,1\n")
    of_file = plimsoll.run(plimsoll.Scenario(file, distributions={"service.csv": service}), out=tmp_path / "file")
    assert of_file.digest == here.digest, "they go before a file on the disk"
    assert of_file.command == f"plimsoll run {tmp_path / 'file' / 'scenario.toml'}"


def test_a_search_has_them(small: dict[str, Any]) -> None:
    scenario = plimsoll.Scenario(own(small), distributions={"service.csv": [500.0]})
    lines = plimsoll.line(scenario, "p99(small) < 400us", over="background", within=(0.1, 0.2), replicates_max=2)
    assert lines["TCP"].found == "never"


@pytest.mark.parametrize(
    ("drawn", "message"),
    [
        ([], "0 samples; allowed: 1 to 1,000,000"),
        ([1.0, -1.0], "sample 1 is -1.0 us; allowed: finite numbers of at least 0"),
        ([float("nan")], "sample 0 is nan us; allowed: finite"),
        (["fast"], "sample 0 is 'fast'; allowed: numbers of us"),
        (lambda numbers: "1ms", "sample 0 is '1ms'; allowed: numbers of us"),
    ],
)
def test_wrong_samples_are_named(small: dict[str, Any], drawn: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        plimsoll.Scenario(own(small), distributions={"service.csv": drawn})
    assert str(caught.value).startswith("distributions['service.csv']: ")


def test_wrong_arguments_are_named(small: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="sample 0 is 0 bytes; allowed: finite numbers of at least 1"):
        plimsoll.Distribution([0], unit="bytes")
    with pytest.raises(ValueError, match="invalid draws=0; allowed: 1 to 1,000,000"):
        plimsoll.Distribution(service, draws=0)
    with pytest.raises(TypeError, match="distributions.*service.csv.* is 3; allowed: a function"):
        plimsoll.Scenario(own(small), distributions={"service.csv": 3})  # type: ignore[dict-item]


def test_a_distribution_that_nothing_reads_is_an_error(small: dict[str, Any]) -> None:
    with pytest.raises(plimsoll.ScenarioError, match="no key names that file") as caught:
        plimsoll.Scenario(own(small), distributions={"service.csv": service, "servce.csv": service})
    assert caught.value.key == 'files."servce.csv"'
    with pytest.raises(plimsoll.ScenarioError, match="us,cdf"):
        plimsoll.Scenario(own(small), distributions={"service.csv": plimsoll.Distribution([1], unit="bytes")})
