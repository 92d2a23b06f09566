"""An MCP server over stdio whose tools misbehave on purpose, by hand and without a library."""

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

ECHO = (
    '{"content":[{"type":"hologram","x":1.0, "y":1e5,"z":1e400}],'
    '"unknown":"\\u0041","structuredContent":{"b":1,"a":2}}'
)
"""A result with a type that no library knows, numbers that parsers change, and an odd order."""

DISCOVERY = json.dumps(
    {
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}},
        "ttlMs": 0,
        "cacheScope": "private",
    }
)

LATE_MARK = os.environ.get("LATE_MARK", "")
"""File that a server makes when it answers late; the process that finds it answers at once."""

held: list[str] = []
cancelled: list[int] = []
tasks: dict[str, dict[str, Any]] = {}
seen = {"lists": 0, "tools": int(os.environ.get("TOOLS", "2")), "calls": 0, "discoveries": 0}


def write(line: str) -> None:
    """Writes a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def say(line: str) -> None:
    """Writes a line to standard error at once."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def answer(number: str, result: str) -> None:
    """Answers a request."""
    write(f'{{"jsonrpc":"2.0","id":{number},"result":{result}}}')


def notify(method: str, **params: Any) -> None:
    """Sends a notification."""
    write(json.dumps({"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}))


def misbehave(tool: str, number: str, params: dict[str, Any]) -> None:
    """Does what a tool is named after."""
    arguments = params.get("arguments", {})
    token = params["_meta"]["progressToken"]
    match tool:
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "half":
            os.write(1, b'{"jsonrpc":"2.0","id":')
            os._exit(1)
        case "huge":
            os.write(1, f'{{"jsonrpc":"2.0","id":{number},"result":{{"text":"'.encode())
            for _ in range(arguments["mebibytes"]):
                sys.stdout.write("x" * (1 << 20))
            write('"}}')
        case "mute":
            os.close(1)
        case "hang":
            seen["hangs"] = 1
            say("it hangs")
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "flood":
            for _ in range(200):
                sys.stderr.write("e" * 10_000 + "\n")
            sys.stderr.write("the end\n")
            sys.stderr.flush()
            answer(number, "{}")
        case "wait":
            say("it waits")
            while not os.path.exists(arguments["file"]):
                time.sleep(0.001)
            answer(number, "{}")
        case "tick":
            while True:
                time.sleep(arguments["pause"])
                notify("progress", progressToken=token, progress=1)
        case "storm":
            for _ in range(1000):
                notify("tools/list_changed")
            answer(number, "{}")


def begin(arguments: dict[str, Any]) -> dict[str, Any]:
    """Begins a task, and returns what stands for it in a revision."""
    task = {"taskId": f"task-{len(tasks)}", "status": "working", **arguments["state"]}
    tasks[task["taskId"]] = task
    return {"task": task} if arguments["is_older"] else {"resultType": "task", **task}


def call(number: str, params: dict[str, Any]) -> None:
    """Runs a tool."""
    seen["calls"] += 1
    arguments = params.get("arguments", {})
    match params["name"]:
        case "echo":
            answer(number, ECHO)
        case "hold":
            held.append(number)
        case "release":
            for waiting in held:
                answer(waiting, '{"released":true}')
            held.clear()
            answer(number, "{}")
        case "state":
            state = {"pid": os.getpid(), "cancelled": cancelled, "held": held, **seen}
            answer(number, json.dumps(state))
        case "progress":
            token = params["_meta"]["progressToken"]
            notify("progress", progressToken=token, progress=1, unknown=2)
            notify("message", level="info", data="a line")
            held.append(number)
        case "tools":
            seen["tools"] = arguments["number"]
            answer(number, "{}")
            notify("tools/list_changed")
        case "child":
            child = subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL)
            answer(number, json.dumps({"pid": child.pid}))
        case "begin":
            answer(number, json.dumps(begin(arguments)))
        case "end":
            tasks[arguments["task"]]["status"] = "completed"
            answer(number, "{}")
        case "refuse":
            error = '{"code":-32123,"message":"no","data":{"why":[1]}}'
            write(f'{{"jsonrpc":"2.0","id":{number},"error":{error}}}')
        case tool:
            misbehave(tool, number, params)


def answer_late(number: str) -> None:
    """Answers the question of which revisions there are, once `initialize` has come."""
    if os.environ["LATE"] == "modern":
        with open(LATE_MARK, "w", encoding="utf-8"):
            answer(number, DISCOVERY)
        return
    write(f'{{"jsonrpc":"2.0","id":{number},"error":{{"code":-32601,"message":"no"}}}}')


def serve(request: dict[str, Any]) -> None:
    """Answers one message."""
    params = request.get("params", {})
    number = json.dumps(request.get("id"))
    if request["method"] == "server/discover":
        seen["discoveries"] += 1
    match request["method"]:
        case "initialize" if os.environ.get("DISCOVER") != "alone":
            if held:
                answer_late(held.pop())
            told = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "misbehaving", "version": "1"},
                "instructions": "Mind the gap.",
            }
            answer(number, json.dumps(told))
        case "server/discover" if os.environ.get("DISCOVER") == "nonsense":
            answer(number, '{"tools":[]}')
        case "server/discover" if os.environ.get("DISCOVER") == "older":
            error = '{"code":-32022,"message":"no","data":{"supported":["2025-11-25"]}}'
            write(f'{{"jsonrpc":"2.0","id":{number},"error":{error}}}')
        case "server/discover" if os.environ.get("DISCOVER") == "alone":
            answer(number, DISCOVERY)
        case "server/discover" if LATE_MARK:
            if os.path.exists(LATE_MARK):
                answer(number, DISCOVERY)
                return
            held.append(number)
            say("it is asked")
        case "tools/list":
            seen["lists"] += 1
            tool = '{{"name":"t{}", "inputSchema":{{"type":"object"}},"x":1.0}}'
            listed = ",".join(tool.format(place) for place in range(seen["tools"]))
            answer(number, f'{{"tools":[{listed}]}}')
        case "ping":
            say("it is pinged")
            answer(number, "{}")
        case "tools/call":
            call(number, params)
        case "tasks/get" | "tasks/result":
            is_result = request["method"] == "tasks/result"
            answer(number, '{"content":[]}' if is_result else json.dumps(tasks[params["taskId"]]))
        case "tasks/cancel":
            answer(number, '{"resultType":"complete"}')
        case "notifications/cancelled":
            cancelled.append(params["requestId"])
        case _ if "id" in request:
            refusal = '{"code":-32601,"message":"no such method"}'
            write(f'{{"jsonrpc":"2.0","id":{number},"error":{refusal}}}')


if __name__ == "__main__":
    if os.environ.get("FAIL"):
        sys.exit("it fails on purpose")
    for line in sys.stdin:
        request = json.loads(line)
        if "hangs" in seen:
            say(f"it ignores {request['method']}")
        else:
            serve(request)
