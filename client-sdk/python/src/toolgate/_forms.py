"""Conversations in the form of a provider's API, and what Route added to them.

Frameworks' messages are read as those of Chat Completions first ("entries"), of which each API's
messages are made.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolgate.rendering import ModelRequest

_TEXTS = ("content", "output", "parts")
"""Where an API's message has its text or its parts."""


@dataclass(frozen=True, slots=True)
class Form:
    """A conversation in an API's form."""

    items: list[dict[str, Any]]
    """The API's messages."""
    owners: list[int]
    """The entry that each was made of, by its place."""


@dataclass(slots=True)
class Additions:
    """Additions of Route to a conversation, by the places of the entries."""

    texts: dict[int, str] = field(default_factory=dict)
    """Texts at the end of entries."""
    blocks: dict[int, list[Any]] = field(default_factory=dict)
    """Blocks that add tools, behind entries: Anthropic's of a system message, OpenAI's items."""


def formed(entries: Sequence[Mapping[str, Any]], api: str) -> Form:
    """Returns entries in the form of an API."""
    names = {
        call["id"]: call["function"]["name"]
        for entry in entries
        for call in entry.get("tool_calls") or ()
    }
    items: list[dict[str, Any]] = []
    owners: list[int] = []
    for place, entry in enumerate(entries):
        made = _items(entry, api, names)
        items += made
        owners += [place] * len(made)
    return Form(items, owners)


def added(request: ModelRequest, sent: Form) -> Additions | None:
    """Returns what Route added to a conversation; None where its answer is not understood."""
    additions = Additions()
    place = 0
    for item in request.messages:
        text = _extension(sent.items[place], item) if place < len(sent.items) else None
        if text is not None:
            _append(additions.texts, sent.owners[place], text)
            place += 1
            continue
        if place == 0:
            return None
        behind = sent.owners[place - 1]
        content = item.get("content")
        if item.get("type") == "additional_tools":
            additions.blocks.setdefault(behind, []).append(item)
        elif item.get("role") == "system" and isinstance(content, list):
            additions.blocks.setdefault(behind, []).extend(content)
        elif item.get("role") == "user" and (text := _extension({}, item)) is not None:
            _append(additions.texts, behind, text)
        else:
            return None
    return additions if place == len(sent.items) else None


def chat_definition(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an API's definition of a tool as Chat Completions have it."""
    if "function" in definition:
        return dict(definition)
    schemas = (definition.get(key) for key in ("parameters", "input_schema"))
    schema = next((schema for schema in schemas if schema is not None), {"type": "object"})
    function = {
        "name": str(definition.get("name", "")),
        "description": str(definition.get("description", "")),
        "parameters": _in_lower_case(schema),
    }
    return {"type": "function", "function": function}


def _in_lower_case(schema: Any) -> Any:
    """Returns a schema with the types of JSON Schema, which Gemini writes in upper case."""
    if isinstance(schema, list):
        return [_in_lower_case(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        key: part.lower() if key == "type" and isinstance(part, str) else _in_lower_case(part)
        for key, part in schema.items()
    }


def own_form(definitions: Sequence[Mapping[str, Any]], api: str) -> list[dict[str, Any]]:
    """Returns definitions of Chat Completions in the form of an API."""
    functions = [definition["function"] for definition in definitions]
    if api == "anthropic":
        return [
            {
                "name": one["name"],
                "description": one.get("description", ""),
                "input_schema": one["parameters"],
            }
            for one in functions
        ]
    if api == "openai_responses":
        return [{"type": "function", **one} for one in functions]
    if api == "gemini":
        renamed = {"parameters": "parametersJsonSchema"}
        return [{renamed.get(key, key): part for key, part in one.items()} for one in functions]
    return [dict(definition) for definition in definitions]


def _append(texts: dict[int, str], place: int, text: str) -> None:
    if text:
        texts[place] = texts.get(place, "") + text


def _extension(before: Mapping[str, Any], after: Mapping[str, Any]) -> str | None:
    """Returns the text at the end of a message; None if it is another message."""
    if before == after:
        return ""
    if before:
        same = all(before.get(key) == after.get(key) for key in ("role", "type", "call_id"))
        if not same:
            return None
        if after.get("role") in ("assistant", "model") or after.get("type") == "function_call":
            return ""  # Calls, which were put into envelopes.
    for key in _TEXTS:
        new, old = after.get(key), before.get(key, [] if isinstance(after.get(key), list) else "")
        if isinstance(new, str) and isinstance(old, str) and new.startswith(old):
            return new[len(old) :] if before else f"\n\n{new}"
        if isinstance(new, list) and isinstance(old, list) and _begins(new, old):
            texts = [part.get("text") for part in new[len(old) :]]
            if all(isinstance(text, str) for text in texts):
                return "".join(f"\n\n{text}" for text in texts)
    return None


def _begins(new: Sequence[Any], old: Sequence[Any]) -> bool:
    """Returns True if parts begin with others, or with answers to calls in envelopes."""
    pairs = zip(new, old, strict=False)
    key = "functionResponse"
    return len(new) >= len(old) and all(a == b or (key in a and key in b) for a, b in pairs)


def _items(entry: Mapping[str, Any], api: str, names: Mapping[str, str]) -> list[dict[str, Any]]:
    if api == "anthropic":
        return [_anthropic(entry)]
    if api == "openai_responses":
        return _responses(entry)
    if api == "gemini":
        return [_gemini(entry, names)]
    return [dict(entry)]


def _anthropic(entry: Mapping[str, Any]) -> dict[str, Any]:
    content = entry.get("content") or ""
    if entry["role"] == "tool":
        answered = {"tool_use_id": entry["tool_call_id"], "content": content}
        failed = {"is_error": True} if "status" in entry else {}
        return {"role": "user", "content": [{"type": "tool_result", **answered, **failed}]}
    if entry["role"] != "assistant":
        # No text of a system message is one for the service, which would put tools into it.
        return {"role": "user", "content": content}
    calls = entry.get("tool_calls")
    if not calls:
        return {"role": "assistant", "content": content}
    said = content if isinstance(content, list) else [{"type": "text", "text": content}]
    uses = [
        {
            "type": "tool_use",
            "id": call["id"],
            "name": call["function"]["name"],
            "input": _arguments(call),
        }
        for call in calls
    ]
    return {"role": "assistant", "content": [*(said if content else []), *uses]}


def _responses(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    text = _text(entry.get("content"))
    if entry["role"] == "tool":
        output = _failure(text) if "status" in entry else text
        item = {"type": "function_call_output", "call_id": entry["tool_call_id"]}
        return [{**item, "output": output}]
    calls = [
        {
            "type": "function_call",
            "call_id": call["id"],
            "name": call["function"]["name"],
            "arguments": call["function"]["arguments"],
        }
        for call in entry.get("tool_calls") or ()
    ]
    said = [{"role": entry["role"], "content": text}] if text or not calls else []
    return [*said, *calls]


def _failure(text: str) -> str:
    """Returns a failure as a JSON object with an `error`, as a refusal of Gate's already is."""
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        read = None
    is_error = isinstance(read, dict) and bool(read.get("error"))
    return text if is_error else json.dumps({"error": text}, ensure_ascii=False)


def _gemini(entry: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    text = _text(entry.get("content"))
    if entry["role"] == "tool":
        called = entry["tool_call_id"]
        answer = {"error" if "status" in entry else "output": text}
        response = {"id": called, "name": names.get(called, ""), "response": answer}
        return {"role": "user", "parts": [{"functionResponse": response}]}
    if entry["role"] != "assistant":
        return {"role": "user", "parts": [{"text": text}]}
    calls = [
        {
            "functionCall": {
                "id": call["id"],
                "name": call["function"]["name"],
                "args": _arguments(call),
            }
        }
        for call in entry.get("tool_calls") or ()
    ]
    said = [{"text": text}] if text or not calls else []
    return {"role": "model", "parts": [*said, *calls]}


def _arguments(call: Mapping[str, Any]) -> Any:
    try:
        read = json.loads(call["function"]["arguments"])
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = (block.get("text") for block in blocks if isinstance(block, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str))
