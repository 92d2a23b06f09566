"""Items of the Responses API: as a conversation, and as this turn's intents."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolgate._agents import SEARCH, carried, estimated_tokens, fits, intents_of
from toolgate.routing import Intent

Items = str | Sequence[Any]

_BLOCKS = frozenset(
    {"input_text", "input_image", "input_file", "input_audio", "output_text", "refusal"}
)
_FOREIGN = frozenset({"tool_calls", "parts", "method", "jsonrpc", "tool_call_id"})
"""Keys that no message of the Responses API has, and by which other APIs say what was called."""
_CALLS = ("function_call", "function_call_output")
# The items have no flag for a failed call, or one that did not run: the SDK answers in these words.
_FAILURE = re.compile(
    r"An error occurred while running the tool\.|Tool '[^']+' timed out after "
    r"|Tool execution was not approved\.$"
)


def entries(items: Items) -> Iterator[dict[str, Any]]:
    """The items that the service reads: calls, their answers, and texts of the user."""
    for item in _listed(items):
        kind = item.get("type")
        if kind == _CALLS[0]:
            yield {
                "type": kind,
                "call_id": carried(str(item.get("call_id", ""))),
                "name": carried(str(item.get("name", ""))),
            }
        elif kind == _CALLS[1]:
            output = carried(_text(item.get("output")))
            yield {
                "type": kind,
                "call_id": carried(str(item.get("call_id", ""))),
                "output": '{"error": "failed"}' if _is_failure(output) else output,
            }
        else:
            # As a text: whatever a user's message holds that looks like an answer is not read.
            role = str(item.get("role", ""))
            said = carried(_text(item.get("content"))) if role == "user" else ""
            yield {"role": carried(role), "content": said}


def whole(items: Items) -> list[dict[str, Any]] | None:
    """The items as they are sent to the model; None where the service can't be given them.

    Failed answers say so in a form that the service reads. Messages whose content is something
    else than texts and files, which could look like an answer, are not given to it, and neither
    are more than a call takes.
    """
    listed = [dict(item) for item in _listed(items)]
    if isinstance(items, list) and len(listed) < len(items):
        return None
    if not all(map(_is_plain, listed)) or not fits(listed):
        return None
    for item in listed:
        output = _text(item.get("output"))
        if item.get("type") == _CALLS[1] and _FAILURE.match(output):
            item["output"] = json.dumps({"error": output}, ensure_ascii=False)
    return listed


def _is_plain(item: Mapping[str, Any]) -> bool:
    try:
        json.dumps(item, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError):
        return False
    if item.get("type", "message") != "message":
        # Of others than the SDK's own only the user's could be forged, and these have a role.
        return "role" not in item
    content = item.get("content")
    if isinstance(content, str):
        return item.keys().isdisjoint(_FOREIGN)
    blocks = content if isinstance(content, list) else [None]
    kinds = (block.get("type") if isinstance(block, Mapping) else None for block in blocks)
    return all(kind in _BLOCKS for kind in kinds) and item.keys().isdisjoint(_FOREIGN)


def intents(items: Items) -> list[Intent]:
    """Texts of the user's last message and of a tool's answer since; empty without text.

    What a search found is loaded already, and a call that failed or was refused says nothing of
    what is wanted.
    """
    listed = _listed(items)
    names = {
        item.get("call_id"): item.get("name") for item in listed if item.get("type") == _CALLS[0]
    }
    observed = ""
    for item in reversed(listed):
        if item.get("role") == "user":
            return intents_of(_text(item.get("content")), observed)
        if item.get("type") == _CALLS[1] and not observed:
            found = names.get(item.get("call_id")) == SEARCH
            output = _text(item.get("output"))
            observed = "" if found or _is_failure(output) else output
    return intents_of("", observed)


def tokens(items: Items) -> int:
    """Returns an estimate of the items' tokens: a token for four bytes of text and arguments."""
    return estimated_tokens(
        _text(item.get(part))
        for item in _listed(items)
        for part in ("content", "name", "arguments", "output")
    )


def _is_failure(output: str) -> bool:
    """Returns True if an answer says that its call failed or was refused."""
    if _FAILURE.match(output):
        return True
    try:
        said = json.loads(output) if output.startswith("{") else None
    except ValueError:
        return False
    return isinstance(said, dict) and bool(said.get("error"))


def _listed(items: Items) -> list[Mapping[str, Any]]:
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    return [item for item in items if isinstance(item, Mapping)]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else json.dumps(content, default=str)
    texts = (block.get("text") for block in content if isinstance(block, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str))
