"""OpenAI Agents SDK agents over real MCP servers, registered by the conversation itself."""

import asyncio
import itertools
import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio
from agents.testing import ScriptedModel, assistant_message, function_call
from toolgate_process import ToolgateProcess

from toolgate import AsyncClient, Client, ToolgateError, ToolSettings, has_prior_tool_output
from toolgate.openai_agents import Conversation, McpTools

GROWING = Path(__file__).with_name("growing_mcp_server.py")
CHANGING = Path(__file__).with_name("changing_mcp_server.py")
NOW = "mcp__time__get_current_time"
CONVERT = "mcp__time__convert_time"
STATUS = "mcp__git__git_status"
CONVERSION = {"source_timezone": "Asia/Tokyo", "time": "12:00", "target_timezone": "Europe/Oslo"}

_numbers = itertools.count(1)
Step = str | list[tuple[str, dict[str, Any]]]


@pytest.fixture(autouse=True)
def untraced() -> None:
    set_tracing_disabled(True)


def stdio(*arguments: str) -> MCPServerStdio:
    return MCPServerStdio(
        {"command": sys.executable, "args": [*arguments]}, client_session_timeout_seconds=60
    )


def time_server() -> MCPServerStdio:
    return stdio("-m", "mcp_server_time")


def script(*steps: Step) -> ScriptedModel:
    return ScriptedModel(map(answer, steps))


def answer(step: Step) -> list[Any]:
    if isinstance(step, str):
        return [assistant_message(step)]
    return [function_call(n, a, call_id=f"call_{next(_numbers)}") for n, a in step]


def shown(model: ScriptedModel) -> list[list[str]]:
    return [[tool.name for tool in call.tools] for call in model.calls]


async def said(conversation: Conversation, model: ScriptedModel, text: str) -> list[str]:
    """The answers of the tools in one run."""
    agent = Agent(name="assistant", model=model)
    result = await Runner.run(conversation.agent(agent), text)
    items: list[Any] = result.to_input_list()
    outputs = [item["output"] for item in items if item.get("type") == "function_call_output"]
    return [one if isinstance(one, str) else "".join(b["text"] for b in one) for one in outputs]


def test_an_agent_calls_tools_of_real_servers(client: Client) -> None:
    model = script([(NOW, {"timezone": "Asia/Tokyo"})], "Late.")

    async def run() -> list[str]:
        async with time_server() as time, stdio("-m", "mcp_server_git") as git:
            servers = {"time": time, "git": git}
            conversation = await Conversation.from_mcp(client, servers, deferral="always")
            return await said(conversation, model, "what time is it in Tokyo right now?")

    (answered,) = asyncio.run(run())
    assert "Asia/Tokyo" in answered
    assert NOW in shown(model)[0]
    assert STATUS not in shown(model)[0]
    registered = {tool.name: tool.definition for tool in client.list_tools("git")}
    assert registered["git_status"]["annotations"]["readOnlyHint"] is True
    assert "title" not in registered["git_status"], "what the server did not say is not registered"


def test_one_listing_serves_many_conversations(server: ToolgateProcess, tenant: str) -> None:
    models = [script([(NOW, {"timezone": "Europe/Oslo"})], "Noon.") for _ in range(2)]

    async def run() -> list[str]:
        async with time_server() as time, AsyncClient(server.target, tenant=tenant) as own:
            tools = await McpTools.load(own, {"time": time})
            conversations = [Conversation(own, tools) for _ in models]
            answers = [
                await said(conversation, model, "the current time in Oslo?")
                for conversation, model in zip(conversations, models, strict=True)
            ]
            return [text for answered in answers for text in answered]

    assert ["Europe/Oslo" in answered for answered in asyncio.run(run())] == [True, True]


def test_a_result_that_the_server_calls_an_error_unlocks_nothing(client: Client) -> None:
    settings = [ToolSettings("convert_time", precondition=has_prior_tool_output(NOW))]
    convert = [(CONVERT, CONVERSION)]
    model = script(
        [(NOW, {"timezone": "Nowhere/Atlantis"})],
        convert,
        [(NOW, {"timezone": "Asia/Tokyo"})],
        convert,
        "Five.",
    )

    async def run() -> list[str]:
        async with time_server() as time:
            conversation = await Conversation.from_mcp(
                client, {"time": time}, register={"time": {"tool_settings": settings}}
            )
            return await said(conversation, model, "what time is it in Tokyo? convert it to Oslo")

    failed, refused, told, converted = asyncio.run(run())
    assert "Invalid timezone" in json.loads(failed)["error"]
    assert json.loads(refused)["error"] == "precondition_unmet"
    assert "Asia/Tokyo" in told
    assert "time_difference" in converted


def test_lost_servers_are_registered_again(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    model = script("Hello.", [(NOW, {"timezone": "Asia/Tokyo"})], "Late.")

    async def run() -> list[str]:
        async with time_server() as time:
            conversation = await Conversation.from_mcp(client, {"time": time})
            await said(conversation, model, "what time is it in Oslo?")
            await asyncio.to_thread(client.unregister_server, "time")
            return await said(conversation, model, "what time is it in Tokyo right now?")

    with caplog.at_level(logging.WARNING, "toolgate.openai_agents"):
        (answered,) = asyncio.run(run())
    assert "Asia/Tokyo" in answered
    assert "registered again" in caplog.text
    assert [server.name for server in client.list_servers()] == ["time"]


def test_a_server_that_cannot_be_listed_is_left_out(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> McpTools:
        async with time_server() as time:
            unconnected = stdio("-m", "mcp_server_git")
            return await McpTools.load(client, {"time": time, "git": unconnected})

    with caplog.at_level(logging.WARNING, "toolgate.openai_agents"):
        tools = asyncio.run(run())
    assert {tool.name for tool in tools.tools} == {NOW, CONVERT}
    assert "MCP server git can't be listed" in caplog.text
    assert client.route("what changed in git?").pending_servers == ("git",)


def test_changes_of_a_server_are_followed(client: Client, tmp_path: Path) -> None:
    names = tmp_path / "names.txt"
    names.write_text("water_tomatoes")
    water, mow = "mcp__garden__water_tomatoes", "mcp__garden__mow_lawn"
    model = script(
        [(water, {"text": "rain"})],
        "Watered.",
        [(water, {"text": "rain"}), (mow, {"text": "grass"})],
        "Mown.",
    )

    async def run() -> list[str]:
        async with stdio(str(CHANGING), str(names)) as garden:
            conversation = await Conversation.from_mcp(client, {"garden": garden})
            answers = await said(conversation, model, "water the tomatoes in the garden shed")
            names.write_text("mow_lawn")
            await garden.cleanup()
            await garden.connect()
            await conversation.refresh()
            return answers + await said(conversation, model, "mow the lawn in the garden shed")

    watered, *others = asyncio.run(run())
    assert watered == "water_tomatoes has rain"
    assert "mow_lawn has grass" in others
    assert not any("water_tomatoes has" in answered for answered in others), "it is gone"
    assert mow in shown(model)[2]
    assert water not in shown(model)[2]


@pytest.mark.parametrize("is_connected", [True, False])
def test_a_server_that_says_that_its_tools_changed_is_listed_anew(
    client: Client, *, is_connected: bool
) -> None:
    build, water = "mcp__garden__build_greenhouse", "mcp__garden__water_tomatoes"
    model = script([(build, {})], [(water, {})], "Watered.")
    told: list[Any] = []

    async def handler(message: Any) -> None:
        told.append(message)

    async def run() -> list[str]:
        garden = stdio(str(GROWING))
        garden.message_handler = handler
        # A connected server has its handler in the session already.
        tools = None if is_connected else McpTools(client, {"garden": garden})
        async with garden:
            if tools is None:
                tools = await McpTools.load(client, {"garden": garden})
            else:
                await tools.refresh()
            text = "build a greenhouse in the garden and water the tomatoes"
            return await said(Conversation(client, tools), model, text)

    assert asyncio.run(run()) == ["built", "watered"]
    assert [water in names for names in shown(model)] == [False, True, True]
    assert len(told) == 1, "a handler of one's own is told too"


def test_mistakes_are_refused_at_once(client: Client) -> None:
    bad: Any = {"tims": {}}
    with pytest.raises(ValueError, match="no MCP server tims: there is time"):
        asyncio.run(Conversation.from_mcp(client, {"time": time_server()}, register=bad))
    with pytest.raises(TypeError, match="McpTools"):
        asyncio.run(Conversation(client, []).refresh())

    async def misregistered() -> None:
        arguments: Any = {"time": {"etag": "no such version"}}
        async with time_server() as time:
            await McpTools.load(client, {"time": time}, register=arguments)

    with pytest.raises(ToolgateError):
        asyncio.run(misregistered())
