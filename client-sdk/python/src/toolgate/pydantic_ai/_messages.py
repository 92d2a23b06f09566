"""Pydantic AI's messages: as a history, and as this turn's intents."""

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

from toolgate._agents import SEARCH, estimated_tokens, intents_of
from toolgate.routing import Intent


def entries(messages: Sequence[ModelMessage]) -> Iterator[dict[str, Any]]:
    """The messages as `history.scan` reads them: calls and their answers, and nothing else."""
    for message in messages:
        if isinstance(message, ModelResponse):
            calls = [
                {"id": part.tool_call_id, "function": {"name": part.tool_name}}
                for part in message.parts
                if isinstance(part, ToolCallPart)
            ]
            yield {"role": "assistant", "tool_calls": calls}
        else:
            answers = [_answer(p) for p in message.parts if isinstance(p, ToolReturnPart)]
            yield {"role": "user", "content": answers}


def _answer(part: ToolReturnPart) -> dict[str, Any]:
    return {
        "type": "tool_result",
        "tool_use_id": part.tool_call_id,
        "content": part.model_response_str(wrap_if_error=False),
        "is_error": part.outcome != "success",
    }


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
