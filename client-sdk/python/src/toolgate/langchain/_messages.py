"""LangChain's messages: as a history, as this turn's intents, and the calls that are open."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage

from toolgate import history
from toolgate._agents import OBSERVATION_WEIGHT, SEARCH, cut
from toolgate.history import History
from toolgate.routing import Intent


def read(messages: Sequence[AnyMessage], snapshot: Mapping[str, Any] | None) -> History:
    """What the messages say about tools."""
    return history.scan(map(_entry, messages), snapshot)


def intents(messages: Sequence[AnyMessage]) -> list[Intent]:
    """What the user said last, and what a tool answered since; empty when there is no text.

    What a search found is loaded already, and says nothing of what is wanted.
    """
    found = []
    for message in reversed(messages):
        if isinstance(message, HumanMessage):
            found.append(Intent(cut(message.text)))
            break
        if isinstance(message, ToolMessage) and not found and message.name != SEARCH:
            found.append(Intent(cut(message.text), OBSERVATION_WEIGHT))
    return [intent for intent in reversed(found) if intent.text.strip()]


def open_calls(messages: Sequence[AnyMessage]) -> list[ToolCall]:
    """The calls of the model's last message that nobody has answered."""
    answered: set[str | None] = set()
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            return [call for call in message.tool_calls if call["id"] not in answered]
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
    return []


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
