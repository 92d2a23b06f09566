"""An MCP server over stdio of 2025-11-25 whose calls may run as tasks.

python task_server.py LOG

It also gives a prompt of a tool's name, whose result looks like a task of 2026-07-28.
A task has ended once its state was asked for twice, unless it is to go on. One that `fails` has no
result. Each request is a line of LOG. A call that `waits` is answered once a file LOG.go is there.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

Json = dict[str, Any]

BOOLEAN = {"type": "boolean"}
ARGUMENTS = ["fails", "goes_on", "waits"]
SUPPORT = {"dig": "optional", "drill": "required", "look": "forbidden"}
RELATED = "io.modelcontextprotocol/related-task"
GREETING: Json = {
    "protocolVersion": "2025-11-25",
    "capabilities": {
        "tools": {},
        "prompts": {},
        "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}},
    },
    "serverInfo": {"name": "mine", "version": "1"},
}


class RefusedError(Exception):
    """A request that the server refuses, with the code of the error."""


def say(message: Json) -> None:
    """Writes a message."""
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def tool(name: str) -> Json:
    """The definition of a tool."""
    return {
        "name": name,
        "description": f"Does {name} in the mine.",
        "inputSchema": {"type": "object", "properties": dict.fromkeys(ARGUMENTS, BOOLEAN)},
        "execution": {"taskSupport": SUPPORT[name]},
    }


def text(said: str) -> Json:
    """The result of a call."""
    return {"content": [{"type": "text", "text": said}]}


class Mine:
    """The tasks, and the answers."""

    def __init__(self) -> None:
        self._tasks: list[Json] = []
        self._going_on: set[str] = set()
        self._failing: set[str] = set()

    def answer(self, method: str, params: Json) -> Json:
        """The result of a request."""
        match method:
            case "initialize":
                return GREETING
            case "tools/list":
                return {"tools": [tool(name) for name in SUPPORT]}
            case "tools/call":
                return self.call(params)
            case "prompts/list":
                return {"prompts": [{"name": "dig", "description": "Asks for a hole."}]}
            case "prompts/get":
                begun: Json = self.call({"name": params["name"], "task": {}})["task"]
                return {"messages": [], "resultType": "task", **begun}
            case "tasks/list":
                return {"tasks": self._tasks}
            case "tasks/get":
                return self.state(self.task(params))
            case "tasks/result":
                return self.result(self.task(params))
            case "tasks/cancel":
                task = self.task(params)
                task["status"] = "cancelled"
                return task
            case _:
                return {}

    def call(self, params: Json) -> Json:
        """Runs a tool, or begins a task."""
        name = params["name"]
        if "task" not in params:
            if SUPPORT[name] == "required":
                raise RefusedError(-32601)
            return text(f"{name} at once")
        if SUPPORT[name] == "forbidden":
            raise RefusedError(-32601)
        task = {
            "taskId": f"task-{len(self._tasks)}",
            "status": "working",
            "statusMessage": name,
            "createdAt": "2026-01-01T00:00:00Z",
            "lastUpdatedAt": "2026-01-01T00:00:00Z",
            "ttl": params["task"].get("ttl"),
            "pollInterval": 1,
        }
        self._tasks.append(task)
        arguments = params.get("arguments", {})
        if arguments.get("goes_on"):
            self._going_on.add(task["taskId"])
        if arguments.get("fails"):
            self._failing.add(task["taskId"])
        return {"task": dict(task)}

    def task(self, params: Json) -> Json:
        """The task that a request names."""
        for task in self._tasks:
            if task["taskId"] == params["taskId"]:
                return task
        raise RefusedError(-32602)

    def state(self, task: Json) -> Json:
        """The state of a task, which is another the next time."""
        told = dict(task)
        if task["status"] == "working" and task["taskId"] not in self._going_on:
            task["status"] = "failed" if task["taskId"] in self._failing else "completed"
        return told

    def result(self, task: Json) -> Json:
        """The result of a task that has ended."""
        if task["status"] != "completed":
            raise RefusedError(-32000)
        related = {RELATED: {"taskId": task["taskId"]}, "kept": 1}
        return {**text(f"{task['statusMessage']} as a task"), "_meta": related}


def main(log: Path) -> None:
    """Serves until its input ends."""
    mine = Mine()
    for line in sys.stdin:
        request: Json = json.loads(line)
        with log.open("a") as written:
            print(json.dumps(request), file=written)
        arguments = request.get("params", {}).get("arguments", {})
        while arguments.get("waits") and not log.with_name(f"{log.name}.go").exists():
            time.sleep(0.01)
        if "id" not in request:
            continue
        try:
            say({"id": request["id"], "result": mine.answer(request["method"], request["params"])})
        except RefusedError as refused:
            say({"id": request["id"], "error": {"code": refused.args[0], "message": "no"}})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
