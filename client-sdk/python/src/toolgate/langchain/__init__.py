"""Middleware for LangChain 1.x agents; needs `toolgate[langchain]`.

from langchain.agents import create_agent
from toolgate.langchain import ToolgateMiddleware, model_facing

tools = model_facing(mcp_tools, client.list_tools("github"))
agent = create_agent(model, middleware=[ToolgateMiddleware(client, tools)])
"""

try:
    from toolgate.langchain._middleware import ToolgateMiddleware, ToolgateState
    from toolgate.langchain._tools import mcp_definitions, model_facing
except ModuleNotFoundError as missing:
    raise ImportError(
        f"toolgate.langchain needs {missing.name}: pip install 'toolgate[langchain]'"
    ) from missing

__all__ = ["ToolgateMiddleware", "ToolgateState", "mcp_definitions", "model_facing"]
