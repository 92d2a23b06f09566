"""An OpenAI Agents SDK agent over an MCP server, with a scripted model in place of OpenAI's.

pip install 'toolgate[openai-agents]' mcp-server-time
toolgate serve &
python client-sdk/python/examples/openai_agents_mcp_agent.py
"""

import asyncio
import sys

from agents import Agent, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio
from agents.testing import ScriptedModel, assistant_message, function_call

from toolgate import AsyncClient
from toolgate.openai_agents import Conversation

NOW = "mcp__time__get_current_time"


async def main(target: str = "127.0.0.1:7070", tenant: str = "example") -> None:
    """Registers what the server lists, and runs the agent once."""
    set_tracing_disabled(True)
    model = ScriptedModel(  # Stands for a model's name, such as "gpt-5".
        [
            [function_call(NOW, {"timezone": "Asia/Tokyo"}, call_id="call_1")],
            [assistant_message("It is late in Tokyo.")],
        ]
    )
    agent = Agent(name="assistant", model=model)
    stdio = MCPServerStdio({"command": sys.executable, "args": ["-m", "mcp_server_time"]})
    async with stdio as time, AsyncClient(target, tenant=tenant) as client:
        conversation = await Conversation.from_mcp(client, {"time": time}, top_k=1)
        asked = "what time is it in Tokyo right now?"
        result = await Runner.run(conversation.agent(agent), asked)
    for call in model.calls:
        print("the model saw", ", ".join(tool.name for tool in call.tools))
    for item in result.new_items:
        print(item.type, getattr(item, "output", ""))
    print(result.final_output)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
