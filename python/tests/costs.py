"""Measures what docs/python.md says of costs: processor time, the least of five.

    python python/tests/costs.py [PLIMSOLL]

PLIMSOLL is the command of a Rust build, to compare with; the module is that of this interpreter.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

import plimsoll


def of_process(*words: str) -> float:
    """Return the processor time of a command in seconds."""

    def once() -> float:
        before = os.times()
        subprocess.run(words, check=True, capture_output=True)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    return min(once() for _ in range(5))


class Reno(plimsoll.Controller):
    """TCP NewReno, which counts the calls of all objects."""

    calls = 0

    def grow(self, window: plimsoll.Window, ack: plimsoll.Ack) -> None:
        Reno.calls += 1
        window.cwnd += ack.acked if window.in_slow_start else max(1, window.segment**2 // window.cwnd)


class Fifo(plimsoll.Discipline):
    """First come, first served, which counts the packets of all ports."""

    arrived = 0

    def __init__(self) -> None:
        self.packets: deque[plimsoll.Packet] = deque()

    def enqueue(self, packet: plimsoll.Packet, now_us: float) -> None:
        Fifo.arrived += 1
        self.packets.append(packet)

    def dequeue(self, now_us: float, paused: tuple[int, ...]) -> plimsoll.Packet | None:
        return self.packets.popleft()


def of_distribution(draws: int) -> float:
    """Return the processor time in seconds of drawing samples and reading them into a checked scenario."""
    text = plimsoll.Scenario("quickstart").text.replace("[workload.small]", "[workload.small]\nservice.cdf = 'a.csv'")

    def once() -> float:
        before = time.process_time()
        drawn = plimsoll.Distribution(lambda numbers: numbers.lognormvariate(3, 1), draws=draws)
        plimsoll.Scenario(text, distributions={"a.csv": drawn})
        return time.process_time() - before

    return min(once() for _ in range(5))


def of_run(scenario: plimsoll.Scenario) -> float:
    """Return the processor time of a run in this process in seconds."""

    def once() -> float:
        before = time.process_time()
        plimsoll.run(scenario, variants=["TCP"], threads=1, progress=False)
        return time.process_time() - before

    return min(once() for _ in range(5))


def main() -> None:
    """Print the costs, a line each."""
    quickstart = [
        "run",
        "quickstart",
        "--replicates",
        "1",
        "--threads",
        "1",
        "--force",
        "--quiet",
        "--out",
        "results/costs",
    ]
    for program in [*sys.argv[1:], str(Path(sys.executable).with_name("plimsoll"))]:
        print(f"{of_process(program, *quickstart):.2f} s  {program} run quickstart")
    script = "import plimsoll; plimsoll.run('quickstart', replicates=1, threads=1)"
    print(f"{of_process(sys.executable, '-c', script):.2f} s  plimsoll.run('quickstart')")
    print(f"{of_process(sys.executable, '-c', 'import plimsoll'):.2f} s  import plimsoll")
    set = {"run.duration": "10s"}
    built_in = of_run(plimsoll.Scenario("quickstart", set=set, replicates=1))
    text = plimsoll.Scenario("quickstart").text.replace('transport.kind = "tcp"', 'transport.kind = "reno-in-python"')
    own = of_run(plimsoll.Scenario(text, set=set, replicates=1, controllers={"reno-in-python": Reno}))
    calls = Reno.calls / 5
    each = (own - built_in) / calls * 1e6
    print(f"{built_in:.3f} s  a run of TCP; {own:.3f} s with {calls:,.0f} calls of a controller: {each:.2f} us each")
    text = plimsoll.Scenario("quickstart").text.replace(
        'transport.kind = "tcp"', 'transport.kind = "tcp"\nport.switch.discipline.own-fifo = {}'
    )
    own = of_run(plimsoll.Scenario(text, set=set, replicates=1, disciplines={"own-fifo": Fifo}))
    packets = Fifo.arrived / 5
    each = (own - built_in) / packets * 1e9
    print(f"{own:.3f} s with {packets:,.0f} packets by a discipline: {each:.0f} ns each beyond the built-in queue")
    for draws in (10_000, 100_000):
        print(f"{of_distribution(draws):.3f} s  a scenario with a distribution of {draws:,} draws")


if __name__ == "__main__":
    main()
