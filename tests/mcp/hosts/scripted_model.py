"""A model on loopback that follows a script: it finds a tool, calls it, and finishes.

It speaks Anthropic's messages, OpenAI's chat and responses, and Gemini's API, and keeps every
request.
"""

import gzip
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]

MESSAGE = "hello from the script"
DONE = "SCRIPT-FINISHED"
SEARCH = {"query": "echo a message back"}
HIDDEN_SEARCH = "toolgate_search_tools"
ENVELOPE = "toolgate_call_tool"
API_SEARCH = "tool_search"
"""The search of OpenAI's Responses, which the client executes."""

LOOKS_MAX = 25
"""Steps that a script repeats at most until a change has arrived."""

LOOK_PAUSE = 0.2
"""Seconds before a step that is the same as the one before."""


@dataclass(frozen=True)
class Step:
    """Next step of the model: a call of a tool, by the host's name of it."""

    tool: str
    arguments: Json


@dataclass
class Turn:
    """A request, read out of whichever API it came in."""

    # Names of tools as the host gave them.
    tools: list[str]
    # Texts of the tools' results so far.
    results: list[str]
    # The conversation, with what is described in it, as JSON.
    said: str = ""

    def tool(self, name: str) -> str | None:
        """The host's name of a tool; none if it is not among them."""
        return next((one for one in self.tools if re.search(rf"(^|[_.]){name}$", one)), None)

    def saw(self, text: str) -> bool:
        """Returns True if a result has a text."""
        return any(text in result for result in self.results)


# Gives the next step, or None when the script is at its end.
Script = Callable[[Turn], Step | None]


def find(turn: Turn) -> Step | None:
    """With the gateway's tools: a search, then a call of the echo tool that it found.

    The same with those of the LLM proxy, in its envelope. With the fixture's own: the echo tool at
    once.
    """
    done = len(turn.results)
    if ENVELOPE in turn.tools:
        if done == 0:
            return Step(HIDDEN_SEARCH, SEARCH)
        found = re.search(r"\w*echo\b", turn.results[-1])
        if MESSAGE in turn.results[-1] or not found:
            return None
        return Step(ENVELOPE, {"name": found.group(), "arguments": {"message": MESSAGE}})
    if search := turn.tool("discover_tools"):
        if done == 0:
            return Step(search, SEARCH)
        shown = _shown(turn.results[0], "echo")
        call = turn.tool("call_read_tool")
        if done == 1 and shown and call:
            return Step(call, {"name": shown, "arguments": {"message": MESSAGE}})
        return None
    echo = turn.tool("echo")
    return Step(echo, {"message": MESSAGE}) if echo and done == 0 else None


def mend(turn: Turn) -> Step | None:
    """A search, a call with a wrong argument, and the call as the refusal's text says."""
    search, call = turn.tool("discover_tools"), turn.tool("call_read_tool")
    if not search or not call or turn.saw(MESSAGE):
        return None
    if not turn.results:
        return Step(search, SEARCH)
    found = _shown(turn.results[0], "echo")
    if not found:
        return None
    if len(turn.results) == 1:
        return Step(call, {"name": found, "arguments": {"words": "not these"}})
    # Only the schema in the refusal says what the argument is called.
    named = re.search(r"required\W+(\w+)", turn.results[-1].partition("input schema")[2])
    if not named or len(turn.results) > 2:
        return None
    return Step(call, {"name": found, "arguments": {named.group(1): MESSAGE}})


def found_text(plant: str) -> str:
    """The answer of the garden's tool that adds another."""
    return f"the {plant} is found"


def read_text(plant: str) -> str:
    """The answer of the tool that was added."""
    return f"the {plant} likes shade"


def grow_behind_search(plant: str) -> Script:
    """Finds the tool that adds another, calls it, searches for the other, and calls that."""

    def script(turn: Turn) -> Step | None:
        search, call = turn.tool("discover_tools"), turn.tool("call_read_tool")
        if not search or not call or turn.saw(read_text(plant)):
            return None
        if not turn.results:
            return Step(search, {"query": "look for a plant in the garden"})
        if not turn.saw(found_text(plant)):
            tool = _shown(turn.results[0], "find_plant")
            asked = {"name": tool, "arguments": {"plant": plant}}
            return Step(call, asked) if tool and len(turn.results) == 1 else None
        shown = [_shown(result, f"read_about_{plant}") for result in turn.results]
        if name := next(filter(None, shown), None):
            return Step(call, {"name": name, "arguments": {}})
        looks = len(turn.results) - 2
        return Step(search, {"query": f"read about the {plant}"}) if looks < LOOKS_MAX else None

    return script


def grow_in_list(plant: str) -> Script:
    """Calls a tool that adds another, until the other is listed, and calls that."""

    def script(turn: Turn) -> Step | None:
        find_plant = turn.tool("find_plant")
        if not find_plant or turn.saw(read_text(plant)):
            return None
        looks = sum(found_text(plant) in result for result in turn.results)
        if read := turn.tool(f"read_about_{plant}"):
            return Step(read, {}) if looks else None
        return Step(find_plant, {"plant": plant}) if looks < LOOKS_MAX else None

    return script


def script_of(name: str, plant: str) -> Script:
    """The script of a name; a plant that no other run has."""
    scripts = {"find": find, "mend": mend, "grow-behind-search": grow_behind_search(plant)}
    return (scripts | {"grow-in-list": grow_in_list(plant)})[name]


def _shown(text: str, tool: str) -> str | None:
    """The name with its tag by which a search shows a tool."""
    # Some hosts hand the text on as JSON within a string.
    found = re.search(rf"[\w-]*{tool}(#\w+)?", text.replace("\\n", "\n"))
    return found.group() if found else None


@dataclass
class ScriptedModel:
    """The model's address and what it was asked."""

    script: Script = find
    url: str = ""
    requests: list[Json] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def keep(self, path: str, body: Json) -> None:
        """Keeps a request."""
        self.requests.append({"path": path, "body": body})

    def decide(self, turn: Turn) -> Step | None:
        """Keeps the turn, and says what comes next."""
        step = self.script(turn)
        self.turns.append(turn)
        if step:
            if self.steps[-1:] == [step]:
                time.sleep(LOOK_PAUSE)
            self.steps.append(step)
        return step

    def last_body(self) -> Json:
        """The body of the last request that had tools of the server."""
        with_tools = [one["body"] for one in self.requests if "discover_tools" in json.dumps(one)]
        body: Json = with_tools[-1]
        return body


@contextmanager
def scripted_model(script: Script = find) -> Iterator[ScriptedModel]:
    """Serves a model on a free port."""
    scripted = ScriptedModel(script)

    class Handler(_Handler):
        model = scripted

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    scripted.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield scripted
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    model: ScriptedModel

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Says nothing."""

    def do_GET(self) -> None:
        """Lists models; there is nothing else to read."""
        found = self.path.split("?")[0].endswith("/models")
        self._json({"object": "list", "data": [], "models": []}, 200 if found else 404)

    def do_POST(self) -> None:
        """Answers a request in the API of its path."""
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        request: Json = json.loads(body or b"{}")
        path = self.path.split("?")[0]
        self.model.keep(path, request)
        if path.endswith("/count_tokens"):
            self._json({"input_tokens": len(body) // 4})
        elif path.endswith("/messages"):
            self._messages(request)
        elif path.endswith("/responses"):
            self._responses(request)
        elif path.endswith("/chat/completions"):
            self._chat(request)
        elif "enerateContent" in path:
            self._gemini(request, streamed="stream" in path)
        else:
            self._json({})

    def _messages(self, request: Json) -> None:
        blocks = [
            block
            for message in request.get("messages", [])
            if isinstance(message["content"], list)
            for block in message["content"]
        ]
        results = [_text(b.get("content")) for b in blocks if b.get("type") == "tool_result"]
        tools = _loaded(request.get("tools", []), blocks)
        step = self.model.decide(Turn(tools, results, _text(request.get("messages"))))
        number = len(self.model.steps)
        start: Json = {"type": "text", "text": ""}
        delta: Json = {"type": "text_delta", "text": DONE}
        whole: Json = {"type": "text", "text": DONE}
        if step:
            use = {"type": "tool_use", "id": f"toolu_{number}", "name": step.tool}
            start, whole = {**use, "input": {}}, {**use, "input": step.arguments}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(step.arguments)}
        stop = "tool_use" if step else "end_turn"
        message: Json = {
            "id": f"msg_{len(self.model.turns)}",
            "type": "message",
            "role": "assistant",
            "model": request.get("model"),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 1},
        }
        if not request.get("stream"):
            self._json({**message, "content": [whole], "stop_reason": stop})
            return
        end = {"stop_reason": stop, "stop_sequence": None}
        self._typed_events(
            [
                {"type": "message_start", "message": message},
                {"type": "content_block_start", "index": 0, "content_block": start},
                {"type": "content_block_delta", "index": 0, "delta": delta},
                {"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": end, "usage": {"output_tokens": 5}},
                {"type": "message_stop"},
            ]
        )

    def _responses(self, request: Json) -> None:
        namespaces: dict[str, str] = {}
        tools = []
        items = request.get("input", [])
        items = items if isinstance(items, list) else []
        added = [tool for item in items for tool in item.get("tools") or []]
        for tool in [*request.get("tools", []), *added]:
            is_space = tool.get("type") == "namespace"
            for one in tool.get("tools", []) if is_space else [tool]:
                if one.get("defer_loading") and tool not in added:
                    continue
                tools.append(one.get("name") or one.get("type", ""))
                if is_space:
                    namespaces[one.get("name", "")] = tool["name"]
        results = [
            _text(item.get("output", item.get("tools")))
            for item in items
            if item.get("type") in ("function_call_output", "tool_search_output")
        ]
        step = self.model.decide(Turn(tools, results, _text(items)))
        number = len(self.model.turns)
        item: Json = {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": DONE, "annotations": []}],
        }
        if step:
            item = {
                "type": "function_call",
                "id": f"fc_{number}",
                "call_id": f"call_{number}",
                "name": step.tool,
                "arguments": json.dumps(step.arguments),
                "status": "completed",
            }
            if step.tool in namespaces:
                item["namespace"] = namespaces[step.tool]
        if step and step.tool == API_SEARCH:
            item = {
                "type": "tool_search_call",
                "id": f"ts_{number}",
                "call_id": f"call_{number}",
                "execution": "client",
                "arguments": step.arguments,
                "status": "completed",
            }
        response = {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": 1,
            "model": request.get("model"),
            "status": "completed",
            "output": [item],
            "usage": {
                "input_tokens": 10,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": 5,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": 15,
            },
        }
        if not request.get("stream"):
            self._json(response)
            return
        started = {**response, "status": "in_progress", "output": []}
        self._typed_events(
            [
                {"type": "response.created", "response": started},
                {"type": "response.output_item.added", "output_index": 0, "item": item},
                {"type": "response.output_item.done", "output_index": 0, "item": item},
                {"type": "response.completed", "response": response},
            ]
        )

    def _chat(self, request: Json) -> None:
        messages = request.get("messages", [])
        results = [_text(m.get("content")) for m in messages if m.get("role") == "tool"]
        tools = [tool.get("function", {}).get("name", "") for tool in request.get("tools", [])]
        step = self.model.decide(Turn(tools, results, _text(messages)))
        said: Json = {"role": "assistant", "content": DONE}
        if step:
            call = {"name": step.tool, "arguments": json.dumps(step.arguments)}
            number = len(self.model.turns)
            calls = [{"index": 0, "id": f"call_{number}", "type": "function", "function": call}]
            said = {"role": "assistant", "content": None, "tool_calls": calls}
        finish = "tool_calls" if step else "stop"
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        base = {"id": "chat_1", "created": 1, "model": request.get("model")}
        if not request.get("stream"):
            choice = {"index": 0, "message": said, "finish_reason": finish}
            completion = {**base, "object": "chat.completion", "choices": [choice], "usage": usage}
            self._json(completion)
            return
        chunk = {**base, "object": "chat.completion.chunk"}
        first = {"index": 0, "delta": said, "finish_reason": None}
        last = {"index": 0, "delta": {}, "finish_reason": finish}
        self._events(
            [
                (None, json.dumps({**chunk, "choices": [first]})),
                (None, json.dumps({**chunk, "choices": [last]})),
                (None, json.dumps({**chunk, "choices": [], "usage": usage})),
                (None, "[DONE]"),
            ]
        )

    def _gemini(self, request: Json, *, streamed: bool) -> None:
        tools = [
            declared.get("name", "")
            for tool in request.get("tools", [])
            for declared in tool.get("functionDeclarations", [])
        ]
        results = [
            json.dumps(part["functionResponse"].get("response"), ensure_ascii=False)
            for content in request.get("contents", [])
            for part in content.get("parts", [])
            if "functionResponse" in part
        ]
        step = self.model.decide(Turn(tools, results, _text(request.get("contents"))))
        part: Json = {"text": DONE}
        if step:
            part = {"functionCall": {"name": step.tool, "args": step.arguments}}
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
        content = {"role": "model", "parts": [part]}
        candidate = {"content": content, "finishReason": "STOP", "index": 0}
        answer = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"}
        if streamed:
            self._events([(None, json.dumps(answer))])
        else:
            self._json(answer)

    def _typed_events(self, events: list[Json]) -> None:
        self._events([(event["type"], json.dumps(event)) for event in events])

    def _events(self, events: list[tuple[str | None, str]]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for name, text in events:
            named = f"event: {name}\n" if name else ""
            self.wfile.write(f"{named}data: {text}\n\n".encode())

    def _json(self, value: Json, status: int = 200) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _loaded(tools: list[Json], blocks: list[Json]) -> list[str]:
    """The names of tools that may be called: of deferred ones those that the messages load."""
    names = [tool.get("name", "") for tool in tools if not tool.get("defer_loading")]
    for block in blocks:
        if block.get("type") == "tool_addition":
            names.append(block["tool"].get("definition", {}).get("name", ""))
        content = block.get("content")
        inner = content if isinstance(content, list) else []
        names += [one["tool_name"] for one in inner if one.get("type") == "tool_reference"]
    return names


def _text(content: object) -> str:
    """The text of a result, whose content is a text or blocks."""
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
