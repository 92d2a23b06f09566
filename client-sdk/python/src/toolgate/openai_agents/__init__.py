"""Conversations of OpenAI Agents SDK agents; needs `toolgate[openai-agents]`.

from agents import Agent, Runner
from agents.mcp import MCPServerStdio
from toolgate.openai_agents import Conversation

async with MCPServerStdio({"command": "uvx", "args": ["mcp-server-git"]}) as git:
    conversation = await Conversation.from_mcp(client, {"git": git})
    result = await Runner.run(conversation.agent(agent), "...", session=session)
"""

try:
    from toolgate.openai_agents._conversation import Conversation
    from toolgate.openai_agents._mcp import McpTools
    from toolgate.openai_agents._tools import mcp_definitions, model_facing
except ModuleNotFoundError as missing:
    raise ImportError(
        f"toolgate.openai_agents needs {missing.name}: pip install 'toolgate[openai-agents]'"
    ) from missing

__all__ = ["Conversation", "McpTools", "mcp_definitions", "model_facing"]
