"""The forty messages to a Pydantic AI agent."""

import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
from fastmcp.client.transports import StdioTransport
from forty_messages import TURNS, Request, Talk, commands
from openai import AsyncOpenAI
from pydantic_ai import Agent, ModelMessage
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from toolgate import Client
from toolgate.pydantic_ai import Toolgate


async def play(client: Client, folder: Path, **options: Any) -> list[Request]:
    """Has the talk; the model's requests."""
    talk = Talk()
    async with AsyncExitStack() as stack:
        servers: dict[str, MCPToolset[None]] = {
            name: await stack.enter_async_context(
                MCPToolset(StdioTransport(sys.executable, arguments), init_timeout=60)
            )
            for name, arguments in commands(folder).items()
        }
        http = httpx2.AsyncClient(transport=talk.transport())
        api = await stack.enter_async_context(AsyncOpenAI(api_key="none", http_client=http))
        model = OpenAIChatModel("gpt", provider=OpenAIProvider(openai_client=api))
        toolgate = Toolgate.from_mcp(client, servers, **options)
        agent = Agent(model, capabilities=[toolgate])
        history: list[ModelMessage] = []
        for _ in range(TURNS):
            history = (await agent.run(talk.say(), message_history=history)).all_messages()
    return talk.requests
