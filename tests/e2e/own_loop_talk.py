"""The forty messages to a loop of one's own over a provider's API, by `Conversation`."""

from collections.abc import Mapping
from typing import Any

from forty_messages import TURNS, Framework, Request, Talk
from mcp import ClientSession
from mcp_sessions import sessions
from scripted_answers import answered

from toolgate import Client, Conversation, ModelRequest


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
            request = await conversation.take(answered(api, call, len(talk.requests)))
    return talk.requests


FRAMEWORK = Framework(sessions, talk)
