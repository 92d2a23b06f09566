"""LangChain agents over real MCP servers, registered by the middleware itself."""

import asyncio
import logging
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage
from langchain_mcp_adapters.client import MultiServerMCPClient
from langgraph.checkpoint.memory import InMemorySaver
from scripted_model import ScriptedModel, calls, says
from toolgate_process import ToolgateProcess

from toolgate import AsyncClient, Client, ToolgateError
from toolgate.langchain import ToolgateMiddleware

CHANGING = Path(__file__).with_name("changing_mcp_server.py")
NOW = "mcp__time__get_current_time"
STATUS = "mcp__git__git_status"


def stdio(*arguments: str) -> dict[str, Any]:
    return {"transport": "stdio", "command": sys.executable, "args": [*arguments]}


def servers(**connections: Any) -> MultiServerMCPClient:
    return MultiServerMCPClient(connections)


TIME = stdio("-m", "mcp_server_time")
GIT = stdio("-m", "mcp_server_git")


def asked(text: str) -> Any:
    return {"messages": [HumanMessage(text)]}


def answers(messages: list[AnyMessage]) -> list[str]:
    return [message.text for message in messages if isinstance(message, ToolMessage)]


def test_an_agent_calls_tools_of_real_servers(client: Client) -> None:
    model = ScriptedModel(script=[calls((NOW, {"timezone": "Asia/Tokyo"})), says("Late.")])

    async def run() -> list[AnyMessage]:
        toolgate = await ToolgateMiddleware.from_mcp(client, servers(time=TIME, git=GIT))
        agent = create_agent(model, middleware=[toolgate])
        result = await agent.ainvoke(asked("what time is it in Tokyo right now?"))
        messages: list[AnyMessage] = result["messages"]
        return messages

    (answer,) = answers(asyncio.run(run()))
    assert "Asia/Tokyo" in answer
    assert NOW in model.shown_tools[0]
    assert STATUS not in model.shown_tools[0]
    registered = {tool.name: tool.definition for tool in client.list_tools("git")}
    assert registered["git_status"]["annotations"]["readOnlyHint"] is True
    assert "title" not in registered["git_status"], "what the server did not say is not registered"


def test_an_asynchronous_client_registers_too(server: ToolgateProcess, tenant: str) -> None:
    model = ScriptedModel(script=[calls((NOW, {"timezone": "Europe/Oslo"})), says("Noon.")])

    async def run() -> list[AnyMessage]:
        async with AsyncClient(server.target, tenant=tenant, timeout=30) as own:
            toolgate = await ToolgateMiddleware.from_mcp(own, servers(time=TIME))
            agent = create_agent(model, middleware=[toolgate])
            result = await agent.ainvoke(asked("the current time in Oslo?"))
            messages: list[AnyMessage] = result["messages"]
            return messages

    assert "Europe/Oslo" in answers(asyncio.run(run()))[0]


def test_lost_servers_are_registered_again(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    model = ScriptedModel(
        script=[
            says("Hello."),
            calls((NOW, {"timezone": "Asia/Tokyo"})),
            says("Late."),
        ]
    )

    async def run() -> list[AnyMessage]:
        toolgate = await ToolgateMiddleware.from_mcp(client, servers(time=TIME))
        agent = create_agent(model, middleware=[toolgate], checkpointer=InMemorySaver())
        thread: Any = {"configurable": {"thread_id": "1"}}
        await agent.ainvoke(asked("what time is it in Oslo?"), thread)
        await asyncio.to_thread(client.unregister_server, "time")
        result = await agent.ainvoke(asked("what time is it in Tokyo right now?"), thread)
        messages: list[AnyMessage] = result["messages"]
        return messages

    with caplog.at_level(logging.WARNING, "toolgate.langchain"):
        (answer,) = answers(asyncio.run(run()))
    assert "Asia/Tokyo" in answer
    assert "registered again" in caplog.text
    assert [server.name for server in client.list_servers()] == ["time"]


def test_a_server_that_cannot_start_is_left_out(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    broken = stdio("-c", "raise SystemExit(3)")

    async def run() -> ToolgateMiddleware:
        return await ToolgateMiddleware.from_mcp(client, servers(time=TIME, broken=broken))

    with caplog.at_level(logging.WARNING, "toolgate.langchain"):
        toolgate = asyncio.run(run())
    assert NOW in {tool.name for tool in toolgate.tools}
    assert "MCP server broken can't be listed" in caplog.text
    assert client.route("what is broken?").pending_servers == ("broken",)


def test_changes_of_a_server_are_followed(client: Client, tmp_path: Path) -> None:
    names = tmp_path / "names.txt"
    names.write_text("water_tomatoes")
    water, mow = "mcp__garden__water_tomatoes", "mcp__garden__mow_lawn"
    model = ScriptedModel(
        script=[
            calls((water, {"text": "rain"})),
            says("Watered."),
            calls((water, {"text": "rain"}), (mow, {"text": "grass"})),
            says("Mown."),
        ]
    )

    async def run() -> list[AnyMessage]:
        garden = servers(garden=stdio(str(CHANGING), str(names)))
        toolgate = await ToolgateMiddleware.from_mcp(client, garden)
        agent = create_agent(model, middleware=[toolgate])
        result = await agent.ainvoke(asked("water the tomatoes in the garden shed"))
        messages: list[AnyMessage] = result["messages"]
        names.write_text("mow_lawn")
        await toolgate.refresh()
        result = await agent.ainvoke(asked("mow the lawn in the garden shed"))
        messages += result["messages"]
        return messages

    watered, *others = answers(asyncio.run(run()))
    assert watered == "water_tomatoes has rain"
    assert "mow_lawn has grass" in others
    assert not any("water_tomatoes has" in answer for answer in others), "it is gone"
    assert mow in model.shown_tools[2]
    assert water not in model.shown_tools[2]


def test_mistakes_are_refused_at_once(client: Client) -> None:
    with pytest.raises(ValueError, match="no MCP server tims: the client has time"):
        asyncio.run(ToolgateMiddleware.from_mcp(client, servers(time=TIME), servers=["tims"]))
    made = ToolgateMiddleware(client, [])
    with pytest.raises(TypeError, match="from_mcp"):
        asyncio.run(made.refresh())
    bad: Any = {"time": {"etag": "no such version"}}
    with pytest.raises(ToolgateError):
        asyncio.run(ToolgateMiddleware.from_mcp(client, servers(time=TIME), register=bad))
