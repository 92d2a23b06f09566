"""A loop of one's own over MCP servers, with a scripted model in place of Anthropic's API.

pip install toolgate mcp mcp-server-git mcp-server-time
toolgate serve &
python client-sdk/python/examples/conversation_mcp_agent.py

With `anthropic.AsyncAnthropic()` instead of `ScriptedModel` the loop is the same.
"""

import asyncio
import sys
from contextlib import AsyncExitStack
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from toolgate import AsyncClient, Conversation, ModelRequest

MODEL = "claude-opus-5-5"
# One for each of two repositories: `--repository` would name it.
SERVERS = {"shop": "mcp_server_git", "website": "mcp_server_git", "time": "mcp_server_time"}
NOW = "mcp__time__get_current_time"
SCRIPT: list[Any] = [
    (NOW, {"timezone": 7}),
    (NOW, {"timezone": "Asia/Tokyo"}),
    "It is late in Tokyo.",
]


class ScriptedModel:
    """Answers as Anthropic's client does, with what the script says."""

    def __init__(self, script: list[Any]) -> None:
        self.beta = self.messages = self
        self._script = iter(enumerate(script))

    async def create(self, *, tools: list[dict[str, Any]], **_request: Any) -> dict[str, Any]:
        """The next message of the script, as a dict."""
        print("the model sees", ", ".join(tool["name"] for tool in tools))
        number, step = next(self._script)
        if isinstance(step, str):
            return {"role": "assistant", "content": [{"type": "text", "text": step}]}
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": step[0], "input": step[1]}
        return {"role": "assistant", "content": [block]}


async def say(conversation: Conversation, model: ScriptedModel, text: str) -> str:
    """Sends what the user says; the model's answer once it calls nothing more."""
    request: ModelRequest | None = await conversation.say(text)
    while request is not None:
        answer = await model.beta.messages.create(
            model=MODEL,
            max_tokens=1024,
            tools=request.tools,
            messages=request.messages,
            betas=list(request.betas),
        )
        request = await conversation.take(answer)
    return conversation.text


async def main(target: str = "127.0.0.1:7070", tenant: str = "example") -> None:
    """Starts the MCP servers, registers what they list, and has one conversation."""
    async with AsyncExitStack() as stack:
        sessions: dict[str, ClientSession] = {}
        for name, module in SERVERS.items():
            process = StdioServerParameters(command=sys.executable, args=["-m", module])
            streams = await stack.enter_async_context(stdio_client(process))
            sessions[name] = await stack.enter_async_context(ClientSession(*streams))
            await sessions[name].initialize()
        client = await stack.enter_async_context(AsyncClient(target, tenant=tenant))
        conversation = await Conversation.from_mcp(client, "anthropic", sessions, model=MODEL)
        said = await say(conversation, ScriptedModel(SCRIPT), "what time is it in Tokyo right now?")
        for message in conversation.messages:
            print(f"{message['role']}: {message['content']}")
        print(conversation.report())
        print(said)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
