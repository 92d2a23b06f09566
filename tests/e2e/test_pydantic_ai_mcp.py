"""Pydantic AI agents over real MCP servers, registered by the capability itself."""

import asyncio
import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest
from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent, FunctionToolset, ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from toolgate_process import ToolgateProcess
from waiting import PATIENCE

from toolgate import AsyncClient, Client, ToolgateError, ToolSettings, has_prior_tool_output
from toolgate.pydantic_ai import Toolgate

CHANGING = Path(__file__).with_name("changing_mcp_server.py")
GROWING = Path(__file__).with_name("growing_mcp_server.py")
NOW = "mcp__time__get_current_time"
CONVERT = "mcp__time__convert_time"
STATUS = "mcp__git__git_status"
CONVERSION = {"source_timezone": "Asia/Tokyo", "time": "12:00", "target_timezone": "Europe/Oslo"}

Step = str | list[tuple[str, dict[str, Any]]]


class Script:
    """Answers with texts and calls in turn; keeps which tools it was shown."""

    def __init__(self, *steps: Step) -> None:
        self.shown: list[list[str]] = []
        self._steps = iter(steps)

    def agent(self, toolgate: Toolgate) -> Agent[None, str]:
        return Agent(FunctionModel(self._answer), capabilities=[toolgate])

    def _answer(self, _messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.shown.append([tool.name for tool in info.function_tools])
        step = next(self._steps)
        if isinstance(step, str):
            return ModelResponse([TextPart(step)])
        return ModelResponse([ToolCallPart(name, arguments) for name, arguments in step])


def stdio(*arguments: str) -> MCPToolset[None]:
    transport = StdioTransport(sys.executable, [*arguments])
    return MCPToolset(transport, tool_error_behavior="failed", init_timeout=60)


def time_server() -> MCPToolset[None]:
    return stdio("-m", "mcp_server_time")


def answers(messages: list[ModelMessage]) -> list[str]:
    return [
        part.model_response_str(wrap_if_error=False)
        for message in messages
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]


def test_an_agent_calls_tools_of_real_servers(client: Client) -> None:
    script = Script([(NOW, {"timezone": "Asia/Tokyo"})], "Late.")
    servers = {"time": time_server(), "git": stdio("-m", "mcp_server_git")}
    toolgate = Toolgate.from_mcp(client, servers, deferral="always")
    result = script.agent(toolgate).run_sync("what time is it in Tokyo right now?")
    (answered,) = answers(result.all_messages())
    assert "Asia/Tokyo" in answered
    assert NOW in script.shown[0]
    assert STATUS not in script.shown[0]
    registered = {tool.name: tool.definition for tool in client.list_tools("git")}
    assert registered["git_status"]["annotations"]["readOnlyHint"] is True
    assert "title" not in registered["git_status"], "what the server did not say is not registered"


def test_one_instance_serves_many_runs_side_by_side(server: ToolgateProcess, tenant: str) -> None:
    scripts = [Script([(NOW, {"timezone": "Europe/Oslo"})], "Noon.") for _ in range(2)]

    async def run() -> list[str]:
        async with AsyncClient(server.target, tenant=tenant, timeout=PATIENCE) as own:
            toolgate = Toolgate.from_mcp(own, {"time": time_server()})
            runs = (script.agent(toolgate).run("the current time in Oslo?") for script in scripts)
            results = await asyncio.gather(*runs)
            return [text for result in results for text in answers(result.all_messages())]

    assert ["Europe/Oslo" in answered for answered in asyncio.run(run())] == [True, True]


def test_a_result_that_the_server_calls_an_error_unlocks_nothing(client: Client) -> None:
    settings = [ToolSettings("convert_time", precondition=has_prior_tool_output(NOW))]
    convert = [(CONVERT, CONVERSION)]
    script = Script(
        [(NOW, {"timezone": "Nowhere/Atlantis"})],
        convert,
        [(NOW, {"timezone": "Asia/Tokyo"})],
        convert,
        "Five.",
    )
    toolgate = Toolgate.from_mcp(
        client, {"time": time_server()}, register={"time": {"tool_settings": settings}}
    )
    result = script.agent(toolgate).run_sync("what time is it in Tokyo? convert it to Oslo")
    failed, refused, told, converted = answers(result.all_messages())
    assert "Invalid timezone" in failed
    assert json.loads(refused)["error"] == "precondition_unmet"
    assert "Asia/Tokyo" in told
    assert "time_difference" in converted


def test_lost_servers_are_registered_again(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    script = Script("Hello.", [(NOW, {"timezone": "Asia/Tokyo"})], "Late.")
    agent = script.agent(Toolgate.from_mcp(client, {"time": time_server()}))

    async def run() -> list[str]:
        async with agent:
            first = await agent.run("what time is it in Oslo?")
            await asyncio.to_thread(client.unregister_server, "time")
            text = "what time is it in Tokyo right now?"
            result = await agent.run(text, message_history=first.all_messages())
            return answers(result.all_messages())

    with caplog.at_level(logging.WARNING, "toolgate.pydantic_ai"):
        (answered,) = asyncio.run(run())
    assert "Asia/Tokyo" in answered
    assert "registered again" in caplog.text
    assert [server.name for server in client.list_servers()] == ["time"]


def test_a_server_that_cannot_start_is_left_out(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    broken = stdio("-c", "raise SystemExit(3)")
    script = Script([(NOW, {"timezone": "Asia/Tokyo"})], "Late.")
    toolgate = Toolgate.from_mcp(client, {"time": time_server(), "broken": broken})
    with caplog.at_level(logging.WARNING, "toolgate.pydantic_ai"):
        result = script.agent(toolgate).run_sync("what time is it in Tokyo right now?")
    assert "Asia/Tokyo" in answers(result.all_messages())[0]
    assert "MCP server broken can't be listed" in caplog.text
    assert client.route("what is broken?").pending_servers == ("broken",)


def test_changes_of_a_server_are_followed(client: Client, tmp_path: Path) -> None:
    names = tmp_path / "names.txt"
    names.write_text("water_tomatoes")
    water, mow = "mcp__garden__water_tomatoes", "mcp__garden__mow_lawn"
    script = Script(
        [(water, {"text": "rain"})],
        "Watered.",
        [(water, {"text": "rain"}), (mow, {"text": "grass"})],
        "Mown.",
    )
    garden = MCPToolset[None](
        StdioTransport(sys.executable, [str(CHANGING), str(names)], keep_alive=False),
        init_timeout=60,
    )
    agent = script.agent(Toolgate.from_mcp(client, {"garden": garden}))
    (watered,) = answers(agent.run_sync("water the tomatoes in the garden shed").all_messages())
    names.write_text("mow_lawn")
    others = answers(agent.run_sync("mow the lawn in the garden shed").all_messages())
    assert watered == "water_tomatoes has rain"
    assert "mow_lawn has grass" in others
    assert not any("water_tomatoes has" in answered for answered in others), "it is gone"
    assert mow in script.shown[2]
    assert water not in script.shown[2]


def test_a_server_that_says_that_its_tools_changed_is_listed_anew(client: Client) -> None:
    build, water = "mcp__garden__build_greenhouse", "mcp__garden__water_tomatoes"
    script = Script([(build, {})], [(water, {})], "Watered.")
    agent = script.agent(Toolgate.from_mcp(client, {"garden": stdio(str(GROWING))}))
    result = agent.run_sync("build a greenhouse in the garden and water the tomatoes")
    assert answers(result.all_messages()) == ["built", "watered"]
    assert [water in names for names in script.shown] == [False, True, True]


def test_mistakes_are_refused_at_once(client: Client) -> None:
    bad: Any = {"tims": {}}
    with pytest.raises(ValueError, match="no MCP server tims: there is time"):
        Toolgate.from_mcp(client, {"time": time_server()}, register=bad)
    with pytest.raises(ValueError, match="desk: takes the toolset of one MCP server"):
        Toolgate.from_mcp(client, {"desk": FunctionToolset[Any]()})
    arguments: Any = {"time": {"etag": "no such version"}}
    toolgate = Toolgate.from_mcp(client, {"time": time_server()}, register=arguments)
    with pytest.raises(ToolgateError):
        Script("Hello.").agent(toolgate).run_sync("hello")
