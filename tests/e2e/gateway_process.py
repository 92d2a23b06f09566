"""A real `toolgate gateway` over MCP servers of its own, and requests to it as hosts make them."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

from toolgate_command import PATIENT_PLANE, command_environment
from toolgate_process import free_port, remove_reserve
from waiting import PATIENCE

Json = dict[str, Any]

PLAIN = Path(__file__).with_name("plain_mcp_server.py")
REVISION = "2026-07-28"
LATE = "the search failed: SearchTools: no answer from "
"""What a search says whose plane did not answer in time."""


def plain_server(name: str, **settings: str) -> str:
    """Returns the entry of a server with four tools, trusted unless a setting says else."""
    command = json.dumps([sys.executable, str(PLAIN)])
    settings = {"trust": "trusted", **settings}
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    return "\n".join([f"[server.{name}]", f"command = {command}", *lines, ""])


def logged_server(name: str, log: Path, **settings: str) -> str:
    """Returns the entry of such a server that writes the messages that come to it to a file."""
    return plain_server(name, **settings) + f"env = {{ PLAIN_LOG = {json.dumps(str(log))} }}\n"


def messages(log: Path, method: str) -> list[Json]:
    """The requests of a method in such a file."""
    lines = log.read_text().splitlines() if log.exists() else []
    written = [json.loads(line) for line in lines]
    return [sent for sent in written if sent.get("method") == method]


def starts(log: Path) -> int:
    """Counts the processes that wrote to such a file."""
    return log.read_text().splitlines().count("{}") if log.exists() else 0


def message(method: str, params: Json) -> Json:
    """Returns a request of the revision 2026-07-28, which needs no session."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}


def free_address() -> str:
    """An address of this machine that nobody listens on."""
    return f"127.0.0.1:{free_port()}"


class GatewayProcess:
    """One gateway, with a routing plane of its own or before another. Its data lie in `folder`."""

    arguments: tuple[str, ...] = ()
    """What else its command line has."""
    variables: Mapping[str, str] = {}
    """What else its environment has."""

    def __init__(
        self,
        binary: Path,
        folder: Path,
        config: str | None,
        plane: tuple[str, ...] = (),
        address: str = "",
    ) -> None:
        self.folder = folder
        self.said: list[str] = []
        self._plane = plane or ("--data-dir", str(folder / "data"))
        self.url = f"http://{address or free_address()}"
        self._binary = binary
        self._config = folder / "gateway.toml"
        self._files = ("--config", str(self._config)) if config is not None else ()
        if config is not None:
            self._config.write_text(config)
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str | None] = queue.Queue()

    def command(self, *more: str) -> list[str]:
        """Returns the command line that starts it."""
        return [str(self._binary), "gateway", *self._files, *self._plane, *more]

    def start(self, told: str = "behind discover_tools") -> "GatewayProcess":
        """Starts it and waits until all of its servers are ready, or a line says what is told."""
        self.launch()
        self.wait_for(told)
        return self

    def launch(self) -> None:
        """Starts it without waiting for anything that it says."""
        self._lines = queue.Queue()
        self._process = subprocess.Popen(
            self.command("--listen", self.url.removeprefix("http://"), *self.arguments),
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            env={**command_environment(), **PATIENT_PLANE, **self.variables},
        )
        assert self._process.stderr is not None
        # Always read, so that it never waits for a reader.
        reading = (self._process.stderr, self._lines)
        self._reader = threading.Thread(target=_read, args=reading, daemon=True)
        self._reader.start()

    def change(self, config: str, told: str) -> None:
        """Writes another file, and waits until a line says what is told."""
        self._config.write_text(config)
        self.wait_for(told)

    def reload(self, config: str, told: str, file: Path | None = None) -> None:
        """Writes another file, has it read again, and waits until a line says what is told."""
        assert self._process is not None
        (file or self._config).write_text(config)
        self._process.send_signal(signal.SIGHUP)
        self.wait_for(told)

    def wait_for(self, text: str) -> None:
        """Waits for a line with a text on standard error; `said` has the lines so far."""
        # Of the whole wait: a gateway that goes on talking never leaves a single line late.
        give_up = time.monotonic() + PATIENCE
        while (left := give_up - time.monotonic()) > 0:
            try:
                line = self._lines.get(timeout=left)
            except queue.Empty:
                break
            if line is None:
                raise AssertionError(f"it ended before it said {text!r}:\n{''.join(self.said)}")
            self.said.append(line)
            if text in line:
                return
        raise AssertionError(f"it did not say {text!r}:\n{''.join(self.said)}")

    def __enter__(self) -> "GatewayProcess":
        """Starts it."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Ends it if the test has not."""
        if self._process is not None and self._process.poll() is None:
            self.stop()

    @property
    def process_id(self) -> int:
        """The identifier of its process."""
        assert self._process is not None
        return self._process.pid

    def stop(self) -> int:
        """Ends it as an operator does; returns its exit code."""
        assert self._process is not None
        assert self._process.stderr is not None
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        self._process.stderr.close()
        remove_reserve(self.folder / "data")
        return code

    def post(
        self, path: str, body: Json, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Json]:
        """Returns the status and the JSON-RPC answer of a request."""
        name = body["params"].get("name")
        sent = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": REVISION,
            "Mcp-Method": body["method"],
            **({"Mcp-Name": name} if name else {}),
            **(headers or {}),
        }
        request = urllib.request.Request(
            self.url + path, data=json.dumps(body).encode(), headers=sent
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as response:
                return response.status, answer_of(response.read().decode())
        except urllib.error.HTTPError as error:
            return error.code, answer_of(error.read().decode())

    def send(
        self, method: str, path: str, headers: Mapping[str, str], body: Json | None
    ) -> tuple[int, str, Mapping[str, str]]:
        """Returns the status, the text and the headers of the answer to a request as it is."""
        sent = {"Accept": "application/json, text/event-stream", **headers}
        if body is not None:
            sent["Content-Type"] = "application/json"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, sent, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as response:
                return response.status, response.read().decode(), lowered(response.headers.items())
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), lowered(error.headers.items())

    def tools(self, path: str = "/mcp") -> list[Json]:
        """Returns the definitions that a host starts with."""
        status, answer = self.post(path, message("tools/list", {}))
        assert status == 200, answer
        tools: list[Json] = answer["result"]["tools"]
        return tools

    def call(self, tool: str, arguments: Json, path: str = "/mcp") -> Json:
        """Returns the result of a call."""
        give_up = time.monotonic() + PATIENCE
        while True:
            called = message("tools/call", {"name": tool, "arguments": arguments})
            status, answer = self.post(path, called)
            assert status == 200, answer
            result: Json = answer["result"]
            # A machine with much else to do may take longer than the gateway waits for the plane.
            if LATE not in text_of(result) or time.monotonic() > give_up:
                return result

    def text(self, tool: str, arguments: Json, path: str = "/mcp") -> str:
        """Returns the texts of the result of a call."""
        return text_of(self.call(tool, arguments, path))


def _read(said: IO[str], lines: "queue.Queue[str | None]") -> None:
    for line in said:
        lines.put(line)
    lines.put(None)


def lowered(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Returns headers by names in small letters."""
    return {name.lower(): value for name, value in headers}


def text_of(result: Json) -> str:
    """Returns the texts of a result."""
    return "\n".join(item["text"] for item in result["content"] if item["type"] == "text")


def answer_of(body: str) -> Json:
    """Returns the message out of a body of JSON or of events; empty if there is none."""
    for line in body.splitlines():
        data = line.removeprefix("data:").strip()
        if data.startswith("{"):
            message: Json = json.loads(data)
            if "result" in message or "error" in message:
                return message
    return {}


def answer_to(number: int, lines: IO[str]) -> str:
    """Reads the lines of a gateway on standard streams up to the answer with this ID.

    Notifications may stand before it.
    """
    return next(line for line in lines if json.loads(line).get("id") == number)


def is_running(process_id: int) -> bool:
    """Tells whether a process is there and no zombie."""
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def kill(process_id: int) -> None:
    """Ends a process without asking it."""
    os.kill(process_id, signal.SIGKILL)
