"""An MCP server over stdio of 2025-11-25 that sends persons to a page, and says when it is done.

python page_server.py LOG

A line of LOG has the capabilities of each client, and one each change of roots that it hears of.
"""

import json
import sys
from pathlib import Path
from typing import Any

Json = dict[str, Any]

PAGE = {
    "mode": "url",
    "message": "Please confirm.",
    "url": "https://bank.example/confirm",
    "elicitationId": "page-1",
}
TOOL: Json = {
    "name": "open_page",
    "description": "Sends somebody to a page.",
    "inputSchema": {"type": "object"},
}


def say(message: Json) -> None:
    """Writes a message."""
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def log(path: Path, record: Json) -> None:
    """Writes a line of the log."""
    with path.open("a") as written:
        print(json.dumps(record), file=written)


class PageServer:
    """One client's server."""

    def __init__(self, path: Path) -> None:
        self._log = path
        self._capabilities: Json = {}
        self._call: object = None

    def take(self, message: Json) -> None:
        """Does what a message wants."""
        method = message.get("method")
        if method == "initialize":
            self._capabilities = message["params"]["capabilities"]
            log(self._log, {"capabilities": self._capabilities})
            greeting = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "pages", "version": "1"},
            }
            say({"id": message["id"], "result": greeting})
        elif method == "ping":
            say({"id": message["id"], "result": {}})
        elif method == "tools/list":
            say({"id": message["id"], "result": {"tools": [TOOL]}})
        elif method == "tools/call":
            self._call = message["id"]
            say({"id": "page", "method": "elicitation/create", "params": PAGE})
        elif message.get("id") == "page":
            content = [{"type": "text", "text": message["result"]["action"]}]
            say({"id": self._call, "result": {"content": content}})
            params = {"elicitationId": PAGE["elicitationId"]}
            say({"method": "notifications/elicitation/complete", "params": params})
        elif method == "notifications/roots/list_changed":
            log(self._log, {"changed": self._capabilities})
        elif "id" in message and method is not None:
            say({"id": message["id"], "error": {"code": -32601, "message": "no such method"}})


def main(path: Path) -> None:
    """Serves until its input ends."""
    server = PageServer(path)
    for line in sys.stdin:
        server.take(json.loads(line))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
