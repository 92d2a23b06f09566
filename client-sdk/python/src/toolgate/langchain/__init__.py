"""Middleware for LangChain 1.x agents; needs `toolgate[langchain]`.

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from toolgate.langchain import ToolgateMiddleware

mcp = MultiServerMCPClient({"git": {"transport": "stdio", "command": "uvx", "args": [...]}})
toolgate = await ToolgateMiddleware.from_mcp(client, mcp)
agent = create_agent(model, middleware=[toolgate])

Graphs of one's own, without `create_agent`, take `model_node`, `tool_node` and `calls_condition`.
"""

try:
    from toolgate.langchain._graph import calls_condition, model_node, tool_node
    from toolgate.langchain._middleware import ToolgateMiddleware, ToolgateState
    from toolgate.langchain._tools import mcp_definitions, model_facing
except ModuleNotFoundError as missing:
    raise ImportError(
        f"toolgate.langchain needs {missing.name}: pip install 'toolgate[langchain]'"
    ) from missing

__all__ = [
    "ToolgateMiddleware",
    "ToolgateState",
    "calls_condition",
    "mcp_definitions",
    "model_facing",
    "model_node",
    "tool_node",
]
