"""What type checkers make of the package: mypy and pyright read this file, and nothing runs it."""

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random
from typing import Any, Optional

from matplotlib.axes import Axes
from typed_scenario import SCENARIO
from typing_extensions import assert_type

import plimsoll
from plimsoll import model, plot, schema

result = plimsoll.run("quickstart", set={"run.duration": "1s"}, out=Path("out"), progress=False)
assert_type(result, plimsoll.Result)
assert_type(result.messages, plimsoll.Table)
assert_type(result.summary, dict[str, Any])
assert_type(result.points[0].digest, str)
assert_type(result.path, Path | None)
assert_type(plimsoll.line("quickstart", ["p99(small) < 1ms"])["TCP"].load, float | None)
assert_type(plimsoll.sweep({"version": 1}, {"run.seed": [1]}, executor=ProcessPoolExecutor()), plimsoll.Result)
assert_type(plimsoll.compare(result, "other").verdicts, list[str])
assert_type(plimsoll.reproduce("hull", quick=True).figures, dict[str, str])
assert_type(model.fanout([1, 2], law="normal"), list[dict[str, Any]])
assert_type(plimsoll.schedule([[0, 1], [1, 0]]).configurations[0].receivers, list[int | None])
assert_type(plot.cdf(result, "small", load=0.4), Axes)


def watch(now: plimsoll.Progress) -> bool:
    return now.done < 3


plimsoll.run("quickstart", progress=watch)
plimsoll.run("quickstart", seeds=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
model.fanout(law="pareto")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

assert_type(plimsoll.run(SCENARIO).digest, str)
assert_type(plimsoll.Scenario(SCENARIO).variants, list[str])
flows: schema.FlowsWorkload = {"kind": "flows", "from": "h1..h3", "to": "h0"}
size: schema.BytesDistribution = {"kind": "pareto", "min": "1KB", "shape": 1.2}
schema.Run(seed="1")  # type: ignore[typeddict-item]  # pyright: ignore[reportArgumentType]
schema.Port(discipline={"lifo": {"packets_max": 5}})
schema.PortPartial(discipline="off")
schema.Port(discipline=5)  # type: ignore[typeddict-item]  # pyright: ignore[reportArgumentType]
schema.Port(order="priority")  # type: ignore[typeddict-item]  # pyright: ignore[reportArgumentType]
schema.Port(order="fifo", bufer="1MB")  # type: ignore[typeddict-unknown-key]  # pyright: ignore[reportCallIssue]
schema.RpcWorkload(kind="rpc", request="100B")  # type: ignore[typeddict-item]  # pyright: ignore[reportCallIssue]


def service(numbers: Random) -> float:
    return numbers.lognormvariate(3, 1)


class Lifo(plimsoll.Discipline):
    def __init__(self) -> None:
        self.packets: list[plimsoll.Packet] = []

    def enqueue(self, packet: plimsoll.Packet, now_us: float) -> None:
        self.packets.append(packet)

    def dequeue(self, now_us: float, paused: tuple[int, ...]) -> plimsoll.Packet | None:
        assert_type(self.link.rate_bps, int)
        assert_type(self.link.to_host, Optional[int])
        return self.packets.pop()


own = plimsoll.Scenario("own.toml", disciplines={"lifo": Lifo}, distributions={"a.csv": service, "b.csv": [1, 2.5]})
assert_type(plimsoll.Distribution([100, 900], unit="bytes").mean, float)
plimsoll.Distribution([1], unit="minutes")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
plimsoll.Scenario("own", disciplines={"l": int})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
