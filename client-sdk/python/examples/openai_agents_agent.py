"""An OpenAI Agents SDK agent behind Toolgate, with a scripted model in place of OpenAI's.

pip install 'toolgate[openai-agents]'
toolgate serve &
python client-sdk/python/examples/openai_agents_agent.py
"""

import asyncio
import sys

from agents import Agent, Runner, SQLiteSession, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

from toolgate import AsyncClient
from toolgate.openai_agents import Conversation, mcp_definitions, model_facing

ADD = "mcp__calendar__add_event"


@function_tool
def add_event(title: str, hour: int) -> str:
    """Add an event to today's calendar."""
    print("run add_event", title, hour)
    return "added"


@function_tool
def list_events() -> str:
    """List the events of today's calendar."""
    return "none"


async def main(target: str = "127.0.0.1:7070", tenant: str = "example") -> None:
    """Registers the tools and runs the agent once."""
    set_tracing_disabled(True)
    model = ScriptedModel(  # Stands for a model's name, such as "gpt-5".
        [
            [function_call(ADD, {"title": "Lunch", "hour": "noon"}, call_id="call_1")],
            [function_call(ADD, {"title": "Lunch", "hour": 12}, call_id="call_2")],
            [assistant_message("Lunch is in your calendar.")],
        ]
    )
    agent = Agent(name="assistant", instructions="Be brief.", model=model)
    async with AsyncClient(target, tenant=tenant) as client:
        # Tools of an MCP server are best registered as their server lists them.
        tools = [add_event, list_events]
        await client.register_server("calendar", mcp_definitions(tools))
        managed = model_facing(tools, [tool async for tool in client.list_tools("calendar")])
        conversation = Conversation(client, managed, top_k=1)
        result = await Runner.run(
            conversation.agent(agent),
            "add an event for lunch at noon to my calendar",
            session=SQLiteSession("example"),
        )
    for call in model.calls:
        print("the model saw", ", ".join(tool.name for tool in call.tools))
    print(result.final_output)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
