"""The forty messages to an agent of the OpenAI Agents SDK."""

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
from agents import (
    Agent,
    Model,
    OpenAIChatCompletionsModel,
    OpenAIProvider,
    Runner,
    SQLiteSession,
    set_tracing_disabled,
)
from agents.mcp import MCPServerStdio
from forty_messages import TURNS, Framework, Request, Talk
from openai import AsyncOpenAI

from toolgate import Client
from toolgate.openai_agents import Conversation


@asynccontextmanager
async def serving(commands: Mapping[str, list[str]]) -> AsyncIterator[dict[str, MCPServerStdio]]:
    """The MCP servers, as the SDK has them."""
    async with AsyncExitStack() as stack:
        yield {
            name: await stack.enter_async_context(
                MCPServerStdio(
                    {"command": sys.executable, "args": arguments},
                    client_session_timeout_seconds=60,
                )
            )
            for name, arguments in commands.items()
        }


async def talk(
    client: Client,
    servers: Mapping[str, MCPServerStdio],
    *,
    responses: str | None = None,
    **options: Any,
) -> list[Request]:
    """Has the talk; the model's requests.

    Args:
        client: The client of Toolgate.
        servers: The MCP servers.
        responses: The name of a model of the SDK's default class, which asks Responses. None: the
            model is asked over Chat Completions.
        options: Those of the integration.
    """
    set_tracing_disabled(True)
    talk = Talk()
    conversation = await Conversation.from_mcp(client, servers, **options)
    http = httpx2.AsyncClient(transport=talk.transport())
    async with AsyncOpenAI(api_key="none", http_client=http) as api:
        model: Model = OpenAIChatCompletionsModel("gpt", api)
        if responses is not None:
            model = OpenAIProvider(openai_client=api).get_model(responses)
        agent = Agent(name="desk", model=model)
        session = SQLiteSession("talk")
        for _ in range(TURNS):
            await Runner.run(conversation.agent(agent), talk.say(), session=session)
    return talk.requests


FRAMEWORK = Framework(serving, talk)
