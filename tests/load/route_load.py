#!/usr/bin/env python3
"""Route under load, closed loop: latency, throughput, memory and processor time, as a table.

Starts the binary named by TOOLGATE_BIN on the shipped catalogs. Each of N callers sends its next
request when the last one is answered, so that a slow server slows its callers: the percentiles say
nothing of what callers would see who arrive at a fixed rate. Client and server share this machine's
cores; the client's own share is printed beside the server's. "distinct" intents are put together
from phrases and never come twice; "repeated" is one intent, which a cache may answer.
"""

import argparse
import asyncio
import itertools
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
from catalogs import SHIPPED
from toolgate_process import ToolgateProcess

from toolgate._gen.v1 import router_pb2, router_pb2_grpc

TENANT = "load"
SEED = 42
OPENINGS = [
    "can you find out", "please check", "I need to know", "show me", "remind me", "figure out",
    "before lunch, look up", "my boss asks", "quickly tell me", "when you have a minute, see",
]  # fmt: skip
WISHES = [
    "who still has to review the change called {}",
    "why the {} service keeps restarting",
    "what we wrote down about {} last spring",
    "how far it is from the office to {}",
    "whether anyone replied to {} in the channel",
    "which customers asked for {}",
    "what the page of {} looks like on a phone",
    "how many rows {} has in the shop's database",
]


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    concurrency: int
    calls: int
    failures: int
    seconds: float
    latencies: list[float]
    server_seconds: float
    client_seconds: float
    resident: int

    def cells(self) -> list[str]:
        quantiles = statistics.quantiles(self.latencies, n=100, method="inclusive")
        figures = [quantiles[49], quantiles[98], max(self.latencies)]
        return [
            self.name,
            str(self.concurrency),
            str(self.calls),
            str(self.failures),
            f"{self.calls / self.seconds:.0f}",
            *(f"{figure * 1e3:.2f}" for figure in figures),
            f"{self.resident / 2**20:.0f}",
            f"{self.server_seconds / self.seconds:.2f}",
            f"{self.client_seconds / self.seconds:.2f}",
        ]


HEADINGS = [
    "intents", "callers", "calls", "failed", "calls/s", "p50 ms", "p99 ms", "max ms",
    "server MiB", "server cores", "client cores",
]  # fmt: skip


def main() -> None:
    """Runs every combination and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10, help="of each run (default 10)")
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 32])
    arguments = parser.parse_args()
    binary = os.environ.get("TOOLGATE_BIN")
    if not binary:
        sys.exit("TOOLGATE_BIN must name the toolgate binary, or use `make load`")
    with tempfile.TemporaryDirectory() as folder:
        server = ToolgateProcess(Path(binary).resolve(), Path(folder)).start()
        try:
            _register(server)
            rows = asyncio.run(_measure(server, arguments.concurrency, arguments.seconds))
        finally:
            server.stop()
    _print_table([HEADINGS, *(row.cells() for row in rows)])


def _register(server: ToolgateProcess) -> None:
    started = time.monotonic()
    with server.client(TENANT, timeout=300) as client:
        for file in sorted(SHIPPED.glob("*.json")):
            client.register_server(file.stem, file)
        tools = sum(server.tool_count for server in client.list_servers())
    seconds = time.monotonic() - started
    print(f"{os.cpu_count()} cores; registered {tools} tools in {seconds:.1f} s\n", flush=True)


async def _measure(server: ToolgateProcess, concurrency: list[int], seconds: float) -> list[Row]:
    async with grpc.aio.insecure_channel(server.target) as channel:
        router = router_pb2_grpc.RouterServiceStub(channel)
        await _drive(router, _distinct(), 4, 1.0)  # Warm: the shard, the encoder, the connection.
        rows = []
        for callers in concurrency:
            rows.append(await _run(server, router, "distinct", _distinct(), callers, seconds))
            rows.append(await _run(server, router, "repeated", _repeated(), callers, seconds))
    return rows


async def _run(
    server: ToolgateProcess,
    router: "router_pb2_grpc.RouterServiceAsyncStub",
    name: str,
    intents: Iterator[str],
    callers: int,
    seconds: float,
) -> Row:
    pid = server.process.pid
    server_before, client_before = _processor_seconds(pid), time.process_time()
    started = time.perf_counter()
    latencies, failures = await _drive(router, intents, callers, seconds)
    return Row(
        name=name,
        concurrency=callers,
        calls=len(latencies),
        failures=failures,
        seconds=time.perf_counter() - started,
        latencies=latencies,
        server_seconds=_processor_seconds(pid) - server_before,
        client_seconds=time.process_time() - client_before,
        resident=_resident_bytes(pid),
    )


async def _drive(
    router: "router_pb2_grpc.RouterServiceAsyncStub",
    intents: Iterator[str],
    callers: int,
    seconds: float,
) -> tuple[list[float], int]:
    latencies: list[float] = []
    failures = 0
    end = time.perf_counter() + seconds

    async def caller() -> None:
        nonlocal failures
        while (started := time.perf_counter()) < end:
            request = router_pb2.RouteRequest(
                tenant=TENANT, intents=[router_pb2.Intent(text=next(intents))]
            )
            try:
                await router.Route(request, timeout=30)
            except grpc.RpcError as error:
                failures += 1
                if failures > 100:
                    raise SystemExit(f"over 100 calls failed, the last with {error}") from None
            latencies.append(time.perf_counter() - started)

    await asyncio.gather(*(caller() for _ in range(callers)))
    return latencies, failures


_taken = itertools.count()


def _distinct() -> Iterator[str]:
    """Intents of about a dozen words that never come twice, so that no cache answers."""
    choose = random.Random(SEED)
    for _ in itertools.count():
        wish = choose.choice(WISHES).format(f"{choose.choice('bdfgklmnprst')}-{next(_taken)}")
        yield f"{choose.choice(OPENINGS)} {wish}"


def _repeated() -> Iterator[str]:
    """One intent again and again: what an exact-match cache is for."""
    return itertools.repeat("please check whether anyone replied to me in the channel")


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _print_table(rows: list[list[str]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    for row in rows:
        first, *rest = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join([first.strip().ljust(widths[0]), *rest]))


if __name__ == "__main__":
    main()
