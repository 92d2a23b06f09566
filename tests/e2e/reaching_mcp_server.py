"""An MCP server over stdio of 2025-06-18 that tries what it is told, and says what came of it.

python reaching_mcp_server.py
"""

import json
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def connect(port: str) -> None:
    """Opens a connection to a port of this machine."""
    socket.create_connection(("127.0.0.1", int(port)), timeout=10).close()


def read(path: str) -> None:
    """Reads a file."""
    Path(path).read_text()


def write(path: str) -> None:
    """Writes a file."""
    Path(path).write_text("written")


TRIED: dict[str, Callable[[str], None]] = {"connect": connect, "read": read, "write": write}


def tried(name: str, what: str) -> str:
    """The outcome of a try: `done`, or the name of the error."""
    try:
        TRIED[name](what)
    except OSError as error:
        return type(error).__name__
    return "done"


def answer(method: str, params: Json) -> Json | None:
    """The result of a request; none for a method that is not known."""
    schema = {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}
    match method:
        case "initialize":
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "reaching", "version": "1"},
            }
        case "tools/list":
            tools = [
                {"name": name, "description": f"Tries to {name}.", "inputSchema": schema}
                for name in TRIED
            ]
            return {"tools": tools}
        case "tools/call":
            text = tried(params["name"], params["arguments"]["what"])
            return {"content": [{"type": "text", "text": text}]}
        case _:
            return None


if __name__ == "__main__":
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        result = answer(request["method"], request.get("params", {}))
        said = (
            {"result": result}
            if result is not None
            else {"error": {"code": -32601, "message": "no such method"}}
        )
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **said}), flush=True)
