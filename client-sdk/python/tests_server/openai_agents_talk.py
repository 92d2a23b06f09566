"""Measures what a provider's cache keeps of twenty turns with an OpenAI agent, by strategy.

TOOLGATE_TARGET=127.0.0.1:7070 python client-sdk/python/tests_server/openai_agents_talk.py

The model is scripted and calls nothing. A request's bytes are those of its `tools` and `input` as
JSON; new are those that it does not have in common with the beginning of the request before it.
"""

import asyncio
import json
import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents import (
    Agent,
    FunctionTool,
    OpenAIResponsesModel,
    Runner,
    SQLiteSession,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from openai_api import OpenAIApi, serving

from toolgate import Client
from toolgate.openai_agents import Conversation

DATA = Path(__file__).resolve().parents[3] / "tests" / "data"
SERVERS = ("git", "slack", "gitlab", "mongodb")
STRATEGIES = ("pass", "auto", "cut", "envelope")
TURNS = 20
HISTORY: list[Any] = [
    {"role": "user", "content": "Here is what we did so far. " + "word " * 16_000},
    {"role": "assistant", "content": "I see."},
]
CACHED_PRICE = 0.1
"""Of a cached byte, in uncached ones."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Bytes a request, on average."""

    whole: float
    new: float

    @property
    def priced(self) -> float:
        """The same in uncached bytes."""
        return self.new + (self.whole - self.new) * CACHED_PRICE


def registered(client: Client) -> list[FunctionTool]:
    """The shipped catalogs' tools, which do nothing."""

    async def done(_context: Any, _arguments: str) -> str:
        return "done"

    tools = []
    for server in SERVERS:
        client.register_server(server, DATA / "servers" / f"{server}.json", timeout=600)
        for tool in client.list_tools(server):
            described, schema = tool.definition["description"], tool.definition["inputSchema"]
            tools.append(FunctionTool(tool.model_name, described, schema, done, False))
    return tools


def messages() -> list[str]:
    """Returns requests of people, of these MCP servers only."""
    lines = (DATA / "intents" / "people.jsonl").read_text().splitlines()
    asked = [json.loads(line) for line in lines]
    ours = [
        one["query"]
        for one in asked
        if one["relevant"] and all(tool.split("/")[0] in SERVERS for tool in one["relevant"])
    ]
    return ours[:TURNS]


async def talk(
    client: Client, tools: Sequence[FunctionTool], strategy: str, history: list[Any]
) -> list[dict[str, Any]]:
    """The requests of one conversation."""
    texts = messages()
    api = OpenAIApi(*["Done."] * len(texts))
    conversation = Conversation(client, tools, deferral="always", strategy=strategy)
    session = SQLiteSession(uuid.uuid4().hex)
    await session.add_items(history)
    with serving(api):
        model = OpenAIResponsesModel("gpt", AsyncOpenAI(api_key="none", base_url=api.url))
        agent = Agent(name="desk", model=model)
        for text in texts:
            await Runner.run(conversation.agent(agent), text, session=session)
    return api.requests


def common(before: bytes, after: bytes) -> int:
    """Returns the number of bytes that both begin with."""
    pairs = enumerate(zip(before, after, strict=False))
    differing = (at for at, (one, other) in pairs if one != other)
    return next(differing, min(len(before), len(after)))


def cost(requests: Sequence[dict[str, Any]]) -> Cost:
    """Costs of the requests of one conversation."""
    before, whole, new = b"", 0, 0
    for request in requests:
        body = (json.dumps(request["tools"]) + json.dumps(request["input"])).encode()
        whole += len(body)
        new += len(body) - common(before, body)
        before = body
    return Cost(whole / len(requests), new / len(requests))


def main() -> None:
    """Prints the table."""
    set_tracing_disabled(True)
    with Client(os.environ["TOOLGATE_TARGET"], tenant=uuid.uuid4().hex, timeout=60) as client:
        tools = registered(client)
        print(f"{len(tools)} tools, {len(messages())} messages")
        for history in ([], HISTORY):
            for strategy in STRATEGIES:
                spent = cost(asyncio.run(talk(client, tools, strategy, history)))
                size = len(json.dumps(history))
                print(f"{size:>7,} {strategy:9} {spent.whole:>9,.0f} ", end="")
                print(f"{spent.new:>9,.0f} {spent.priced:>9,.0f}")


if __name__ == "__main__":
    main()
