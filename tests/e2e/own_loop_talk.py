"""The forty messages to a loop of one's own over a provider's API, by `Conversation`."""

import json
from collections.abc import Mapping
from itertools import count
from typing import Any

from forty_messages import ANSWER, TURNS, Framework, Request, Talk
from mcp import ClientSession
from mcp_sessions import sessions

from toolgate import Client, Conversation, ModelRequest

_ids = count(1)


async def talk(
    client: Client,
    servers: Mapping[str, ClientSession],
    *,
    api: str = "openai_chat",
    model: str = "gpt",
    **options: Any,
) -> list[Request]:
    """Has the talk; the requests that the conversation put together."""
    talk = Talk()
    conversation = await Conversation.from_mcp(client, api, servers, model=model, **options)
    for _ in range(TURNS):
        request: ModelRequest | None = await conversation.say(talk.say())
        while request is not None:
            call = talk.answer(list(request.tools), list(request.messages))
            request = await conversation.take(_answer(api, call))
    return talk.requests


FRAMEWORK = Framework(sessions, talk)


def _answer(api: str, call: tuple[str, dict[str, Any]] | None) -> dict[str, Any]:
    """The script's answer in an API's form."""
    made = f"call_{next(_ids)}"
    name, given = call or ("", {})
    if api == "anthropic":
        block: dict[str, Any] = {"type": "text", "text": ANSWER}
        if call is not None:
            block = {"type": "tool_use", "id": made, "name": name, "input": given}
        return {"role": "assistant", "content": [block]}
    if api == "openai_responses":
        content = [{"type": "output_text", "text": ANSWER, "annotations": []}]
        item: dict[str, Any] = {"type": "message", "id": made, "role": "assistant"}
        item |= {"status": "completed", "content": content}
        if call is not None:
            item = {"type": "function_call", "call_id": made, "name": name}
            item["arguments"] = json.dumps(given)
        return {"output": [item]}
    message: dict[str, Any] = {"role": "assistant", "content": ANSWER}
    if call is not None:
        function = {"name": name, "arguments": json.dumps(given)}
        asked = [{"id": made, "type": "function", "function": function}]
        message |= {"content": None, "tool_calls": asked}
    return {"choices": [{"message": message}]}
