"""Measurements of gateways, and their tables in Markdown."""

import os
import platform
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from peer_gateways import Json, versions
from peer_search import CUTS, MOST, REQUESTS, Found
from real_servers import tokens

DIRECT = "none: the servers' tools in one, asked directly"
BEGIN, END = "<!-- measured:begin -->", "<!-- measured:end -->"
SETTINGS = {
    "stdio": "twelve servers on standard streams",
    "http": "twelve servers behind URLs",
    "one": "one server with all tools, on standard streams",
}
METHODS = {"list": "`tools/list`", "call": "`tools/call`"}


@dataclass
class Measured:
    """Results of a face of a gateway, or of the direct server, in each round."""

    setting: str
    label: str
    tools: int = 0
    tokens: int = 0
    # Seconds.
    first_list: list[float] = field(default_factory=list)
    all_servers: list[float] = field(default_factory=list)
    rest_mib: list[float] = field(default_factory=list)
    loaded_mib: list[float] = field(default_factory=list)
    # Reports of the load, by method and callers, such as "list 32".
    loads: dict[str, list[Json]] = field(default_factory=dict)
    # Reason why something could not be measured, for the reader.
    problem: str = ""


def report(
    measured: Sequence[Measured], found: Sequence[Found], loads: Sequence[str]
) -> Iterator[str]:
    """All tables, with the conditions before them."""
    rounds = max((len(times) for one in measured for times in one.loads.values()), default=0)
    yield (
        f"{_cpu()}, {os.cpu_count()} cores that other work shared (load averages of a minute:"
        f" before the first round and after each, {', '.join(loads)}). Rounds: {rounds},"
        f" in which gateways took turns; medians of them. {versions()}."
    )
    yield from _starts([one for one in measured if one.setting == "stdio"])
    for setting, words in SETTINGS.items():
        rows = [one for one in measured if one.setting == setting]
        for method in METHODS:
            yield from _latencies(rows, method, words)
    yield from _found(found)
    problems = [one for one in measured if one.problem]
    if problems:
        yield "\n**Not measured, or not whole**\n"
        for one in problems:
            yield f"- {one.label}, {SETTINGS[one.setting]}: {one.problem}"


def _starts(rows: Sequence[Measured]) -> Iterator[str]:
    if not rows:
        return
    yield f"\n**Start and memory, {SETTINGS['stdio']}**\n"
    yield from _table(
        [
            "gateway",
            "tools at the start",
            "tokens of them",
            "first `tools/list`, s",
            "all servers called, s",
            "MiB at rest",
            "MiB after the load",
        ],
        (
            [
                one.label,
                f"{one.tools}",
                f"{one.tokens:,}",
                _median(one.first_list, "{:.2f}"),
                _median(one.all_servers, "{:.2f}"),
                _median(one.rest_mib, "{:.0f}"),
                _median(one.loaded_mib, "{:.0f}"),
            ]
            for one in rows
            if one.label != DIRECT
        ),
    )


def _latencies(rows: Sequence[Measured], method: str, words: str) -> Iterator[str]:
    if not rows:
        return
    direct = next(one for one in rows if one.label == DIRECT)
    yield f"\n**{METHODS[method]}, {words}**\n"
    yield from _table(
        [
            "gateway",
            "bytes of an answer",
            "1 caller: p50 ms",
            "added",
            "p99",
            "32 callers: p50 ms",
            "added",
            "p99",
            "a second",
            "calls measured a round",
        ],
        ([one.label, *_figures(one, direct, method)] for one in rows),
    )


def _figures(one: Measured, direct: Measured, method: str) -> list[str]:
    cells = [_of(one, f"{method} 1", "answer_bytes", "{:,.0f}")]
    for callers in (1, 32):
        key = f"{method} {callers}"
        cells.append(_of(one, key, "p50_ms", "{:.2f}"))
        cells.append("" if one is direct else _added(one, direct, key))
        cells.append(_of(one, key, "p99_ms", "{:.2f}"))
    cells.append(_of(one, f"{method} 32", "calls_per_second", "{:,.0f}"))
    counts = [one.loads.get(f"{method} {callers}", [{}])[0].get("calls") for callers in (1, 32)]
    return [*cells, " / ".join(f"{count:,}" for count in counts if count)]


def _of(one: Measured, key: str, figure: str, layout: str) -> str:
    return _median([load[figure] for load in one.loads.get(key, [])], layout)


def _added(one: Measured, direct: Measured, key: str) -> str:
    """The median over the rounds of what is more than the direct server's p50."""
    pairs = zip(one.loads.get(key, []), direct.loads[key], strict=False)
    return _median([gateway["p50_ms"] - alone["p50_ms"] for gateway, alone in pairs], "{:+.2f}")


def _found(found: Sequence[Found]) -> Iterator[str]:
    if not found:
        return
    yield f"\n**Found tools: {REQUESTS} requests of people, 21 servers with 809 tools**\n"
    yield from _table(
        [
            "search",
            *(f"a right one among the first {cut}" for cut in CUTS),
            "p50 ms",
            f"tokens of an answer of {MOST}",
        ],
        (
            [
                one.label,
                *(f"{one.share(cut):.2f}".removeprefix("0") for cut in CUTS),
                f"{statistics.median(one.milliseconds):.1f}",
                f"{tokens(one.answers) / len(one.answers):,.0f}",
            ]
            for one in found
        ),
    )


def _table(headings: list[str], rows: Iterable[list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(headings)} |"
    yield "|---" + "|---:" * (len(headings) - 1) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _median(figures: Sequence[float], layout: str) -> str:
    return layout.format(statistics.median(figures)) if figures else "-"


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def rewrite(document: Path, text: str) -> None:
    """Replaces what stands between the marks."""
    before, _, rest = document.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    if not after:
        raise ValueError(f"{document} has no {BEGIN} ... {END}")
    document.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")
