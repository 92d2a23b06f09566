"""Definitions that the Python integrations register of MCP servers, as the servers list them."""

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from agents.mcp import MCPServerStdio
from exact_mcp_server import DEFINITIONS
from fastmcp.client.transports import StdioTransport
from langchain_mcp_adapters.client import MultiServerMCPClient
from mcp_sessions import sessions
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.test import TestModel

from toolgate import Client, Conversation, openai_agents
from toolgate.langchain import ToolgateMiddleware
from toolgate.pydantic_ai import Toolgate

EXACT = str(Path(__file__).with_name("exact_mcp_server.py"))
KEPT = ("name", "title", "inputSchema", "outputSchema", "annotations")
"""The keys of a definition that each library reads."""

Registers = Callable[[Client], Coroutine[Any, Any, None]]


async def langchain(client: Client) -> None:
    """Registers by the connections of LangChain's MCP client."""
    connection: Any = {"transport": "stdio", "command": sys.executable, "args": [EXACT]}
    await ToolgateMiddleware.from_mcp(client, MultiServerMCPClient({"exact": connection}))


async def langchain_sessions(client: Client) -> None:
    """Registers by sessions that the agent holds; LangGraph's nodes have the same middleware."""
    async with sessions({"exact": [EXACT]}) as held:
        await ToolgateMiddleware.from_mcp(client, held)


async def agents_sdk(client: Client) -> None:
    """Registers by a server of the OpenAI Agents SDK."""
    command: Any = {"command": sys.executable, "args": [EXACT]}
    async with MCPServerStdio(command, client_session_timeout_seconds=60) as server:
        await openai_agents.Conversation.from_mcp(client, {"exact": server})


async def pydantic_ai(client: Client) -> None:
    """Registers by a toolset of Pydantic AI, with the first run."""
    toolset: Any = MCPToolset(StdioTransport(sys.executable, [EXACT]), init_timeout=60)
    toolgate = Toolgate.from_mcp(client, {"exact": toolset})
    await Agent(TestModel(call_tools=[]), capabilities=[toolgate]).run("hello")


async def own_loop(client: Client) -> None:
    """Registers by sessions of a loop of one's own."""
    async with sessions({"exact": [EXACT]}) as held:
        await Conversation.from_mcp(client, "anthropic", held)


@pytest.mark.parametrize(
    "register",
    [langchain, langchain_sessions, agents_sdk, pydantic_ai, own_loop],
    ids=lambda register: register.__name__,
)
def test_tools_are_registered_with_annotations_and_output_schemas(
    client: Client, register: Registers
) -> None:
    def kept(definition: dict[str, Any]) -> dict[str, Any]:
        return {key: definition[key] for key in KEPT if key in definition}

    asyncio.run(register(client))
    listed = [kept(json.loads(definition)) for definition in DEFINITIONS]
    assert sum("outputSchema" in definition for definition in listed) == 1
    assert all(definition["annotations"] for definition in listed)
    registered = {tool.name: kept(tool.definition) for tool in client.list_tools("exact")}
    assert registered == {definition["name"]: definition for definition in listed}
