"""Requests of hosts as prompts: their texts in the order of a provider's cache, and the tokens."""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import tiktoken
from tiktoken.load import load_tiktoken_bpe

Json = dict[str, Any]

PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
UNREAD = {
    "cache_control",
    "defer_loading",
    "eager_input_streaming",
    "internal_chat_message_metadata_passthrough",
}
"""Fields that no model reads."""


@cache
def encoding() -> tiktoken.Encoding:
    """cl100k, by the vocabulary that the product's own counter ships.

    Raises:
        FileNotFoundError: The workspace was not built here.
    """
    pattern = ".cargo/registry/src/*/tiktoken-rs-*/assets/cl100k_base.tiktoken"
    vocabulary = next(iter(sorted(Path.home().glob(pattern))), None)
    if vocabulary is None:
        raise FileNotFoundError("no cl100k_base.tiktoken: build the workspace first")
    return tiktoken.Encoding(
        "cl100k",
        pat_str=PATTERN,
        mergeable_ranks=load_tiktoken_bpe(str(vocabulary)),
        special_tokens={},
    )


def tokens(text: str) -> int:
    """The cl100k tokens of a text."""
    return len(encoding().encode_ordinary(text))


@dataclass(frozen=True)
class Prompt:
    """A request as a model reads it."""

    api: str
    model: str
    # Each definition of `tools` that is loaded from the start.
    tools: list[str]
    text: str

    @property
    def tool_tokens(self) -> int:
        """The tokens of `tools`."""
        return sum(map(tokens, self.tools))


def prompt_of(path: str, body: Json) -> Prompt | None:
    """A request as a prompt; none if it is no chat, or has no tools."""
    if path.endswith("/messages"):
        return _prompt("anthropic", body, _anthropic(body))
    if path.endswith("/responses"):
        items = body.get("input")
        parts = [body.get("instructions"), *(items if isinstance(items, list) else [items])]
        return _prompt("openai_responses", body, (_functions(body.get("tools", [])), parts))
    if path.endswith("/chat/completions"):
        return _prompt("openai_chat", body, (body.get("tools", []), body.get("messages", [])))
    if "enerateContent" in path:
        found = re.search(r"models/([^:]+)", path)
        declared = [
            one for tool in body.get("tools", []) for one in tool.get("functionDeclarations", [])
        ]
        parts = [body.get("systemInstruction"), *body.get("contents", [])]
        named = {"model": found.group(1) if found else ""}
        return _prompt("gemini", named, (declared, parts))
    return None


def _prompt(api: str, body: Json, parts: tuple[list[Json], list[Any]]) -> Prompt | None:
    tools = [_read(tool) for tool in parts[0]]
    if not tools:
        return None
    said = [_read(part) for part in parts[1] if part is not None]
    text = "\n".join([*tools, *said])
    return Prompt(api, body.get("model", ""), tools, text)


def _functions(tools: list[Json]) -> list[Json]:
    """The definitions of a request to Responses, each function of a namespace for itself."""
    found = []
    for tool in tools:
        inner = tool.get("tools", []) if tool.get("type") == "namespace" else []
        if inner:
            space = {name: value for name, value in tool.items() if name != "tools"}
            found += [{**one, "namespace": space["name"]} for one in inner]
        else:
            found.append(tool)
    return [tool for tool in found if not tool.get("defer_loading")]


def _anthropic(body: Json) -> tuple[list[Json], list[Any]]:
    """Tools that are loaded, and the rest; a reference is replaced by the definition."""
    deferred = {tool["name"]: tool for tool in body.get("tools", []) if tool.get("defer_loading")}

    def resolved(value: Any) -> Any:
        if isinstance(value, list):
            return [resolved(one) for one in value]
        if isinstance(value, dict):
            if value.get("type") == "tool_reference":
                return deferred.get(value["tool_name"], value)
            return {name: resolved(one) for name, one in value.items()}
        return value

    system = body.get("system") or []
    system = system if isinstance(system, list) else [system]
    loaded = [tool for tool in body.get("tools", []) if not tool.get("defer_loading")]
    return loaded, [*system, *(_in_blocks(resolved(one)) for one in body.get("messages", []))]


def _in_blocks(message: Json) -> Json:
    """A message whose text is a block: hosts write the same message now so, now as a text."""
    if not isinstance(message.get("content"), str):
        return message
    return {**message, "content": [{"type": "text", "text": message["content"]}]}


def _read(value: object) -> str:
    """JSON without escapes, as `server/llm/src/price.rs` counts it."""
    if isinstance(value, str):
        return value
    text = json.dumps(_without(value), ensure_ascii=False, separators=(",", ":"))
    return text.replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\")


def _without(value: object) -> object:
    if isinstance(value, dict):
        return {name: _without(one) for name, one in value.items() if name not in UNREAD}
    return [_without(one) for one in value] if isinstance(value, list) else value
