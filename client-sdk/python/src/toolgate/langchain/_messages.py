"""LangChain's messages: as a history, as this turn's intents, and the calls that are open."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage

from toolgate import history
from toolgate._agents import OBSERVATION_WEIGHT, SEARCH, Verdict, cut, estimated_tokens
from toolgate.history import History
from toolgate.routing import Intent

_FOREIGN = "toolgate_foreign"
"""Where a message's metadata names its calls of tools that the agent does not have."""


def read(messages: Sequence[AnyMessage], snapshot: Mapping[str, Any] | None) -> History:
    """What the messages say about tools."""
    return history.scan(map(_entry, messages), snapshot)


def intents(messages: Sequence[AnyMessage]) -> list[Intent]:
    """What the user said last, and what a tool answered since; empty when there is no text.

    What a search found is loaded already, and a call that failed or was refused says nothing of
    what is wanted.
    """
    found = []
    for message in reversed(messages):
        if isinstance(message, HumanMessage):
            found.append(Intent(cut(message.text)))
            break
        if isinstance(message, ToolMessage) and not found and _says_more(message):
            found.append(Intent(cut(message.text), OBSERVATION_WEIGHT))
    return [intent for intent in reversed(found) if intent.text.strip()]


def tokens(messages: Sequence[AnyMessage]) -> int:
    """Returns an estimate of the messages' tokens: a token for four bytes of text and arguments."""
    return estimated_tokens(_texts(messages))


def _texts(messages: Sequence[AnyMessage]) -> Iterator[str]:
    for message in messages:
        yield message.text
        if isinstance(message, AIMessage):
            for call in message.tool_calls:
                yield call["name"]
                yield json.dumps(call["args"], ensure_ascii=False, default=str)


def _says_more(message: ToolMessage) -> bool:
    return message.name != SEARCH and message.status != "error"


def open_calls(messages: Sequence[AnyMessage]) -> tuple[AIMessage | None, list[ToolCall]]:
    """Returns the model's last message, and those of its calls that nobody has answered."""
    answered: set[str | None] = set()
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            return message, [call for call in message.tool_calls if call["id"] not in answered]
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
    return None, []


def marked(message: AIMessage, known: Collection[str], answered: Collection[str]) -> AIMessage:
    """Returns the message with a mark on the calls of tools that are not known."""
    calls = [call for call in message.tool_calls if call["id"] not in answered]
    foreign = [call["id"] for call in calls if call["name"] not in known]
    if not foreign:
        return message
    metadata = {**message.response_metadata, _FOREIGN: foreign}
    return message.model_copy(update={"response_metadata": metadata})


def foreign_calls(message: AIMessage) -> list[str | None]:
    """Returns the identifiers of the calls that are marked."""
    found = message.response_metadata.get(_FOREIGN, [])
    return found if isinstance(found, list) else []


def renamed(message: AIMessage, meant: Mapping[str, Verdict]) -> AIMessage:
    """Returns the message with calls of the tools that the model meant.

    Args:
        message: The model's message.
        meant: What becomes of its calls, by their identifiers.
    """
    calls = [
        _as_meant(call, meant[call["id"] or ""]) if (call["id"] or "") in meant else call
        for call in message.tool_calls
    ]
    content = message.content
    if isinstance(content, list):
        content = [_block_as_meant(block, meant) for block in content]
    return message.model_copy(update={"tool_calls": calls, "content": content})


def _as_meant(call: ToolCall, verdict: Verdict) -> ToolCall:
    arguments = json.loads(verdict.arguments_json) if verdict.arguments_json else call["args"]
    return {**call, "name": verdict.tool, "args": arguments}


def _block_as_meant(block: Any, meant: Mapping[str, Verdict]) -> Any:
    # Providers' own blocks of calls are sent back beside `tool_calls`.
    if not isinstance(block, dict) or "name" not in block:
        return block
    verdict = meant.get(block.get("call_id") or block.get("id") or "")
    return block if verdict is None else {**block, "name": verdict.tool}


def _entry(message: AnyMessage) -> dict[str, Any]:
    if isinstance(message, AIMessage):
        calls = [
            {"id": call["id"], "function": {"name": call["name"]}} for call in message.tool_calls
        ]
        return {"role": "assistant", "content": _without_calls(message), "tool_calls": calls}
    if isinstance(message, ToolMessage):
        result: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": message.tool_call_id,
            "content": message.content,
        }
        if message.status == "error":
            result["is_error"] = True
        return {"role": "user", "content": [result]}
    # LangChain has results in tool messages only: whatever else looks like one is not read.
    return {"role": "user"}


def _without_calls(message: AIMessage) -> list[Any]:
    # LangChain repeats Anthropic's `tool_use` blocks in `tool_calls`.
    blocks = message.content if isinstance(message.content, list) else []
    return [b for b in blocks if not isinstance(b, dict) or b.get("type") != "tool_use"]
