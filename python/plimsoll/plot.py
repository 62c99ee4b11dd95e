"""Figures with matplotlib, in the colours of the report: ``plimsoll.plot.cdf(result, "small")``.

Each function draws one figure into ``ax`` (a new one by default) and returns its axes. Swept values are chosen by the
last word of their keys: ``cdf(result, "small", load=0.4)``; by default the first sweep point is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

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
_INK, _FAINT, _GRID = "#1d2430", "#5b6472", "#e3e6eb"


def cdf(result: Result, workload: str | None = None, *, ax: Axes | None = None, **at: Any) -> Axes:
    """Draw the distribution of a workload's completion times, a line for each variant."""
    ax = _axes(ax, "completion time (us)", "share of messages")
    for curve in _curves(result, "cdfs", workload, at):
        ax.plot(curve["us"], curve["share"], color=_color(result, curve["variant"]), label=curve["variant"])
    ax.set(xscale="log", ylim=(0, 1), title=f"Completion times of {_of(result, 'cdfs', workload)}")
    return _legend(ax)


def tail(result: Result, workload: str | None = None, *, ax: Axes | None = None, **at: Any) -> Axes:
    """Draw the share of a workload's messages that take longer than a time, both on logarithmic axes."""
    ax = _axes(ax, "completion time (us)", "share of messages that take longer")
    for curve in _curves(result, "cdfs", workload, at):
        above = [(us, 1 - share) for us, share in zip(curve["us"], curve["share"]) if share < 1]
        us, shares = zip(*above) if above else ((), ())
        ax.plot(us, shares, color=_color(result, curve["variant"]), label=curve["variant"], drawstyle="steps-post")
    ax.set(xscale="log", yscale="log", title=f"Tail of {_of(result, 'cdfs', workload)}")
    return _legend(ax)


def slowdown(
    result: Result, workload: str | None = None, percentile: str = "p99", *, ax: Axes | None = None, **at: Any
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
    for variant, buckets in curves:
        sizes = [bucket["up_to"] for bucket in buckets]
        values = [bucket["slowdown"][which] for bucket in buckets]
        ax.plot(sizes, values, color=_color(result, variant), label=variant, marker="o", markersize=4)
    ax.set(xscale="log", yscale="log", title=f"Slowdown of {_of(result, 'slowdowns', workload)} by size")
    return _legend(ax)


def queue(result: Result, name: str | None = None, *, ax: Axes | None = None, **at: Any) -> Axes:
    """Draw the delay of a watched queue over time: the mean as a line, and up to the most as a band."""
    all = result.curves["timelines"]
    name = name if name is not None else _first(all, "queue", "no queue is watched")
    curves = [curve for curve in all if curve["queue"] == name and _is_here(result, curve, at)]
    if not curves:
        raise _missing(result, "queue", name, (curve["queue"] for curve in all), at)
    ax = _axes(ax, "time (ms)", "queueing delay (us)")
    for curve in curves:
        color = _color(result, curve["variant"])
        ax.plot(curve["ms"], curve["mean_us"], color=color, label=curve["variant"], linewidth=1)
        ax.fill_between(curve["ms"], curve["least_us"], curve["most_us"], color=color, alpha=0.15, linewidth=0)
    ax.set(title=f"Queue {name}")
    ax.set_ylim(bottom=0)
    return _legend(ax)


def breakdown(
    result: Result, workload: str | None = None, *, slowest: bool = True, ax: Axes | None = None, **at: Any
) -> Axes:
    """Draw where the time of a workload's messages went, a bar for each variant: the slowest hundredth's, or all's."""
    what = "slowest 1 %" if slowest else "messages"
    cells = [cell for cell in result.summary["cells"] if _is_here(result, cell, at)]
    timed = [each["name"] for cell in cells for each in cell["workloads"] if each["time"] is not None]
    if not timed or (workload is not None and workload not in timed):
        raise _missing(result, "workload", workload, _workloads(result), at)
    ax = _axes(ax, f"mean time of the {what} (us)", "")
    shown: list[str] = []
    tiers: dict[str, str] = {}
    name = workload
    for cell in reversed(cells):
        for summary in cell["workloads"]:
            if summary["time"] is None or (name is not None and summary["name"] != name):
                continue
            name = summary["name"]
            left = 0.0
            for part, us in zip(summary["time"]["parts"], summary["time"]["slowest_us" if slowest else "mean_us"]):
                color = PARTS.get(part) or tiers.setdefault(part, TIERS[min(len(tiers), 2)])
                label = part if us > 0 and part not in shown else None
                shown += [part] if label else []
                ax.barh(cell["variant"], us, left=left, color=color, label=label, height=0.6)
                left += us
            break
    ax.set(title=f"Where the time of {name} went")
    return _legend(ax)


def load_line(lines: LoadLines, objective: int = 0, *, ax: Axes | None = None) -> Axes:
    """Draw the metric of an objective against the load, with the limit and every variant's line."""
    details = lines.details
    slo, over = details["slos"][objective], details["over"]
    metric = slo["text"].split("<")[0].split(">")[0].strip()
    ax = _axes(ax, over["key"], f"{metric} ({UNITS.get(str(slo['metric']), 'us')})")
    for number, variant in enumerate(details["variants"]):
        color = COLORS[number % len(COLORS)]
        loads = [at for at in variant["loads"] if at["metrics"][objective] is not None]
        values = [at["metrics"][objective]["value"] for at in loads]
        ax.plot([at["load"] for at in loads], values, color=color, label=variant["name"], marker="o", markersize=4)
        if variant["load"] is not None:
            ax.axvline(variant["load"], color=color, linewidth=1, linestyle=":")
    ax.axhline(slo["limit"], color=_FAINT, linewidth=1, linestyle="--", label=slo["text"])
    ax.set(yscale="log", title=f"Load line for {' and '.join(each['text'] for each in details['slos'])}")
    return _legend(ax)


def published(
    reproduction: Reproduction, figure: str, metric: str, *, base: str = "source", ax: Axes | None = None
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
    for number, name in enumerate(series):
        # Points of the same x lie side by side where x is a word.
        shift = 0.0 if is_numeric else 0.6 * ((number + 0.5) / len(series) - 0.5)
        color = COLORS[number % len(COLORS)]
        own = [row for row in rows if row["series"] == name]
        at = [float(row["x"]) if is_numeric else names.index(row["x"]) + shift for row in own]
        values = [row["measured"] for row in own]
        ends = [row["ci"] or (row["measured"], row["measured"]) for row in own]
        errors = [
            [max(value - low, 0) for value, (low, _) in zip(values, ends)],
            [max(high - value, 0) for value, (_, high) in zip(values, ends)],
        ]
        line = "-" if is_numeric else "none"
        ax.errorbar(at, values, errors, color=color, label=name, marker="o", markersize=4, linestyle=line, capsize=2)
        there = [(x, row["published"]) for x, row in zip(at, own) if row["published"] is not None]
        xs, ys = [x for x, _ in there], [y for _, y in there]
        ax.scatter(xs, ys, marker="D", s=45, facecolors="none", edgecolors=color, zorder=3)
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


def _color(result: Result, variant: str) -> str:
    variants: list[str] = result.summary["variants"]
    return COLORS[variants.index(variant) % len(COLORS)]


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


__all__ = ["COLORS", "PARTS", "breakdown", "cdf", "circuits", "load_line", "published", "queue", "slowdown", "tail"]
