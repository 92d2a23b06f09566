"""FastMCP's client follows the script by itself: python fastmcp_host.py MCP_URL MODEL_URL."""

import asyncio
import sys

from fastmcp import Client
from scripted_model import Step, Turn, next_step


async def main() -> None:
    """Lists the tools, and calls what the script says."""
    async with Client(sys.argv[1]) as client:
        tools = [tool.name for tool in await client.list_tools()]
        print(tools)
        results: list[str] = []
        while step := next_step(Turn(tools, results)):
            results.append(await call(client, step))
        print(results[-1])


async def call(client: "Client[object]", step: Step) -> str:
    """The text of a tool's answer."""
    answer = await client.call_tool(step.tool, step.arguments)
    return "\n".join(getattr(block, "text", "") for block in answer.content)


asyncio.run(main())
