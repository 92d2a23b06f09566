"""A Pydantic AI agent behind Toolgate, with a scripted model in place of a provider's.

pip install 'toolgate[pydantic-ai]'
toolgate serve &
python client-sdk/python/examples/pydantic_ai_agent.py
"""

import sys

from pydantic_ai import Agent, FunctionToolset, ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from toolgate import Client
from toolgate.pydantic_ai import Toolgate, mcp_definitions, model_facing

ADD = "mcp__calendar__add_event"
SCRIPT: list[ModelResponse] = [
    ModelResponse([ToolCallPart(ADD, {"title": "Lunch", "hour": "noon"})]),
    ModelResponse([ToolCallPart(ADD, {"title": "Lunch", "hour": 12})]),
    ModelResponse([TextPart("Lunch is in your calendar.")]),
]

calendar = FunctionToolset[None]()


@calendar.tool_plain
def add_event(title: str, hour: int) -> str:
    """Add an event to today's calendar."""
    print("run add_event", title, hour)
    return "added"


@calendar.tool_plain
def list_events() -> list[str]:
    """List the events of today's calendar."""
    return []


def scripted(_messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stands for a model such as "anthropic:claude-sonnet-4-5"."""
    print("the model sees", ", ".join(tool.name for tool in info.function_tools))
    return SCRIPT.pop(0)


def main(target: str = "127.0.0.1:7070", tenant: str = "example") -> None:
    """Registers the toolset and runs the agent once."""
    with Client(target, tenant=tenant) as client:
        # A toolset of an MCP server is best registered as its server lists it.
        client.register_server(
            "calendar", mcp_definitions(tool.tool_def for tool in calendar.tools.values())
        )
        managed = model_facing(calendar, client.list_tools("calendar"))
        toolgate = Toolgate(client, managed, top_k=1)
        agent = Agent(FunctionModel(scripted), capabilities=[toolgate])
        result = agent.run_sync("add an event for lunch at noon to my calendar")
        print(result.output)


if __name__ == "__main__":
    main(*sys.argv[1:])
