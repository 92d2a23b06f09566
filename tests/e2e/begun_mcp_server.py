"""An MCP server over stdio of 2026-07-28 with one tool, whose calls are tasks.

python begun_mcp_server.py LOG

Each message that comes is a line of the log. A call is answered once a file LOG.go exists.
A task has ended when its state is asked for, with the result of a long text.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

Json = dict[str, Any]

TOOL: Json = {
    "name": "dig",
    "description": "Digs a hole.",
    "inputSchema": {"type": "object", "properties": {}},
}
TASK: Json = {
    "taskId": "task-0",
    "status": "working",
    "createdAt": "2026-01-01T00:00:00Z",
    "lastUpdatedAt": "2026-01-01T00:00:00Z",
    "ttl": None,
    "pollInterval": 1,
}
DUG = "".join(f"spade {number}\n" for number in range(1_000))
RESULT: Json = {"content": [{"type": "text", "text": DUG}], "structuredContent": {"spades": 1_000}}


def answer(method: str, log: Path) -> Json | None:
    """The result of a request; none for a method that is not known."""
    match method:
        case "server/discover":
            return {
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": {
                    "tools": {},
                    "extensions": {"io.modelcontextprotocol/tasks": {}},
                },
                "serverInfo": {"name": "begun", "version": "1"},
                "ttlMs": 0,
                "cacheScope": "private",
            }
        case "tools/list":
            return {
                "resultType": "complete",
                "tools": [TOOL],
                "ttlMs": 60_000,
                "cacheScope": "private",
            }
        case "tools/call":
            while not log.with_name(f"{log.name}.go").exists():
                time.sleep(0.01)
            return {"resultType": "task", **TASK}
        case "tasks/get":
            return {"resultType": "complete", **TASK, "status": "completed", "result": RESULT}
        case "tasks/cancel":
            return {"resultType": "complete"}
        case _:
            return None


def main(log: Path) -> None:
    """Serves until its input ends."""
    for line in sys.stdin:
        request: Json = json.loads(line)
        with log.open("a") as written:
            print(json.dumps(request), file=written)
        if "id" not in request:
            continue
        answered: Json = {"jsonrpc": "2.0", "id": request["id"]}
        result = answer(request["method"], log)
        if result is None:
            answered["error"] = {"code": -32601, "message": "no such method"}
        else:
            answered["result"] = result
        print(json.dumps(answered), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
