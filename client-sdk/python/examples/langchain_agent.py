"""A LangChain agent behind Toolgate, with a scripted model in place of a provider's.

pip install 'toolgate[langchain]'
toolgate serve &
python client-sdk/python/examples/langchain_agent.py
"""

import sys
from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import tool

from toolgate import Client
from toolgate.langchain import ToolgateMiddleware, mcp_definitions, model_facing

ADD = "mcp__calendar__add_event"


@tool
def add_event(title: str, hour: int) -> str:
    """Add an event to today's calendar."""
    print("run add_event", title, hour)
    return "added"


@tool
def list_events() -> str:
    """List the events of today's calendar."""
    return "none"


class ScriptedModel(FakeMessagesListChatModel):
    """Stands for a model such as `ChatAnthropic(model="claude-sonnet-4-5")`."""

    def bind_tools(self, tools: Sequence[Any], **_named: Any) -> Runnable[Any, AIMessage]:
        """Shows what a model would be shown."""
        print("the model sees", ", ".join(tool.name for tool in tools))
        return self


def calls(number: int, **arguments: Any) -> BaseMessage:
    """A message that calls `add_event`."""
    return AIMessage("", tool_calls=[{"name": ADD, "args": arguments, "id": f"call_{number}"}])


def main(target: str = "127.0.0.1:7070", tenant: str = "example") -> None:
    """Registers the tools and runs the agent once."""
    model = ScriptedModel(
        responses=[
            calls(1, title="Lunch", hour="noon"),
            calls(2, title="Lunch", hour=12),
            AIMessage("Lunch is in your calendar."),
        ]
    )
    with Client(target, tenant=tenant) as client:
        # Tools of an MCP server are best registered as their server lists them.
        tools = [add_event, list_events]
        client.register_server("calendar", mcp_definitions(tools))
        managed = model_facing(tools, client.list_tools("calendar"))
        agent = create_agent(model, middleware=[ToolgateMiddleware(client, managed, top_k=1)])
        asked = HumanMessage("add an event for lunch at noon to my calendar")
        result = agent.invoke({"messages": [asked]})
        print(result["messages"][-1].text)


if __name__ == "__main__":
    main(*sys.argv[1:])
