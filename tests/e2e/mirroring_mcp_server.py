"""An MCP server of 2026-07-28 on standard streams; hosts repeat its parameter in a header."""

import json
import sys
from typing import Any

Json = dict[str, Any]

SCHEMA = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
}
DISCOVERED = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}


def result_of(request: Json) -> Json:
    """The result of a request."""
    if request["method"] == "tools/call":
        text = request["params"]["arguments"].get("region", "")
        return {"content": [{"type": "text", "text": text}]}
    if request["method"] == "tools/list":
        return {
            "tools": [{"name": "place", "description": "Names a region.", "inputSchema": SCHEMA}]
        }
    return DISCOVERED


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        fixed = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": fixed | result_of(asked)}
        print(json.dumps(answer), flush=True)
