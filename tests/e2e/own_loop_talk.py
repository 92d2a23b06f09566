"""The forty messages in a loop of one's own over Chat Completions."""

from collections.abc import Mapping
from typing import Any

import httpx2
from forty_messages import TURNS, Framework, Request, Talk
from mcp import ClientSession
from mcp_sessions import sessions
from openai import AsyncOpenAI

from toolgate import Client, Conversation, ModelRequest


async def talk(
    client: Client, servers: Mapping[str, ClientSession], **options: Any
) -> list[Request]:
    """Has the talk; the model's requests."""
    talk = Talk()
    conversation = await Conversation.from_mcp(
        client, "openai_chat", servers, model="gpt", **options
    )
    http = httpx2.AsyncClient(transport=talk.transport())
    async with AsyncOpenAI(api_key="none", http_client=http) as api:
        for _ in range(TURNS):
            request: ModelRequest | None = await conversation.say(talk.say())
            while request is not None:
                asked: Any = {"tools": request.tools, "messages": request.messages}
                answer = await api.chat.completions.create(model="gpt", **asked)
                request = await conversation.take(answer)
    return talk.requests


FRAMEWORK = Framework(sessions, talk)
