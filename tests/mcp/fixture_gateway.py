"""A gateway with the fixture behind it."""

import json
import os
import signal
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from fixture_process import BINARY, fixture_url
from gateway_process import GatewayProcess
from waiting import PATIENCE

TOOLGATE = os.environ.get(
    "TOOLGATE_BIN", str(Path(__file__).resolve().parents[2] / "target" / "debug" / "toolgate")
)

TRANSPORTS = ("stdio", "http")
"""Ways from the gateway to the fixture."""


class Gateway:
    """A running gateway; `url` is that of the face that hands the fixture through."""

    def __init__(self, process: GatewayProcess) -> None:
        self._process = process
        self.root = process.url
        self.url = f"{process.url}/mcp/s/fixture"
        self.search_url = f"{process.url}/mcp"

    def restart_fixture(self) -> None:
        """Ends the fixture's processes, as an operator does; they are started again."""
        url = f"{self._process.url}/gateway/restart/fixture"
        request = urllib.request.Request(url, method="POST")
        urllib.request.urlopen(request, timeout=PATIENCE).close()

    def kill_fixtures(self) -> None:
        """Ends every process of the fixture without asking it."""
        for process_id in self.fixtures():
            os.kill(process_id, signal.SIGKILL)

    def kill(self) -> None:
        """Ends the gateway without asking it."""
        os.kill(self._process.process_id, signal.SIGKILL)

    def fixtures(self) -> list[int]:
        """The processes of the fixture that the gateway started, by number."""
        own = self._process.process_id
        found = []
        for status in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = status.read_text().rsplit(")", 1)[1].split()
                command = (status.parent / "cmdline").read_bytes()
            except OSError:
                continue
            if fields[0] != "Z" and int(fields[1]) == own and BINARY.encode() in command:
                found.append(int(status.parent.name))
        return sorted(found)


@contextmanager
def gateway(
    folder: Path,
    *arguments: str,
    url: str | None = None,
    settings: str = "",
    listen: str = "",
    more: str = "",
) -> Iterator[Gateway]:
    """Runs a gateway before the fixture: a process with more arguments, or one at a URL.

    `more` are entries of other servers.
    """
    folder.mkdir(exist_ok=True)
    command = json.dumps([BINARY, "--stdio", *arguments])
    place = f"url = {json.dumps(url)}" if url else f"command = {command}\nquestions = true"
    config = f'[gateway]\n{settings}\n[server.fixture]\n{place}\ntrust = "trusted"\n{more}'
    with GatewayProcess(Path(TOOLGATE), folder, config, address=listen) as process:
        yield Gateway(process)


@contextmanager
def gateway_before(folder: Path, transport: str, *arguments: str) -> Iterator[Gateway]:
    """A gateway before the fixture as its process, or behind a URL."""
    with ExitStack() as stack:
        over_http = transport == "http"
        url = stack.enter_context(fixture_url(*arguments)) if over_http else None
        yield stack.enter_context(gateway(folder, *arguments, url=url))
