"""Figures with matplotlib, in the colours of the report: ``plimsoll.plot.cdf(result, "small")``.

Each function draws one figure into ``ax`` (a new one by default) and returns its axes. Swept values are chosen by the
last word of their keys: ``cdf(result, "small", load=0.4)``; by default the first sweep point is drawn.

``colors``, ``markers`` and ``labels`` are those of the variants: a mapping from their names, a sequence in their order,
or one for all. Where they are not given, a property cycle of Matplotlib that somebody has set (``axes.prop_cycle``,
``ax.set_prop_cycle``, a style) has the colours, markers and line styles, and otherwise the report.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Union

from ._results import LoadLines, Reproduction, Result, is_at
from .circuits import Schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Okabe and Ito's colours, as the report has them: a variant has the same colour in every figure.
COLORS = ["#0072b2", "#d55e00", "#009e73", "#c0619a", "#b07500", "#3f9fd8", "#7a4fbf", "#5f6368"]
#: The colour of each component of a latency; those of switch tiers begin with the one next to the hosts.
PARTS = {
    "window": "#8357a4",
    "recovery": "#c0392b",
    "NIC queue": "#e69f00",
    "pacer": "#56b4e9",
    "waiting for a circuit": "#c0619a",
    "serialisation": "#8a8f98",
    "propagation": "#c3c7cd",
    "service": "#009e73",
}
TIERS = ["#0072b2", "#4f97c8", "#00466e"]
#: The units of an objective's metric, where it is no completion time.
UNITS = {"goodput": "Mb/s", "deadline": "share"}
#: Colours, markers or labels of variants: by their names, in their order, or one for all.
Choice = Union[Mapping[str, str], Sequence[str]]
#: The shares of the percentiles of a summary.
_SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
_INK, _FAINT, _GRID = "#1d2430", "#5b6472", "#e3e6eb"


def cdf(
    result: Result,
    workload: str | None = None,
    *,
    ax: Axes | None = None,
    colors: Choice | None = None,
    markers: Choice | None = None,
    labels: Choice | None = None,
    intervals: bool = True,
    **at: Any,
) -> Axes:
    """Draw the distribution of a workload's completion times, a line for each variant.

    With ``intervals`` p50, p90, p99 and p99.9 have their 95 % confidence intervals, where they have enough messages.
    """
    curves = _curves(result, "cdfs", workload, at)
    ax = _axes(ax, "completion time (us)", "share of messages")
    styles = _styles(ax, result.summary["variants"], colors, markers, labels)
    for curve in curves:
        style = styles[curve["variant"]]
        ax.plot(curve["us"], curve["share"], markevery=0.1, **style)
        if intervals:
            _percentiles(ax, result, curve, style["color"], lambda share: share)
    ax.set(xscale="log", ylim=(0, 1), title=f"Completion times of {_of(result, 'cdfs', workload)}")
    return _legend(ax)


def tail(
    result: Result,
    workload: str | None = None,
    *,
    ax: Axes | None = None,
    colors: Choice | None = None,
    markers: Choice | None = None,
    labels: Choice | None = None,
    intervals: bool = True,
    **at: Any,
) -> Axes:
    """Draw the share of a workload's messages that take longer than a time, both on logarithmic axes.

    With ``intervals`` p50, p90, p99 and p99.9 have their 95 % confidence intervals, where they have enough messages.
    """
    curves = _curves(result, "cdfs", workload, at)
    ax = _axes(ax, "completion time (us)", "share of messages that take longer")
    styles = _styles(ax, result.summary["variants"], colors, markers, labels)
    for curve in curves:
        style = styles[curve["variant"]]
        above = [(us, 1 - share) for us, share in zip(curve["us"], curve["share"]) if share < 1]
        us, shares = zip(*above) if above else ((), ())
        ax.plot(us, shares, drawstyle="steps-post", markevery=0.1, **style)
        if intervals:
            _percentiles(ax, result, curve, style["color"], lambda share: 1 - share)
    ax.set(xscale="log", yscale="log", title=f"Tail of {_of(result, 'cdfs', workload)}")
    return _legend(ax)


def sweep(
    result: Result,
    workload: str | None = None,
    statistic: str = "p99",
    over: str | None = None,
    *,
    ax: Axes | None = None,
    colors: Choice | None = None,
    markers: Choice | None = None,
    labels: Choice | None = None,
    intervals: bool = True,
    **at: Any,
) -> Axes:
    """Draw a statistic of a workload's completion times over a swept key, a line for each variant.

    ``statistic`` is mean, p50, p90, p99 or p99.9, and ``over`` a swept key or its last word, by default the first one.
    Values that are no numbers of one unit are categories, whose points no line joins.
    """
    statistics = ["mean", "p50", "p90", "p99", "p99.9"]
    if statistic not in statistics:
        raise ValueError(f"statistic={statistic!r}: expected one of {', '.join(statistics)}")
    keys: list[str] = result.summary["sweep_keys"]
    key = next((key for key in keys if over in (None, key, key.rsplit(".", 1)[-1])), None)
    if key is None:
        raise KeyError(f"{over or 'no key'} is not swept; swept are {', '.join(keys) or 'no keys'}")
    others = [[[name, value] for name, value in cell["sweep"] if name != key] for cell in result.summary["cells"]]
    cells = [
        cell
        for cell, rest in zip(result.summary["cells"], others)
        if (all(is_at(rest, word, value) for word, value in at.items()) if at else rest == others[0])
    ]
    name = workload if workload is not None else _workloads(result)[0]
    values = list(dict.fromkeys(dict(cell["sweep"])[key] for cell in cells))
    numbers = [re.fullmatch(r"(-?[\d.]+)\s*([^\d]*)", value) for value in values]
    units = {number[2] if number else None for number in numbers}
    is_numeric = len(units) == 1 and None not in units
    unit = f" ({units.pop()})" if is_numeric and units != {""} else ""
    place = {
        value: float(number[1]) if is_numeric and number else at
        for at, (value, number) in enumerate(zip(values, numbers))
    }
    ax = _axes(ax, key + unit, f"{statistic} of the completion time (us)")
    styles = _styles(ax, result.summary["variants"], colors, markers, labels, marker="o")
    drawn = False
    for variant, style in styles.items():
        known = [
            (place[dict(cell["sweep"])[key]], times[statistic.replace(".", "")])
            for cell in cells
            if cell["variant"] == variant and (times := _times(cell, name)) is not None
        ]
        if not known:
            continue
        drawn = True
        known.sort(key=lambda point: point[0])
        xs, estimates = [x for x, _ in known], [estimate for _, estimate in known]
        style = style if is_numeric else {**style, "linestyle": "none"}
        ax.plot(xs, [estimate["value"] for estimate in estimates], markersize=4, **style)
        if intervals:
            _error_bars(ax, xs, estimates, style["color"])
    if not drawn:
        raise _missing(result, "workload", name, _workloads(result), at)
    if not is_numeric:
        ax.set_xticks(range(len(values)), values)
        ax.margins(x=0.2)
    ax.set(title=f"{statistic} of {name}")
    ax.set_ylim(bottom=0)
    return _legend(ax)


def slowdown(
    result: Result,
    workload: str | None = None,
    percentile: str = "p99",
    *,
    ax: Axes | None = None,
    colors: Choice | None = None,
    markers: Choice | None = None,
    labels: Choice | None = None,
    **at: Any,
) -> Axes:
    """Draw how many times as long as on idle links messages take, by their size; ``percentile`` is p50, p95 or p99."""
    percentiles = ["p50", "p95", "p99"]
    if percentile not in percentiles:
        raise ValueError(f"percentile={percentile!r}: expected one of {', '.join(percentiles)}")
    which = percentiles.index(percentile)
    curves = [
        (curve["variant"], [bucket for bucket in curve["buckets"] if bucket["slowdown"][which] is not None])
        for curve in _curves(result, "slowdowns", workload, at)
    ]
    if not any(buckets for _, buckets in curves):
        name = _of(result, "slowdowns", workload)
        raise ValueError(
            f"no size of {name!r} has enough messages for a {percentile}: make the run longer, or draw a lower "
            "percentile, such as p50"
        )
    ax = _axes(ax, "message size (bytes)", f"{percentile} of the slowdown")
    styles = _styles(ax, result.summary["variants"], colors, markers, labels, marker="o")
    for variant, buckets in curves:
        sizes = [bucket["up_to"] for bucket in buckets]
        values = [bucket["slowdown"][which] for bucket in buckets]
        ax.plot(sizes, values, markersize=4, **styles[variant])
    ax.set(xscale="log", yscale="log", title=f"Slowdown of {_of(result, 'slowdowns', workload)} by size")
    return _legend(ax)


def queue(
    result: Result,
    name: str | None = None,
    *,
    ax: Axes | None = None,
    colors: Choice | None = None,
    markers: Choice | None = None,
    labels: Choice | None = None,
    **at: Any,
) -> Axes:
    """Draw the delay of a watched queue over time: the mean as a line, and up to the most as a band."""
    all = result.curves["timelines"]
    name = name if name is not None else _first(all, "queue", "no queue is watched")
    curves = [curve for curve in all if curve["queue"] == name and _is_here(result, curve, at)]
    if not curves:
        raise _missing(result, "queue", name, (curve["queue"] for curve in all), at)
    ax = _axes(ax, "time (ms)", "queueing delay (us)")
    styles = _styles(ax, result.summary["variants"], colors, markers, labels)
    for curve in curves:
        style = styles[curve["variant"]]
        ax.plot(curve["ms"], curve["mean_us"], linewidth=1, markevery=0.1, **style)
        band = {"color": style["color"], "alpha": 0.15, "linewidth": 0}
        ax.fill_between(curve["ms"], curve["least_us"], curve["most_us"], **band)
    ax.set(title=f"Queue {name}")
    ax.set_ylim(bottom=0)
    return _legend(ax)


def breakdown(
    result: Result,
    workload: str | None = None,
    *,
    slowest: bool = True,
    ax: Axes | None = None,
    colors: Mapping[str, str] | None = None,
    labels: Choice | None = None,
    **at: Any,
) -> Axes:
    """Draw where the time of a workload's messages went, a bar for each variant: the slowest hundredth's, or all's.

    ``colors`` are those of the components by their names, such as ``{"window": "black"}``.
    """
    what = "slowest 1 %" if slowest else "messages"
    cells = [cell for cell in result.summary["cells"] if _is_here(result, cell, at)]
    timed = [each["name"] for cell in cells for each in cell["workloads"] if each["time"] is not None]
    if not timed or (workload is not None and workload not in timed):
        raise _missing(result, "workload", workload, _workloads(result), at)
    ax = _axes(ax, f"mean time of the {what} (us)", "")
    shown: list[str] = []
    tiers: dict[str, str] = {}
    own_colors = {**PARTS, **(colors or {})}
    variants: list[str] = result.summary["variants"]
    name = workload
    for cell in reversed(cells):
        for summary in cell["workloads"]:
            if summary["time"] is None or (name is not None and summary["name"] != name):
                continue
            name = summary["name"]
            left = 0.0
            for part, us in zip(summary["time"]["parts"], summary["time"]["slowest_us" if slowest else "mean_us"]):
                color = own_colors.get(part) or tiers.setdefault(part, TIERS[min(len(tiers), 2)])
                label = part if us > 0 and part not in shown else None
                shown += [part] if label else []
                bar = _chosen(labels, variants, cell["variant"], "label") or cell["variant"]
                ax.barh(bar, us, left=left, color=color, label=label, height=0.6)
                left += us
            break
    ax.set(title=f"Where the time of {name} went")
    return _legend(ax)


def load_line(
    lines: LoadLines,
    objective: int = 0,
    *,
    ax: Axes | None = None,
    colors: Choice | None = None,
    markers: Choice | None = None,
    labels: Choice | None = None,
    intervals: bool = True,
) -> Axes:
    """Draw the metric of an objective against the load, with the limit and every variant's line.

    With ``intervals`` each value has its 95 % confidence interval.
    """
    details = lines.details
    slo, over = details["slos"][objective], details["over"]
    metric = slo["text"].split("<")[0].split(">")[0].strip()
    ax = _axes(ax, over["key"], f"{metric} ({UNITS.get(str(slo['metric']), 'us')})")
    names = [variant["name"] for variant in details["variants"]]
    styles = _styles(ax, names, colors, markers, labels, marker="o")
    for variant in details["variants"]:
        style = styles[variant["name"]]
        known = [at for at in variant["loads"] if at["metrics"][objective] is not None]
        loads, metrics = [at["load"] for at in known], [at["metrics"][objective] for at in known]
        ax.plot(loads, [metric["value"] for metric in metrics], markersize=4, **style)
        if intervals:
            _error_bars(ax, loads, metrics, style["color"])
        if variant["load"] is not None:
            ax.axvline(variant["load"], color=style["color"], linewidth=1, linestyle=":")
    ax.axhline(slo["limit"], color=_FAINT, linewidth=1, linestyle="--", label=slo["text"])
    ax.set(yscale="log", title=f"Load line for {' and '.join(each['text'] for each in details['slos'])}")
    return _legend(ax)


def published(
    reproduction: Reproduction,
    figure: str,
    metric: str,
    *,
    base: str = "source",
    ax: Axes | None = None,
    colors: Choice | None = None,
    markers: Choice | None = None,
    labels: Choice | None = None,
) -> Axes:
    """Draw the measured numbers of a reproduced figure with their intervals, and the published ones as diamonds."""
    all = reproduction.rows
    rows = [row for row in all if row["figure"] == figure and row["metric"] == metric and row["base"] == base]
    if not rows:
        known = sorted({f"{row['metric']} of {row['figure']}" for row in all if row["base"] == base})
        raise KeyError(f"there is no {metric} of {figure} with base {base!r}; there is {', '.join(known)}")
    names = list(dict.fromkeys(row["x"] for row in rows))
    series = list(dict.fromkeys(row["series"] for row in rows))
    is_numeric = len(names) > 1 and _all_numbers(names)
    ax = _axes(ax, "", f"{metric} ({rows[0]['unit']})")
    styles = _styles(ax, series, colors, markers, labels, marker="o")
    for number, name in enumerate(series):
        # Points of the same x lie side by side where x is a word.
        shift = 0.0 if is_numeric else 0.6 * ((number + 0.5) / len(series) - 0.5)
        style = styles[name] if is_numeric else {**styles[name], "linestyle": "none"}
        own = [row for row in rows if row["series"] == name]
        at = [float(row["x"]) if is_numeric else names.index(row["x"]) + shift for row in own]
        values = [row["measured"] for row in own]
        ends = [row["ci"] or (row["measured"], row["measured"]) for row in own]
        errors = [
            [max(value - low, 0) for value, (low, _) in zip(values, ends)],
            [max(high - value, 0) for value, (_, high) in zip(values, ends)],
        ]
        ax.errorbar(at, values, errors, markersize=4, capsize=2, **style)
        there = [(x, row["published"]) for x, row in zip(at, own) if row["published"] is not None]
        xs, ys = [x for x, _ in there], [y for _, y in there]
        ax.scatter(xs, ys, marker="D", s=45, facecolors="none", edgecolors=style["color"], zorder=3)
    if not is_numeric:
        ax.set_xticks(range(len(names)), names)
    ax.scatter([], [], marker="D", s=45, facecolors="none", edgecolors=_FAINT, label="published")
    ax.set(title=f"{figure} of {reproduction.study}: measured beside published")
    ax.margins(0.08)
    ax.set_ylim(bottom=0)
    return _legend(ax)


def circuits(of: Result | Schedule, variant: str | None = None, *, ax: Axes | None = None, **at: Any) -> Axes:
    """Draw which sender has a circuit to which receiver, and when: of a run, or of a schedule."""
    if isinstance(of, Schedule):
        bars: list[tuple[float, float, int, int]] = []
        begin = 0.0
        for configuration in of.configurations:
            begin += of.night_us
            for sender, receiver in enumerate(configuration.receivers):
                if receiver is not None:
                    bars.append((begin, configuration.duration_us, sender, receiver))
            begin += configuration.duration_us
        title, unit = "Schedule", "time (us)"
    else:
        chosen = variant if variant is not None else _first(of.curves.get("circuits", []), "variant", "no circuits")
        all = of.curves.get("circuits", [])
        curves = [curve for curve in all if curve["variant"] == chosen and _is_here(of, curve, at)]
        if not curves:
            raise KeyError(f"there are no circuits of {chosen!r}")
        bars = [(bar["from"], bar["until"] - bar["from"], bar["sender"], bar["receiver"]) for bar in curves[0]["bars"]]
        title, unit = f"Circuits of {chosen}", f"week, of {curves[0]['week_us'] / 1e3:.2f} ms each"
    ax = _axes(ax, unit, "sender")
    named: list[int] = []
    for begin, length, sender, receiver in bars:
        label = f"to h{receiver}" if receiver not in named and len(named) < len(COLORS) else None
        named += [receiver] if label else []
        ax.barh(sender, length, left=begin, color=COLORS[receiver % len(COLORS)], height=0.7, label=label)
    ax.set(title=title)
    ax.set_yticks(sorted({sender for _, _, sender, _ in bars}))
    ax.invert_yaxis()
    # Bars may be anywhere, so that no place inside is free.
    return _legend(ax, loc="upper left", bbox_to_anchor=(1, 1))


def _all_numbers(texts: Sequence[str]) -> bool:
    try:
        return bool([float(text) for text in texts])
    except ValueError:
        return False


def _axes(ax: Axes | None, x: str, y: str) -> Axes:
    if ax is None:
        try:
            from matplotlib import pyplot
        except ImportError as error:
            raise ImportError("figures need matplotlib: pip install 'plimsoll-net[plot]'") from error
        ax = pyplot.subplots(figsize=(7, 4), layout="constrained")[1]
    ax.set_xlabel(x, color=_FAINT)
    ax.set_ylabel(y, color=_FAINT)
    ax.tick_params(colors=_FAINT)
    ax.grid(color=_GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.title.set_color(_INK)
    return ax


def _legend(ax: Axes, **place: Any) -> Axes:
    if ax.get_legend_handles_labels()[1]:
        ax.legend(frameon=False, labelcolor=_INK, **place)
    return ax


def _styles(
    ax: Axes,
    names: Sequence[str],
    colors: Choice | None,
    markers: Choice | None,
    labels: Choice | None,
    marker: str = "",
) -> dict[str, dict[str, Any]]:
    """Return the properties of each variant's line: what the caller chose, else those of the property cycle."""
    chosen = {"color": colors, "marker": markers, "label": labels}
    styles = {}
    for name, properties in zip(names, _cycle(ax, len(names), marker)):
        own = {key: _chosen(choice, names, name, key) for key, choice in chosen.items()}
        styles[name] = {**properties, "label": name, **{key: value for key, value in own.items() if value is not None}}
    return styles


def _cycle(ax: Axes, count: int, marker: str) -> list[dict[str, Any]]:
    """Return the properties of the next lines of the axes, with the report's colours in place of Matplotlib's default.

    ``marker`` is that of lines for which the cycle has none.
    """
    from matplotlib import rcParamsDefault

    usual = rcParamsDefault["axes.prop_cycle"].by_key()["color"]
    # Axes have no other public way to take properties from their cycle.
    lines = [ax.plot([], [])[0] for _ in range(count)]
    for line in lines:
        line.remove()
    is_usual = all((line.get_marker(), line.get_linestyle()) == ("None", "-") for line in lines)
    if is_usual and all(line.get_color() in usual for line in lines):
        return [{"color": COLORS[at % len(COLORS)], "marker": marker, "linestyle": "-"} for at in range(count)]
    shown = [line.get_marker() if line.get_marker() != "None" else marker for line in lines]
    return [
        {"color": line.get_color(), "marker": marker, "linestyle": line.get_linestyle()}
        for line, marker in zip(lines, shown)
    ]


def _chosen(choice: Choice | None, names: Sequence[str], name: str, what: str) -> str | None:
    """Return what a caller has chosen for a variant."""
    if choice is None or isinstance(choice, str):
        return choice
    if not isinstance(choice, Mapping):
        return choice[names.index(name) % len(choice)]
    for known in choice:
        if known not in names:
            raise KeyError(f"{what}s has {known!r}; there is {', '.join(names)}")
    return choice.get(name)


def _error_bars(
    ax: Axes, places: Sequence[float], estimates: Sequence[dict[str, Any]], color: str, along: str = "y"
) -> None:
    """Draw the intervals of estimates along an axis, where they have one."""
    known = [(place, estimate) for place, estimate in zip(places, estimates) if estimate["interval"]]
    values, ends = [each["value"] for _, each in known], [each["interval"] for _, each in known]
    below = [max(value - end["low"], 0) for value, end in zip(values, ends)]
    above = [max(end["high"] - value, 0) for value, end in zip(values, ends)]
    here = [place for place, _ in known]
    xs, ys = (here, values) if along == "y" else (values, here)
    errors: dict[str, Any] = {f"{along}err": [below, above]}
    ax.errorbar(xs, ys, **errors, fmt="none", color=color, elinewidth=1)


def _percentiles(
    ax: Axes, result: Result, curve: dict[str, Any], color: str, height: Callable[[float], float]
) -> None:
    """Mark the percentiles of a distribution that have an interval."""
    cells = result.summary["cells"]
    cell = next(each for each in cells if (each["variant"], each["sweep"]) == (curve["variant"], curve["sweep"]))
    times = _times(cell, curve["workload"])
    known = [(height(share), times[name]) for name, share in _SHARES.items() if times and times[name]["interval"]]
    heights, estimates = [at for at, _ in known], [estimate for _, estimate in known]
    _error_bars(ax, heights, estimates, color, "x")
    ax.scatter([estimate["value"] for estimate in estimates], heights, s=12, color=color, zorder=3)


def _times(cell: dict[str, Any], workload: str) -> dict[str, Any] | None:
    """Return the distribution that is drawn of a workload: of observations, of queries, or of messages."""
    for summary in cell["workloads"]:
        if summary["name"] == workload:
            if summary.get("observed"):
                return dict(summary["observed"]["us"])
            times = (summary.get("queries") or summary)["completion_us"]
            return None if times is None else dict(times)
    return None


def _curves(result: Result, kind: str, workload: str | None, at: dict[str, Any]) -> list[dict[str, Any]]:
    name = _of(result, kind, workload)
    found = [curve for curve in result.curves[kind] if curve["workload"] == name and _is_here(result, curve, at)]
    if not found:
        if kind == "slowdowns" and name in _workloads(result) and _is_point(result, at):
            raise ValueError(f"the messages of {name!r} have one size: plot.cdf draws their times")
        raise _missing(result, "workload", name, _workloads(result), at)
    return found


def _missing(result: Result, what: str, name: str | None, known: Iterable[str], at: dict[str, Any]) -> KeyError:
    """Return the error for a figure that nothing is drawn in."""
    names = list(dict.fromkeys(known))
    if not _is_point(result, at):
        swept = ", ".join(result.summary["sweep_keys"]) or "no keys"
        return KeyError(f"there is no sweep point with {at}; swept are {swept}")
    if name is None or name in names:
        return KeyError(f"there is nothing to draw of {name or 'any ' + what}")
    near = get_close_matches(name, names, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return KeyError(f"there is no {what} {name!r}; there is {', '.join(names) or 'none'}{hint}")


def _workloads(result: Result) -> list[str]:
    return [workload["name"] for cell in result.summary["cells"] for workload in cell["workloads"]]


def _is_point(result: Result, at: dict[str, Any]) -> bool:
    return any(_is_here(result, cell, at) for cell in result.summary["cells"])


def _of(result: Result, kind: str, workload: str | None) -> str:
    otherwise = "the messages of each workload have one size" if kind == "slowdowns" else "there is nothing to draw"
    return workload if workload is not None else _first(result.curves[kind], "workload", otherwise)


def _first(curves: Sequence[dict[str, Any]], key: str, otherwise: str) -> str:
    if not curves:
        raise KeyError(otherwise)
    name: str = curves[0][key]
    return name


def _is_here(result: Result, curve: dict[str, Any], at: dict[str, Any]) -> bool:
    """Return whether a curve is of the sweep point asked for, or of the first one."""
    if not at:
        sweep: list[list[str]] = result.summary["cells"][0]["sweep"]
        return bool(curve["sweep"] == sweep)
    return all(is_at(curve["sweep"], word, value) for word, value in at.items())


__all__ = [
    "COLORS",
    "PARTS",
    "breakdown",
    "cdf",
    "circuits",
    "load_line",
    "published",
    "queue",
    "slowdown",
    "sweep",
    "tail",
]
