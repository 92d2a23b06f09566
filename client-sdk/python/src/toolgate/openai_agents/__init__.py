"""Conversations of OpenAI Agents SDK agents; needs `toolgate[openai-agents]`.

from agents import Agent, Runner
from toolgate.openai_agents import Conversation, model_facing

tools = model_facing(function_tools, client.list_tools("github"))
conversation = Conversation(client, tools)
result = await Runner.run(conversation.agent(agent), "...", session=session)
"""

try:
    from toolgate.openai_agents._conversation import Conversation
    from toolgate.openai_agents._tools import mcp_definitions, model_facing
except ModuleNotFoundError as missing:
    raise ImportError(
        f"toolgate.openai_agents needs {missing.name}: pip install 'toolgate[openai-agents]'"
    ) from missing

__all__ = ["Conversation", "mcp_definitions", "model_facing"]
