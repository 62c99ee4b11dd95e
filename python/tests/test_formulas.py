"""Models and schedules: no simulation."""

from __future__ import annotations

import numpy
import pytest

import plimsoll
from plimsoll import model


def test_models_are_those_of_the_command() -> None:
    rows = model.fanout([1, 100])
    assert [row["servers"] for row in rows] == [1, 100]
    assert rows[0]["expected_us"] == pytest.approx(90, abs=0.01)
    assert rows[1]["expected_us"] == pytest.approx(215.4, abs=0.1)
    assert model.fanout(1, law="exponential", mean="1ms")[0]["p50_us"] == pytest.approx(693.1, abs=0.1)
    # M/M/1: the latency is 1 / (1 - load).
    assert model.sequential([0.5], service="1us", sd="1us", budget="100us")[0]["requests"] == 50
    assert model.page(150, replicas=2)[0]["p999_ms"] < model.page(150)[0]["p999_ms"]
    assert model.hedge("95%")[0]["load"] == pytest.approx(1.05, abs=0.001)
    assert model.replicas([2])[0]["load"] == 2
    assert model.retry(["1ms"], retries=2)[0]["load"] > 1
    assert model.stragglers(2000, slow=0.0001)[0]["slow_percent"] == pytest.approx(18.1, abs=0.1)
    assert len(model.qjump(8, level=["1x", "line"])["levels"]) == 2


def test_a_wrong_parameter_names_what_is_allowed() -> None:
    with pytest.raises(plimsoll.ModelError, match="servers 0: expected 1 or more") as caught:
        model.fanout(0)
    assert "--" not in str(caught.value)
    with pytest.raises(plimsoll.ModelError, match="cannot read nowhere.csv"):
        model.fanout(1, source="nowhere.csv")
    for wrong, message in [
        (lambda: model.fanout(1, law="x"), 'invalid value "x" for law: unknown variant `x`, expected one of `normal`'),  # type: ignore[arg-type]
        (lambda: model.hedge("200%"), 'invalid value "200%" for at: write a share above 0 %'),
        (lambda: model.fanout(1, unit="us"), "unit needs source"),
        (lambda: model.fanout(1, source="x.csv", law="normal"), "law cannot be used with source"),
    ]:
        with pytest.raises(plimsoll.ModelError) as caught:
            wrong()
        text = str(caught.value)
        assert text.startswith(message) and "<" not in text and "help" not in text, text


def test_a_schedule_carries_the_demand() -> None:
    demand = numpy.array([[0, 9_000_000, 10], [0, 0, 9_000_000], [9_000_000, 0, 0]])
    schedule = plimsoll.schedule(demand)
    assert schedule.configurations[0].receivers == [1, 2, 0]
    # 9 MB at 100 Gb/s take 720 us.
    assert schedule.configurations[0].duration_us == pytest.approx(720, rel=0.05)
    assert schedule.total_us == pytest.approx(sum(c.duration_us + schedule.night_us for c in schedule.configurations))
    assert plimsoll.schedule([[0, 1], [1, 0]], "rotor", night="1us").night_us == 1
    for wrong, message in [
        (lambda: plimsoll.schedule([[0, 1]]), "needs 1"),
        (lambda: plimsoll.schedule([[0, 1], [1, 0]], "solstic"), "did you mean `solstice`"),  # type: ignore[arg-type]
        (lambda: plimsoll.schedule([[0, -1], [1, 0]]), "of sender 0 to receiver 1 is -1; allowed: a whole number"),
        (lambda: plimsoll.schedule([[0, 1], [0.5, 0]]), "of sender 1 to receiver 0 is 0.5; allowed"),
        (lambda: plimsoll.schedule([[0, 1], [1, 0]], night="1"), "night: "),
        (lambda: plimsoll.schedule([[0, 1], [1, 0]], night="3ms"), "shorter than the window"),
    ]:
        with pytest.raises(plimsoll.ModelError, match=message):
            wrong()
    with pytest.raises(TypeError, match="the demand is 3; allowed: a row of bytes for each sender"):
        plimsoll.schedule(3)
