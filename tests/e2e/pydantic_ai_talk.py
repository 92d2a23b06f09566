"""The forty messages to a Pydantic AI agent."""

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
from anthropic import AsyncAnthropic
from fastmcp.client.transports import StdioTransport
from forty_messages import TURNS, Framework, Request, Talk
from openai import AsyncOpenAI
from pydantic_ai import Agent, ModelMessage
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
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


def _chat(http: httpx2.AsyncClient, name: str) -> Model:
    api = AsyncOpenAI(api_key="none", http_client=http)
    return OpenAIChatModel(name, provider=OpenAIProvider(openai_client=api))


def _responses(http: httpx2.AsyncClient, name: str) -> Model:
    api = AsyncOpenAI(api_key="none", http_client=http)
    return OpenAIResponsesModel(name, provider=OpenAIProvider(openai_client=api))


def _anthropic(http: httpx2.AsyncClient, name: str) -> Model:
    api = AsyncAnthropic(api_key="none", http_client=http)
    provider = AnthropicProvider(anthropic_client=api)
    # With more tokens an answer is streamed, which the script does not do.
    return AnthropicModel(name, provider=provider, settings={"max_tokens": 1_000})


async def talk(
    client: Client,
    servers: Mapping[str, MCPToolset[None]],
    *,
    anthropic: str | None = None,
    responses: str | None = None,
    **options: Any,
) -> list[Request]:
    """Has the talk; the model's requests.

    Args:
        client: The client of Toolgate.
        servers: The MCP servers.
        anthropic: The name of a model for `AnthropicModel`.
        responses: The name of a model for `OpenAIResponsesModel`. Without either name: a model that
            is asked over Chat Completions.
        options: Those of the integration.
    """
    talk = Talk()
    async with httpx2.AsyncClient(transport=talk.transport()) as http:
        if anthropic is not None:
            model = _anthropic(http, anthropic)
        elif responses is not None:
            model = _responses(http, responses)
        else:
            model = _chat(http, "gpt")
        toolgate = Toolgate.from_mcp(client, servers, **options)
        agent = Agent(model, capabilities=[toolgate])
        history: list[ModelMessage] = []
        for _ in range(TURNS):
            history = (await agent.run(talk.say(), message_history=history)).all_messages()
    return talk.requests


FRAMEWORK = Framework(serving, talk)
