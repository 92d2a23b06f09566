"""An OpenAI Agents SDK agent over MCP servers, with a scripted model in place of OpenAI's.

pip install 'toolgate[openai-agents]' mcp-server-git mcp-server-time
toolgate serve &
python client-sdk/python/examples/openai_agents_mcp_agent.py
"""

import asyncio
import sys

from agents import Agent, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio, MCPServerStdioParams
from agents.testing import ScriptedModel, assistant_message, function_call

from toolgate import AsyncClient
from toolgate.openai_agents import Conversation

NOW = "mcp__time__get_current_time"


def stdio(module: str) -> MCPServerStdio:
    """An MCP server, which has a minute to start."""
    process = MCPServerStdioParams(command=sys.executable, args=["-m", module])
    return MCPServerStdio(process, client_session_timeout_seconds=60)


async def main(target: str = "127.0.0.1:7070", tenant: str = "example") -> None:
    """Registers what the servers list, and runs the agent once."""
    set_tracing_disabled(True)
    model = ScriptedModel(  # Stands for a model's name, such as "gpt-5".
        [
            [function_call(NOW, {"timezone": "Asia/Tokyo"}, call_id="call_1")],
            [assistant_message("It is late in Tokyo.")],
        ]
    )
    agent = Agent(name="assistant", model=model)
    async with (
        # One for each of two repositories: `--repository` would name it.
        stdio("mcp_server_git") as shop,
        stdio("mcp_server_git") as website,
        stdio("mcp_server_time") as time,
        AsyncClient(target, tenant=tenant) as client,
    ):
        servers = {"shop": shop, "website": website, "time": time}
        conversation = await Conversation.from_mcp(client, servers)
        asked = "what time is it in Tokyo right now?"
        result = await Runner.run(conversation.agent(agent), asked)
    for call in model.calls:
        print("the model saw", ", ".join(tool.name for tool in call.tools))
    for item in result.new_items:
        print(item.type, getattr(item, "output", ""))
    print(result.final_output)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
