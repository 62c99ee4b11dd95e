"""The mechanisms of a scenario that are classes in Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

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
    return Mechanisms(
        [(name, str(getattr(made, "version", "1")), made) for name, made in controllers.items()],
        [(name, str(getattr(made, "version", "1")), made) for name, made in disciplines.items()],
    )
