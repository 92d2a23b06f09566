"""An MCP server over HTTP that serves some tools of the catalogs, and keeps what was called."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Json = dict[str, Any]

CATALOGS = Path(__file__).resolve().parents[2] / "data" / "servers"
ORDER = (
    "git",
    "filesystem",
    "time",
    "slack",
    "notion",
    "kubernetes",
    "playwright",
    "mongodb",
    "hubspot",
    "memory",
    "firecrawl",
)
"""Servers of `tests/data/servers` in the order in which their tools are taken."""

ANSWERED = "The work is done, and this is what came of it"
LINES = "\n".join(f"{number}: a line of the answer, as tools have them" for number in range(1, 13))


def tools_of_catalogs(count: int) -> list[Json]:
    """The definitions of the first so many tools, each name once.

    Raises:
        ValueError: The catalogs have not so many.
    """
    found: dict[str, Json] = {}
    for name in ORDER:
        catalog = json.loads((CATALOGS / f"{name}.json").read_text())
        for tool in catalog["tools"]:
            # Some hosts refuse a plain text where the tool has a schema of what it answers.
            plain = {key: value for key, value in tool.items() if key != "outputSchema"}
            found.setdefault(tool["name"], plain)
    if count > len(found):
        raise ValueError(f"the catalogs have {len(found)} tools")
    return list(found.values())[:count]


@dataclass
class CatalogServer:
    """The server's address, its tools, and the calls that came."""

    tools: list[Json]
    url: str = ""
    calls: list[Json] = field(default_factory=list)

    def answer(self, method: str, params: Json) -> Json | None:
        """The result of a request; none for a method that is not known."""
        match method:
            case "initialize":
                return {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "catalog", "version": "1"},
                }
            case "ping":
                return {}
            case "tools/list":
                return {"tools": self.tools}
            case "tools/call":
                name = params["name"]
                self.calls.append({"name": name, "arguments": params.get("arguments") or {}})
                text = f"{ANSWERED} ({name}, {len(self.calls)}).\n{LINES}"
                return {"content": [{"type": "text", "text": text}]}
            case _:
                return None


@contextmanager
def catalog_server(count: int) -> Iterator[CatalogServer]:
    """Serves so many tools on a free port of loopback."""
    catalog = CatalogServer(tools_of_catalogs(count))

    class Handler(_Handler):
        served = catalog

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    catalog.url = f"http://127.0.0.1:{server.server_address[1]}/mcp"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield catalog
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    served: CatalogServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Says nothing."""

    def handle(self) -> None:
        """Answers requests until the host leaves, which may reset the connection."""
        with suppress(ConnectionResetError):
            super().handle()

    def do_GET(self) -> None:
        """Refuses a stream: nothing is told without being asked."""
        self._send(405, b"")

    def do_DELETE(self) -> None:
        """Refuses to end a session: there is none."""
        self._send(405, b"")

    def do_POST(self) -> None:
        """Answers a message with JSON."""
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        message: Json = json.loads(body)
        if "id" not in message:
            self._send(202, b"")
            return
        result = self.served.answer(message.get("method", ""), message.get("params") or {})
        answer: Json = {"jsonrpc": "2.0", "id": message["id"]}
        if result is None:
            answer["error"] = {"code": -32601, "message": "no such method"}
        else:
            answer["result"] = result
        self._send(200, json.dumps(answer).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
