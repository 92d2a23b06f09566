"""A gateway's process: how soon it answers, what it holds, and its end."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

from asking_hosts import LegacyHost, RefusedError
from peer_gateways import Face, Json, Launch, Upstream, environment

# Seconds until a gateway must have answered, and all of its servers.
PATIENCE = 180.0
PAUSE = 0.01


class FailedError(Exception):
    """Tells why a gateway can't be measured, in words for the table's reader."""


@dataclass
class Started:
    """Seconds from the start until the first list, and until each server answered a call."""

    first_list: float
    all_servers: float
    # The list once all servers are there.
    tools: list[Json]


class Running:
    """A gateway that was started. It has a session of its own, so that all of its processes end."""

    def __init__(self, launch: Launch, folder: Path, port: int) -> None:
        self._launch = launch
        self.root = f"http://127.0.0.1:{port}"
        self._said = folder / "said.txt"
        self._began = time.monotonic()
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                launch.command,
                cwd=folder,
                env=environment(folder) | launch.environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the process and those that it started."""
        self._process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(15)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    @property
    def faces(self) -> list[Face]:
        """Tools that it serves."""
        return self._launch.faces

    def url(self, face: Face) -> str:
        """The URL of a face."""
        return self.root + face.path

    def started(self, face: Face, upstreams: list[Upstream]) -> Started:
        """Waits until a face lists tools, and until a tool of each server was called there."""
        self._first(listed, face)
        first_list = self._seconds()
        for upstream in upstreams:
            self._first(partial(_call, params=easiest_call(face, upstream)), face)
        return Started(first_list, self._seconds(), listed(LegacyHost(self.url(face), {})))

    def resident_mib(self) -> float:
        """Resident memory of its processes, without those of the servers behind it."""
        return sum(map(_resident_kib, self._own())) / 1024

    def _seconds(self) -> float:
        return time.monotonic() - self._began

    def _first(self, ask: Callable[[LegacyHost], object], face: Face) -> None:
        """Asks until there is an answer."""
        host = None
        problem: Exception | None = None
        while self._seconds() < PATIENCE:
            if self._process.poll() is not None:
                raise FailedError(f"it ended with {self._process.returncode}: {self._last_words()}")
            try:
                host = host or LegacyHost(self.url(face), {})
                ask(host)
                return
            except RefusedError as error:
                problem = error
            except (OSError, AssertionError) as error:
                problem = error
                host = None
            time.sleep(PAUSE)
        raise FailedError(f"no answer within {PATIENCE:.0f} s: {problem}; {self._last_words()}")

    def _last_words(self) -> str:
        text = self._said.read_text(errors="replace").strip()
        return " ".join(text.splitlines()[-3:])[-400:]

    def _own(self) -> Iterator[int]:
        """The processes of the tree that are no server."""
        children: dict[int, list[int]] = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
        waiting = [self._process.pid]
        while waiting:
            process = waiting.pop()
            if _is_server(process):
                continue
            yield process
            waiting += children.get(process, [])


def listed(host: LegacyHost) -> list[Json]:
    """All pages of `tools/list`."""
    tools: list[Json] = []
    params: Json = {}
    while True:
        page = host.request("tools/list", params)
        tools += page["tools"]
        if not page.get("nextCursor"):
            return tools
        params = {"cursor": page["nextCursor"]}


def easiest_call(face: Face, upstream: Upstream) -> Json:
    """A call of the server's tool that wants the fewest arguments."""
    tool = min(upstream.tools(), key=lambda tool: len(tool["inputSchema"].get("required", [])))
    schema = tool["inputSchema"]
    arguments = {name: _example(schema["properties"][name]) for name in schema.get("required", [])}
    return face.call(upstream.name, tool["name"], arguments)


def _call(host: LegacyHost, params: Json) -> None:
    result = host.request("tools/call", params)
    if result.get("isError"):
        raise RefusedError({"code": 0, "message": json.dumps(result)[:300]})


def _example(schema: Json) -> object:
    if "enum" in schema:
        return schema["enum"][0]
    examples: Json = {"number": 1, "integer": 1, "boolean": True, "array": [], "object": {}}
    kind = schema.get("type", "string")
    return examples.get(kind[0] if isinstance(kind, list) else kind, "text")


def _is_server(process: int) -> bool:
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return words[0].endswith(b"toolgate-mcp-catalog")


def _resident_kib(process: int) -> int:
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    lines = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(lines[0].split()[1]) if lines else 0
