"""An MCP server over stdio of 2025-06-18 whose lists grow when it is told to, and that says so.

python telling_server.py
"""

import json
import sys
from typing import Any

Json = dict[str, Any]

CHANGE: Json = {
    "name": "change",
    "description": "Puts one thing more into a list of the watchtower.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "list": {"enum": ["tools", "prompts", "resources"]},
            "name": {"type": "string"},
        },
        "required": ["list", "name"],
    },
}


class Lists:
    """Tools of the server."""

    def __init__(self) -> None:
        self.all: dict[str, list[Json]] = {"tools": [CHANGE], "prompts": [], "resources": []}

    def answer(self, method: str, params: Json) -> Json | None:
        """The result of a request; none for a method that is not known."""
        which = method.split("/")[0]
        if method == "initialize":
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {name: {"listChanged": True} for name in self.all},
                "serverInfo": {"name": "telling", "version": "1"},
            }
        if method == f"{which}/list" and which in self.all:
            return {which: self.all[which]}
        if method == "tools/call":
            return self.change(**params["arguments"])
        return {} if method == "ping" else None

    def change(self, list: str, name: str) -> Json:  # noqa: A002
        """Puts one more into a list, and says that it changed."""
        described: Json = {"name": name, "description": f"Shows the {name} of the watchtower."}
        more: dict[str, Json] = {
            "tools": {"inputSchema": {"type": "object"}},
            "prompts": {},
            "resources": {"uri": f"tower:///{name}"},
        }
        self.all[list].append(described | more[list])
        say({"method": f"notifications/{list}/list_changed"})
        return {"content": [{"type": "text", "text": "changed"}]}


def say(message: Json) -> None:
    """Writes a message."""
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def main() -> None:
    """Serves until its input ends."""
    lists = Lists()
    for line in sys.stdin:
        request: Json = json.loads(line)
        if "id" not in request:
            continue
        result = lists.answer(request["method"], request.get("params") or {})
        if result is None:
            say({"id": request["id"], "error": {"code": -32601, "message": "no such method"}})
        else:
            say({"id": request["id"], "result": result})


if __name__ == "__main__":
    main()
