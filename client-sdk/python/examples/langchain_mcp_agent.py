"""A LangChain agent over MCP servers, with a scripted model in place of a provider's.

pip install 'toolgate[langchain-mcp]' mcp-server-git mcp-server-time
toolgate serve &
python client-sdk/python/examples/langchain_mcp_agent.py
"""

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_mcp_adapters.client import MultiServerMCPClient

from toolgate import AsyncClient
from toolgate.langchain import ToolgateMiddleware

NOW = "mcp__time__get_current_time"


class ScriptedModel(FakeMessagesListChatModel):
    """Stands for a model such as `ChatAnthropic(model="claude-sonnet-4-5")`."""

    def bind_tools(self, tools: Sequence[Any], **_named: Any) -> Runnable[Any, AIMessage]:
        """Shows what a model would be shown."""
        names = [convert_to_openai_tool(tool)["function"]["name"] for tool in tools]
        print("the model sees", ", ".join(names))
        return self


def stdio(module: str) -> Any:
    """Returns the settings that start an MCP server."""
    return {"transport": "stdio", "command": sys.executable, "args": ["-m", module]}


async def main(target: str = "127.0.0.1:7070", tenant: str = "example") -> None:
    """Registers what the servers list, and runs the agent once."""
    call = {"name": NOW, "args": {"timezone": "Asia/Tokyo"}, "id": "call_1"}
    model = ScriptedModel(
        responses=[AIMessage("", tool_calls=[call]), AIMessage("It is late in Tokyo.")]
    )
    # One for each of two repositories: `--repository` would name it.
    git = {"shop": stdio("mcp_server_git"), "website": stdio("mcp_server_git")}
    mcp = MultiServerMCPClient({**git, "time": stdio("mcp_server_time")})
    async with AsyncClient(target, tenant=tenant) as client:
        toolgate = await ToolgateMiddleware.from_mcp(client, mcp)
        agent = create_agent(model, middleware=[toolgate])
        asked = HumanMessage("what time is it in Tokyo right now?")
        result = await agent.ainvoke({"messages": [asked]})
        for message in result["messages"]:
            print(f"{message.type}: {message.text}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
