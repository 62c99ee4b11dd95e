"""Scenarios: files, built-in ones, TOML text and dicts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Union

from . import _plimsoll, _toml
from ._arguments import check
from ._controller import Controller
from ._discipline import Discipline
from ._distribution import Drawn, file_of
from ._mechanisms import Mechanisms, registered

#: What can be run: a file, the name of a built-in scenario, TOML text, a dict, or a checked scenario.
Source = Union[str, "os.PathLike[str]", Mapping[str, Any], "Scenario"]


class Scenario:
    """A checked scenario.

    ``source`` is the path of a file, the name of a built-in scenario such as ``"quickstart"``, a text of several lines
    in TOML, or a dict of the same form. ``set`` overrides keys: ``{"workload.background.load": 0.6}``. ``seed`` is that
    of every random stream, and ``replicates`` runs each point so often with different seeds.

    ``controllers`` has classes of congestion controllers (``Controller``) by the names that ``transport.kind`` has for
    them, and ``disciplines`` classes of queue disciplines (``Discipline``) by those that ``port.TIER.discipline`` has.
    ``distributions`` has distributions by the names of the CSV files that they take the place of: functions that draw
    microseconds, samples in microseconds, or ``Distribution`` with another unit or number of draws.

    Raises ``ScenarioError``, which names the line, the key and the nearest spelling, if the scenario is invalid.
    """

    _source: Source
    _settings: list[str]
    _seed: int | None
    _replicates: int | None
    _controllers: dict[str, type[Controller]]
    _disciplines: dict[str, type[Discipline]]
    _files: dict[str, str]

    def __init__(
        self,
        source: Source,
        *,
        set: Mapping[str, Any] | None = None,
        seed: int | None = None,
        replicates: int | None = None,
        controllers: Mapping[str, type[Controller]] | None = None,
        disciplines: Mapping[str, type[Discipline]] | None = None,
        distributions: Mapping[str, Drawn] | None = None,
    ) -> None:
        check(seed=seed, replicates=replicates)
        settings = _toml.settings(set)
        files = {name: file_of(name, drawn) for name, drawn in (distributions or {}).items()}
        if isinstance(source, Scenario):
            self._source = source._source
            settings = [*source._settings, *settings]
            seed = source._seed if seed is None else seed
            replicates = source._replicates if replicates is None else replicates
            controllers = {**source._controllers, **(controllers or {})}
            disciplines = {**source._disciplines, **(disciplines or {})}
            files = {**source._files, **files}
        else:
            self._source = dict(source) if isinstance(source, Mapping) else source
        self._settings = settings
        self._seed = seed
        self._replicates = replicates
        self._controllers = dict(controllers or {})
        self._disciplines = dict(disciplines or {})
        self._files = files
        self._checked = self._check()

    def _check(self) -> _plimsoll.Scenario:
        source = self._source
        if isinstance(source, Mapping):
            name, text = "<dict>", _toml.document(source)
        elif isinstance(source, str) and "\n" in source:
            name, text = "<text>", source
        elif not isinstance(source, (str, os.PathLike)):
            allowed = "a path, the name of a built-in scenario, TOML text, a dict or a plimsoll.Scenario"
            raise TypeError(f"the scenario is {source!r}; allowed: {allowed}")
        else:
            path = os.fspath(source)
            return _plimsoll.Scenario.load(
                path, self._settings, self._seed, self._replicates, self._mechanisms, self._files
            )
        return _plimsoll.Scenario.parse(
            name, text, ".", self._settings, self._seed, self._replicates, self._mechanisms, self._files
        )

    @property
    def _mechanisms(self) -> Mechanisms:
        return registered(self._controllers, self._disciplines)

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process may have other files, so the scenario travels with all that it reads.
        return _of_text, (self.self_contained, self._controllers, self._disciplines)

    @property
    def name(self) -> str:
        """The file or the built-in scenario, as it was named."""
        return self._checked.name

    @property
    def title(self) -> str:
        """The title of the experiment."""
        return self._checked.title

    @property
    def text(self) -> str:
        """The scenario as it was read."""
        return self._checked.text

    @property
    def self_contained(self) -> str:
        """The scenario with its overrides and all files that it reads; it gives the same runs anywhere."""
        return self._checked.self_contained

    @property
    def variants(self) -> list[str]:
        """The variants, in the order of the scenario."""
        return list(dict.fromkeys(point[0] for point in self._checked.points))

    @property
    def objectives(self) -> dict[str, str]:
        """The objectives of the table ``slo``, by their names."""
        return dict(self._checked.objectives)

    @property
    def warnings(self) -> list[str]:
        """What is allowed and probably not meant."""
        return self._checked.warnings

    def __len__(self) -> int:
        """Return the number of runs: variants, times sweep points, times replicates."""
        return len(self._checked.points)

    def show(self, point: int = 0) -> str:
        """Return a point as it is run, in TOML: every key, and the source of its value."""
        return self._checked.show(point)

    def __repr__(self) -> str:
        return f"<Scenario {self.name!r}: {self.title}, {len(self)} runs>"


def _of_text(
    text: str, controllers: dict[str, type[Controller]], disciplines: dict[str, type[Discipline]]
) -> Scenario:
    return Scenario(text + "\n", controllers=controllers, disciplines=disciplines)


def built_in() -> dict[str, str]:
    """Return the titles of the built-in scenarios by their names."""
    titles: dict[str, str] = {}
    for name in _plimsoll.built_in():
        try:
            titles[name] = _plimsoll.Scenario.load(name, [], None, None, ([], []), {}).title
        except _plimsoll.ScenarioError:
            pass  # It is only there to be included by others.
    return titles
