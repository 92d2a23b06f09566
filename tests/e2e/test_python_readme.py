"""The examples of the Python client's README run as they stand there."""

import ast
import asyncio
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anthropic.types import Message, TextBlock, ToolUseBlock, Usage
from catalogs import NOTES, SHIPPED, SHIPPED_TENANT, WEATHER
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from scripted_model import ScriptedModel, calls, says
from toolgate_process import ToolgateProcess

from toolgate import SEARCH_TOOL, Client, ToolSettings, has_prior_tool_output

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "client-sdk" / "python" / "README.md"
FIND, DELETE = "mcp__notes__find_notes", "mcp__notes__delete_note"
FORECAST = "mcp__weather__get_forecast"


def example(marker: str) -> str:
    """The one example that has this text."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    (found,) = [block for block in blocks if marker in block]
    return str(found)


class FakeAnthropic:
    """Answers with a script of tool uses and texts; keeps the requests."""

    def __init__(self, *script: str | tuple[str, dict[str, Any]]) -> None:
        self.beta = self.messages = self
        self.requests: list[dict[str, Any]] = []
        self._script = list(script)

    def create(self, **request: Any) -> Message:
        self.requests.append({**request, "messages": list(request["messages"])})
        said, made = self._script.pop(0), f"toolu_{len(self.requests)}"
        if isinstance(said, str) and said.startswith("mcp__"):
            said = (said, {"text": "milk"})
        block: Any = TextBlock(type="text", text=str(said))
        if isinstance(said, tuple):
            block = ToolUseBlock(type="tool_use", id=made, name=said[0], input=said[1])
        usage = Usage(input_tokens=1, output_tokens=1)
        return Message(
            id=made, content=[block], model="m", role="assistant", type="message", usage=usage
        )


@pytest.fixture
def guarded(client: Client) -> Client:
    needs = ToolSettings("delete_note", precondition=has_prior_tool_output(FIND))
    client.register_server("notes", NOTES, tool_settings=[needs])
    return client


@pytest.fixture
def others(shipped: Client) -> Iterator[str]:
    """The tenant of the shipped servers, without that of the quickstart."""
    shipped.unregister_server("slack")
    yield SHIPPED_TENANT
    shipped.unregister_server("slack")
    shipped.register_server("slack", SHIPPED / "slack.json")


@pytest.mark.parametrize("tenant_of", ["tenant", "others"], ids=["alone", "beside all the others"])
def test_the_quickstart(
    server: ToolgateProcess,
    tenant_of: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tenant = request.getfixturevalue(tenant_of)
    source = example('Client("127.0.0.1:7070", tenant="demo")')
    ours = source.replace("127.0.0.1:7070", server.target).replace('"demo"', f'"{tenant}"')
    monkeypatch.chdir(ROOT)
    scope: dict[str, Any] = {}
    exec(compile(ours, str(README), "exec"), scope)
    assert scope["verdict"].allowed, scope["verdict"].message
    sent = [tool["name"] for tool in scope["tools"]]
    assert sent[0] == scope["call"].tool
    second = [tool.model_name for tool in scope["turn"]]
    kept = [name for name in sent if name in second]
    assert kept
    assert [name for name in second if name in sent] == kept, "kept in their order"
    assert "mcp__slack__slack_get_thread_replies" in second


def test_the_conversation(guarded: Client) -> None:
    scope: dict[str, Any] = {}
    exec(compile(example("class Conversation"), str(README), "exec"), scope)
    model = FakeAnthropic(DELETE, FIND, "Found it.", DELETE, "Deleted.")
    ran: list[str] = []

    def run_tool(server: str, name: str, arguments: Any) -> str:
        ran.append(f"{server}/{name}")
        return f"done with {arguments['text']}"

    conversation = scope["Conversation"](guarded, model, "claude-sonnet-4-5", run_tool)
    assert conversation.say("delete the note about milk; search through my notes") == "Found it."
    assert ran == ["notes/find_notes"]
    conversation.compact("One note about milk was found.")
    assert conversation.say("now delete the note about milk forever") == "Deleted."
    assert ran == ["notes/find_notes", "notes/delete_note"]
    refusal = model.requests[1]["messages"][-1]["content"][0]
    assert refusal["is_error"]
    assert json.loads(refusal["content"])["error"] == "precondition_unmet"
    assert [message["role"] for message in model.requests[3]["messages"]] == ["user", "user"]
    systems = {str(request["system"]) for request in model.requests}
    assert systems == {"Be brief."}, "the stable prefix stays, and lists nothing of the catalog"


def test_the_conversation_finds_a_deferred_tool(guarded: Client) -> None:
    guarded.register_server("weather", WEATHER)
    scope: dict[str, Any] = {}
    exec(compile(example("class Conversation"), str(README), "exec"), scope)
    search = (SEARCH_TOOL.model_name, {"query": f"select:{FORECAST}"})
    mistaken = (SEARCH_TOOL.model_name, {"words": "weather"})
    model = FakeAnthropic(FORECAST, mistaken, search, FORECAST, "It will rain.")
    ran: list[str] = []

    def run_tool(server: str, name: str, _arguments: Any) -> str:
        ran.append(f"{server}/{name}")
        return "rain"

    conversation = scope["Conversation"](guarded, model, "claude-sonnet-4-5", run_tool)
    assert conversation.say("search through my notes") == "It will rain."
    assert ran == ["weather/get_forecast"]
    refused, unread, found = (r["messages"][-1]["content"][0] for r in model.requests[1:4])
    assert json.loads(refused["content"])["search"] == search[1]["query"]
    assert "query" in json.loads(unread["content"])["message"]
    assert [answer["is_error"] for answer in (refused, unread, found)] == [True, True, False]
    every = len(NOTES) + len(WEATHER)
    assert json.loads(found["content"])["tools"] == [{"name": FORECAST}]
    assert 0 < json.loads(found["content"])["deferred_tools"] < every
    shown = [[tool["name"] for tool in request["tools"]] for request in model.requests]
    assert [names[0] for names in shown] == [SEARCH_TOOL.model_name] * 5
    assert [FORECAST in names for names in shown] == [False, False, False, True, True]


def test_the_short_loop_over_an_mcp_server(client: Client, capsys: Any) -> None:
    now = "mcp__time__get_current_time"
    model = FakeAnthropic((now, {"timezone": "Europe/Oslo"}), "Noon.")

    class Awaited:
        beta = messages = property(lambda self: self)

        async def create(self, **request: Any) -> Message:
            return model.create(**request)

    block = example('Conversation.from_mcp(client, "anthropic"')
    code = compile(block, str(README), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    time = StdioServerParameters(command=sys.executable, args=["-m", "mcp_server_time"])

    async def run() -> None:
        async with stdio_client(time) as streams, ClientSession(*streams) as session:
            await session.initialize()
            scope = {"client": client, "session": session, "anthropic": Awaited(), "model": "m"}
            await eval(code, scope)

    asyncio.run(run())
    assert capsys.readouterr().out.startswith("Noon. 2 requests: ")
    assert "is_dst" in model.requests[1]["messages"][-1]["content"][0]["content"]


def test_langchain(client: Client) -> None:
    @tool
    def find_notes(text: str) -> str:
        """Search through the notes that were written earlier."""
        return f"one note about {text}"

    model = ScriptedModel(script=[calls((FIND, {"text": "milk"})), says("One note.")])
    scope: dict[str, Any] = {"client": client, "tools": [find_notes], "model": model}
    block = example("ToolgateMiddleware.from_tools(client")
    code = compile(block, str(README), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    asyncio.run(eval(code, scope))
    result = scope["agent"].invoke({"messages": [HumanMessage("search through my notes")]})
    assert result["messages"][-2].content == "one note about milk"
    assert model.shown_tools[0] == [FIND]


@pytest.mark.parametrize("of", ["create_agent", "a graph"])
def test_langchain_over_an_mcp_server(
    client: Client, of: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = "mcp__time__get_current_time"
    model = ScriptedModel(script=[calls((now, {"timezone": "Asia/Tokyo"})), says("It is late.")])
    scope: dict[str, Any] = {"client": client, "model": model}
    # The README's `python` is the one that has the MCP server.
    here = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", os.pathsep.join([here, os.environ["PATH"]]))
    block = example("ToolgateMiddleware.from_mcp(client, mcp)")
    code = compile(block, str(README), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    graph = compile(example("model_node(toolgate, model)"), str(README), "exec")

    async def run() -> Any:
        await eval(code, scope)
        if of == "a graph":
            exec(graph, scope)
        asked = HumanMessage("what time is it in Tokyo right now?")
        return await scope["agent"].ainvoke({"messages": [asked]})

    result = asyncio.run(run())
    assert "Asia/Tokyo" in result["messages"][-2].text
    assert now in model.shown_tools[0]
