"""The forty messages to an agent of the OpenAI Agents SDK."""

import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    Runner,
    SQLiteSession,
    set_tracing_disabled,
)
from agents.mcp import MCPServerStdio
from forty_messages import TURNS, Request, Talk, commands
from openai import AsyncOpenAI

from toolgate import Client
from toolgate.openai_agents import Conversation


async def play(client: Client, folder: Path, **options: Any) -> list[Request]:
    """Has the talk; the model's requests."""
    set_tracing_disabled(True)
    talk = Talk()
    async with AsyncExitStack() as stack:
        servers = {
            name: await stack.enter_async_context(
                MCPServerStdio(
                    {"command": sys.executable, "args": arguments},
                    client_session_timeout_seconds=60,
                )
            )
            for name, arguments in commands(folder).items()
        }
        conversation = await Conversation.from_mcp(client, servers, **options)
        http = httpx2.AsyncClient(transport=talk.transport())
        api = await stack.enter_async_context(AsyncOpenAI(api_key="none", http_client=http))
        agent = Agent(name="desk", model=OpenAIChatCompletionsModel("gpt", api))
        session = SQLiteSession("talk")
        for _ in range(TURNS):
            await Runner.run(conversation.agent(agent), talk.say(), session=session)
    return talk.requests
