"""One tenant at ten times its share: what the others notice."""

from .ground import PEOPLE, Ground, Report, register
from .overload import OF_CEILING, TENANTS, _ceiling
from .promise import Figure, Plot, Promise, Series

TIMES = 10
MOVED = 1.2
OWN = ["--own-connections", "--connections", "2"]
SHARED = ["--connections", "8"]


def measure(ground: Ground, seconds: int) -> Promise:
    noisy, *others = TENANTS
    with ground.server({"encoder.cache_memory": "0B"}) as server:
        register(server, *TENANTS, servers=6)
        ceiling = _ceiling(ground, server, seconds)
        share = ceiling * OF_CEILING / len(TENANTS)
        equal = dict.fromkeys(TENANTS, share)
        rates = {noisy: share * TIMES, **dict.fromkeys(others, share)}
        calm = _run(ground, server.target, equal, seconds, OWN)
        loud = _run(ground, server.target, rates, seconds, OWN)
        shared_calm = _run(ground, server.target, equal, seconds, SHARED)
        shared_loud = _run(ground, server.target, rates, seconds, SHARED)
    figures = [
        _figure("another tenant's p99 beside one at 10x its share", calm, loud),
        _figure("the same where all tenants share eight connections", shared_calm, shared_loud),
    ]
    how = (
        f"{len(TENANTS)} tenants at equal shares of 85% of the ceiling ({ceiling:.0f}/s), then "
        "the same with one of them at "
        f"{TIMES} times its share; open loop, intents of `people.jsonl`, each embedded at every "
        "call: the cache is off. Each tenant has two connections of its own. The p99 is the median "
        "of the other tenants' own."
    )
    plot = Plot(
        "neighbour.svg",
        "p99 of all tenants' answers, by second",
        "ms",
        [
            Series("at equal shares", [s["answer_p99_ms"] for s in calm["seconds"]]),
            Series("with a noisy tenant", [s["answer_p99_ms"] for s in loud["seconds"]]),
        ],
    )
    return Promise("Noisy neighbour", how, figures, [plot])


def _figure(what: str, calm: Report, loud: Report) -> Figure:
    noisy, *others = TENANTS
    before, after = _p99(calm, others), _p99(loud, others)
    refused = sum(_stream(loud, tenant)["refused"] for tenant in others)
    offered = sum(_stream(loud, tenant)["offered"] for tenant in others)
    moved = after / before
    return Figure(
        what,
        f"<= {MOVED:g}x, none refused",
        f"{moved:.2f}x ({before:.1f} -> {after:.1f} ms; {refused} of the others' {offered} calls "
        f"refused, {_stream(loud, noisy)['refused']} of the noisy tenant's "
        f"{_stream(loud, noisy)['offered']})",
        moved <= MOVED and refused == 0,
        "where one tenant keeps the encoder busy, others wait for the rest of a batch and for "
        "their own, on the core that also answers and refuses",
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


def _p99(report: Report, tenants: list[str]) -> float:
    each = sorted(_stream(report, tenant)["answer_ms"]["p99"] for tenant in tenants)
    return float(each[len(each) // 2])
