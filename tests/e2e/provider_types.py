"""Parts of requests, held to the types that the providers' packages declare."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from anthropic.types import beta
from google.genai.types import Content, FunctionDeclaration
from openai.types import chat, responses
from pydantic import TypeAdapter

# The types of a tool and of a message.
TYPES: dict[str, tuple[Any, Any]] = {
    "anthropic": (beta.BetaToolUnionParam, beta.BetaMessageParam),
    "openai_chat": (chat.ChatCompletionToolUnionParam, chat.ChatCompletionMessageParam),
    "openai_responses": (responses.ToolParam, responses.ResponseInputItemParam),
    "gemini": (FunctionDeclaration, Content),
}


def check_request(api: str, tools: Iterable[Any], messages: Iterable[Any]) -> None:
    """Fails unless the API's types take the tools and the messages."""
    tool_type, message_type = TYPES[api]
    for tool in tools:
        check(tool_type, tool)
    for message in messages:
        check(message_type, message)


def check(kind: Any, value: Any) -> None:
    """Fails unless the type takes the value and knows each of its fields."""
    assert read(_adapter(kind).validate_python(value)) == value


def read(value: Any) -> Any:
    """Returns a validated value as JSON has it. Pydantic validates iterables as they are read."""
    if isinstance(value, Content | FunctionDeclaration):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(value, Mapping):
        return {key: read(item) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [read(item) for item in value]
    return value


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
