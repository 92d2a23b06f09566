"""An MCP server over stdio that has one tool more each time that it is listed, and says so once.

python raw_mcp_server.py LOG.txt

It writes its environment's names and each request's method to the log. It speaks the protocol by
hand, so that its definitions have bytes that no library would write.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

DEFINITION = (
    '{{ "zebra": 1.0, "name": "tool_{number}", '
    '"inputSchema": {{"type":"object"}}, "unknown":"\\u0041"}}'
)
"""A definition with an odd order, a number that parsers shorten, an unknown key, and an escape."""


def tools(number: int) -> str:
    """Returns the text of so many definitions."""
    return ",".join(DEFINITION.format(number=place) for place in range(1, number + 1))


def main(log: Path) -> None:
    """Serves until its input ends."""
    listed = 0
    with log.open("a") as written:
        print(" ".join(sorted(os.environ)), file=written, flush=True)
        print("something for people to read", flush=True)
        for line in sys.stdin:
            request: dict[str, Any] = json.loads(line)
            print(request["method"], file=written, flush=True)
            if "id" not in request:
                continue
            number = json.dumps(request["id"])
            match request["method"]:
                case "initialize":
                    result = json.dumps(
                        {
                            "protocolVersion": "2025-06-18",
                            "capabilities": {"tools": {"listChanged": True}},
                            "serverInfo": {"name": "growing", "version": "7"},
                        }
                    )
                case "tools/list":
                    listed += 1
                    result = f'{{"tools":[{tools(listed)}]}}'
                case _:
                    refusal = '{"code": -32601, "message": "no such method"}'
                    print(f'{{"jsonrpc": "2.0", "id": {number}, "error": {refusal}}}', flush=True)
                    continue
            print(f'{{"jsonrpc": "2.0", "id": {number}, "result": {result}}}', flush=True)
            if request["method"] == "tools/list" and listed == 1:
                changed = "notifications/tools/list_changed"
                print(json.dumps({"jsonrpc": "2.0", "method": changed}), flush=True)
        print("input ended", file=written, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
