"""Registrations while the server is killed, and while its disk is full."""

import contextlib
import random
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toolgate_process import ToolgateProcess

from toolgate import ToolgateError

from .ground import Ground
from .promise import Figure, Promise

TENANT = "crashes"
TOOLS = 20


def tools(version: int, count: int = TOOLS, size: int = 0) -> list[dict[str, Any]]:
    """A catalog of which every part says its version."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return [
        {
            "name": f"tool_{number}",
            "description": f"Version {version} of tool number {number}. {'x' * size}",
            "inputSchema": schema,
        }
        for number in range(count)
    ]


def measure_kills(ground: Ground, rounds: int) -> Promise:
    chance = random.Random(7)
    folder = ground.folder / "kills"
    acknowledged: dict[str, int] = {}
    lost, torn = [], []
    server = ToolgateProcess(ground.toolgate, folder, {"log.level": "warn"})
    server.start()
    try:
        for round_ in range(rounds):
            tried = _register_until_killed(server, acknowledged, chance.uniform(0.02, 0.6))
            server.start_again()
            found = _versions(server)
            for name, version in acknowledged.items():
                # The one that was under way may be there or not, whole.
                if not any(found.get(name) == {seen} for seen in (version, tried.get(name))):
                    lost.append((round_, name, version, found.get(name)))
            torn += [(round_, name, seen) for name, seen in found.items() if len(seen) != 1]
            acknowledged = {name: max(seen) for name, seen in found.items() if seen}
    finally:
        server.stop()
    figures = [
        Figure(
            f"acknowledged registrations lost in {rounds} kills",
            "0",
            f"{len(lost)}" + (f" ({lost[0]})" if lost else ""),
            not lost,
        ),
        Figure(
            "MCP servers seen with tools of two versions, or some missing",
            "0",
            f"{len(torn)}" + (f" ({torn[0]})" if torn else ""),
            not torn,
        ),
    ]
    how = (
        f"SIGKILL at a chance moment while one MCP server after another is registered, {TOOLS} "
        "tools each and anew with every "
        f"round; then a start, and the catalog is read whole. {len(acknowledged)} MCP servers at "
        "the end."
    )
    return Promise("kill -9 during registration", how, figures)


def _register_until_killed(
    server: ToolgateProcess, acknowledged: dict[str, int], after: float
) -> dict[str, int]:
    """Returns the calls that were under way when the server was killed."""
    killer = threading.Timer(after, server.kill)
    tried: dict[str, int] = {}
    with server.client(TENANT, timeout=20) as client:
        killer.start()
        for number in range(10_000):
            name = f"server-{number % 12}"
            version = acknowledged.get(name, 0) + 1
            tried = {name: version}
            try:
                client.register_server(name, tools(version))
            except ToolgateError:
                break
            acknowledged[name] = version
    killer.join()
    return tried


def _versions(server: ToolgateProcess) -> dict[str, set[int]]:
    """By MCP server, the versions that its tools are of; empty where some are missing."""
    found: dict[str, list[int]] = {}
    with server.client(TENANT) as client:
        for tool in client.list_tools():
            # "... Version 3 of tool ..."
            words = tool.definition_json.split("Version ", 1)[1]
            found.setdefault(tool.server, []).append(int(words.split(" ", 1)[0]))
    return {name: set(all_) if len(all_) == TOOLS else set() for name, all_ in found.items()}


def measure_full_disk(ground: Ground, mib: int) -> Promise:
    with _small_disk(ground.folder / "small", mib) as disk:
        server = ToolgateProcess(
            ground.toolgate,
            ground.folder / "full",
            {"store.path": str(disk), "audit.file": str(disk / "audit.jsonl")},
        )
        server.start()
        try:
            registered, refusal = _fill(server)
            withdrawn, unregistering = registered.pop(), "accepted"
            with server.client(TENANT, timeout=60) as client:
                try:
                    client.unregister_server(withdrawn)
                except ToolgateError as error:
                    unregistering = f"{error.reason}: {error.message}"
            with server.client(TENANT) as client:
                answer = client.route(["what does tool number 3 do"])
                serves = bool(answer.tools)
                listed = {one.name: one.tool_count for one in client.list_servers()}
            server.kill()
            server.start_again()
            with server.client(TENANT) as client:
                after = {one.name: one.tool_count for one in client.list_servers()}
        finally:
            server.stop()
    whole = listed == after == dict.fromkeys(registered, TOOLS)
    figures = [
        Figure(
            "registrations acknowledged before the disk was full, and there after a restart "
            f"({len(registered)})",
            "all, whole",
            "all, whole" if whole else f"{after}",
            whole,
        ),
        Figure(
            "the registration that found no room",
            "an error that names the disk, and nothing of it seen",
            refusal,
            refusal.startswith("STORE_UNAVAILABLE")
            and "disk" in refusal
            and len(after) == len(registered),
        ),
        Figure(
            "unregistering an MCP server while the disk is full",
            "accepted",
            unregistering,
            unregistering == "accepted",
        ),
        Figure(
            "Route while the disk is full", "answers", "answers" if serves else "no tools", serves
        ),
    ]
    how = (
        f"Data directory and audit file on a disk of {mib} MiB, filled by registrations; "
        "then one MCP server is unregistered, and a kill and a start follow on the same disk."
    )
    return Promise("Disk full", how, figures)


def _fill(server: ToolgateProcess) -> tuple[list[str], str]:
    registered: list[str] = []
    with server.client(TENANT, timeout=60) as client:
        for number in range(500):
            try:
                client.register_server(f"server-{number}", tools(1, size=4_000))
            except ToolgateError as error:
                return registered, f"{error.reason}: {error.message}"
            registered.append(f"server-{number}")
    raise SystemExit("the disk was never full")


@contextlib.contextmanager
def _small_disk(at: Path, mib: int) -> Iterator[Path]:
    """A file system of its own; needs to be root."""
    at.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", at], check=True)
    try:
        yield at
    finally:
        # The server's last file may be closed a moment after its exit.
        for _ in range(50):
            if subprocess.run(["umount", at], check=False).returncode == 0:
                break
            time.sleep(0.1)
