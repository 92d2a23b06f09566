"""Middleware for LangChain 1.x agents; needs `toolgate[langchain]`.

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from toolgate.langchain import ToolgateMiddleware

mcp = MultiServerMCPClient({"git": {"transport": "stdio", "command": "uvx", "args": [...]}})
toolgate = await ToolgateMiddleware.from_mcp(client, mcp)
agent = create_agent(model, middleware=[toolgate])
"""

try:
    from toolgate.langchain._middleware import ToolgateMiddleware, ToolgateState
    from toolgate.langchain._tools import mcp_definitions, model_facing
except ModuleNotFoundError as missing:
    raise ImportError(
        f"toolgate.langchain needs {missing.name}: pip install 'toolgate[langchain]'"
    ) from missing

__all__ = ["ToolgateMiddleware", "ToolgateState", "mcp_definitions", "model_facing"]
