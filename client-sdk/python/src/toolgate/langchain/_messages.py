"""LangChain's messages: as a conversation, as this turn's intents, and the calls that are open."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)

from toolgate._agents import OBSERVATION_WEIGHT, SEARCH, Verdict, cut, estimated_tokens
from toolgate.routing import Intent

_FOREIGN = "toolgate_foreign"
"""Where a message's metadata names its calls of tools that the agent does not have."""
_TEXT_CHARS = 64 * 1024
"""The most characters of a text; a longer result is never read as an error."""
_CHAT_BYTES = 768 * 1024
"""The most bytes of a conversation, which leaves room for a snapshot beside it."""
_ARGUMENTS = frozenset({"args", "arguments", "input"})
"""Where providers' own blocks have a call's arguments."""
_PROVIDERS_OWN = frozenset({"tool_search_tool_result", "mcp_tool_use", "mcp_tool_result"})
"""Blocks of the model's messages that say what a provider found or called by itself."""


def chat(messages: Sequence[AnyMessage]) -> list[dict[str, Any]]:
    """Returns the messages as those of OpenAI's chat completions, one for one.

    Only what tool messages say is a result, whatever else looks like one. Texts are cut where they
    are too long, all the shorter the more there are.
    """
    chars = _TEXT_CHARS
    while True:
        entries = [_entry(message, chars) for message in messages]
        if not chars or len(json.dumps(entries, ensure_ascii=False).encode()) <= _CHAT_BYTES:
            return entries
        chars //= 4


def intents(messages: Sequence[AnyMessage]) -> list[Intent]:
    """Returns the user's last text and a tool's answer since; empty when there is no text.

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
        meant: Outcomes of its calls, by their identifiers.
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
    if verdict is None:
        return block
    block = {**block, "name": verdict.tool}
    if verdict.arguments_json:
        for key in _ARGUMENTS & block.keys():
            is_text = isinstance(block[key], str)
            block[key] = verdict.arguments_json if is_text else json.loads(verdict.arguments_json)
    return block


def _entry(message: AnyMessage, chars: int) -> dict[str, Any]:
    text = _sendable(message.text, chars)
    if isinstance(message, AIMessage):
        blocks = _blocks(message) if chars == _TEXT_CHARS else []
        content: Any = [{"type": "text", "text": text}, *blocks] if blocks else text
        entry: dict[str, Any] = {"role": "assistant", "content": content}
        calls = [_call(call, chars) for call in message.tool_calls]
        return {**entry, "tool_calls": calls} if calls else entry
    if isinstance(message, ToolMessage):
        answered = _sendable(message.tool_call_id)
        entry = {"role": "tool", "tool_call_id": answered, "content": text}
        return {**entry, "status": "error"} if message.status == "error" else entry
    return {"role": "system" if isinstance(message, SystemMessage) else "user", "content": text}


def _call(call: ToolCall, chars: int) -> dict[str, Any]:
    written = json.dumps(call["args"], ensure_ascii=False, default=str)
    function = {
        "name": _sendable(call["name"]),
        "arguments": _sendable(written) if len(written) <= chars else "{}",
    }
    return {"id": _sendable(call["id"] or ""), "type": "function", "function": function}


def _blocks(message: AIMessage) -> list[Any]:
    blocks = message.content if isinstance(message.content, list) else []
    kept = [b for b in blocks if isinstance(b, dict) and b.get("type") in _PROVIDERS_OWN]
    return kept if len(json.dumps(kept, default=str)) <= _TEXT_CHARS else []


def _sendable(text: str, chars: int = _TEXT_CHARS) -> str:
    """Returns the text without lone surrogates, which JSON can carry and the wire can't."""
    return text[:chars].encode(errors="ignore").decode()
