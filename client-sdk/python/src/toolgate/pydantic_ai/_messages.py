"""Pydantic AI's messages: as a conversation, and as this turn's intents."""

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextContent,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from toolgate._agents import SEARCH, carried, estimated_tokens, intents_of
from toolgate.routing import Intent


def entries(messages: Sequence[ModelMessage]) -> Iterator[dict[str, Any]]:
    """The messages as OpenAI's Chat Completions have them: calls, answers, texts of the user."""
    for message in messages:
        if isinstance(message, ModelResponse):
            calls = [
                {
                    "id": carried(part.tool_call_id),
                    "function": {"name": carried(part.tool_name)},
                }
                for part in message.parts
                if isinstance(part, ToolCallPart)
            ]
            yield {"role": "assistant", "tool_calls": calls}
            continue
        for part in message.parts:
            if isinstance(part, ToolReturnPart):
                yield _answer(part)
            elif isinstance(part, UserPromptPart):
                # As a text: whatever in it looks like an answer is not read.
                yield {"role": "user", "content": carried(_text(part))}
            else:
                yield {"role": "user"}


def _answer(part: ToolReturnPart) -> dict[str, Any]:
    answer = {
        "role": "tool",
        "tool_call_id": carried(part.tool_call_id),
        "content": carried(part.model_response_str(wrap_if_error=False)),
    }
    return answer if part.outcome == "success" else {**answer, "status": "error"}


def intents(messages: Sequence[ModelMessage]) -> list[Intent]:
    """What the user said last, and what a tool answered since; empty when there is no text.

    What a search found is loaded already, and a call that failed or was refused says nothing of
    what is wanted.
    """
    observed = ""
    for message in reversed(messages):
        for part in reversed(message.parts):
            if isinstance(part, UserPromptPart):
                return intents_of(_text(part), observed)
            if isinstance(part, ToolReturnPart) and not observed and _says_more(part):
                observed = part.model_response_str(wrap_if_error=False)
    return intents_of("", observed)


def tokens(messages: Sequence[ModelMessage]) -> int:
    """Returns an estimate of the messages' tokens: a token for four bytes of text and arguments."""
    return estimated_tokens(_said(part) for message in messages for part in message.parts)


def _said(part: Any) -> str:
    if isinstance(part, UserPromptPart):
        return _text(part)
    if isinstance(part, ToolCallPart):
        return part.tool_name + part.args_as_json_str()
    if isinstance(part, ToolReturnPart):
        return part.model_response_str(wrap_if_error=False)
    content = getattr(part, "content", "")
    return content if isinstance(content, str) else ""


def _says_more(part: ToolReturnPart) -> bool:
    return part.tool_name != SEARCH and part.outcome == "success"


def _text(part: UserPromptPart) -> str:
    if isinstance(part.content, str):
        return part.content
    texts = (one.content if isinstance(one, TextContent) else one for one in part.content)
    return "\n".join(text for text in texts if isinstance(text, str))
