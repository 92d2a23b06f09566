"""A gateway as a process, with the fixture behind it."""

import json
import os
import re
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fixture_process import BINARY

TOOLGATE = os.environ.get(
    "TOOLGATE_BIN", str(Path(__file__).resolve().parents[2] / "target" / "debug" / "toolgate")
)


class Gateway:
    """A running gateway; `url` is that of the face that hands the fixture through."""

    def __init__(self, process: subprocess.Popen[str], root: str) -> None:
        self._process = process
        self._root = root
        self.root = root
        self.url = f"{root}/mcp/s/fixture"
        self.search_url = f"{root}/mcp"

    def restart_fixture(self) -> None:
        """Ends the fixture's processes, as an operator does; they are started again."""
        request = urllib.request.Request(f"{self._root}/gateway/restart/fixture", method="POST")
        urllib.request.urlopen(request, timeout=30).close()

    def kill_fixtures(self) -> None:
        """Ends every process of the fixture without asking it."""
        for process_id in self.fixtures():
            os.kill(process_id, signal.SIGKILL)

    def kill(self) -> None:
        """Ends the gateway without asking it."""
        self._process.kill()
        self._process.wait()

    def fixtures(self) -> list[int]:
        """The processes of the fixture that the gateway started, by number."""
        own = self._process.pid
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


def free_address() -> str:
    """An address of this machine that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def gateway(
    folder: Path,
    *arguments: str,
    url: str | None = None,
    settings: str = "",
    listen: str = "127.0.0.1:0",
) -> Iterator[Gateway]:
    """Runs a gateway before the fixture: a process with more arguments, or one at a URL."""
    folder.mkdir(exist_ok=True)
    config = folder / "gateway.toml"
    command = json.dumps([BINARY, "--stdio", *arguments])
    place = f"url = {json.dumps(url)}" if url else f"command = {command}\nquestions = true"
    lines = [f'[gateway]\nlisten = "{listen}"', settings, f"[server.fixture]\n{place}\n"]
    config.write_text("\n".join(lines))
    process = subprocess.Popen(
        [TOOLGATE, "gateway", "--config", str(config), "--data-dir", str(folder / "data")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        said = ""
        for line in process.stderr:
            said += line
            if "1 server ready" in line:
                break
        serving = re.search(r"serving on (http://\S+)/mcp", said)
        assert serving, f"the gateway ended before it served: {said}"
        yield Gateway(process, serving[1])
    finally:
        process.terminate()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()
