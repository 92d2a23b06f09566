"""An MCP server over stdio whose texts no library would write.

python exact_mcp_server.py
"""

import json
import sys
from typing import Any

DEFINITIONS = [
    f'{{ "zebra": 1.0, "name": "{name}", "inputSchema": {{"type":"object"}}, '
    '"annotations":{"readOnlyHint": true}, "title":"T\\u0041"}'
    for name in ["odd", "data", "embedded", "linked"]
]
"""Definitions with an odd order, a number that parsers shorten, an unknown key, and an escape."""

ODD = (
    '{ "content":[ {"type":"text", "text":"\\u0041\\/"} ],'
    ' "structuredContent": {"far":1e400, "id":123456789012345678901234567890, "half":0.50}}'
)
"""A result with numbers that no float holds, and escapes that nobody needs."""

OUTPUT = '"outputSchema": {"type":"object","required":["large"]}'
DEFINITIONS[1] = DEFINITIONS[1].replace('"title"', f'{OUTPUT}, "title"')
"""Clients refuse a result of this tool without its data."""

INSTRUCTIONS = "Use the odd tool first."
LARGE = "x" * 100_000


def result_of(tool: str) -> str:
    """Returns the text of a result."""
    match tool:
        case "odd":
            return ODD
        case "data":
            return json.dumps({"content": [], "structuredContent": {"large": LARGE}})
        case "embedded":
            resource = {"uri": "file:///large", "text": LARGE}
            return json.dumps({"content": [{"type": "resource", "resource": resource}]})
        case _:
            links = ["file:///a", "ui://page/a.html"]
            content = [{"type": "resource_link", "uri": uri, "name": uri} for uri in links]
            return json.dumps({"content": content})


def main() -> None:
    """Serves until its input ends."""
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        if "id" not in request:
            continue
        params = request.get("params", {})
        match request["method"]:
            case "initialize":
                result = json.dumps(
                    {
                        "protocolVersion": "2025-06-18",
                        "capabilities": {"tools": {}, "resources": {}},
                        "serverInfo": {"name": "exact", "version": "1"},
                        "instructions": " ".join([INSTRUCTIONS, *sys.argv[1:]]),
                    }
                )
            case "tools/list":
                result = f'{{"tools":[{",".join(DEFINITIONS)}]}}'
            case "tools/call":
                result = result_of(params["name"])
            case "resources/read":
                contents = [{"uri": params["uri"], "text": "read"}]
                result = json.dumps({"contents": contents})
            case "resources/list":
                result = json.dumps({"resources": []})
            case "resources/templates/list":
                result = json.dumps({"resourceTemplates": []})
            case _:
                error = '{"code": -32601, "message": "no such method"}'
                answer = (
                    f'{{"jsonrpc": "2.0", "id": {json.dumps(request["id"])}, "error": {error}}}'
                )
                print(answer, flush=True)
                continue
        number = json.dumps(request["id"])
        print(f'{{"jsonrpc": "2.0", "id": {number}, "result": {result}}}', flush=True)


if __name__ == "__main__":
    main()
