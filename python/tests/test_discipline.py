"""Queue disciplines in Python."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest
from disciplines import DropsLate, Fifo, MarkAll, Paused, ShortestFirst, Wrong

import plimsoll

OWN: dict[str, type[plimsoll.Discipline]] = {
    "own-fifo": Fifo,
    "shortest-first": ShortestFirst,
    "mark-all": MarkAll,
    "drops-late": DropsLate,
    "wrong": Wrong,
    "paused": Paused,
}


@pytest.fixture(name="busy")
def _busy(small: dict[str, Any]) -> dict[str, Any]:
    """The small network with transfers that overlap at the client."""
    background = {"kind": "transfer", "size": "200KB", "load": 0.8}
    return {**small, "workload": {**small["workload"], "background": background}}


def scenario(small: dict[str, Any], **tables: dict[str, Any]) -> plimsoll.Scenario:
    """The small network with a variant for each discipline at the switch."""
    transport = small["variant"]["TCP"]["transport"]
    variants = {name: {"port": {"switch": {"discipline": {name: table}}}} for name, table in tables.items()}
    plain = {"built-in": {"title": "the built-in queue"}}
    return plimsoll.Scenario({**small, "transport": transport, "variant": {**plain, **variants}}, disciplines=OWN)


def of(result: plimsoll.Result, variant: str) -> dict[str, list[Any]]:
    """The columns of the messages of a variant, without its name."""
    columns = result.messages.to_dict()
    here = [at for at, name in enumerate(columns.pop("variant")) if name == variant]
    return {name: [values[at] for at in here] for name, values in columns.items()}


def test_first_come_first_served_is_the_built_in_queue(busy: dict[str, Any]) -> None:
    checked = scenario({**busy, "port": {"switch": {"buffer": "8 packets"}}}, **{"own-fifo": {}})
    result = plimsoll.run(checked, progress=False)
    built_in, own = of(result, "built-in"), of(result, "own-fifo")
    assert len(own["completed_ps"]) > 200 and own == built_in
    assert sum(result.connections.to_dict()["retransmissions"]) > 0, "packets were dropped"
    assert plimsoll.run(checked, threads=1).digest == plimsoll.run(checked, threads=4).digest == result.digest


def test_the_shortest_message_first_lowers_the_tail(busy: dict[str, Any]) -> None:
    checked = scenario({**busy, "run": {"duration": "1s", "warmup": "20ms"}}, **{"shortest-first": {}})
    result = plimsoll.run(checked, progress=False)
    built_in, shortest = (
        result.workload("small", name)["completion_us"]["p99"]["value"] for name in ("built-in", "shortest-first")
    )
    assert shortest < built_in / 2


def test_a_discipline_may_drop_any_packet_that_waits(small: dict[str, Any]) -> None:
    unlimited = {**small, "port": {"switch": {"buffer": "unlimited"}}}
    result = plimsoll.run(scenario(unlimited, **{"shortest-first": {"packets_max": 5}}), progress=False)
    retransmissions = dict.fromkeys(("built-in", "shortest-first"), 0)
    columns = result.connections.to_dict()
    for name, number in zip(columns["variant"], columns["retransmissions"]):
        retransmissions[name] += number
    assert retransmissions["built-in"] == 0 < retransmissions["shortest-first"]


def test_a_discipline_may_drop_packets_that_it_would_send(busy: dict[str, Any]) -> None:
    unlimited = {**busy, "port": {"switch": {"buffer": "unlimited"}, "host": {"order": "fifo"}}}
    result = plimsoll.run(scenario(unlimited, **{"drops-late": {"packets": 5}}), progress=False)
    retransmissions = dict.fromkeys(("built-in", "drops-late"), 0)
    columns = result.connections.to_dict()
    for name, number in zip(columns["variant"], columns["retransmissions"]):
        retransmissions[name] += number
    assert retransmissions["built-in"] == 0 < retransmissions["drops-late"]
    tails = [result.workload("small", name)["completion_us"]["p50"]["value"] for name in retransmissions]
    assert tails[1] < tails[0], "the queue is short"


def test_a_discipline_may_mark_packets(busy: dict[str, Any]) -> None:
    dctcp = {**busy, "variant": {"TCP": {"transport": {"kind": "dctcp"}}}}
    result = plimsoll.run(scenario(dctcp, **{"mark-all": {"longer_than_us": 100}}), progress=False)
    marked = dict.fromkeys(("built-in", "mark-all"), 0)
    columns = result.connections.to_dict()
    for name, number in zip(columns["variant"], columns["marked"]):
        marked[name] += number
    assert marked["built-in"] == 0 < marked["mark-all"]


@pytest.mark.parametrize(
    ("way", "exception", "message"),
    [
        ("raises", ArithmeticError, "no queue"),
        ("sends twice", ValueError, "dequeue returned packet 0, which does not wait in this queue"),
        ("sends nothing", ValueError, "dequeue returned None while 1 packets wait and nothing is paused"),
        ("sends a number", TypeError, "dequeue returned 3; allowed: packets that wait, or None"),
        ("sends a triple", ValueError, r"dequeue returned \(None, \[\], 3\); allowed: a pair"),
        ("drops twice", ValueError, "dequeue returned packet 0, which does not wait in this queue"),
    ],
)
def test_what_goes_wrong_ends_the_run(
    small: dict[str, Any], way: str, exception: type[Exception], message: str
) -> None:
    with pytest.raises(exception, match=message):
        plimsoll.run(scenario(small, wrong={"way": way}))


def test_a_class_that_cannot_be_made_ends_the_run(small: dict[str, Any]) -> None:
    with pytest.raises(plimsoll.ScenarioError, match="has no argument `ways`") as caught:
        scenario(small, wrong={"ways": "raises"})
    assert caught.value.key == "port.tor.discipline.wrong.ways"
    with pytest.raises(ArithmeticError, match="no queue"):
        plimsoll.line(scenario(small, wrong={"way": "raises"}), "p99(small) < 2ms", replicates_max=2)


def test_a_paused_packet_is_not_sent(busy: dict[str, Any]) -> None:
    lossless = {"buffer": "100KB", "pfc": {"xoff": "10KB"}}
    port = {"switch": lossless, "host": {"order": "fifo"}}
    base = {**busy, "port": port, "transport": busy["variant"]["TCP"]["transport"]}
    variants = {
        "built-in": {"title": "the built-in queue"},
        "own": {"port": {"host": {"discipline": {"own-fifo": {}}}}},
        "paused": {"port": {"host": {"discipline": {"paused": {}}}}},
    }
    checked = plimsoll.Scenario({**base, "variant": variants}, disciplines=OWN)
    result = plimsoll.run(checked, variants=["built-in", "own"], progress=False)
    assert of(result, "own") == of(result, "built-in")
    with pytest.raises(ValueError, match="dequeue returned a packet of priority 0, which is paused"):
        plimsoll.run(checked, variants=["paused"], progress=False)


def test_names_are_checked(small: dict[str, Any]) -> None:
    with pytest.raises(plimsoll.PlimsollError, match='a discipline cannot be called "Own"; allowed: lower-case'):
        plimsoll.Scenario(small, disciplines={"Own": Fifo})
    with pytest.raises(plimsoll.ScenarioError) as caught:
        scenario(small, **{"own-fif": {}})
    assert "own-fifo" in (caught.value.hint or "")


def test_disciplines_travel_to_other_processes(small: dict[str, Any]) -> None:
    checked = scenario(small, **{"own-fifo": {}})
    here = plimsoll.run(checked)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert plimsoll.sweep(checked, executor=pool, progress=False).digest == here.digest
