#!/usr/bin/env python3
"""Route under load, closed loop: latency, throughput, memory and processor time, as a table, and
what the server's metrics say of the same runs.

Starts the binary named by TOOLGATE_BIN on the shipped catalogs, some of them twice where the tenant
is to have more tools. Calls come from the load generator named by TOOLGATE_LOAD_BIN, each of whose
N callers sends its next one when the last is answered, so that a slow server slows its callers: the
percentiles say nothing of what callers would see who arrive at a fixed rate. Both share this
machine's cores. "people's" are the intents of people.jsonl, each embedded at every call: there is
no cache. "made up" ones are shorter and never come twice, without a cache too; "repeated" is one of
them, which the cache answers.
"""

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalogs import SHIPPED
from server_metrics import HEADINGS as METRICS
from server_metrics import Reading
from toolgate_process import ToolgateProcess

TENANT = "load"
PEOPLE = SHIPPED.parent / "intents" / "people.jsonl"
RUNS = {
    "people's": ({"encoder.cache_memory": "0B"}, [f"--intents={PEOPLE}"]),
    "made up": ({"encoder.cache_memory": "0B"}, []),
    "repeated": ({}, ["--repeated", "1"]),
}
"""Settings of the server and options of the generator."""


@dataclass(frozen=True)
class Row:
    """Measurements of so many callers."""

    intents: str
    callers: int
    report: dict[str, Any]
    seconds: float
    server_seconds: float
    client_seconds: float
    resident: int
    metrics: Reading

    def cells(self) -> list[str]:
        """One line of the first table."""
        report = self.report
        return [
            *self.run(),
            f"{report['answered_per_second']:.0f}",
            str(report["offered"] - report["answered"]),
            *(f"{report['answer_ms'][name]:.2f}" for name in ("p50", "p99", "max")),
            f"{self.resident / 2**20:.0f}",
            f"{self.server_seconds / self.seconds:.2f}",
            f"{self.client_seconds / self.seconds:.2f}",
        ]

    def run(self) -> list[str]:
        """Returns what tells it from the others."""
        return [self.intents, str(self.callers)]


RUN = ["intents", "callers"]
HEADINGS = [
    *RUN, "answers/s", "unanswered", "p50 ms", "p99 ms", "max ms", "server MiB", "server cores",
    "client cores",
]  # fmt: skip


def main() -> None:
    """Runs every combination and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=10, help="of each run (default 10)")
    parser.add_argument("--intents", choices=RUNS, nargs="+", default=list(RUNS))
    parser.add_argument("--callers", type=int, nargs="+", default=[1, 8, 32, 64])
    parser.add_argument("--tools", type=int, default=1_000, help="of the tenant (default 1,000)")
    arguments = parser.parse_args()
    if min(arguments.seconds, arguments.tools, *arguments.callers) < 1:
        parser.error("--seconds, --callers and --tools must be 1 or more")
    toolgate, generator = _binary("TOOLGATE_BIN"), _binary("TOOLGATE_LOAD_BIN")
    rows = []
    for intents in arguments.intents:
        settings, options = RUNS[intents]
        with _server(toolgate, settings, arguments.tools) as server:
            command = [str(generator), f"--target=http://{server.target}", f"--stream={TENANT}=0"]
            command += [*options, f"--seconds={arguments.seconds}", "--deadline=30"]
            for callers in arguments.callers:
                rows.append(_run(server, [*command, f"--callers={callers}"], intents, callers))
    _print_table([HEADINGS, *(row.cells() for row in rows)])
    print("\nThe same runs by the server's metrics:\n")
    of_runs = [[*row.run(), *row.metrics.cells(row.seconds)] for row in rows]
    _print_table([[*RUN, *METRICS], *of_runs])


def _binary(variable: str) -> Path:
    named = os.environ.get(variable)
    if not named:
        sys.exit(f"{variable} must name a binary, or use `make load`")
    return Path(named).resolve()


@contextmanager
def _server(toolgate: Path, settings: dict[str, str], tools: int) -> Iterator[ToolgateProcess]:
    with tempfile.TemporaryDirectory() as folder:
        server = ToolgateProcess(toolgate, Path(folder), settings).start()
        try:
            _register(server, tools)
            yield server
        finally:
            server.stop()


def _register(server: ToolgateProcess, tools: int) -> None:
    started = time.monotonic()
    with server.client(TENANT, timeout=300) as client:
        for name, definitions in _catalogs(tools):
            client.register_server(name, definitions)
        there = sum(server.tool_count for server in client.list_servers())
    seconds = time.monotonic() - started
    print(f"{os.cpu_count()} cores; registered {there} tools in {seconds:.1f} s\n", flush=True)


def _catalogs(tools: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """So many tools: the shipped catalogs as often as it takes, each time as other servers."""
    files = sorted(SHIPPED.glob("*.json"))
    for turn in itertools.count(1):
        for file in files:
            definitions = json.loads(file.read_text())["tools"][:tools]
            if not definitions:
                return
            yield (file.stem if turn == 1 else f"{file.stem}-{turn}"), definitions
            tools -= len(definitions)


def _run(server: ToolgateProcess, command: list[str], intents: str, callers: int) -> Row:
    pid = server.process.pid
    server_before, client_before = _processor_seconds(pid), _ended_childrens_seconds()
    before, started = Reading.of(server), time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=3_600)
    seconds = time.perf_counter() - started
    return Row(
        intents=intents,
        callers=callers,
        report=json.loads(done.stdout)["all"],
        seconds=seconds,
        server_seconds=_processor_seconds(pid) - server_before,
        client_seconds=_ended_childrens_seconds() - client_before,
        resident=_resident_bytes(pid),
        metrics=Reading.of(server).since(before),
    )


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _ended_childrens_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _print_table(rows: list[list[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        first, *rest = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join([first.strip().ljust(widths[0]), *rest]))


if __name__ == "__main__":
    main()
