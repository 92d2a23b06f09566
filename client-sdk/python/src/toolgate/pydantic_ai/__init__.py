"""A capability for Pydantic AI 2.x agents; needs `toolgate[pydantic-ai]`.

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset, StdioTransport
from toolgate.pydantic_ai import Toolgate

git = MCPToolset(StdioTransport("uvx", ["mcp-server-git"]))
agent = Agent(model, capabilities=[Toolgate.from_mcp(client, {"git": git})])
"""

try:
    from toolgate.pydantic_ai._capability import Toolgate
    from toolgate.pydantic_ai._toolset import mcp_definitions, model_facing
except ModuleNotFoundError as missing:
    raise ImportError(
        f"toolgate.pydantic_ai needs {missing.name}: pip install 'toolgate[pydantic-ai]'"
    ) from missing

__all__ = ["Toolgate", "mcp_definitions", "model_facing"]
