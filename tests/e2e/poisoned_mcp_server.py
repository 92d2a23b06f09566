"""An MCP server over stdio of 2025-06-18 with two tools, the text of one of which is in a file.

So has it two prompts, two resources and two templates of resources.

python poisoned_mcp_server.py TEXT
"""

import json
import sys
from pathlib import Path
from typing import Any

Json = dict[str, Any]


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
    match method:
        case "initialize":
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
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
        case _:
            return {}


def main(text: Path) -> None:
    """Serves until its input ends."""
    for line in sys.stdin:
        request: Json = json.loads(line)
        if "id" in request:
            result = answer(request["method"], request.get("params") or {}, text)
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
