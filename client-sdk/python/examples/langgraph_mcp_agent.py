"""A LangGraph graph of one's own over MCP servers, with a scripted model in place of a provider's.

pip install 'toolgate[langchain-mcp]' mcp-server-git mcp-server-time
toolgate serve &
python client-sdk/python/examples/langgraph_mcp_agent.py
"""

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_mcp_adapters.client import MultiServerMCPClient
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from toolgate import AsyncClient
from toolgate.langchain import (
    ToolgateMiddleware,
    ToolgateState,
    calls_condition,
    model_node,
    tool_node,
)

NOW = "mcp__time__get_current_time"


class ScriptedModel(FakeMessagesListChatModel):
    """Stands for a model such as `ChatAnthropic(model="claude-sonnet-4-5")`."""

    def bind_tools(self, tools: Sequence[Any], **_named: Any) -> Runnable[Any, AIMessage]:
        """Shows what a model would be shown."""
        names = [convert_to_openai_tool(tool)["function"]["name"] for tool in tools]
        print("the model sees", ", ".join(names))
        return self


def calls(number: int, **arguments: str) -> BaseMessage:
    """A message that asks for the time."""
    return AIMessage("", tool_calls=[{"name": NOW, "args": arguments, "id": f"call_{number}"}])


def stdio(module: str) -> Any:
    """Returns the parameters that start an MCP server."""
    return {"transport": "stdio", "command": sys.executable, "args": ["-m", module]}


async def main(target: str = "127.0.0.1:7070", tenant: str = "example") -> None:
    """Registers what the servers list, and runs the graph once."""
    model = ScriptedModel(
        responses=[
            calls(1, city="Tokyo"),  # Refused: the tool has no such argument.
            calls(2, timezone="Asia/Tokyo"),
            AIMessage("It is late in Tokyo."),
        ]
    )
    # One for each of two repositories: `--repository` would name it.
    git = {"shop": stdio("mcp_server_git"), "website": stdio("mcp_server_git")}
    mcp = MultiServerMCPClient({**git, "time": stdio("mcp_server_time")})
    async with AsyncClient(target, tenant=tenant) as client:
        toolgate = await ToolgateMiddleware.from_mcp(client, mcp)
        graph = StateGraph(ToolgateState)
        graph.add_node("model", model_node(toolgate, model))
        graph.add_node("tools", tool_node(toolgate))
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", calls_condition)
        graph.add_edge("tools", "model")
        agent = graph.compile(checkpointer=InMemorySaver())
        asked = HumanMessage("what time is it in Tokyo right now?")
        thread: Any = {"configurable": {"thread_id": "1"}}
        result = await agent.ainvoke({"messages": [asked]}, thread)
        for message in result["messages"]:
            print(f"{message.type}: {message.text}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
