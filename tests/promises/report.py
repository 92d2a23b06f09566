"""The table of promises, as a page."""

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from .promise import Figure, Promise

HEAD = """# Promises, and what was measured of them

What the service holds itself to under load and faults, and what `make promises` measured on
{cores} cores of {machine}, {day}. Load comes from an open loop (`tests/load`): callers arrive when
they like, and a call's latency counts from the moment at which it was meant to be sent. The server
has {server_cores}, the load generator another. Figures of a shared machine move by a tenth or two
from run to run.
"""


def write(page: Path, promises: Sequence[Promise], plots: str = "promises") -> None:
    for promise in promises:
        for plot in promise.plots:
            plot.draw(page.parent / plots)
    page.write_text(render(promises, plots))


def render(promises: Sequence[Promise], plots: str) -> str:
    cores = len(os.sched_getaffinity(0))
    head = HEAD.format(
        cores=cores,
        server_cores="one of them" if cores == 2 else f"{cores - 1} of them",
        machine=_processor(),
        day=datetime.now(UTC).date().isoformat(),
    )
    return "\n".join([head, *(_section(promise, plots) for promise in promises)])


def _section(promise: Promise, plots: str) -> str:
    rows = "\n".join(_row(figure) for figure in promise.figures)
    drawn = "".join(f"\n![{plot.title}]({plots}/{plot.file})\n" for plot in promise.plots)
    table = f"| what | promised | measured | |\n|---|---|---|---|\n{rows}"
    return f"## {promise.title}\n\n{promise.how}\n\n{table}\n{drawn}"


def _row(figure: Figure) -> str:
    verdict = "held" if figure.held else f"**short**{': ' + figure.why if figure.why else ''}"
    return f"| {figure.what} | {figure.promised} | {figure.measured} | {verdict} |"


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())
