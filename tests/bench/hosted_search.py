"""Scripted endpoints of the two providers that execute searches for tools themselves.

They answer as OpenAI's "Tool search" and Anthropic's "Tool search tool" document it: the search and
what it found are in the answer, before the call. What the model reads after its search is kept as a
request of its own, though no client sent it.
"""

import json
from typing import Any

import httpx2
from anthropic_api import AnthropicApi
from scripted_answers import ANSWER
from searching import (
    MOST_REFERENCES,
    Json,
    SearchingTalk,
    bm25,
    called,
    definition,
    definition_of_anthropic,
    text_of,
)


class ResponsesApi:
    """OpenAI's Responses with its hosted search."""

    def __init__(self, talk: SearchingTalk) -> None:
        self._talk = talk
        self.searches = 0
        self._items = 0

    def transport(self) -> httpx2.MockTransport:
        """The API for clients that take a transport of HTTP."""
        return httpx2.MockTransport(self._respond)

    def _respond(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        response = {
            "id": "response",
            "object": "response",
            "created_at": 1,
            "status": "completed",
            "model": body["model"],
            "output": self._output(body),
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }
        return httpx2.Response(200, json=response)

    def _output(self, body: Json) -> list[Json]:
        output: list[Json] = []
        while True:
            tools = [seen_tool(tool) for tool in body.get("tools", [])]
            messages = [seen_item(item) for item in [*body["input"], *output]]
            call = self._talk.answer(tools, messages)
            self._items += 1
            if call is None:
                text = {"type": "output_text", "text": ANSWER, "annotations": []}
                message = {"type": "message", "role": "assistant", "content": [text]}
                return [*output, self._item(message)]
            if call[0] != "tool_search":
                return [*output, self._item(function_call(call, body["tools"], self._items))]
            self.searches += 1
            found = loaded(call[1]["paths"], body["tools"])
            search = {"type": "tool_search_call", "execution": "server", "call_id": None}
            result = {"type": "tool_search_output", "execution": "server", "call_id": None}
            output.append(self._item({**search, "arguments": call[1]}))
            output.append(self._item({**result, "tools": found}, "found"))

    def _item(self, item: Json, kind: str = "item") -> Json:
        return {"id": f"{kind}_{self._items}", "status": "completed", **item}


def function_call(call: tuple[str, Json], tools: list[Json], number: int) -> Json:
    """A call as an item. A deferred tool without a namespace is its own."""
    name, arguments = call
    item = {"type": "function_call", "call_id": f"call_{number}", "name": name}
    for tool in tools:
        if tool["type"] == "namespace" and name.startswith(f"mcp__{tool['name']}__"):
            item |= {"namespace": tool["name"], "name": name.removeprefix(f"mcp__{tool['name']}__")}
        elif tool.get("name") == name and tool.get("defer_loading"):
            item |= {"namespace": name}
    return {**item, "arguments": json.dumps(arguments)}


def loaded(paths: list[str], tools: list[Json]) -> list[Json]:
    """The definitions behind the paths: of a namespace, all that it has."""
    return [tool for tool in tools if tool.get("name") in paths]


def seen_tool(tool: Json) -> Json:
    """Returns what the model sees of a tool that a request has, before any search.

    "The model still sees the function name and description", of a namespace its own alone.
    """
    match tool["type"]:
        case "namespace":
            return {key: tool[key] for key in ("type", "name", "description")}
        case "function" if tool.get("defer_loading"):
            return definition(tool["name"], tool.get("description"), None)
        case "function":
            return defined(tool)
        case _:
            return tool


def defined(tool: Json, space: str = "") -> Json:
    """A function with its parameters, as Chat Completions take it."""
    name = f"mcp__{space}__{tool['name']}" if space else tool["name"]
    return definition(name, tool.get("description"), tool.get("parameters"))


def seen_item(item: Json) -> Json:
    """An item of a request as a message of Chat Completions."""
    match item.get("type", "message"):
        case "function_call":
            name, space = item["name"], item.get("namespace") or item["name"]
            full = name if space == name else f"mcp__{space}__{name}"
            return called(full, item["arguments"], item["call_id"])
        case "function_call_output":
            return {"role": "tool", "tool_call_id": item["call_id"], "content": item["output"]}
        case "tool_search_call":
            return called("tool_search", item["arguments"], item["id"])
        case "tool_search_output":
            return {
                "role": "tool",
                "tools": [one for tool in item["tools"] for one in spread(tool)],
            }
        case "additional_tools":
            return {"role": item["role"], "tools": [defined(tool) for tool in item["tools"]]}
        case _:
            return {"role": item["role"], "content": item["content"]}


def spread(tool: Json) -> list[Json]:
    """The definitions that a loaded tool or namespace comes to."""
    if tool["type"] != "namespace":
        return [defined(tool)]
    return [defined(one, tool["name"]) for one in tool["tools"]]


class MessagesApi(AnthropicApi):
    """Anthropic's Messages with its hosted BM25 search."""

    def __init__(self, talk: SearchingTalk) -> None:
        super().__init__()
        self._talk = talk
        self.searches = 0

    def answer(self, request: Json, betas: str) -> Json:
        self.requests.append(request)
        content, number = self._content(request), len(self.requests)
        return {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": request["model"],
            "content": content,
            "stop_reason": "tool_use" if content[-1]["type"] == "tool_use" else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }

    def _content(self, request: Json) -> list[Json]:
        everything = request.get("tools", [])
        deferred = {tool["name"]: tool for tool in everything if tool.get("defer_loading")}
        tools = [
            definition_of_anthropic(tool) if "input_schema" in tool else tool
            for tool in everything
            if not tool.get("defer_loading")
        ]
        content: list[Json] = []
        while True:
            said = [*request["messages"], *([{"role": "assistant", "content": content}])]
            messages = [one for message in said for one in seen_blocks(message, deferred)]
            call = self._talk.answer(tools, messages)
            number = f"{len(self.requests)}_{len(content)}"
            if call is None:
                return [*content, {"type": "text", "text": ANSWER}]
            if not call[0].startswith("tool_search_tool"):
                made = {"type": "tool_use", "id": f"toolu_{number}", "name": call[0]}
                return [*content, {**made, "input": call[1]}]
            self.searches += 1
            texts = {name: text_of(tool) for name, tool in deferred.items()}
            names = bm25(call[1]["query"], texts, MOST_REFERENCES)
            content += search_blocks(call, names, f"srvtoolu_{number}")


def search_blocks(call: tuple[str, Json], names: list[str], call_id: str) -> list[Json]:
    """A search and what it found, as blocks of an answer."""
    references = [{"type": "tool_reference", "tool_name": name} for name in names]
    found = {"type": "tool_search_tool_search_result", "tool_references": references}
    return [
        {"type": "server_tool_use", "id": call_id, "name": call[0], "input": call[1]},
        {"type": "tool_search_tool_result", "tool_use_id": call_id, "content": found},
    ]


def seen_blocks(message: Json, deferred: dict[str, Json]) -> list[Json]:
    """A message as messages of Chat Completions; references are the definitions they stand for."""
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [_seen_block(message["role"], block, deferred) for block in blocks]


def _seen_block(role: str, block: Json, deferred: dict[str, Json]) -> Json:
    match block["type"]:
        case "text":
            return {"role": role, "content": block["text"]}
        case "tool_use" | "server_tool_use":
            return called(block["name"], block["input"], block["id"])
        case "tool_result":
            return {"role": "tool", "tool_call_id": block["tool_use_id"], "content": _text(block)}
        case "tool_search_tool_result":
            names = [one["tool_name"] for one in block["content"]["tool_references"]]
            found = [definition_of_anthropic(deferred[name]) for name in names]
            return {"role": "tool", "tool_call_id": block["tool_use_id"], "tools": found}
        case "tool_addition":
            return {"role": role, "tools": [definition_of_anthropic(block["tool"]["definition"])]}
        case "tool_removal":
            return {"role": role, "content": json.dumps(block)}
        case kind:
            raise ValueError(f"no block is known as {kind}")


def _text(block: Json) -> str:
    content: Any = block["content"]
    return content if isinstance(content, str) else "".join(one["text"] for one in content)
