"""More calls than the server can answer: what is still answered, how fast the rest is refused."""

from dataclasses import dataclass
from itertools import pairwise
from statistics import mean

from toolgate_process import ToolgateProcess

from .ground import PEOPLE, Ground, Report, forget_peak, metric, peak_mib, register
from .promise import Figure, Plot, Promise, Series

TENANTS = [f"tenant-{number}" for number in range(8)]
GOODPUT = {2: 0.95, 5: 0.90, 10: 0.90}
CHEAP_GOODPUT = {1.3: 0.95, 2: 0.90}
REPEATED = 64
REFUSAL_MS = 2.0
MEMORY = 1.25
RECOVERY_SECONDS = 5
OF_CEILING = 0.85
DEADLINE = "1.0"


@dataclass(frozen=True)
class Level:
    """One offered load, and what came of it."""

    times: float
    report: Report
    peak: float


def measure_cheap(ground: Ground, seconds: int) -> Promise:
    """Intents that repeat: nothing is embedded, so calls wait before the handler, if anywhere."""
    with ground.server() as server:
        register(server, *TENANTS, servers=6)
        # The first calls embed what is repeated: a ceiling with them in it would be too low.
        _ceiling(ground, server, seconds, REPEATED)
        ceilings = [_ceiling(ground, server, seconds, REPEATED)]
        calm = _level(ground, server, OF_CEILING, ceilings[0], seconds, REPEATED)
        figures = []
        for times, least in CHEAP_GOODPUT.items():
            level = _level(ground, server, times, ceilings[-1], seconds, REPEATED)
            ceilings.append(_ceiling(ground, server, seconds, REPEATED))
            # A shared machine is a fifth faster or slower a minute later.
            figures += _figures(level, calm, mean(ceilings[-2:]), least)
    shown = ", ".join(f"{ceiling:.0f}" for ceiling in ceilings)
    how = (
        f"The same with {REPEATED} intents of `people.jsonl` that repeat, so that a cache has "
        f"their embeddings: the ceiling is {shown} Route calls a second, measured before, between "
        "and after; goodput is a part of the mean of the two beside it. The load generator has one "
        "core as well."
    )
    return Promise("Overload by cheap calls", how, figures)


def measure(ground: Ground, seconds: int) -> Promise:
    with ground.server({"encoder.cache_memory": "0B"}) as server:
        register(server, *TENANTS, servers=6)
        ceilings = [_ceiling(ground, server, seconds)]
        calm = _level(ground, server, OF_CEILING, ceilings[0], seconds)
        levels = []
        *lower, highest = GOODPUT
        for times in lower:
            levels.append(_level(ground, server, times, ceilings[-1], seconds))
            ceilings.append(_ceiling(ground, server, seconds))
        levels.append(_level(ground, server, highest, ceilings[-1], seconds))
        # Recovery is measured right after the highest load.
        after = _level(ground, server, OF_CEILING, ceilings[0], seconds)
        ceilings.append(_ceiling(ground, server, seconds))
        gone = metric(server, "toolgate_embed_texts_for_gone_total")
    figures = [
        figure
        for level, beside in zip(levels, pairwise(ceilings), strict=True)
        for figure in _figures(level, calm, mean(beside), GOODPUT[int(level.times)])
    ]
    figures.append(_recovery(calm, after))
    figures.append(
        Figure(
            "texts embedded for callers who had gone",
            "0",
            f"{gone:.0f}",
            gone == 0,
        )
    )
    shown = ", ".join(f"{ceiling:.0f}" for ceiling in ceilings)
    how = (
        f"The ceiling is what a closed loop of 32 callers gets: {shown} Route calls a second, "
        "measured before, between and after; goodput is a part of the mean of the two beside it. "
        "At 85% of it an open "
        f"loop of {len(TENANTS)} tenants sees p50 {calm.report['all']['answer_ms']['p50']:.1f} ms "
        "and p99 "
        f"{calm.report['all']['answer_ms']['p99']:.1f} ms. Intents are those of `people.jsonl` "
        "(111 characters in the mean), each embedded at every call: the cache is off. Each call "
        "has a deadline of a second."
    )
    return Promise("Overload", how, figures, [_plot(levels, calm, mean(ceilings))])


def _ceiling(ground: Ground, server: ToolgateProcess, seconds: int, repeated: int = 0) -> float:
    """Answers a second to as many callers as keep it busy."""
    streams = [part for tenant in TENANTS for part in ("--stream", f"{tenant}=0")]
    asked = ["--seconds", str(seconds), "--deadline", "10", *_intents(repeated)]
    report = ground.load([server.target], *streams, "--callers", "4", *asked)
    return float(report["all"]["answered_per_second"])


def _level(
    ground: Ground,
    server: ToolgateProcess,
    times: float,
    ceiling: float,
    seconds: int,
    repeated: int = 0,
) -> Level:
    forget_peak(server)
    rate = ceiling * times / len(TENANTS)
    streams = [part for tenant in TENANTS for part in ("--stream", f"{tenant}={rate:.2f}")]
    # Nothing is warmed up: what the first seconds after a change are like is part of the promise.
    timing = ["--warmup", "0", "--seconds", str(seconds), "--deadline", DEADLINE]
    timing += _intents(repeated)
    report = ground.load([server.target], *streams, *timing, "--connections", "8")
    return Level(times, report, peak_mib(server))


def _intents(repeated: int) -> list[str]:
    return [*PEOPLE, "--repeated", str(repeated)]


def _figures(level: Level, calm: Level, ceiling: float, least: float) -> list[Figure]:
    found, times = level.report["all"], f"{level.times:g}x"
    # Tools found by words alone, when the encoder did not come in time, are no good answer.
    good = found["answered_per_second"] * (1 - found["degraded"] / max(found["answered"], 1))
    share = good / ceiling
    refusal = found["refusal_ms"]["p50"]
    growth = level.peak / calm.peak
    failed = sum(found["failed"].values()) + found["unsent"]
    return [
        Figure(
            f"goodput at {times}",
            f">= {least:.0%} of the ceiling",
            f"{share:.0%} ({good:.0f}/s; answers' p50 "
            f"{found['answer_ms']['p50']:.0f} ms, "
            f"p99 {found['answer_ms']['p99']:.0f} ms; {found['degraded']} of "
            f"{found['answered']} by words alone; {failed} neither answered nor refused)",
            share >= least,
            "a refusal takes time of the core that also serves",
        ),
        Figure(
            f"refusals at {times}",
            f"<= {REFUSAL_MS:g} ms",
            f"p50 {refusal:.2f} ms, p99 {found['refusal_ms']['p99']:.1f} ms",
            refusal <= REFUSAL_MS,
            "it waits for its turn on the core that also embeds",
        ),
        Figure(
            f"memory at {times}",
            f"<= {MEMORY:g}x",
            f"{growth:.2f}x ({level.peak:.0f} MiB at most, {calm.peak:.0f} MiB at 85%)",
            growth <= MEMORY,
        ),
    ]


def _recovery(calm: Level, after: Level) -> Figure:
    """The first second from which on answers come as before."""
    usual = calm.report["all"]["answer_ms"]["p99"] * 1.5
    slow = [
        second["second"]
        for second in after.report["seconds"]
        if second["answer_p99_ms"] > usual or second["refused"] or second["failed"]
    ]
    # A shared machine stalls now and then; what matters is how long the overload is felt.
    settled = next(
        (
            at
            for at in range(len(after.report["seconds"]))
            if not any(at <= s < at + 3 for s in slow)
        ),
        len(after.report["seconds"]),
    )
    return Figure(
        "recovery after 10x",
        f"<= {RECOVERY_SECONDS} s",
        f"{settled} s until p99 is within 1.5x of before and nothing is refused, for three "
        "seconds on end",
        settled <= RECOVERY_SECONDS,
    )


def _plot(levels: list[Level], calm: Level, ceiling: float) -> Plot:
    series = [
        Series(
            f"answered at {level.times:g}x",
            [second["answered"] for second in level.report["seconds"]],
        )
        for level in [calm, *levels]
    ]
    flat = Series("ceiling", [ceiling] * len(series[0].values))
    return Plot(
        "overload.svg", "Route calls answered, by offered load", "calls a second", [*series, flat]
    )
