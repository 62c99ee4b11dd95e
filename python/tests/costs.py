"""Measures what docs/python.md says of costs: processor time, the least of five.

    python python/tests/costs.py [PLIMSOLL]

PLIMSOLL is the command of a Rust build, to compare with; the module is that of this interpreter.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
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


if __name__ == "__main__":
    main()
