"""Figures: each draws what its result has."""

from __future__ import annotations

import re
from typing import Any

import matplotlib
import pytest

matplotlib.use("Agg")

from cycler import cycler
from matplotlib import colors, pyplot
from matplotlib.axes import Axes

import plimsoll
from plimsoll import plot


@pytest.fixture(autouse=True)
def closed() -> Any:
    yield
    pyplot.close("all")


def labels(ax: Axes) -> list[str]:
    return ax.get_legend_handles_labels()[1]


def test_distributions(result: plimsoll.Result) -> None:
    for draw in (plot.cdf, plot.tail):
        ax = draw(result, "small")
        assert labels(ax) == ["TCP", "DCTCP"]
        assert [colors.to_hex(line.get_color()) for line in ax.lines] == plot.COLORS[:2]
        assert len(ax.lines[0].get_xdata()) > 20
    assert plot.cdf(result).get_title() == "Completion times of small"


def test_percentiles_have_intervals(small: dict[str, Any]) -> None:
    short = {"workload.small.load": "80Mbps", "workload.background.size": "2KB", "workload.background.load": 0.2}
    result = plimsoll.run(small, set={"run.duration": "3s", **short}, variants=["TCP"])
    times = result.workload("small", "TCP")["completion_us"]
    for draw, heights in ((plot.cdf, (0.5, 0.9, 0.99, 0.999)), (plot.tail, (0.5, 0.1, 0.01, 0.001))):
        ax = draw(result, "small")
        marked = [point for each in ax.collections for point in getattr(each, "get_offsets")().tolist()]
        for name, height in zip(("p50", "p90", "p99", "p999"), heights):
            assert any(point == pytest.approx([times[name]["value"], height]) for point in marked), name
        assert len(ax.containers) == 1
        assert not draw(result, "small", intervals=False).containers


def test_styles_are_chosen_or_those_of_the_cycle(result: plimsoll.Result, swept: plimsoll.Result) -> None:
    _, ax = pyplot.subplots()
    assert plot.tail(result, ax=ax, colors=["black", "red"], markers="s", labels={"TCP": "today"}) is ax
    shown = [(line.get_color(), line.get_marker(), line.get_label()) for line in ax.lines]
    assert shown == [("black", "s", "today"), ("red", "s", "DCTCP")]
    with pytest.raises(KeyError, match="colors has 'HULL'; there is TCP, DCTCP"):
        plot.tail(result, colors={"HULL": "red"})
    cycle = cycler(color=["green", "orange"], marker=["x", "+"], linestyle=["--", ":"])
    ax.clear()
    ax.set_prop_cycle(cycle)
    with matplotlib.rc_context({"axes.prop_cycle": cycle}):
        drawn = [plot.cdf(result, ax=ax), plot.cdf(result), plot.queue(result), plot.sweep(swept)]
    for axes in drawn:
        shown = [(line.get_color(), line.get_marker(), line.get_linestyle()) for line in axes.lines]
        assert shown == [("green", "x", "--"), ("orange", "+", ":")]


def test_a_sweep_is_a_line_over_numbers_and_points_over_words(swept: plimsoll.Result, small: dict[str, Any]) -> None:
    ax = plot.sweep(swept, "small", "p99.9")
    assert labels(ax) == ["TCP", "DCTCP"] and ax.get_xlabel() == "workload.background.load"
    for load, y in zip((0.2, 0.4), ax.lines[0].get_ydata()):
        assert y == swept.workload("small", "TCP", load=load)["completion_us"]["p999"]["value"]
    words = plimsoll.sweep(
        small, {"port.host.order": ["fifo", "fair-per-flow"], "workload.background.load": [0.2, 0.4]}
    )
    ax = plot.sweep(words, "small", over="order", load=0.4)
    assert [line.get_linestyle() for line in ax.lines] == ["None", "None"]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["fifo", "fair-per-flow"]
    with pytest.raises(ValueError, match="statistic='p42': expected one of mean, p50, p90, p99, p99.9"):
        plot.sweep(swept, "small", "p42")
    with pytest.raises(KeyError, match="rate is not swept; swept are workload.background.load"):
        plot.sweep(swept, "small", over="rate")


def test_a_name_that_is_not_there_is_an_error_with_the_nearest_spelling(result: plimsoll.Result) -> None:
    for draw, name, message in [
        (plot.cdf, "smal", "no workload 'smal'; there is small, background; did you mean 'small'?"),
        (plot.slowdown, "smal", "no workload 'smal'; there is small, background; did you mean 'small'?"),
        (plot.breakdown, "smal", "no workload 'smal'; there is small, background; did you mean 'small'?"),
        (plot.queue, "cliet", "no queue 'cliet'; there is client; did you mean 'client'?"),
    ]:
        with pytest.raises(KeyError, match=re.escape(message)):
            draw(result, name)
    for draw in (plot.cdf, plot.slowdown, plot.breakdown, plot.queue):
        with pytest.raises(KeyError, match="there is no sweep point with {'load': 0.9}"):
            draw(result, load=0.9) if draw is plot.queue else draw(result, "small", load=0.9)


def test_swept_values_choose_the_point(swept: plimsoll.Result) -> None:
    low, high = plot.cdf(swept, "small", load=0.2), plot.cdf(swept, "small", load=0.4)
    assert list(low.lines[0].get_xdata()) != list(high.lines[0].get_xdata())
    assert list(plot.cdf(swept, "small").lines[0].get_xdata()) == list(low.lines[0].get_xdata())


def test_queues_and_breakdown(result: plimsoll.Result) -> None:
    ax = plot.queue(result)
    assert labels(ax) == ["TCP", "DCTCP"] and len(ax.collections) == 2
    ax = plot.breakdown(result, "small")
    time = result.workload("small", "TCP")["time"]
    assert set(labels(ax)) <= set(time["parts"]) and "tor queue" in labels(ax)
    widths = sum(bar.get_width() for bar in ax.patches if abs(bar.get_y() + 0.3 - 1) < 0.01)
    assert widths == pytest.approx(sum(time["slowest_us"]))


def test_slowdown_by_size(small: dict[str, Any]) -> None:
    sizes = {"run.duration": "1s", "workload.background.size": {"kind": "cdf", "cdf": "websearch"}}
    result = plimsoll.run(small, set=sizes)
    ax = plot.slowdown(result, "background", "p50")
    assert labels(ax) == ["TCP", "DCTCP"] and min(ax.lines[0].get_ydata()) >= 1
    with pytest.raises(ValueError, match="no size of 'background' has enough messages for a p99"):
        plot.slowdown(result, "background")
    with pytest.raises(ValueError, match="percentile='p42': expected one of p50, p95, p99"):
        plot.slowdown(result, "background", "p42")
    with pytest.raises(ValueError, match="the messages of 'small' have one size"):
        plot.slowdown(result, "small")


def test_the_load_line(small: dict[str, Any]) -> None:
    lines = plimsoll.line(small, "p99(small) < 2ms", within=(0.1, 0.6), precision=0.5, replicates_max=4)
    ax = plot.load_line(lines)
    assert labels(ax) == ["TCP", "DCTCP", "p99(small) < 2ms"]
    assert ax.get_ylabel() == "p99(small) (us)"
    assert list(ax.lines[-1].get_ydata()) == [2000, 2000]


def test_circuits_of_a_schedule_and_of_a_run() -> None:
    schedule = plimsoll.schedule([[0, 9_000_000], [9_000_000, 0]])
    ax = plot.circuits(schedule)
    assert len(ax.patches) == 2 * len(schedule.configurations)
    ax.figure.canvas.draw()
    legend = ax.get_legend()
    assert legend is not None and legend.get_window_extent().x0 >= ax.get_window_extent().x1, "it covers no bar"
    result = plimsoll.run("hybrid/one-to-all", set={"run.duration": "30ms"})
    ax = plot.circuits(result)
    assert len(ax.patches) > 3 and ax.get_title().startswith("Circuits of ")


def test_measured_numbers_beside_published_ones() -> None:
    reproduction = plimsoll.reproduce("solstice", quick=True, only="fig4@8,64", progress=False)
    ax = plot.published(reproduction, "fig4", "schedule_time_ms")
    rows = [row for row in reproduction.rows if row["figure"] == "fig4" and row["base"] == "source"]
    times = [row for row in rows if row["metric"] == "schedule_time_ms"]
    assert labels(ax)[0] == "published" and set(labels(ax)[1:]) == {row["series"] for row in times}
    diamonds = [point[1] for collection in ax.collections for point in getattr(collection, "get_offsets")().tolist()]
    for row in times:
        if row["published"] is not None:
            assert any(value == pytest.approx(row["published"]) for value in diamonds), row
    with pytest.raises(KeyError, match="there is no goodput of fig4"):
        plot.published(reproduction, "fig4", "goodput")
