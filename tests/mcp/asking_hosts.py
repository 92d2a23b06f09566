"""Hosts that are asked while their calls run: one of 2025-11-25, and one of 2026-07-28."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from http.client import HTTPResponse
from typing import Any, cast

from waiting import PATIENCE

Json = dict[str, Any]
# The answer to a question, by its method and parameters; none leaves it open.
Answer = Callable[[str, Json], Json | None]

ALL: Json = {"elicitation": {}, "sampling": {}, "roots": {}}
LEGACY = "2025-11-25"
MODERN = "2026-07-28"
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


class RefusedError(Exception):
    """A JSON-RPC error."""

    def __init__(self, error: Json) -> None:
        super().__init__(json.dumps(error))
        self.code: int = error["code"]


def accepting(content: Json) -> Answer:
    """Answers each form with this content."""
    return lambda _method, _params: {"action": "accept", "content": content}


def bearer(token: str) -> dict[str, str]:
    """The header with a token; none without one."""
    return {"Authorization": f"Bearer {token}"} if token else {}


def text_of(result: Json) -> str:
    """The texts of a result."""
    return "\n".join(item["text"] for item in result["content"] if item["type"] == "text")


def _messages(response: HTTPResponse) -> Iterator[Json]:
    if response.headers.get_content_type() == "application/json":
        yield json.loads(response.read())
        return
    for line in response:
        if line.startswith(b"data:") and (data := line[5:].strip()).startswith(b"{"):
            yield json.loads(data)


@contextmanager
def _post(url: str, message: Json, headers: dict[str, str]) -> Iterator[HTTPResponse]:
    request = urllib.request.Request(url, json.dumps(message).encode(), ACCEPT | headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            yield cast(HTTPResponse, response)
    except urllib.error.HTTPError as error:
        text = error.read().decode()
        told = json.loads(text) if text.startswith("{") else {}
        raise RefusedError(told.get("error", {"code": error.code, "message": text})) from None


class LegacyHost:
    """A host of 2025-11-25: it opens a session, and questions come on the stream of its call."""

    def __init__(self, url: str, capabilities: Json = ALL, token: str = "") -> None:
        self._url = url
        self._headers = {"MCP-Protocol-Version": LEGACY, **bearer(token)}
        self._last_id = 0
        self.greeting = self._open(capabilities)

    def move(self, url: str) -> None:
        """Goes on at another replica of the gateway."""
        self._url = url

    def request(self, method: str, params: Json, answer: Answer | None = None) -> Json:
        """The result of a request, with its questions answered as they come."""
        for message in self.stream(method, params):
            if "method" in message and "id" in message:
                assert answer is not None, message
                given = answer(message["method"], message.get("params", {}))
                if given is not None:
                    self.answer(message["id"], given)
            elif "error" in message:
                raise RefusedError(message["error"])
            elif "result" in message:
                result: Json = message["result"]
                return result
        raise AssertionError("the stream ended without an answer")

    def call(self, tool: str, arguments: Json, answer: Answer | None = None) -> Json:
        """The result of a tool."""
        return self.request("tools/call", {"name": tool, "arguments": arguments}, answer)

    def stream(self, method: str, params: Json) -> Generator[Json]:
        """The messages of a request's stream, as they come."""
        self._last_id += 1
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        with _post(self._url, message, self._headers) as response:
            if session := response.headers.get("Mcp-Session-Id"):
                self._headers["Mcp-Session-Id"] = session
            yield from _messages(response)

    def answer(self, question: object, result: Json) -> None:
        """Answers a question of the server."""
        self._tell({"jsonrpc": "2.0", "id": question, "result": result})

    def cancel(self) -> None:
        """Gives the latest request up."""
        params = {"requestId": self._last_id, "reason": "no longer wanted"}
        self._tell({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    @contextmanager
    def listening(self) -> Iterator[Iterator[Json]]:
        """The messages that belong to no request, from now on."""
        request = urllib.request.Request(self._url, headers=ACCEPT | self._headers)
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            yield _messages(response)

    def updates(self) -> Generator[Json]:
        """The messages that belong to no request."""
        with self.listening() as messages:
            yield from messages

    def tell(self, method: str) -> None:
        """Sends a notification."""
        self._tell({"jsonrpc": "2.0", "method": method})

    def leave(self) -> None:
        """Ends the session, whatever runs."""
        request = urllib.request.Request(self._url, headers=ACCEPT | self._headers, method="DELETE")
        urllib.request.urlopen(request, timeout=PATIENCE).close()

    def _open(self, capabilities: Json) -> Json:
        client = {"name": "older", "version": "1"}
        params = {"protocolVersion": LEGACY, "capabilities": capabilities, "clientInfo": client}
        greeting = self.request("initialize", params)
        self._tell({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return greeting

    def _tell(self, message: Json) -> None:
        with _post(self._url, message, self._headers) as response:
            response.read()


class ModernHost:
    """A host of 2026-07-28: a result asks, and the next try of the request answers."""

    def __init__(
        self, url: str, name: str = "newer", capabilities: Json = ALL, token: str = ""
    ) -> None:
        self._url = url
        self._credential = bearer(token)
        self._meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": name, "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }

    def move(self, url: str) -> None:
        """Goes on at another replica of the gateway."""
        self._url = url

    def request(self, method: str, params: Json) -> Json:
        """The result of one request, which may be one that asks."""
        for message in self.stream(method, params):
            if "error" in message:
                raise RefusedError(message["error"])
            if "result" in message:
                result: Json = message["result"]
                return result
        raise AssertionError("the stream ended without an answer")

    def stream(self, method: str, params: Json) -> Generator[Json]:
        """The messages of a request's stream, as they come."""
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method, **self._credential}
        named = params.get("name") or params.get("uri") or params.get("taskId")
        if named:
            headers["Mcp-Name"] = named
        params = params | {"_meta": self._meta | params.get("_meta", {})}
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        with _post(self._url, message, headers) as response:
            yield from _messages(response)

    def call(self, tool: str, arguments: Json) -> Json:
        """The result of a tool, which may be one that asks."""
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def answer(self, tool: str, arguments: Json, asked: Json, answers: Json) -> Json:
        """The result of the next try of a call that asked."""
        params: Json = {"name": tool, "arguments": arguments, "inputResponses": answers}
        if "requestState" in asked:
            params["requestState"] = asked["requestState"]
        return self.request("tools/call", params)
