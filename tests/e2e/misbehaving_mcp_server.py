"""An MCP server over stdio of 2025-06-18 that misbehaves when it is asked to.

python misbehaving_mcp_server.py NAME FOLDER

It starts a process of its own, which does nothing. The file FOLDER/NAME has a line for each call
that ran: what the call is about. What it answers has the name and that.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

Json = dict[str, Any]

# Behaviours of the tools, by name. Each takes `about`, a text of its own.
TOOLS = {
    "echo": "Say again what the call is about.",
    "hold": "Take the call and give no answer.",
    "half": "Begin an answer, and end amid its line.",
    "huge": "Answer with a line of 40 MiB.",
    "freeze": "Stop as SIGSTOP does.",
    "storm": "Tell a thousand times that the list of tools changed, then answer.",
}
CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
HUGE = 40 << 20


def definition(name: str) -> Json:
    """The definition of a tool, which only reads."""
    return {
        "name": name,
        "description": TOOLS[name],
        "inputSchema": {
            "type": "object",
            "properties": {"about": {"type": "string"}},
            "required": ["about"],
        },
        "annotations": {"readOnlyHint": True},
    }


class MisbehavingServer:
    """A server with a name and a log of its calls."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.log = folder / name

    def answer(self, method: str, params: Json) -> Json | None:
        """The result of a request; none if there is no answer."""
        match method:
            case "initialize":
                return {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {"listChanged": True}},
                    "serverInfo": {"name": self.name, "version": "1"},
                }
            case "tools/list":
                return {"tools": [definition(name) for name in TOOLS]}
            case "tools/call":
                return self.call(params["name"], params["arguments"]["about"])
            case _:
                return {}

    def call(self, tool: str, about: str) -> Json | None:
        """The result of a call."""
        with self.log.open("a") as log:
            print(about, file=log)
        text = f"{self.name} says {about}"
        match tool:
            case "hold":
                return None
            case "half":
                sys.stdout.write('{"jsonrpc": "2.0", "id": ')
                sys.stdout.flush()
                os._exit(1)
            case "huge":
                text = "x" * HUGE
            case "freeze":
                os.kill(os.getpid(), signal.SIGSTOP)
            case "storm":
                print("\n".join([json.dumps(CHANGED)] * 1_000), flush=True)
        return {"content": [{"type": "text", "text": text}]}


def main(name: str, folder: Path) -> None:
    """Serves until its input ends."""
    server = MisbehavingServer(name, folder)
    idle = [sys.executable, "-c", "import signal; signal.pause()", str(folder / name)]
    with subprocess.Popen(idle, stdin=subprocess.DEVNULL) as child:
        for line in sys.stdin:
            request: Json = json.loads(line)
            if "id" not in request:
                continue
            result = server.answer(request["method"], request.get("params") or {})
            if result is not None:
                answer = {"jsonrpc": "2.0", "id": request["id"], "result": result}
                print(json.dumps(answer), flush=True)
        child.kill()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
