"""What runs, searches and reproductions return."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import sys
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from . import _plimsoll
from ._plimsoll import Table


def _width() -> int:
    return shutil.get_terminal_size((120, 24)).columns if sys.stdout.isatty() else 120


class Point(NamedTuple):
    """A run: a variant at one sweep point with one seed."""

    variant: str
    #: The swept keys with their values.
    sweep: dict[str, str]
    replicate: int
    seed: int
    #: The digest of what the run observed: the same digest means the same result.
    digest: str


class Measured(NamedTuple):
    """One number of a run."""

    point: Point
    #: The number, in the unit of its quantity (times in us); None where the run has no sample.
    value: float | None
    #: The 95 % confidence interval; None where there are too few samples for one.
    interval: tuple[float, float] | None
    samples: int


class Result:
    """What runs observed.

    Records are columns that pandas, Polars, PyArrow and DuckDB take as they are, by Arrow's C interface:
    ``polars.DataFrame(result.messages)``. They begin with ``variant``, ``replicate`` and a column for each swept key.
    Times are whole picoseconds since the start of the run.
    """

    def __init__(self, outcomes: _plimsoll.Outcomes) -> None:
        self._outcomes = outcomes

    @property
    def title(self) -> str:
        """The title of the experiment."""
        return self._outcomes.title

    @property
    def path(self) -> Path | None:
        """The run directory, if there is one."""
        return None if self._outcomes.path is None else Path(self._outcomes.path)

    @property
    def command(self) -> str:
        """The command that repeats the runs."""
        return self._outcomes.command

    @property
    def seed(self) -> int:
        """The seed of the first replicate."""
        return self._outcomes.seed

    @property
    def scenario(self) -> str:
        """The scenario as it was run, with all that it depends on."""
        return self._outcomes.scenario

    @property
    def digest(self) -> str:
        """The digest of all runs: the same digest means the same results."""
        return self._outcomes.digest

    @property
    def points(self) -> list[Point]:
        """The runs, in the order of the scenario."""
        points = self._outcomes.points
        return [Point(name, dict(sweep), replicate, seed, digest) for name, sweep, replicate, seed, digest in points]

    @property
    def missing(self) -> int:
        """The number of the scenario's runs that are not here: those of other variants or shards."""
        return self._outcomes.missing

    @property
    def warnings(self) -> list[str]:
        """What a reader must know before believing a number."""
        return self._outcomes.warnings

    @property
    def verdicts(self) -> list[str]:
        """The sentences that compare the variants with the first one."""
        return self._outcomes.verdicts

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Every number with its 95 % confidence interval, as in ``summary.json`` of a run directory."""
        summary: dict[str, Any] = json.loads(self._outcomes.summary_json())
        return summary

    @cached_property
    def curves(self) -> dict[str, Any]:
        """Distributions, queues over time and slowdowns by size, thinned for figures."""
        curves: dict[str, Any] = json.loads(self._outcomes.curves_json())
        return curves

    @cached_property
    def messages(self) -> Table:
        """One row a message: a flow, or a request with its response; with the parts of its latency."""
        return self._outcomes.table("messages")

    @cached_property
    def queries(self) -> Table:
        """One row a fan-out query."""
        return self._outcomes.table("queries")

    @cached_property
    def observations(self) -> Table:
        """One row a measurement that is no completion time."""
        return self._outcomes.table("observations")

    @cached_property
    def queues(self) -> Table:
        """One row an interval of a watched queue."""
        return self._outcomes.table("queues")

    @cached_property
    def links(self) -> Table:
        """One row a direction of a link, where the scenario counts links."""
        return self._outcomes.table("links")

    @cached_property
    def circuits(self) -> Table:
        """One row a circuit while it stood, in a hybrid network."""
        return self._outcomes.table("circuits")

    @cached_property
    def connections(self) -> Table:
        """One row a connection that carried data."""
        return self._outcomes.table("connections")

    @cached_property
    def series(self) -> Table:
        """One row a sample of a connection's sender, where the scenario records them."""
        return self._outcomes.table("series")

    @cached_property
    def goodput(self) -> Table:
        """One row a workload and interval, where the scenario records goodput."""
        return self._outcomes.table("goodput")

    def workload(self, name: str, variant: str | None = None, **at: Any) -> dict[str, Any]:
        """Return the summary of a workload in a variant: the first by default, at swept values by their last words.

        ``result.workload("small", "HULL", load=0.4)["completion_us"]["p99"]["value"]``
        """
        cell = self.cell(variant, **at)
        return _named(cell["workloads"], name, "workload")

    def measure(self, measure: str) -> list[Measured]:
        """Return one number of each run, by the grammar of objectives and studies.

        ``result.measure("p99(small)")``, ``result.measure("slowdown.p99(flows, 0..100KB)")``,
        ``result.measure("mean(queue.client)")``
        """
        return [Measured(point, *of) for point, of in zip(self.points, self._outcomes.measure(measure))]

    def cell(self, variant: str | None = None, **at: Any) -> dict[str, Any]:
        """Return the summary of a variant (the first by default), at swept values by their keys' last words."""
        variants: list[str] = self.summary["variants"]
        variant = variants[0] if variant is None else variant
        if variant not in variants:
            raise KeyError(f"there is no variant {variant!r}; there are {', '.join(variants)}")
        cells: list[dict[str, Any]] = [cell for cell in self.summary["cells"] if cell["variant"] == variant]
        for word, value in at.items():
            cells = [cell for cell in cells if is_at(cell["sweep"], word, value)]
        if not cells:
            raise KeyError(f"there is no sweep point with {at}; swept are {', '.join(self.summary['sweep_keys'])}")
        return cells[0]

    def to_text(self, format: str = "table") -> str:
        """Return the tables that ``plimsoll run`` prints; ``format`` is table, json, csv or md."""
        return self._outcomes.table_text(format, _width())

    def report(self) -> str:
        """Return the report as a page of HTML that needs no network."""
        return self._outcomes.report_html()

    def save_report(self, path: str | os.PathLike[str]) -> None:
        """Write the report to a file."""
        Path(path).write_text(self.report(), encoding="utf-8")

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<Result {self.title!r}: {len(self.points)} runs, digest {self.digest[:12]}>"

    def _repr_html_(self) -> str:
        return _tables(self.to_text("md"))


class Comparison:
    """Each variant of a result beside the same variant of others, with paired differences and their intervals."""

    def __init__(self, compared: _plimsoll.Compared) -> None:
        self._compared = compared

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Every number with its 95 % confidence interval; ``comparisons`` has the paired differences."""
        summary: dict[str, Any] = json.loads(self._compared.summary_json())
        return summary

    @property
    def verdicts(self) -> list[str]:
        """The sentences that compare the results with the first one."""
        return self._compared.verdicts

    def to_text(self, format: str = "table") -> str:
        """Return the tables that ``plimsoll compare`` prints; ``format`` is table, json, csv or md."""
        return self._compared.table_text(format, _width())

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return _tables(self.to_text("md"))


class LoadLine(NamedTuple):
    """The load line of one variant."""

    name: str
    #: ``"line"``, ``"always"`` (even the highest load meets every objective), ``"never"`` or ``"undecided"``.
    found: str
    #: The highest load that meets every objective; None unless found.
    load: float | None
    #: The 95 % confidence interval of the load.
    interval: tuple[float | None, float | None]
    #: The line divided by today's load.
    headroom: float | None
    #: The component of the latency that grew most on the way to the line.
    bottleneck: str | None


class LoadLines:
    """The load lines of all variants."""

    def __init__(self, lines: _plimsoll.Lines) -> None:
        self._lines = lines

    @cached_property
    def details(self) -> dict[str, Any]:
        """All that the search found, with every load that was run, as in ``lines.json`` of a run directory."""
        details: dict[str, Any] = json.loads(self._lines.json())
        return details

    @property
    def variants(self) -> list[LoadLine]:
        """The lines, in the order of the scenario."""
        return [_load_line(variant) for variant in self.details["variants"]]

    def __getitem__(self, variant: str) -> LoadLine:
        for line in self.variants:
            if line.name == variant:
                return line
        raise KeyError(f"there is no variant {variant!r}; there are {', '.join(line.name for line in self.variants)}")

    @property
    def overloaded(self) -> list[str]:
        """The variants whose objectives today's load violates."""
        return self._lines.overloaded

    @property
    def sentences(self) -> list[str]:
        """The lines in words."""
        return self._lines.sentences

    def to_text(self, format: str = "table") -> str:
        """Return the table that ``plimsoll line`` prints; ``format`` is table, json, csv or md."""
        return self._lines.table_text(format, _width())

    def report(self) -> str:
        """Return the report as a page of HTML that needs no network."""
        return self._lines.report_html

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<LoadLines of {self.details['over']['key']}: {', '.join(line.name for line in self.variants)}>"

    def _repr_html_(self) -> str:
        return _tables(self.to_text("md"))


class Reproduction:
    """A study's experiments, measured beside their published values."""

    def __init__(self, study: str, rows: str, ledger: tuple[int, int, int], files: dict[str, str]) -> None:
        self.study = study
        #: One dict for each number: figure, series, x, metric, unit, measured, ci, published, ratio, state.
        self.rows: list[dict[str, Any]] = json.loads(rows)
        #: How many published values are held, explained and open.
        self.held, self.explained, self.open = ledger
        self._files = files

    @property
    def page(self) -> str:
        """The page in Markdown."""
        return self._files[f"{self.study}.md"]

    @property
    def figures(self) -> dict[str, str]:
        """The figures as SVG, by their names."""
        svg = {name: text for name, text in self._files.items() if name.endswith(".svg")}
        return {Path(name).stem: text for name, text in svg.items()}

    def __repr__(self) -> str:
        return (
            f"<Reproduction {self.study}: {len(self.rows)} numbers; {self.held} held, {self.explained} explained, "
            f"{self.open} open>"
        )

    def _repr_html_(self) -> str:
        figures = "".join(self.figures.values())
        return f"<p>{html.escape(repr(self)[1:-1])}</p>{figures}"


def _load_line(variant: dict[str, Any]) -> LoadLine:
    part = variant["part"]
    return LoadLine(
        name=variant["name"],
        found=variant["found"],
        load=variant["load"],
        interval=(variant["low"], variant["high"]),
        headroom=variant["headroom"],
        bottleneck=part["name"] if part else None,
    )


def _named(all: list[dict[str, Any]], name: str, what: str) -> dict[str, Any]:
    for one in all:
        if one["name"] == name:
            return one
    raise KeyError(f"there is no {what} {name!r}; there are {', '.join(one['name'] for one in all)}")


def is_at(sweep: list[list[str]], word: str, value: object) -> bool:
    """Return whether a swept key, by its name or the last word of it, has a value."""
    for key, swept in sweep:
        if key == word or key.rsplit(".", 1)[-1] == word:
            try:
                return float(swept) == float(value)  # type: ignore[arg-type]
            except (TypeError, ValueError):
                return swept == str(value)
    return False


def _tables(markdown: str) -> str:
    """Return the tables, the lists and the lines of a Markdown text as HTML."""
    out: list[str] = []
    for kind, group in groupby(filter(str.strip, markdown.splitlines()), _kind):
        lines = list(group)
        if kind == "table":
            out.append(_table([_cells(line) for line in lines]))
        elif kind == "list":
            out.append("<ul>" + "".join(f"<li>{_inline(line[2:])}</li>" for line in lines) + "</ul>")
        else:
            out += [f"<p>{_inline(line)}</p>" for line in lines]
    return "".join(out)


def _kind(line: str) -> str:
    return "table" if line.startswith("|") else "list" if line.startswith("* ") else "line"


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split(" | ")]


def _table(rows: list[list[str]]) -> str:
    """Return a table as HTML: the columns, the line below them, and the rows."""
    body = "".join("<tr>" + "".join(f"<td>{_inline(cell)}</td>" for cell in row) + "</tr>" for row in rows[2:])
    return f"<table><thead>{_head(rows[0])}</thead><tbody>{body}</tbody></table>"


def _head(columns: list[str]) -> str:
    """Return the rows of a head, in which columns such as ``small: p50 us`` share the cell of their group."""
    split = [("", columns[0]), *(column.rpartition(": ")[::2] for column in columns[1:])]
    if not any(group for group, _ in split):
        return "<tr>" + "".join(f"<th>{_inline(name)}</th>" for _, name in split) + "</tr>"
    above = ""
    for group, same in groupby(split, lambda column: column[0]):
        names = [name for _, name in same]
        if group:
            above += f'<th colspan="{len(names)}">{_inline(group)}</th>'
        else:
            above += "".join(f'<th rowspan="2">{_inline(name)}</th>' for name in names)
    below = "".join(f"<th>{_inline(name)}</th>" for group, name in split if group)
    return f"<tr>{above}</tr><tr>{below}</tr>"


#: An escaped character, bold text and code, as Plimsoll's Markdown has them.
_MARKS = re.compile(r"\\(?P<plain>.)|\*\*(?P<b>(?:\\.|[^\\*])+)\*\*|`(?P<code>[^`]+)`")


def _inline(markdown: str) -> str:
    """Return a piece of Markdown as HTML."""
    out, end = "", 0
    for mark in _MARKS.finditer(markdown):
        out += html.escape(markdown[end : mark.start()])
        tag, inner = mark.lastgroup, mark[mark.lastgroup or 0]
        out += html.escape(inner) if tag == "plain" else f"<{tag}>{_inline(inner)}</{tag}>"
        end = mark.end()
    return out + html.escape(markdown[end:])
