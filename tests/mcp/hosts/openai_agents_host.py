"""An agent of openai-agents with one MCP server: python openai_agents_host.py MCP_URL MODEL_URL."""

import asyncio
import sys

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp
from openai import AsyncOpenAI


async def main() -> None:
    """Lets the agent work, and prints its last words."""
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=f"{sys.argv[2]}/v1", api_key="none")
    model = OpenAIChatCompletionsModel(model="scripted", openai_client=client)
    async with MCPServerStreamableHttp(params={"url": sys.argv[1]}, name="tg") as server:
        agent = Agent(name="agent", model=model, mcp_servers=[server])
        result = await Runner.run(agent, "Say hello with the echo tool")
        print(result.final_output)


asyncio.run(main())
