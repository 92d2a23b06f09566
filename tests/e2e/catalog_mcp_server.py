"""An MCP server over stdio with the tools of a catalog, which do nothing.

python catalog_mcp_server.py CATALOG.json
"""

import json
import sys
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def result_of(request: Json, tools: list[Json]) -> Json:
    """The result of a request."""
    match request["method"]:
        case "initialize":
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "catalog", "version": "1"},
            }
        case "tools/list":
            return {"tools": tools}
        case "tools/call":
            return {"content": [{"type": "text", "text": "done"}]}
        case _:
            return {}


def main(catalog: Path) -> None:
    """Serves until its input ends."""
    tools = json.loads(catalog.read_text())["tools"]
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            answer = {"jsonrpc": "2.0", "id": request["id"], "result": result_of(request, tools)}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
