"""The requests and the tables of `make bench-llm-peers`."""

import json
import math
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "bench"))

from llm_added import (
    DIRECT,
    Case,
    Measured,
    added,
    percentile,
    request_body,
    sent_as,
    tables,
    tools_of,
)

CATALOGS = Path(__file__).parents[1] / "data" / "servers"
CASE = Case(40_000, 64)


def report(first: list[int], events: list[int], note: str = "") -> dict[str, object]:
    notes = {note: len(first)}
    return {"first_ns": first, "event_ns": events, "notes": notes, "failures": []}


def test_a_request_has_the_wanted_bytes_and_tools() -> None:
    for size, limit in ((40_000, 35_000), (400_000, 365_000)):
        tools = tools_of(CATALOGS, limit)
        assert limit - 10_000 < len(json.dumps(tools)) <= limit
        body = request_body(tools, size, 7)
        assert len(body) == size
        read = json.loads(body)
        assert read["max_tokens"] == 7
        names = [tool["name"] for tool in read["tools"]]
        assert len(set(names)) == len(tools) + 1
    with pytest.raises(ValueError, match="bytes more than 1000"):
        request_body(tools, 1_000, 7)


def test_percentiles_are_samples() -> None:
    samples = list(range(100, 0, -1))
    assert [percentile(samples, percent) for percent in (1, 50, 99, 100)] == [1, 50, 99, 100]
    assert percentile([5], 99) == 5
    assert math.isnan(percentile([], 50))


def test_what_is_added_is_to_the_provider_of_the_same_round() -> None:
    # A round in which the machine was busy is compared with itself.
    direct = [[100, 100, 100], [900, 900, 900], [100, 100, 100]]
    way = [[150, 160, 170], [960, 970, 980], [180, 190, 9_000]]
    assert added(way, direct) == 70
    assert math.isnan(added([[]], [[1]]))


def test_a_note_is_told_by_its_strategy_and_reason() -> None:
    assert sent_as("envelope; deferred=180; shown=6") == "envelope"
    assert sent_as("pass; reason=late") == "pass: late"
    assert sent_as("") == ""


def test_a_table_has_what_is_added_and_how_requests_were_sent() -> None:
    direct = Measured(DIRECT, CASE)
    direct.add(report([1_000_000, 1_000_000], [50_000]))
    way = Measured("Toolgate, `envelope`", CASE)
    way.add(report([2_500_000], [70_000], "envelope; shown=6"))
    way.add(report([2_500_000] * 3, [70_000], "pass; reason=late"))
    broken = Measured("Other", CASE)
    broken.add({**report([], []), "failures": ["500, 0 of 3 events:\nno"]})
    lines = list(tables([direct, way, broken]))
    assert "**Requests of 40 KB, 64 streams at a time**" in lines[0]
    assert lines[3:5] == [
        f"| {DIRECT} | 1.00 |  | 1.00 | 50 |  | 50 | 2 |  |",
        "| Toolgate, `envelope` | 2.50 | +1.50 | 2.50 | 70 | +20 | 70 | 4 |"
        " pass: late 75%, envelope 25% |",
    ]
    assert lines[5] == "| Other |  |  |  |  |  |  | 0 |  |"
    first = "500, 0 of 3 events: no"
    assert lines[-1] == f"- Other, 40 KB, 64 at a time: 1 answers, the first by: {first}"
