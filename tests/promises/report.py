"""The table of promises, as a page."""

import os
import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from .promise import Figure, Promise

HEAD = """# Promises, and what was measured of them

What the service holds itself to under load and faults, and what `make promises` measured on
{cores} cores of {machine}. Load comes from an open loop (`tests/load`): callers arrive when they
like, and a call's latency counts from the moment at which it was meant to be sent. The server has
{server_cores}, the load generator another. Figures of a shared machine move by a tenth or two from
run to run.
"""


def write(page: Path, promises: Sequence[Promise], plots: str = "promises") -> None:
    """Writes the promises, and leaves what the page has of others."""
    for promise in promises:
        for plot in promise.plots:
            plot.draw(page.parent / plots)
    sections = _sections(page.read_text()) if page.exists() else {}
    sections |= {promise.title: _section(promise, plots) for promise in promises}
    page.write_text(_page(list(sections.values())))


def render(promises: Sequence[Promise], plots: str) -> str:
    return _page([_section(promise, plots) for promise in promises])


def _page(sections: Sequence[str]) -> str:
    cores = len(os.sched_getaffinity(0))
    head = HEAD.format(
        cores=cores,
        server_cores="one of them" if cores == 2 else f"{cores - 1} of them",
        machine=_processor(),
    )
    return "\n".join([head, *sections])


def _sections(page: str) -> dict[str, str]:
    """A page's sections by their titles."""
    found = re.split(r"^## ", page, flags=re.MULTILINE)[1:]
    return {one.partition("\n")[0]: f"## {one.rstrip()}\n" for one in found}


def _section(promise: Promise, plots: str) -> str:
    rows = "\n".join(_row(figure) for figure in promise.figures)
    drawn = "".join(f"\n![{plot.title}]({plots}/{plot.file})\n" for plot in promise.plots)
    table = f"| what | promised | measured | |\n|---|---|---|---|\n{rows}"
    again = f"{datetime.now(UTC).date().isoformat()}: `{promise.command}`"
    return f"## {promise.title}\n\n{promise.how}\n\n{again}\n\n{table}\n{drawn}"


def _row(figure: Figure) -> str:
    verdict = "held" if figure.held else f"**short**{': ' + figure.why if figure.why else ''}"
    return f"| {figure.what} | {figure.promised} | {figure.measured} | {verdict} |"


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())
