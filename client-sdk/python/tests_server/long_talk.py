"""Twenty messages of people, and the tools of the two shipped MCP servers that they are about."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from toolgate import Client
from toolgate.catalog import Tool

DATA = Path(__file__).resolve().parents[3] / "tests" / "data"
SERVERS = ("git", "mongodb")
MESSAGES = 20
TOP_K = 10
"""The default."""
EMPTY: dict[str, Any] = {"type": "object", "properties": {}}


def registered(client: Client) -> list[Tool]:
    """The tools, registered without arguments, so that every call of them may run."""
    for server in SERVERS:
        listed = json.loads((DATA / "servers" / f"{server}.json").read_text())["tools"]
        definitions = [
            {"name": one["name"], "description": one["description"], "inputSchema": EMPTY}
            for one in listed
        ]
        client.register_server(server, definitions, timeout=120)
    return [tool for server in SERVERS for tool in client.list_tools(server)]


def messages() -> list[str]:
    """Requests of people, of these MCP servers only."""
    lines = (DATA / "intents" / "people.jsonl").read_text().splitlines()
    asked = [json.loads(line) for line in lines]
    ours = [
        one["query"]
        for one in asked
        if one["relevant"] and all(tool.split("/")[0] in SERVERS for tool in one["relevant"])
    ]
    return ours[:MESSAGES]


class Caller:
    """A model that calls, once a message, a tool of the catalog that it has not called yet."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.shown: list[list[str]] = []
        """The tools of the catalog that it saw, request by request."""

    def next_call(self, shown: Iterable[str], *, is_answered: bool) -> str:
        """The tool to call now; "" to answer in words.

        Args:
            shown: The names of the tools that the model is shown.
            is_answered: True if a call of this message has its result.
        """
        managed = [name for name in shown if name.startswith("mcp__")]
        self.shown.append(managed)
        new = [name for name in managed if name not in self.called]
        if is_answered or not new:
            return ""
        self.called.append(new[0])
        return new[0]

    def check(self, ran: list[str]) -> None:
        """Holds that the model saw at most `top_k` tools, however many it called."""
        assert len(ran) > TOP_K, "more tools ran than a set holds"
        assert ran == self.called, "every call ran"
        most = max(map(len, self.shown))
        assert most <= TOP_K, f"{most} tools of the catalog are shown at once"
        assert len({tuple(names) for names in self.shown}) > 1, (
            "what is shown goes with the request"
        )
