"""Plimsoll finds a network's load line: how much load it carries before its tail latency violates an objective.

    >>> import plimsoll
    >>> result = plimsoll.run("quickstart", set={"run.duration": "2s"})
    >>> print(result)

A scenario is a TOML file, the name of a built-in scenario, TOML text, or a dict. ``run`` simulates it, ``sweep`` does
so for several values of a key, and ``line`` finds the highest load that meets an objective.
"""

from typing import TYPE_CHECKING

from . import circuits, model
from ._controller import Controller
from ._discipline import Discipline
from ._distribution import Distribution
from ._plimsoll import (
    Ack,
    Cancelled,
    Cut,
    DeadlockError,
    DefectError,
    Link,
    ModelError,
    ObjectiveError,
    Packet,
    PlimsollError,
    RunDirectoryError,
    RunError,
    ScenarioError,
    StudyError,
    Table,
    TooLargeError,
    Window,
)
from ._plimsoll import (
    version as __version__,
)
from ._progress import Progress
from ._results import Comparison, LoadLine, LoadLines, Measured, Point, Reproduction, Result
from ._run import compare, line, load, reproduce, run, sweep
from ._scenario import Scenario, built_in
from .circuits import schedule

if TYPE_CHECKING:
    from . import schema
else:

    def __getattr__(name: str) -> object:
        # Few programs need the types of `schema` when they run, and making them takes as long as all the rest.
        if name == "schema":
            from importlib import import_module

            return import_module(".schema", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Ack",
    "Cancelled",
    "Comparison",
    "Controller",
    "Cut",
    "DeadlockError",
    "DefectError",
    "Discipline",
    "Distribution",
    "Link",
    "LoadLine",
    "LoadLines",
    "Measured",
    "ModelError",
    "ObjectiveError",
    "Packet",
    "PlimsollError",
    "Point",
    "Progress",
    "Reproduction",
    "Result",
    "RunDirectoryError",
    "RunError",
    "Scenario",
    "ScenarioError",
    "StudyError",
    "Table",
    "TooLargeError",
    "Window",
    "__version__",
    "built_in",
    "circuits",
    "compare",
    "line",
    "load",
    "model",
    "reproduce",
    "run",
    "schedule",
    "schema",
    "sweep",
]
