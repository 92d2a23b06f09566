"""A small MCP client over stdio and Streamable HTTP that keeps answers as they came.

It opens with `server/discover`, and with `initialize` where that is not known, as hosts do.
"""

import json
import os
import select
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
CLIENT = {"name": "toolgate-tests", "version": "1"}

Json = dict[str, Any]


class McpError(Exception):
    """A JSON-RPC error, or a server that gave no answer."""

    def __init__(self, error: Json) -> None:
        super().__init__(json.dumps(error))
        self.error = error


def fields_of(text: str) -> dict[str, str]:
    """The fields of a JSON object, each as it was written."""
    decoder = json.JSONDecoder()
    fields, place = {}, _next(text, text.index("{") + 1)
    while text[place] != "}":
        name, end = decoder.raw_decode(text, place)
        start = _next(text, _next(text, end) + 1)
        _, end = decoder.raw_decode(text, start)
        fields[str(name)] = text[start:end]
        place = _next(text, end)
        place = _next(text, place + 1) if text[place] == "," else place
    return fields


def items_of(text: str) -> list[str]:
    """The items of a JSON list, each as it was written."""
    decoder = json.JSONDecoder()
    items, place = [], _next(text, text.index("[") + 1)
    while text[place] != "]":
        _, end = decoder.raw_decode(text, place)
        items.append(text[place:end])
        place = _next(text, end)
        place = _next(text, place + 1) if text[place] == "," else place
    return items


def _next(text: str, place: int) -> int:
    while text[place].isspace():
        place += 1
    return place


class Transport(Protocol):
    """A way to a server."""

    # Text of the last response.
    text: str

    def exchange(self, message: Json, seconds: float) -> Json:
        """Sends a request; returns the response to it."""

    def notify(self, message: Json) -> None:
        """Sends a notification."""

    def close(self) -> None:
        """Ends the connection."""


class Stdio:
    """A server as a child process, with nothing of our environment but what is given."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(environment),
            start_new_session=True,
        )
        self._pending = b""
        self.text = ""

    def exchange(self, message: Json, seconds: float) -> Json:
        """Sends a request; returns the response to it."""
        self.notify(message)
        until = time.monotonic() + seconds
        while True:
            self.text = self._line(until).decode()
            answer: Json = json.loads(self.text)
            if answer.get("id") == message["id"] and "method" not in answer:
                return answer

    def notify(self, message: Json) -> None:
        """Sends a notification."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def close(self) -> None:
        """Ends the process by closing its stdin, or by a signal to its group."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(3)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, 9)
            self._process.wait()
        self._process.stdout.close()

    def _line(self, until: float) -> bytes:
        assert self._process.stdout is not None
        while b"\n" not in self._pending:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
                raise McpError({"code": 0, "message": "no answer in time"})
            read = os.read(self._process.stdout.fileno(), 1 << 16)
            if not read:
                raise McpError({"code": 0, "message": "the server ended"})
            self._pending += read
        line, self._pending = self._pending.split(b"\n", 1)
        return line


class Http:
    """A server behind a URL."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        self._url = url
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **(headers or {}),
        }
        self.text = ""

    def exchange(self, message: Json, seconds: float) -> Json:
        """Sends a request; returns the response to it."""
        text = self._post(message, seconds)
        for line in text.splitlines():
            data = line.removeprefix("data:").strip() if line.startswith("data:") else line
            answer = json.loads(data) if data.startswith("{") else {}
            if answer.get("id") == message["id"] and "method" not in answer:
                self.text = data
                return dict(answer)
        raise McpError({"code": 0, "message": f"no answer in {text[:200]!r}"})

    def notify(self, message: Json) -> None:
        """Sends a notification."""
        self._post(message, 30)

    def close(self) -> None:
        """Ends the session, if there is one."""
        if "Mcp-Session-Id" in self._headers:
            request = urllib.request.Request(self._url, headers=self._headers, method="DELETE")
            urllib.request.urlopen(request, timeout=10).close()

    def _post(self, message: Json, seconds: float) -> str:
        headers = self._headers | {"Mcp-Method": message["method"]}
        params = message.get("params", {})
        if name := params.get("name") or params.get("uri"):
            headers["Mcp-Name"] = name
        version = params.get("_meta", {}).get("io.modelcontextprotocol/protocolVersion")
        if version or "Mcp-Session-Id" in headers:
            headers["MCP-Protocol-Version"] = version or LEGACY
        body = json.dumps(message).encode()
        request = urllib.request.Request(self._url, data=body, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=seconds) as response:
                if session := response.headers.get("Mcp-Session-Id"):
                    self._headers["Mcp-Session-Id"] = session
                return str(response.read().decode())
        except urllib.error.HTTPError as error:
            return error.read().decode()


class Client:
    """A connection in the era that the server speaks."""

    def __init__(self, transport: Transport, seconds: float = 60.0) -> None:
        self._transport = transport
        self._seconds = seconds
        self._last_id = 0
        self.era = MODERN
        try:
            self.greeting = self._open()
        except McpError:
            transport.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._transport.close()

    def request(self, method: str, params: Json | None = None) -> Json:
        """The result of a request.

        Raises:
            McpError: The server answered with an error, or not at all.
        """
        self._last_id += 1
        message: Json = {"jsonrpc": "2.0", "id": self._last_id, "method": method}
        message["params"] = dict(params or {})
        if self.era == MODERN:
            message["params"]["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": CLIENT,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
        answer = self._transport.exchange(message, self._seconds)
        if "error" in answer:
            raise McpError(answer["error"])
        result: Json = answer["result"]
        return result

    @property
    def text(self) -> str:
        """The text of the last response."""
        return self._transport.text

    def tools(self) -> list[Json]:
        """Every tool, page after page."""
        return [json.loads(text) for text in self.tool_texts()]

    def tool_texts(self) -> list[str]:
        """The definition of every tool as the server writes it, page after page."""
        tools: list[str] = []
        params: Json = {}
        while True:
            page = self.request("tools/list", params)
            tools += items_of(fields_of(fields_of(self.text)["result"])["tools"])
            if "nextCursor" not in page:
                return tools
            params = {"cursor": page["nextCursor"]}

    def call(self, tool: str, arguments: Json) -> Json:
        """The answer of a tool, or the error as one with the key `error`."""
        try:
            return self.request("tools/call", {"name": tool, "arguments": arguments})
        except McpError as error:
            return {"error": error.error}

    def _open(self) -> Json:
        try:
            return self.request("server/discover")
        except McpError as error:
            if error.error["code"] == 0:
                raise
        self.era = LEGACY
        greeting = self.request(
            "initialize",
            {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT},
        )
        self._transport.notify({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return greeting
