"""An MCP server over stdio of 2025-06-18 with two tools, the text of one of which is in a file.

So has it two prompts, two resources and two templates of resources.

python poisoned_mcp_server.py TEXT

If a file TEXT.log exists, the method of each request is a line of it. If a file TEXT.broken exists,
lists start with their second item and end with an error in the place of the first. While a file
TEXT.held exists, no list of prompts is answered. If a file TEXT.dies exists, the server ends when
it is asked for a list of prompts.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

Json = dict[str, Any]

INTERNAL = -32603


class BrokenListError(Exception):
    """A page of a list that the server fails to give."""


def tool(name: str, description: str) -> Json:
    """The definition of a tool that only reads."""
    return {
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": True},
    }


def described(key: str, prefix: str, text: str) -> list[Json]:
    """Two items of a list, the first of which has the text."""
    tides: Json = {key: f"{prefix}tides", "description": text}
    moon: Json = {key: f"{prefix}moon", "description": "The phase of the moon above the sea."}
    return [tides | {"name": "tides"}, moon | {"name": "moon"}]


def answer(method: str, params: Json, text: Path) -> Json:
    """The result of a request."""
    if (
        not method.endswith("/list")
        or method == "tools/list"
        or not beside(text, "broken").exists()
    ):
        return whole(method, params, text)
    if "cursor" in params:
        raise BrokenListError
    result = whole(method, params, text)
    return {name: items[1:] for name, items in result.items()} | {"nextCursor": "more"}


def beside(text: Path, ending: str) -> Path:
    """The file beside that of the text."""
    return text.with_name(f"{text.name}.{ending}")


def whole(method: str, params: Json, text: Path) -> Json:
    """The result of a request without faults."""
    match method:
        case "initialize":
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {
                    "tools": {},
                    "prompts": {},
                    "resources": {"subscribe": True},
                    "completions": {},
                },
                "serverInfo": {"name": "sea", "version": "1"},
            }
        case "tools/list":
            moon = tool("moon", "Tells the phase of the moon above the sea.")
            return {"tools": [tool("tides", text.read_text()), moon]}
        case "tools/call":
            return {"content": [{"type": "text", "text": f"{params['name']} ran"}]}
        case "prompts/list":
            return {"prompts": described("name", "", text.read_text())}
        case "prompts/get":
            said = {"type": "text", "text": f"{params['name']} was got"}
            return {"messages": [{"role": "user", "content": said}]}
        case "resources/list":
            return {"resources": described("uri", "sea:///", text.read_text())}
        case "resources/templates/list":
            return {
                "resourceTemplates": described("uriTemplate", "sea:///{day}/", text.read_text())
            }
        case "resources/read":
            return {"contents": [{"uri": params["uri"], "text": "was read"}]}
        case "completion/complete":
            return {"completion": {"values": ["was completed"]}}
        case _:
            return {}


def main(text: Path) -> None:
    """Serves until its input ends."""
    for line in sys.stdin:
        request: Json = json.loads(line)
        if "id" not in request:
            continue
        if beside(text, "log").exists():
            with beside(text, "log").open("a") as log:
                print(request["method"], file=log)
        while request["method"] == "prompts/list" and beside(text, "held").exists():
            time.sleep(0.01)
        if request["method"] == "prompts/list" and beside(text, "dies").exists():
            return
        answered: Json = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            answered["result"] = answer(request["method"], request.get("params") or {}, text)
        except BrokenListError:
            answered["error"] = {"code": INTERNAL, "message": "the list is broken"}
        print(json.dumps(answered), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
