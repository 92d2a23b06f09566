"""One tenant at ten times its share: what the others notice."""

from dataclasses import dataclass
from statistics import median_low

from .ground import PEOPLE, Ground, Report, register
from .overload import OF_CEILING, TENANTS, _ceiling
from .promise import Figure, Plot, Promise, Series

TIMES = 10
MOVED = 1.2
OWN = ["--own-connections", "--connections", "2"]
SHARED = ["--connections", "8"]
PAIRS = 5


@dataclass(frozen=True)
class Pair:
    """Equal shares, and right after them the same with a noisy tenant."""

    calm: Report
    loud: Report

    def moved(self) -> float:
        """The others' p99 with the noisy tenant, as a multiple of that without."""
        return _others_p99(self.loud) / _others_p99(self.calm)


def measure(ground: Ground, seconds: int) -> Promise:
    noisy, *others = TENANTS
    with ground.server({"encoder.cache_memory": "0B"}) as server:
        register(server, *TENANTS, servers=6)
        ceiling = _ceiling(ground, server, seconds)
        share = ceiling * OF_CEILING / len(TENANTS)
        equal = dict.fromkeys(TENANTS, share)
        rates = {noisy: share * TIMES, **dict.fromkeys(others, share)}
        own = _pairs(ground, server.target, equal, rates, seconds, OWN)
        shared = _pairs(ground, server.target, equal, rates, seconds, SHARED)
    figures = [
        _figure("another tenant's p99 beside one at 10x its share", own),
        _figure("the same where all tenants share eight connections", shared),
    ]
    how = (
        f"{len(TENANTS)} tenants at equal shares of 85% of the ceiling ({ceiling:.0f}/s), then "
        "the same with one of them at "
        f"{TIMES} times its share; open loop, intents of `people.jsonl`, each embedded at every "
        "call: the cache is off. Each tenant has two connections of its own. The p99 is the median "
        f"of the other tenants' own. {PAIRS} pairs of loads, each of one after the other, since a "
        "shared machine is a tenth slower a minute later, and at 85% of the ceiling that moves a "
        "p99 by more than a neighbour does: the figure is that of the pair in the middle."
    )
    plot = Plot(
        "neighbour.svg",
        "p99 of all tenants' answers, by second",
        "ms",
        [
            Series("at equal shares", _by_second([pair.calm for pair in own])),
            Series("with a noisy tenant", _by_second([pair.loud for pair in own])),
        ],
    )
    return Promise("Noisy neighbour", how, figures, [plot])


def _pairs(
    ground: Ground,
    target: str,
    equal: dict[str, float],
    loud: dict[str, float],
    seconds: int,
    connections: list[str],
) -> list[Pair]:
    each = max(seconds // PAIRS, 1)
    return [
        Pair(
            _run(ground, target, equal, each, connections),
            _run(ground, target, loud, each, connections),
        )
        for _ in range(PAIRS)
    ]


def _by_second(reports: list[Report]) -> list[float]:
    return [second["answer_p99_ms"] for report in reports for second in report["seconds"]]


def _figure(what: str, pairs: list[Pair]) -> Figure:
    noisy, *others = TENANTS
    moved = median_low(pair.moved() for pair in pairs)
    middle = next(pair for pair in pairs if pair.moved() == moved)
    all_moved = ", ".join(f"{pair.moved():.2f}" for pair in pairs)

    def count(tenants: list[str], key: str) -> int:
        return sum(_stream(pair.loud, tenant)[key] for pair in pairs for tenant in tenants)

    refused = count(others, "refused")
    return Figure(
        what,
        f"<= {MOVED:g}x, none refused",
        f"{moved:.2f}x (of {all_moved}; {_others_p99(middle.calm):.1f} -> "
        f"{_others_p99(middle.loud):.1f} ms; {refused} of the others' "
        f"{count(others, 'offered')} calls refused, {count([noisy], 'refused')} of the noisy "
        f"tenant's {count([noisy], 'offered')})",
        moved <= MOVED and refused == 0,
        "what a noisy tenant's calls and refusals cost is taken from the core that serves the "
        "others: a seventh of it, by the time of its threads",
    )


def _run(
    ground: Ground, target: str, rates: dict[str, float], seconds: int, connections: list[str]
) -> Report:
    streams = [
        part for tenant, rate in rates.items() for part in ("--stream", f"{tenant}={rate:.2f}")
    ]
    timing = ["--warmup", "3", "--seconds", str(seconds), *connections]
    return ground.load([target], *streams, *timing, *PEOPLE)


def _stream(report: Report, tenant: str) -> Report:
    found: Report = next(s for s in report["streams"] if s["tenant"] == tenant)
    return found


def _others_p99(report: Report) -> float:
    each = sorted(_stream(report, tenant)["answer_ms"]["p99"] for tenant in TENANTS[1:])
    return float(each[len(each) // 2])
