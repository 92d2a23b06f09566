"""What stands between a host and its model adds to the time of an answer: requests, and tables."""

import json
import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Json = dict[str, Any]

PLACEHOLDER = "@TEXT@"
PROMPT = "You help people with their work, by the tools that you are given. Say what you did. "
DIRECT = "none: the provider, asked directly"


@dataclass(frozen=True)
class Case:
    """Size of each request in bytes, and how many answers stream at a time."""

    size: int
    streams: int


@dataclass
class Measured:
    """Times through one way in one case, by rounds, in nanoseconds."""

    label: str
    case: Case
    first: list[list[int]] = field(default_factory=list)
    events: list[list[int]] = field(default_factory=list)
    notes: dict[str, int] = field(default_factory=dict)
    """Number of answers by how the request was sent, as the header `x-toolgate` says."""
    failures: list[str] = field(default_factory=list)

    def add(self, report: Json) -> None:
        """Takes the report of a round."""
        self.first.append(report["first_ns"])
        self.events.append(report["event_ns"])
        self.failures += report["failures"]
        for note, count in report["notes"].items():
            way = sent_as(note)
            self.notes[way] = self.notes.get(way, 0) + count


def tools_of(catalogs: Path, limit: int) -> list[Json]:
    """Definitions as Claude Code sends those of MCP servers, as many as fit into so many bytes."""
    found: list[Json] = []
    left = limit
    for file in sorted(catalogs.glob("*.json")):
        for tool in json.loads(file.read_text(encoding="utf-8"))["tools"]:
            definition = {
                "name": f"mcp__{file.stem}__{tool['name']}"[:64],
                "description": tool.get("description", ""),
                "input_schema": tool["inputSchema"],
            }
            left -= len(json.dumps(definition)) + 2
            if left < 0:
                return found
            found.append(definition)
    return found


def request_body(tools: Sequence[Json], size: int, events: int) -> str:
    """Returns the body of a streamed request of so many bytes, with a place for the user's text.

    Its system prompt fills what the tools leave. `max_tokens` says how many events are wanted.

    Raises:
        ValueError: The tools alone are larger.
    """
    own = {"name": "Bash", "description": "Runs a command.", "input_schema": {"type": "object"}}
    body = {
        "model": "claude-measured-1",
        "max_tokens": events,
        "stream": True,
        "system": "",
        "tools": [own, *tools],
        "messages": [{"role": "user", "content": PLACEHOLDER}],
    }
    left = size - len(json.dumps(body))
    if left < 0:
        raise ValueError(f"the tools need {-left} bytes more than {size}")
    body["system"] = (PROMPT * (left // len(PROMPT) + 1))[:left]
    return json.dumps(body)


def sent_as(note: str) -> str:
    """The strategy and the reason of a header `x-toolgate`; empty if there is none."""
    parts = [part.strip() for part in note.split(";")]
    reasons = [part for part in parts if part.startswith("reason=")]
    return ": ".join([parts[0], *(reason.removeprefix("reason=") for reason in reasons)])


def percentile(samples: Sequence[float], percent: int) -> float:
    """The smallest sample that so many in a hundred are not above; NaN of none."""
    if not samples:
        return math.nan
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def added(rounds: Sequence[Sequence[int]], direct: Sequence[Sequence[int]]) -> float:
    """The median over the rounds of the medians' differences; NaN if no round has both."""
    differences = [
        statistics.median(one) - statistics.median(base)
        for one, base in zip(rounds, direct, strict=False)
        if one and base
    ]
    return statistics.median(differences) if differences else math.nan


def tables(measured: Iterable[Measured]) -> Iterator[str]:
    """A table for each case, in Markdown, and what failed."""
    of_cases: dict[Case, list[Measured]] = {}
    for one in measured:
        of_cases.setdefault(one.case, []).append(one)
    for case, rows in of_cases.items():
        streams = "1 stream" if case.streams == 1 else f"{case.streams} streams at a time"
        yield f"\n**Requests of {case.size // 1000} KB, {streams}**\n"
        yield (
            "| between host and provider | first byte p50 ms | added | p99 |"
            " event p50 us | added | p99 | answers | sent as |"
        )
        yield "|---|---:|---:|---:|---:|---:|---:|---:|---|"
        [direct] = [row for row in rows if row.label == DIRECT]
        for row in rows:
            yield _row(row, direct)
    failed = [one for rows in of_cases.values() for one in rows if one.failures]
    if failed:
        yield "\n**Failed**\n"
    for one in failed:
        where = f"{one.case.size // 1000} KB, {one.case.streams} at a time"
        first = one.failures[0].replace("\n", " ")
        yield f"- {one.label}, {where}: {len(one.failures)} answers, the first by: {first[:200]}"


def _row(row: Measured, direct: Measured) -> str:
    first = [sample for samples in row.first for sample in samples]
    events = [sample for samples in row.events for sample in samples]
    is_direct = row is direct
    more = math.nan if is_direct else added(row.first, direct.first)
    more_event = math.nan if is_direct else added(row.events, direct.events)
    total = sum(row.notes.values())
    ways = sorted(row.notes.items(), key=lambda way: -way[1])
    named = [f"{way} {count * 100 / total:.0f}%" for way, count in ways if way]
    cells = [
        row.label,
        _number(percentile(first, 50) / 1e6, 2),
        _number(more / 1e6, 2, sign="+"),
        _number(percentile(first, 99) / 1e6, 2),
        _number(percentile(events, 50) / 1e3, 0),
        _number(more_event / 1e3, 0, sign="+"),
        _number(percentile(events, 99) / 1e3, 0),
        f"{len(first):,}",
        ", ".join(named),
    ]
    return f"| {' | '.join(cells)} |"


def _number(value: float, digits: int, sign: str = "") -> str:
    return "" if math.isnan(value) else f"{value:{sign},.{digits}f}"
