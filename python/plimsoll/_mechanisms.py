"""The mechanisms of a scenario that are classes in Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ._controller import Controller
from ._discipline import Discipline


class Mechanisms(NamedTuple):
    """The mechanisms as the compiled module takes them: name, version and class of each."""

    controllers: list[tuple[str, str, type[Controller]]]
    disciplines: list[tuple[str, str, type[Discipline]]]


def registered(
    controllers: Mapping[str, type[Controller]], disciplines: Mapping[str, type[Discipline]]
) -> Mechanisms:
    """Return the mechanisms of a scenario by the classes that it names."""
    _check("controllers", controllers, Controller)
    _check("disciplines", disciplines, Discipline)
    return Mechanisms(
        [(name, str(made.version), made) for name, made in controllers.items()],
        [(name, str(made.version), made) for name, made in disciplines.items()],
    )


def _check(argument: str, mechanisms: Mapping[str, object], base: type[Any]) -> None:
    """Check that each mechanism is a subclass of ``base``."""
    for name, made in mechanisms.items():
        if not (isinstance(made, type) and issubclass(made, base)):
            raise TypeError(f"{argument}[{name!r}] is {made!r}; allowed: a subclass of plimsoll.{base.__name__}")
