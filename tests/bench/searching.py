"""The scripted model of the forty messages, for frameworks that have the model search for tools.

Requests are kept as the model reads them, in one form for all: that of Chat Completions.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from forty_messages import CALL, CALLS_EVERY, Request, Talk, arguments_of, described, texts

Json = dict[str, Any]

SELECTION = "ToolSelectionResponse"
"""The schema that LangChain's `LLMToolSelectorMiddleware` has the model answer by."""
MOST_REFERENCES = 5
"""The tools that Anthropic's search finds: "3-5 most relevant", says its documentation."""


class SearchingTalk(Talk):
    """Searches once with the user's message where the tool that it is about is not shown."""

    def __init__(self) -> None:
        super().__init__()
        self._searched = -1
        self._called = -1

    def answer(self, tools: list[Any], messages: list[Any]) -> tuple[str, Json] | None:
        request = self.keep(tools, messages)
        right, text = texts()[self._turn]
        if SELECTION in request.tools:
            return SELECTION, {"tools": [right]}
        if right in shown(request):
            if self._turn % CALLS_EVERY or self._called == self._turn:
                return None
            self._called = self._turn
            given = arguments_of(right)
            is_enveloped = CALL in request.tools
            return (CALL, {"name": right, "arguments": given}) if is_enveloped else (right, given)
        if self._searched == self._turn:
            return None
        self._searched = self._turn
        return search_call(tools, right, text)


def search_call(tools: list[Json], right: str, text: str) -> tuple[str, Json] | None:
    """The search that is among the tools, with the message as its query.

    OpenAI's takes no query: the model names what it wants loaded, by what it sees of it.
    """
    for tool in tools:
        name = tool.get("function", tool).get("name", tool["type"])
        if name == "tool_search":
            return name, {"paths": [path_to(right, tools)]}
        if name == "search_tools":
            return name, {"queries": [text]}
        if name in ("retrieve_tools", "tool_search_tool_bm25"):
            return name, {"query": text}
    return None


def path_to(right: str, tools: list[Json]) -> str:
    """The namespace of the tool, or the tool itself where there are none."""
    spaces = [tool["name"] for tool in tools if tool["type"] == "namespace"]
    return next((space for space in spaces if right.startswith(f"mcp__{space}__")), right)


def shown(request: Request) -> set[str]:
    """The names of the tools whose definitions the request has, parameters included."""
    body = json.loads(request.text)
    loaded = [tool for message in body["messages"] for tool in message.get("tools", [])]
    functions = [tool.get("function", {}) for tool in [*body["tools"], *loaded]]
    named = {function["name"] for function in functions if "parameters" in function}
    return named | set(described(request))


def in_one_form(request: Request) -> Request:
    """The request without what only some frameworks write, such as nulls and `strict`."""
    body = json.loads(request.text)
    plain = {
        "tools": [_plain_tool(tool) for tool in body["tools"]],
        "messages": [_plain_message(message) for message in body["messages"]],
    }
    text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    return Request(request.turn, request.is_first, request.tools, text)


def _plain_tool(tool: Json) -> Json:
    if "function" not in tool:
        return tool
    function = tool["function"]
    return definition(function["name"], function.get("description"), function.get("parameters"))


def definition(name: str, description: str | None, parameters: Json | None) -> Json:
    """A tool as Chat Completions take it."""
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": _without_nulls(function)}


def _plain_message(message: Json) -> Json:
    plain = _without_nulls(
        {key: message.get(key) for key in ("role", "content", "tool_call_id", "tools")}
    )
    if isinstance(plain.get("content"), list):
        plain["content"] = "".join(block.get("text", "") for block in plain["content"])
    if calls := message.get("tool_calls"):
        plain["tool_calls"] = [
            {"id": call["id"], "type": "function", "function": call["function"]} for call in calls
        ]
    return plain


def _without_nulls(fields: Json) -> Json:
    return {key: value for key, value in fields.items() if value is not None}


def called(name: str, arguments: Json | str, call_id: str) -> Json:
    """A call as a message of Chat Completions."""
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    function = {"name": name, "arguments": written}
    calls = [{"id": call_id, "type": "function", "function": function}]
    return {"role": "assistant", "tool_calls": calls}


def bm25(query: str, documents: dict[str, str], most: int) -> list[str]:
    """The names of the documents that match best, by BM25 with its usual constants."""
    k1, b = 1.2, 0.75
    counted = {name: Counter(_words(text)) for name, text in documents.items()}
    average = sum(words.total() for words in counted.values()) / len(counted)
    having = Counter(word for words in counted.values() for word in words)
    scores = dict.fromkeys(documents, 0.0)
    for word in set(_words(query)):
        rarity = math.log(1 + (len(counted) - having[word] + 0.5) / (having[word] + 0.5))
        for name, words in counted.items():
            often = words[word]
            length = 1 - b + b * words.total() / average
            scores[name] += rarity * often * (k1 + 1) / (often + k1 * length)
    best = sorted(scores, key=lambda name: -scores[name])[:most]
    return [name for name in best if scores[name] > 0]


def _words(text: str) -> Sequence[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def text_of(tool: Json) -> str:
    """Returns what Anthropic's search reads: names and descriptions, those of arguments too."""
    return " ".join(_texts(definition_of_anthropic(tool)["function"]))


def definition_of_anthropic(tool: Json) -> Json:
    """A tool of Anthropic's Messages as Chat Completions take it."""
    return definition(tool["name"], tool.get("description"), tool["input_schema"])


def _texts(function: Json) -> Iterator[str]:
    yield function["name"]
    yield function.get("description", "")
    for name, schema in function["parameters"].get("properties", {}).items():
        yield name
        yield str(schema.get("description", "")) if isinstance(schema, dict) else ""
