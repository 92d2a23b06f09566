"""An MCP server over stdio of 2025-11-25 whose tools write lines of a log as messages.

The last line of each call is an emergency, which every level lets through.

python logging_server.py
"""

import json
import os
import sys
from typing import Any

Json = dict[str, Any]

LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
TOOLS = {
    "work": "Runs, and tells what it does while it runs.",
    "later": "Runs, and tells what it did once it has answered.",
    "boast": "Tells more while it runs than anybody wants to read.",
    "die": "Ends the process.",
}
GREETING: Json = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}, "logging": {}},
    "serverInfo": {"name": "logging", "version": "1"},
}


def say(message: Json) -> None:
    """Writes a message."""
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


class LoggingServer:
    """The level, and the answers."""

    def __init__(self) -> None:
        self._least = "info"

    def log(self, level: str, data: str) -> None:
        """Tells a line, if it is of the level that is wanted."""
        if LEVELS.index(level) >= LEVELS.index(self._least):
            params = {"level": level, "logger": "bench", "data": data}
            say({"method": "notifications/message", "params": params})

    def take(self, request: Json) -> None:
        """Answers a request."""
        method, params = request["method"], request.get("params") or {}
        if method == "initialize":
            result = GREETING
        elif method == "tools/list":
            schema = {"type": "object"}
            result = {
                "tools": [
                    {"name": name, "description": text, "inputSchema": schema}
                    for name, text in TOOLS.items()
                ]
            }
        elif method == "logging/setLevel":
            self._least = params["level"]
            result = {}
        elif method == "tools/call":
            self.run(params["name"])
            result = {"content": [{"type": "text", "text": "ran"}]}
        else:
            result = {}
        say({"id": request["id"], "result": result})
        if method == "tools/call" and params["name"] == "later":
            self.log("warning", "it ran")

    def run(self, tool: str) -> None:
        """Tells what a tool does."""
        if tool == "die":
            os._exit(1)
        if tool == "work":
            for level in ["debug", "info", "error"]:
                self.log(level, f"a line of {level}")
        elif tool == "boast":
            self.log("error", "x" * (100 << 10))
        if tool != "later":
            self.log("emergency", "the end")


def main() -> None:
    """Serves until its input ends."""
    server = LoggingServer()
    for line in sys.stdin:
        request: Json = json.loads(line)
        if "id" in request:
            server.take(request)


if __name__ == "__main__":
    main()
