"""An MCP server over stdio of the revision 2025-06-18 that needs nothing.

python plain_mcp_server.py

Where PLAIN_LOG names a file, each message that comes is a line of it, and each start an empty
object. PLAIN_TOOLS is a number of tools beside its four; a list has pages of 500 tools.
PLAIN_CLAIM is a number of characters that it wants shown of each result.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

Json = dict[str, Any]

PAGE = 500

URI = "note:///a+b__c"

TOOLS: list[Json] = [
    {
        "name": "read_note",
        "description": "Read the note that was kept.",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "keep_note",
        "description": "Keep a note for later.",
        "inputSchema": {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
            "additionalProperties": False,
        },
    },
    {
        "name": "list_lines",
        "description": "List many numbered lines.",
        "inputSchema": {"type": "object", "properties": {"count": {"type": "integer"}}},
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "process_id",
        "description": "Tell the identifier of this process.",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": True},
    },
]


def lines(count: int) -> str:
    """Returns so many lines."""
    return "\n".join(f"line {number}" for number in range(count))


def listed(start: int) -> Json:
    """Returns the page of the tools that begins with the one at this place."""
    count = int(os.environ.get("PLAIN_TOOLS", "0"))
    more = [
        {"name": f"shelf_{number:04}", "description": "Look.", "inputSchema": {"type": "object"}}
        for number in range(count)
    ]
    tools = [*TOOLS, *more]
    if claim := os.environ.get("PLAIN_CLAIM"):
        claimed = {"anthropic/maxResultSizeChars": int(claim)}
        tools = [{**tool, "_meta": claimed} for tool in tools]
    end = start + PAGE
    page: Json = {"tools": tools[start:end]}
    return page if end >= len(tools) else {**page, "nextCursor": str(end)}


class PlainServer:
    """The note that is kept, and the answers."""

    def __init__(self) -> None:
        self.note = ""

    def answer(self, method: str, params: Json) -> Json | None:
        """Returns the result of a request; none for a method that is not known."""
        match method:
            case "initialize":
                return {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
                    "serverInfo": {"name": "plain", "version": "1"},
                }
            case "ping":
                return {}
            case "tools/list":
                return listed(int(params.get("cursor", "0")))
            case "prompts/list":
                return {"prompts": [{"name": "greet", "novel": 1.0}]}
            case "prompts/get":
                text = {"type": "text", "text": f"say hello to {params['name']}"}
                return {"messages": [{"role": "user", "content": text}]}
            case "resources/list":
                return {"resources": [{"uri": URI, "name": "note"}]}
            case "resources/templates/list":
                return {"resourceTemplates": []}
            case "resources/read":
                return {"contents": [{"uri": params["uri"], "text": self.note}]}
            case "tools/call":
                return self.call(params["name"], params.get("arguments", {}))
            case _:
                return None

    def call(self, tool: str, arguments: Json) -> Json:
        """Returns the result of a call; its fields are some that a library may not know.

        It runs `shred_note` too, which it does not list.
        """
        match tool:
            case "read_note":
                text = self.note
            case "keep_note":
                self.note = arguments["text"]
                text = "kept"
            case "shred_note":
                self.note = text = ""
            case "list_lines":
                text = lines(arguments["count"])
            case "process_id":
                text = str(os.getpid())
            case _:
                return {"content": [], "isError": True}
        return {"zeta": 1.0, "content": [{"type": "text", "text": text}, {"type": "novel", "a": 1}]}


def log(message: Json) -> None:
    """Writes a message to the log, if there is one."""
    if path := os.environ.get("PLAIN_LOG"):
        with Path(path).open("a") as written:
            print(json.dumps(message), file=written)


def main() -> None:
    """Serves until its input ends."""
    log({})
    server = PlainServer()
    for line in sys.stdin:
        request: Json = json.loads(line)
        log(request)
        if "id" not in request:
            continue
        answer: Json = {"jsonrpc": "2.0", "id": request["id"]}
        result = server.answer(request["method"], request.get("params", {}))
        if result is None:
            answer["error"] = {"code": -32601, "message": "no such method"}
        else:
            answer["result"] = result
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
