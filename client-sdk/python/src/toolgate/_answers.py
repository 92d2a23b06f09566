"""Models' answers in the form of a provider's API: their calls and texts, and results for them."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolgate.gating import Call

Result = tuple[Call, str, bool]
"""A call, what came of it, and whether it failed."""


class Anthropic:
    """Anthropic's Messages."""

    def user(self, content: Any) -> dict[str, Any]:
        """The user's message."""
        return {"role": "user", "content": content}

    def messages(self, answer: Any) -> list[dict[str, Any]]:
        """Takes what to keep of an answer."""
        content = plain(answer)["content"]
        if isinstance(content, list):
            content = [_without(block, "parsed_output") for block in content]
        return [{"role": "assistant", "content": content}]

    def calls(self, messages: Sequence[Mapping[str, Any]]) -> list[Call]:
        """The calls of an answer."""
        return [Call.from_anthropic(use) for use in _typed(messages[0], "tool_use")]

    def text(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """The text of an answer."""
        return "".join(block["text"] for block in _typed(messages[0], "text"))

    def results(self, results: Sequence[Result]) -> list[dict[str, Any]]:
        """The results of calls, for the model."""
        blocks = [
            {
                "type": "tool_result",
                "tool_use_id": call.call_id,
                "content": text,
                "is_error": failed,
            }
            for call, text, failed in results
        ]
        return [{"role": "user", "content": blocks}]


class OpenAIChat:
    """OpenAI's Chat Completions."""

    def user(self, content: Any) -> dict[str, Any]:
        """The user's message."""
        return {"role": "user", "content": content}

    def messages(self, answer: Any) -> list[dict[str, Any]]:
        """Takes what to keep of an answer."""
        said = plain(answer)
        message = _without(said["choices"][0]["message"] if "choices" in said else said, "parsed")
        if message.get("tool_calls"):
            message["tool_calls"] = list(map(_call, message["tool_calls"]))
        return [message]

    def calls(self, messages: Sequence[Mapping[str, Any]]) -> list[Call]:
        """The calls of an answer."""
        return [Call.from_openai(call) for call in messages[0].get("tool_calls") or ()]

    def text(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """The text of an answer."""
        return messages[0].get("content") or ""

    def results(self, results: Sequence[Result]) -> list[dict[str, Any]]:
        """The results of calls, for the model."""
        return [
            {"role": "tool", "tool_call_id": call.call_id, "content": _marked(text, failed)}
            for call, text, failed in results
        ]


class OpenAIResponses:
    """OpenAI's Responses."""

    def user(self, content: Any) -> dict[str, Any]:
        """The user's message."""
        return {"role": "user", "content": content}

    def messages(self, answer: Any) -> list[dict[str, Any]]:
        """Takes what to keep of an answer."""
        items = [_without(item, "parsed_arguments") for item in plain(answer)["output"]]
        for item in items:
            if item.get("type") == "message":
                item["content"] = [_without(part, "parsed") for part in item.get("content") or ()]
        return items

    def calls(self, messages: Sequence[Mapping[str, Any]]) -> list[Call]:
        """The calls of an answer."""
        return [
            Call.from_openai_responses(item)
            for item in messages
            if item.get("type") == "function_call"
        ]

    def text(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """The text of an answer."""
        said = (item for item in messages if item.get("type") == "message")
        return "".join(part["text"] for item in said for part in _typed(item, "output_text"))

    def results(self, results: Sequence[Result]) -> list[dict[str, Any]]:
        """The results of calls, for the model."""
        return [
            {
                "type": "function_call_output",
                "call_id": call.call_id,
                "output": _marked(text, failed),
            }
            for call, text, failed in results
        ]


class Gemini:
    """Gemini's `generateContent`."""

    def user(self, content: Any) -> dict[str, Any]:
        """The user's message."""
        parts = [{"text": content}] if isinstance(content, str) else content
        return {"role": "user", "parts": parts}

    def messages(self, answer: Any) -> list[dict[str, Any]]:
        """Takes what to keep of an answer, or of the chunks of one."""
        chunks = answer if isinstance(answer, list | tuple) else [answer]
        parts: list[Any] = []
        for said in map(plain, chunks):
            found = said["candidates"][0].get("content") if "candidates" in said else said
            parts += (found or {}).get("parts") or ()
        return [{"role": "model", "parts": parts}]

    def calls(self, messages: Sequence[Mapping[str, Any]]) -> list[Call]:
        """The calls of an answer."""
        parts = messages[0].get("parts") or ()
        return [Call.from_gemini(part["functionCall"]) for part in parts if "functionCall" in part]

    def text(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """The text of an answer."""
        parts = messages[0].get("parts") or ()
        return "".join(part.get("text", "") for part in parts if not part.get("thought"))

    def results(self, results: Sequence[Result]) -> list[dict[str, Any]]:
        """The results of calls, for the model."""
        answers = [
            {
                "name": call.tool,
                "response": {"error" if failed else "output": text},
                **({"id": call.call_id} if call.call_id else {}),
            }
            for call, text, failed in results
        ]
        return [{"role": "user", "parts": [{"functionResponse": one} for one in answers]}]


Api = Anthropic | OpenAIChat | OpenAIResponses | Gemini
APIS: Mapping[str, Callable[[], Api]] = {
    "anthropic": Anthropic,
    "openai_chat": OpenAIChat,
    "openai_responses": OpenAIResponses,
    "gemini": Gemini,
}


def plain(answer: Any) -> dict[str, Any]:
    """Returns a model's answer as JSON, which may be an object of the provider's package.

    Raises:
        TypeError: something else.
    """
    if isinstance(answer, Mapping):
        return {key: _plain(part) for key, part in answer.items()}
    found = _plain(answer)
    if not isinstance(found, dict):
        raise TypeError(
            f"an answer is a provider's object or its JSON, not {type(answer).__name__}"
        )
    return found


def _plain(part: Any) -> Any:
    dump = getattr(part, "model_dump", None)
    if callable(dump):
        return dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(part, list | tuple):
        return [_plain(one) for one in part]
    return part


def _without(part: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Returns a part without fields of a provider's package, which the provider does not take."""
    return {name: value for name, value in part.items() if name not in names}


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a call of Chat Completions without what it has as a piece of a stream."""
    said = _without(call, "index")
    if isinstance(said.get("function"), Mapping):
        said["function"] = _without(said["function"], "parsed_arguments")
    return said


def _typed(message: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    content = message.get("content")
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    return [block for block in blocks if block.get("type") == kind]


def _marked(text: str, failed: bool) -> str:
    """A result as a text that says whether it failed, where the API has no mark for it."""
    if not failed or text.startswith('{"error"'):
        return text
    return json.dumps({"error": text}, ensure_ascii=False)
