"""The MCP gateway beside its peers: the same servers, one machine, one run.

    python tests/mcp/peers/peers.py --catalog BIN --load BIN --write docs/gateway-peers.md

Gateways take turns: a round starts each once, measures it and ends it. The tables have the medians
of the rounds. What does not start or answer is told in the table. Nothing but loopback is reached.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import peer_search
from peer_gateways import (
    CATALOGS,
    FASTMCP,
    FASTMCP_BM25,
    FASTMCP_CONNECTED,
    LITELLM,
    MCP_PROXY_NODE,
    MCP_PROXY_PYTHON,
    TOOLGATE,
    Face,
    Gateway,
    Json,
    Upstream,
)
from peer_process import FailedError, Running
from peer_tables import DIRECT, Measured, report, rewrite
from real_servers import prompt_text, tokens
from toolgate_process import free_port

# Twelve of the shipped catalogs: 184 tools.
SERVERS = [
    "chrome-devtools",
    "context7",
    "everything",
    "fetch",
    "filesystem",
    "git",
    "memory",
    "mongodb",
    "notion",
    "playwright",
    "sequential-thinking",
    "time",
]
ECHO = ("everything", "echo")
CALLERS = (1, 32)
# Bounds of the number of measured calls.
FEWEST, MOST = 64, 10_000
LOAD_SECONDS = 30


@dataclass(frozen=True)
class Setting:
    """Servers behind gateways, and the gateways that are started before them."""

    name: str
    gateways: list[Gateway]
    is_http: bool = False
    is_one: bool = False


SETTINGS = [
    Setting(
        "stdio",
        [TOOLGATE, FASTMCP, FASTMCP_CONNECTED, FASTMCP_BM25, LITELLM],
    ),
    Setting("http", [TOOLGATE, FASTMCP, FASTMCP_CONNECTED, LITELLM], is_http=True),
    Setting("one", [TOOLGATE, FASTMCP, MCP_PROXY_NODE, MCP_PROXY_PYTHON], is_one=True),
]


class Bench:
    """One run."""

    def __init__(self, arguments: argparse.Namespace, root: Path) -> None:
        self._catalog: Path = arguments.catalog.resolve()
        self._load: Path = arguments.load.resolve()
        self._seconds: float = arguments.seconds
        self._only: str = arguments.only
        self._root = root
        self._calls: dict[str, int] = {}
        self._measured: dict[str, Measured] = {}
        self.found: list[peer_search.Found] = []
        self.problems: list[str] = []

    def round(self, setting: Setting) -> None:
        """Measures the direct server and each gateway once."""
        with ExitStack() as stack:
            upstreams = self._upstreams(setting, stack)
            self._direct(setting)
            for gateway in setting.gateways:
                if self._only in gateway.name:
                    print(f"  {setting.name}: {gateway.name}", file=sys.stderr, flush=True)
                    self._gateway(setting, gateway, upstreams)

    def search(self) -> None:
        """Asks each search for the tools of requests."""
        for search in peer_search.searches():
            if self._only not in search.gateway.name:
                continue
            print(f"  search: {search.gateway.name}", file=sys.stderr, flush=True)
            try:
                self.found.append(peer_search.measure(search, self._catalog, self._root))
            except FailedError as error:
                self.problems.append(f"- {search.gateway.name}, search: {error}")

    def measured(self) -> list[Measured]:
        """Everything that was measured, in its order."""
        return list(self._measured.values())

    def _upstreams(self, setting: Setting, stack: ExitStack) -> list[Upstream]:
        files = [CATALOGS / f"{name}.json" for name in SERVERS]
        if setting.is_one:
            command = [str(self._catalog), *map(str, files)]
            return [Upstream("everything", files, command)]
        upstreams = []
        for file in files:
            command = [str(self._catalog), str(file)]
            url = stack.enter_context(served(command)) if setting.is_http else ""
            upstreams.append(Upstream(peer_search.server_name(file), [file], command, url))
        return upstreams

    def _direct(self, setting: Setting) -> None:
        files = [str(CATALOGS / f"{name}.json") for name in SERVERS]
        measured = self._of(setting, DIRECT)
        with served([str(self._catalog), *files]) as url:
            measured.tools = sum(len(_tools(Path(file))) for file in files)
            self._loads(measured, Face(DIRECT, "", None), url)

    def _gateway(self, setting: Setting, gateway: Gateway, upstreams: list[Upstream]) -> None:
        folder = Path(tempfile.mkdtemp(dir=self._root))
        port = free_port()
        try:
            launch = gateway.launch(upstreams, folder, port)
        except (OSError, subprocess.CalledProcessError) as error:
            self._of(setting, gateway.name).problem = f"not installed: {error}"
            return
        for number, face in enumerate(launch.faces):
            measured = self._of(setting, face.label)
            # Each face has a start of its own, with files of its own.
            part = folder / str(number)
            part.mkdir()
            launch = gateway.launch(upstreams, part, port)
            try:
                with Running(launch, part, port) as running:
                    self._face(measured, running, face, upstreams)
            except FailedError as error:
                measured.problem = str(error)

    def _face(
        self, measured: Measured, running: Running, face: Face, upstreams: list[Upstream]
    ) -> None:
        started = running.started(face, upstreams)
        measured.tools = len(started.tools)
        measured.tokens = measured.tokens or tokens([prompt_text(tool) for tool in started.tools])
        measured.first_list.append(started.first_list)
        measured.all_servers.append(started.all_servers)
        measured.rest_mib.append(running.resident_mib())
        self._loads(measured, face, running.url(face))
        measured.loaded_mib.append(running.resident_mib())

    def _loads(self, measured: Measured, face: Face, url: str) -> None:
        for method in ("list", "call"):
            for callers in CALLERS:
                command = self._command(measured, face, url, method, callers)
                try:
                    self._one_load(measured, command, f"{method} {callers}", max(20, callers))
                except FailedError as error:
                    measured.problem = f"{method}, {callers} callers: {error}"

    def _one_load(self, measured: Measured, command: list[str], key: str, warm_up: int) -> None:
        name = f"{measured.setting}/{measured.label}/{key}"
        if name not in self._calls:
            probe = loaded(command, warm_up, warm_up)
            calls = int(probe["calls_per_second"] * self._seconds)
            self._calls[name] = min(max(calls, FEWEST), MOST)
        figures = loaded(command, self._calls[name], warm_up)
        measured.loads.setdefault(key, []).append(figures)

    def _command(
        self, measured: Measured, face: Face, url: str, method: str, callers: int
    ) -> list[str]:
        command = [str(self._load), url, "--method", method, "--callers", str(callers)]
        if method == "list":
            return [*command, "--tools", str(measured.tools)]
        command += ["--tool", face.name(*ECHO)]
        return [*command, "--through", face.through] if face.through else command

    def _of(self, setting: Setting, label: str) -> Measured:
        name = f"{setting.name}/{label}"
        return self._measured.setdefault(name, Measured(setting.name, label))


def loaded(command: list[str], calls: int, warm_up: int) -> Json:
    """The report of the load generator."""
    numbers = ["--calls", str(calls), "--warm-up", str(warm_up)]
    try:
        done = subprocess.run(
            [*command, *numbers], capture_output=True, text=True, timeout=LOAD_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise FailedError(f"{calls} calls took more than {LOAD_SECONDS} s") from error
    if done.returncode != 0:
        raise FailedError(f"under load: {done.stderr.strip()[:300]}")
    figures: Json = json.loads(done.stdout)
    return figures


@contextmanager
def served(command: list[str]) -> Iterator[str]:
    """Runs a catalog server behind a URL, and gives the URL."""
    process = subprocess.Popen(
        [*command, "--http", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.communicate()


def _tools(file: Path) -> list[Json]:
    tools: list[Json] = json.loads(file.read_text())["tools"]
    return tools


def main() -> None:
    """Measures, prints the tables, and writes them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--catalog", type=Path, required=True, help="toolgate-mcp-catalog")
    parser.add_argument("--load", type=Path, required=True, help="toolgate-mcp-load")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each load, about")
    parser.add_argument("--only", default="", help="gateways whose names contain this text")
    parser.add_argument("--setting", nargs="*", default=[s.name for s in SETTINGS])
    parser.add_argument("--no-search", action="store_true")
    parser.add_argument("--write", type=Path, help="the document with the tables")
    arguments = parser.parse_args()
    settings = [setting for setting in SETTINGS if setting.name in arguments.setting]
    loads = [f"{os.getloadavg()[0]:.1f}"]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments, Path(folder))
        if not arguments.no_search:
            bench.search()
        for number in range(arguments.rounds):
            print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr, flush=True)
            for setting in settings:
                bench.round(setting)
                # A run that is cut short leaves what it measured.
                lines = [*report(bench.measured(), bench.found, loads), *bench.problems]
                if arguments.write:
                    rewrite(arguments.write, "\n".join(lines))
            loads.append(f"{os.getloadavg()[0]:.1f}")
    print("\n".join([*report(bench.measured(), bench.found, loads), *bench.problems]))


if __name__ == "__main__":
    main()
