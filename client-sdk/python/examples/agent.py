"""An agent's loop over Anthropic's Messages API, with a scripted model in place of the API.

    toolgate serve &
    python client-sdk/python/examples/agent.py

With `anthropic.Anthropic()` instead of `ScriptedModel` the loop is the same.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolgate import (
    SEARCH_TOOL,
    Call,
    Client,
    RenderOptions,
    ToolSettings,
    is_authenticated,
)

SLACK = Path(__file__).resolve().parents[3] / "tests" / "data" / "servers" / "slack.json"
POST, REACT = "mcp__slack__slack_post_message", "mcp__slack__slack_add_reaction"
MODEL = "claude-sonnet-4-5"
FOR_ANTHROPIC = RenderOptions("anthropic", search_tool=True)
SCRIPT: list[Any] = [
    (POST, {"channel": "general", "text": "Ten minutes late, sorry!"}),
    (POST, {"channel_id": "C1", "text": "Ten minutes late, sorry!"}),
    (SEARCH_TOOL.model_name, {"query": f"select:{REACT}"}),
    (REACT, {"channel_id": "C1", "timestamp": "1700000000.000100", "reaction": "wave"}),
    "Posted, with a wave.",
]


class ScriptedModel:
    """Answers as Anthropic's client does, with what the script says."""

    def __init__(self, script: list[Any]) -> None:
        self.messages = self
        self._script = iter(enumerate(script))

    def create(self, *, tools: list[dict[str, Any]], **_request: Any) -> dict[str, Any]:
        """The next message of the script, as a dict."""
        print("the model sees", ", ".join(tool["name"] for tool in tools))
        number, step = next(self._script)
        if isinstance(step, str):
            return {"role": "assistant", "content": [{"type": "text", "text": step}]}
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": step[0], "input": step[1]}
        return {"role": "assistant", "content": [block]}


class Agent:
    """One conversation."""

    def __init__(self, client: Client, model: ScriptedModel) -> None:
        self._client = client
        self._model = model
        self._messages: list[Any] = []
        self._handle = ""
        self._state: dict[str, Any] = {"scopes": ["chat:write"]}

    def say(self, text: str) -> str:
        """Sends what the user says; the model's answer once it calls nothing more."""
        self._messages.append({"role": "user", "content": text})
        while True:
            state = {**self._state, "messages": self._messages}
            turn = self._client.route(
                text, state=state, handle=self._handle, top_k=1, render=FOR_ANTHROPIC
            )
            self._handle = turn.handle
            # It stands for the messages, also when they are summarised.
            self._state["snapshot"] = turn.conversation_snapshot
            answer = self._model.messages.create(
                model=MODEL,
                max_tokens=1024,
                system="Be brief.",
                tools=turn.rendered_tools,
                messages=self._messages,
            )
            self._messages.append(answer)
            uses = [block for block in answer["content"] if block["type"] == "tool_use"]
            if not uses:
                return "".join(block["text"] for block in answer["content"])
            results = [self._result(Call.from_anthropic(use)) for use in uses]
            self._messages.append({"role": "user", "content": results})

    def _result(self, call: Call) -> dict[str, Any]:
        if call.tool == SEARCH_TOOL.model_name:
            found = self._client.answer_search(call, handle=self._handle, state=self._state)
            self._handle, content, failed = found.handle, found.text, found.failed
            print("found", [tool.model_name for tool in found.tools])
        elif (verdict := self._client.gate(self._handle, call, state=self._state)[0]).allowed:
            content, failed = run_tool(verdict.server, verdict.name, call.arguments), False
        else:
            content, failed = json.dumps(verdict.to_tool_error()), True
            print("refused", call.tool, verdict.code.lower())
        result = {"type": "tool_result", "tool_use_id": call.call_id}
        return {**result, "content": content, "is_error": failed}


def run_tool(server: str, name: str, arguments: Mapping[str, Any] | str) -> str:
    """Where a real agent calls the MCP server."""
    print("run", f"{server}/{name}", json.dumps(arguments))
    return "ok"


def main(target: str = "127.0.0.1:7070", tenant: str = "example") -> None:
    """Registers Slack's tools and has one conversation."""
    with Client(target, tenant=tenant) as client:
        may_post = ToolSettings("slack_post_message", precondition=is_authenticated("chat:write"))
        client.register_server("slack", SLACK, tool_settings=[may_post], timeout=60)
        agent = Agent(client, ScriptedModel(SCRIPT))
        print(agent.say("post in the team's channel that I'll be ten minutes late"))


if __name__ == "__main__":
    main(*sys.argv[1:])
