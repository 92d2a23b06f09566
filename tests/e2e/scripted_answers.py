"""Answers of the talk's scripted model, as each provider's API has them."""

import json
from typing import Any

ANSWER = "That is done. " + "Here is what came of it, in a few words, as an assistant says it. " * 3
PATHS = {
    "/chat/completions": "openai_chat",
    "/responses": "openai_responses",
    "/messages": "anthropic",
}
"""The APIs, by what their paths end with."""

Call = tuple[str, dict[str, Any]]
Json = dict[str, Any]


def api_of(path: str) -> str:
    """Returns the API that is asked at a path."""
    return next(api for end, api in PATHS.items() if path.endswith(end))


def answered(api: str, call: Call | None, number: int) -> Json:
    """Returns an answer with a call, or with `ANSWER`.

    Args:
        api: "openai_chat", "openai_responses", "anthropic" or "gemini".
        call: The name and the arguments of a tool.
        number: The number of the answer in its conversation, which its identifiers have: LangChain
            takes answers with the same identifier for one.
    """
    forms = {
        "openai_chat": _completion,
        "openai_responses": _response,
        "anthropic": _message,
        "gemini": _candidate,
    }
    return forms[api](call, f"call_{number}")


def _completion(call: Call | None, made: str) -> Json:
    message: Json = {"role": "assistant", "content": None if call else ANSWER}
    if call is not None:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        message["tool_calls"] = [{"id": made, "type": "function", "function": function}]
    reason = "tool_calls" if call else "stop"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    answer = {"id": f"chat_{made}", "object": "chat.completion", "created": 1, "model": "gpt"}
    return {**answer, "choices": [choice]}


def _response(call: Call | None, made: str) -> Json:
    content = [{"type": "output_text", "text": ANSWER, "annotations": []}]
    item: Json = {"type": "message", "id": made, "role": "assistant"}
    item |= {"status": "completed", "content": content}
    if call is not None:
        item = {"type": "function_call", "call_id": made, "name": call[0]}
        item["arguments"] = json.dumps(call[1])
    answer: Json = {"id": f"response_{made}", "object": "response", "created_at": 1, "model": "gpt"}
    answer |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return {**answer, "status": "completed", "output": [item]}


def _message(call: Call | None, made: str) -> Json:
    block: Json = {"type": "text", "text": ANSWER}
    if call is not None:
        block = {"type": "tool_use", "id": made, "name": call[0], "input": call[1]}
    answer: Json = {
        "id": f"message_{made}",
        "type": "message",
        "role": "assistant",
        "model": "claude",
    }
    answer |= {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {**answer, "content": [block], "usage": usage}


def _candidate(call: Call | None, made: str) -> Json:
    part: Json = {"text": ANSWER}
    if call is not None:
        part = {"functionCall": {"id": made, "name": call[0], "args": call[1]}}
    content = {"role": "model", "parts": [part]}
    return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]}
