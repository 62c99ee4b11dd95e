"""Records as columns of other libraries."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import duckdb
import pandas
import polars
import pyarrow
import pytest

import plimsoll

KINDS = ["messages", "queries", "observations", "queues", "links", "circuits", "connections", "series", "goodput"]


def test_every_library_takes_the_messages(result: plimsoll.Result) -> None:
    messages = result.messages
    rows = len(messages)
    assert rows > 300
    arrow = pyarrow.table(messages)
    frame = polars.DataFrame(messages)
    data = pandas.DataFrame.from_arrow(messages)
    lists = messages.to_dict()
    assert arrow.num_rows == frame.height == len(data) == len(lists["bytes"]) == rows
    assert duckdb.sql("SELECT count(*) FROM messages").fetchall() == [(rows,)]
    total = sum(lists["bytes"])
    assert frame["bytes"].sum() == data["bytes"].sum() == total
    assert set(frame["variant"].cast(str)) == {"TCP", "DCTCP"} == set(data["variant"])
    assert lists["variant"] == frame["variant"].cast(str).to_list()


def test_pandas_is_optional(result: plimsoll.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = result.messages.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == result.messages.column_names
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    without = result.messages.to_pandas()
    assert list(without["completion_us"].dropna()) == list(frame["completion_us"].dropna())
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"to_pandas\(\) needs pandas: pip install pandas"):
        result.messages.to_pandas()


def test_the_parts_of_a_latency_sum_to_it(result: plimsoll.Result) -> None:
    frame = polars.DataFrame(result.messages).filter(polars.col("completed_ps").is_not_null())
    moments = {"created_ps", "completed_ps", "ideal_ps"}
    parts = [name for name in frame.columns if name.endswith("_ps") and name not in moments]
    assert len(parts) == 10
    sums = frame.select(sum=polars.sum_horizontal(parts), whole=polars.col("completed_ps") - polars.col("created_ps"))
    assert (sums["sum"] == sums["whole"]).all() and frame.height > 300
    us = frame["completion_us"] * 1e6 - (frame["completed_ps"] - frame["created_ps"])
    assert abs(us).max() < 1


def test_columns_are_those_of_the_run_directory(small: dict[str, Any], tmp_path: Path) -> None:
    observe = {"observe.links": True, "observe.flow_series": "10ms", "observe.goodput_every": "10ms"}
    result = plimsoll.run(small, set=observe, out=tmp_path / "run", variants=["TCP"])
    for kind in KINDS:
        files = list((tmp_path / "run").glob(f"points/*/{kind}.csv"))
        names = getattr(result, kind).column_names
        if files:
            with open(files[0]) as file:
                rows = list(csv.reader(file))
            added = [name for name in names if name not in rows[0]]
            assert [name for name in names if name not in added] == rows[0], kind
            assert len(getattr(result, kind)) == len(rows) - 1, kind
            assert set(added) <= {"completion_us", "slowdown", "mean_delay_us"}
        else:
            assert len(getattr(result, kind)) == 0, kind


def test_swept_numbers_are_numbers(swept: plimsoll.Result) -> None:
    frame = polars.DataFrame(swept.messages)
    assert frame["workload.background.load"].dtype == polars.Float64
    means = frame.group_by("variant", "workload.background.load").agg(polars.col("completion_us").mean())
    assert means.height == 4


def test_a_stream_can_be_read_again(result: plimsoll.Result) -> None:
    queues = result.queues
    assert pyarrow.table(queues).equals(pyarrow.table(queues))
    assert polars.DataFrame(queues)["mean_delay_us"].min() >= 0


def test_unknown_records_are_an_error(result: plimsoll.Result) -> None:
    with pytest.raises(plimsoll.PlimsollError, match="allowed: messages, queries"):
        result._outcomes.table("message")
