"""One tenant at ten times its share: what the others notice."""

from .ground import PEOPLE, Ground, Report, register
from .overload import OF_CEILING, TENANTS, _ceiling
from .promise import Figure, Plot, Promise, Series

TIMES = 10
MOVED = 1.2


def measure(ground: Ground, seconds: int) -> Promise:
    noisy, *others = TENANTS
    with ground.server({"encoder.cache_memory": "0B"}) as server:
        register(server, *TENANTS, servers=6)
        ceiling = _ceiling(ground, server, seconds)
        share = ceiling * OF_CEILING / len(TENANTS)
        calm = _run(ground, server.target, dict.fromkeys(TENANTS, share), seconds)
        rates = {noisy: share * TIMES, **dict.fromkeys(others, share)}
        loud = _run(ground, server.target, rates, seconds)
    before, after = _p99(calm, others), _p99(loud, others)
    refused = sum(_stream(loud, tenant)["refused"] for tenant in others)
    moved = after / before
    figure = Figure(
        "another tenant's p99 beside one at 10x its share",
        f"<= {MOVED:g}x",
        f"{moved:.2f}x ({before:.1f} -> {after:.1f} ms; {refused} of the others' calls refused, "
        f"{_stream(loud, noisy)['refused']} of the noisy tenant's "
        f"{_stream(loud, noisy)['offered']})",
        moved <= MOVED and refused == 0,
        "where one tenant keeps the encoder busy, others wait for the rest of a batch and for "
        "their own, on the core that also answers and refuses",
    )
    how = (
        f"{len(TENANTS)} tenants at equal shares of 85% of the ceiling ({ceiling:.0f}/s), then "
        "the same with one of them at "
        f"{TIMES} times its share; open loop, intents of `people.jsonl`, each embedded at every "
        "call: the cache is off. The p99 is the median of the other tenants' own."
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
    return Promise("Noisy neighbour", how, [figure], [plot])


def _run(ground: Ground, target: str, rates: dict[str, float], seconds: int) -> Report:
    streams = [
        part for tenant, rate in rates.items() for part in ("--stream", f"{tenant}={rate:.2f}")
    ]
    timing = ["--warmup", "3", "--seconds", str(seconds), "--connections", "8"]
    return ground.load([target], *streams, *timing, *PEOPLE)


def _stream(report: Report, tenant: str) -> Report:
    found: Report = next(s for s in report["streams"] if s["tenant"] == tenant)
    return found


def _p99(report: Report, tenants: list[str]) -> float:
    each = sorted(_stream(report, tenant)["answer_ms"]["p99"] for tenant in tenants)
    return float(each[len(each) // 2])
