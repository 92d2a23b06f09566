"""A Pydantic AI agent over MCP servers, with a scripted model in place of a provider's.

pip install 'toolgate[pydantic-ai-mcp]' mcp-server-git mcp-server-time
toolgate serve &
python client-sdk/python/examples/pydantic_ai_mcp_agent.py
"""

import sys

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.function import AgentInfo, FunctionModel

from toolgate import Client
from toolgate.pydantic_ai import Toolgate

NOW = "mcp__time__get_current_time"
SCRIPT: list[ModelResponse] = [
    ModelResponse([ToolCallPart(NOW, {"timezone": "Asia/Tokyo"})]),
    ModelResponse([TextPart("It is late in Tokyo.")]),
]


def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stands for a model such as "anthropic:claude-sonnet-4-5"."""
    print("the model sees", ", ".join(tool.name for tool in info.function_tools))
    for part in messages[-1].parts:
        print(part.part_kind, getattr(part, "content", ""))
    return SCRIPT.pop(0)


def stdio(module: str) -> MCPToolset[None]:
    """An MCP server, which has a minute to start."""
    return MCPToolset(StdioTransport(sys.executable, ["-m", module]), init_timeout=60)


def main(target: str = "127.0.0.1:7070", tenant: str = "example") -> None:
    """Registers what the servers list, and runs the agent once."""
    with Client(target, tenant=tenant) as client:
        # One for each of two repositories: `--repository` would name it.
        git = {"shop": stdio("mcp_server_git"), "website": stdio("mcp_server_git")}
        toolgate = Toolgate.from_mcp(client, {**git, "time": stdio("mcp_server_time")})
        agent = Agent(FunctionModel(scripted), capabilities=[toolgate])
        print(agent.run_sync("what time is it in Tokyo right now?").output)


if __name__ == "__main__":
    main(*sys.argv[1:])
