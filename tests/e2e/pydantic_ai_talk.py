"""The forty messages to a Pydantic AI agent."""

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
from fastmcp.client.transports import StdioTransport
from forty_messages import TURNS, Framework, Request, Talk
from openai import AsyncOpenAI
from pydantic_ai import Agent, ModelMessage
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from toolgate import Client
from toolgate.pydantic_ai import Toolgate


@asynccontextmanager
async def serving(commands: Mapping[str, list[str]]) -> AsyncIterator[dict[str, MCPToolset[None]]]:
    """The MCP servers, as Pydantic AI has them."""
    async with AsyncExitStack() as stack:
        yield {
            name: await stack.enter_async_context(
                MCPToolset[None](StdioTransport(sys.executable, arguments), init_timeout=60)
            )
            for name, arguments in commands.items()
        }


async def talk(
    client: Client, servers: Mapping[str, MCPToolset[None]], **options: Any
) -> list[Request]:
    """Has the talk; the model's requests."""
    talk = Talk()
    http = httpx2.AsyncClient(transport=talk.transport())
    async with AsyncOpenAI(api_key="none", http_client=http) as api:
        model = OpenAIChatModel("gpt", provider=OpenAIProvider(openai_client=api))
        toolgate = Toolgate.from_mcp(client, servers, **options)
        agent = Agent(model, capabilities=[toolgate])
        history: list[ModelMessage] = []
        for _ in range(TURNS):
            history = (await agent.run(talk.say(), message_history=history)).all_messages()
    return talk.requests


FRAMEWORK = Framework(serving, talk)
