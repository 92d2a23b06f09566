"""Pydantic AI's messages: as a conversation, and as this turn's intents."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    RetryPromptPart,
    SystemPromptPart,
    TextContent,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from toolgate import _agents
from toolgate._agents import CALL_TOOL, SEARCH, carried, estimated_tokens, fits, intents_of
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


def whole(messages: Sequence[ModelMessage]) -> list[dict[str, Any]] | None:
    """The messages as Chat Completions have them: one for each response, and for each other part.

    None where they are more than a call takes.
    """
    sent = [entry for message in messages for entry in _whole(message)]
    return sent if fits(sent) else None


def _whole(message: ModelMessage) -> Iterator[dict[str, Any]]:
    if not isinstance(message, ModelResponse):
        yield from map(_part, message.parts)
        return
    said = "\n".join(part.content for part in message.parts if isinstance(part, TextPart))
    calls = [
        {
            "id": carried(part.tool_call_id),
            "type": "function",
            "function": {
                "name": carried(part.tool_name),
                "arguments": carried(part.args_as_json_str()),
            },
        }
        for part in message.parts
        if isinstance(part, ToolCallPart)
    ]
    yield {"role": "assistant", "content": carried(said), "tool_calls": calls}


def _part(part: ModelRequestPart) -> dict[str, Any]:
    if isinstance(part, ToolReturnPart):
        return _answer(part)
    if isinstance(part, UserPromptPart):
        return {"role": "user", "content": carried(_text(part))}
    if isinstance(part, RetryPromptPart) and part.tool_name is not None:
        return {
            "role": "tool",
            "tool_call_id": carried(part.tool_call_id),
            "content": carried(part.model_response()),
            "status": "error",
        }
    if isinstance(part, RetryPromptPart):
        return {"role": "user", "content": carried(part.model_response())}
    return {"role": "system", "content": ""}


def with_additions(
    messages: Sequence[ModelMessage],
    texts: Mapping[int, str],
    wraps: Callable[[str], bool],
) -> list[ModelMessage]:
    """The messages to send: with what a strategy added, and with calls as the model made them.

    Args:
        messages: The messages.
        texts: The additions, by the places of the entries of `whole`.
        wraps: True if a tool is called through the envelope.
    """
    place = 0
    sent: list[ModelMessage] = []
    for message in messages:
        if isinstance(message, ModelResponse):
            parts = [_as_sent(part, wraps) for part in message.parts]
            sent.append(replace(message, parts=parts))
            place += 1
            continue
        extended: list[ModelRequestPart] = []
        for part in message.parts:
            extended += _extended(part, texts.get(place, ""))
            place += 1
        sent.append(replace(message, parts=extended))
    return sent


def _as_sent(part: ModelResponsePart, wraps: Callable[[str], bool]) -> ModelResponsePart:
    # Calls of the framework's own kinds are none of Toolgate's tools.
    if not isinstance(part, ToolCallPart) or type(part) is not ToolCallPart:
        return part
    if not wraps(part.tool_name):
        return part
    try:
        arguments = part.args_as_dict()
    except ValueError:
        return part
    call = {"name": part.tool_name, "arguments": arguments}
    enveloped: ModelResponsePart = replace(
        cast(Any, part), tool_name=CALL_TOOL, args=json.dumps(call, ensure_ascii=False)
    )
    return enveloped


def _extended(part: ModelRequestPart, added: str) -> list[ModelRequestPart]:
    if not added:
        return [part]
    if isinstance(part, UserPromptPart) and isinstance(part.content, str):
        return [replace(part, content=part.content + added)]
    return [part, UserPromptPart(added.removeprefix("\n\n"))]


def intents(messages: Sequence[ModelMessage]) -> list[Intent]:
    """Texts of the user's last message and of a tool's answer since; empty without text.

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


def system_tokens(messages: Sequence[ModelMessage]) -> int:
    """Returns an estimate of the tokens of the system prompts, and of the last instructions."""
    requests = [message for message in messages if isinstance(message, ModelRequest)]
    parts = [part for request in requests for part in request.parts]
    prompts = [part.content for part in parts if isinstance(part, SystemPromptPart)]
    instructions = requests[-1].instructions if requests else None
    return _agents.system_tokens([*prompts, instructions or ""])


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
