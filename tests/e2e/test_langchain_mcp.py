"""LangChain agents over real MCP servers, registered by the middleware itself."""

import asyncio
import json
import logging
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import grpc
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, SummarizationMiddleware
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
)
from langchain_mcp_adapters.client import MultiServerMCPClient
from langgraph.checkpoint.memory import InMemorySaver
from scripted_model import ScriptedModel, calls, says
from toolgate_process import ToolgateProcess
from waiting import PATIENCE

from toolgate import SEARCH_TOOL, AsyncClient, Client, ToolgateError
from toolgate.langchain import ToolgateMiddleware

CHANGING = Path(__file__).with_name("changing_mcp_server.py")
GROWING = Path(__file__).with_name("growing_mcp_server.py")
NOW = "mcp__time__get_current_time"
STATUS = "mcp__git__git_status"
SEARCH, CALL = SEARCH_TOOL.model_name, "toolgate_call_tool"


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
        mcp = servers(time=TIME, git=GIT)
        toolgate = await ToolgateMiddleware.from_mcp(client, mcp, deferral="always")
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
        async with AsyncClient(server.target, tenant=tenant, timeout=PATIENCE) as own:
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


@pytest.mark.parametrize("is_connected", [True, False], ids=["a session", "a session a call"])
def test_a_server_that_says_that_its_tools_changed_is_listed_anew(
    client: Client, tmp_path: Path, *, is_connected: bool
) -> None:
    build, water = "mcp__garden__build_greenhouse", "mcp__garden__water_tomatoes"
    text = "build a greenhouse in the garden and water the tomatoes"
    model = ScriptedModel(script=[calls((build, {})), calls((water, {})), says("Watered.")])
    mcp = servers(garden=stdio(str(GROWING), str(tmp_path / "grown")))

    async def run(source: Any) -> list[str]:
        toolgate = await ToolgateMiddleware.from_mcp(client, source, strategy="cut")
        agent = create_agent(model, middleware=[toolgate])
        return answers((await agent.ainvoke(asked(text)))["messages"])

    async def connected() -> list[str]:
        async with mcp.session("garden") as session:
            return await run({"garden": session})

    assert asyncio.run(connected() if is_connected else run(mcp)) == ["built", "watered"]
    assert [water in names for names in model.shown_tools] == [False, True, True]


def enveloped(*wanted: tuple[str, dict[str, Any]]) -> AIMessage:
    """Calls tools through the envelope."""
    return calls(*((CALL, {"name": name, "arguments": given}) for name, given in wanted))


def called(messages: list[AnyMessage] | list[BaseMessage]) -> list[str]:
    return [call["name"] for m in messages if isinstance(m, AIMessage) for call in m.tool_calls]


def described(messages: list[BaseMessage]) -> list[str]:
    """The names of the tools that a request's messages describe."""
    lines = [line for message in messages for line in message.text.split("\n")]
    return [json.loads(line)["name"] for line in lines if line.startswith('{"name":"mcp__')]


TOKYO = {"timezone": "Asia/Tokyo"}
CONVERT = "mcp__time__convert_time"


@pytest.fixture
def with_envelope(client: Client) -> Callable[..., Any]:
    """Makes agents with "envelope" over two servers, of which each turn is shown a tool or two."""

    async def make(model: ScriptedModel, *before: Any, saver: Any = None, **named: Any) -> Any:
        connections = servers(time=TIME, git=GIT)
        options = {"strategy": "envelope", "top_k": 1, "deferral": "always", **named}
        toolgate = await ToolgateMiddleware.from_mcp(client, connections, **options)
        return create_agent(model, middleware=[*before, toolgate], checkpointer=saver)

    return make


def test_tools_of_a_turn_are_described_and_called_through_the_envelope(
    with_envelope: Callable[..., Any],
) -> None:
    model = ScriptedModel(
        script=[
            enveloped((NOW, TOKYO)),
            says("Late."),
            enveloped((STATUS, {"repo_path": "/nowhere"})),
            says("There is none."),
        ]
    )
    thread: Any = {"configurable": {"thread_id": "1"}}

    async def run() -> list[AnyMessage]:
        agent = await with_envelope(model, saver=InMemorySaver())
        await agent.ainvoke(asked("what time is it in Tokyo right now?"), thread)
        result = await agent.ainvoke(asked("show me the git status of the working tree"), thread)
        messages: list[AnyMessage] = result["messages"]
        return messages

    messages = asyncio.run(run())
    assert model.shown_tools == [[SEARCH, CALL]] * 4
    assert described(model.shown_messages[0]) == [NOW]
    assert called(model.shown_messages[3]) == [CALL] * 2
    assert described(model.shown_messages[3]) == [NOW, STATUS]
    for before, after in pairwise(model.shown_messages):
        assert [m.content for m in after[: len(before)]] == [m.content for m in before]
    assert called(messages) == [NOW, STATUS], "the state has the tools' own names"
    assert not described(list(messages)), "and no descriptions"
    first, second = [m for m in messages if isinstance(m, ToolMessage)]
    assert "Asia/Tokyo" in first.text
    assert (first.name, second.name, second.status) == (NOW, STATUS, "error")


def test_parallel_calls_refusals_and_what_a_search_found(with_envelope: Callable[..., Any]) -> None:
    model = ScriptedModel(
        script=[
            enveloped((NOW, TOKYO), (NOW, {"zone": 1}), (CONVERT, {})),
            calls((CALL, {"arguments": TOKYO})),
            calls((SEARCH, {"query": f"select:{CONVERT}"})),
            enveloped(
                (CONVERT, {"source_timezone": "UTC", "time": "12:00", "target_timezone": "UTC"}),
                (NOW, {"timezone": "Europe/Oslo"}),
            ),
            calls((NOW, TOKYO)),
            says("Noon."),
        ]
    )

    async def run() -> list[AnyMessage]:
        agent = await with_envelope(model)
        result = await agent.ainvoke(asked("what is the current time in Tokyo?"))
        messages: list[AnyMessage] = result["messages"]
        return messages

    messages = asyncio.run(run())
    done = [m for m in messages if isinstance(m, ToolMessage)]
    assert [m.status for m in done[:3]].count("error") == 2
    errors = [json.loads(m.text)["error"] for m in done[:3] if m.status == "error"]
    assert sorted(errors) == ["arguments_invalid", "tool_not_available"]
    assert "`name` is missing" in json.loads(done[3].text)["message"]
    assert all(m.status == "success" for m in done[4:])
    assert [m.name for m in done[4:]] == [SEARCH, CONVERT, NOW, NOW]
    assert described(model.shown_messages[3]) == [NOW, CONVERT]
    assert called(messages)[-4:] == [SEARCH, CONVERT, NOW, NOW]
    sent = [m for m in model.shown_messages[-1] if isinstance(m, AIMessage)]
    assert sent[-1].tool_calls[0]["args"] == {"name": NOW, "arguments": TOKYO}
    assert model.shown_tools == [[SEARCH, CALL]] * 6


def test_a_conversation_with_envelopes_goes_on_elsewhere_and_after_a_summary(
    with_envelope: Callable[..., Any],
) -> None:
    script = [enveloped((NOW, TOKYO)), says("Late."), enveloped((NOW, TOKYO)), says("Later.")]
    model = ScriptedModel(script=script)
    summary = ScriptedModel(script=[says("The time was told.")] * 9)
    saver = InMemorySaver()
    thread: Any = {"configurable": {"thread_id": "1"}}

    async def run() -> None:
        for text in ("what time is it in Tokyo right now?", "and now, the time in Tokyo?"):
            summarise = SummarizationMiddleware(
                model=summary, trigger=("messages", 5), keep=("messages", 1)
            )
            agent = await with_envelope(model, summarise, saver=saver)
            await agent.ainvoke(asked(text), thread)

    asyncio.run(run())
    after = model.shown_messages[2]
    assert called(after) == [], "the call is gone from the messages"
    assert described(after) == [NOW], "its tool is described once more"
    assert model.shown_tools == [[SEARCH, CALL]] * 4
    assert "Asia/Tokyo" in model.shown_messages[3][-1].text


def test_an_agent_with_envelopes_streams_the_tools_own_calls(
    with_envelope: Callable[..., Any],
) -> None:
    model = ScriptedModel(script=[enveloped((NOW, TOKYO)), says("It is late.")])
    pieces: list[Any] = []
    messages: list[AnyMessage] = []

    async def run() -> None:
        agent = await with_envelope(model)
        text = asked("what time is it in Tokyo right now?")
        async for mode, step in agent.astream(text, stream_mode=["values", "messages"]):
            if mode == "messages":
                pieces.append(step[0])
            else:
                messages[:] = step["messages"]

    asyncio.run(run())
    assert called(messages) == [NOW]
    assert "Asia/Tokyo" in answers(messages)[0]
    said = [one for one in pieces if isinstance(one, AIMessageChunk)]
    calls_in = [piece["name"] for one in said for piece in one.tool_call_chunks]
    assert calls_in == [CALL, None], "pieces are streamed as the model writes them"
    assert [one.text for one in said if one.text] == ["It", " is late."]
    assert [one.name for one in pieces if isinstance(one, ToolMessage)] == [NOW]


def test_other_middleware_sees_the_tools_own_calls_by_default(client: Client) -> None:
    approve = HumanInTheLoopMiddleware(interrupt_on={NOW: True})
    model = ScriptedModel(script=[enveloped((NOW, TOKYO)), says("Late.")])

    async def run() -> Any:
        options: dict[str, Any] = {"top_k": 1, "deferral": "always"}
        mcp = servers(time=TIME)
        toolgate = await ToolgateMiddleware.from_mcp(client, mcp, **options)
        agent = create_agent(model, middleware=[toolgate, approve], checkpointer=InMemorySaver())
        thread: Any = {"configurable": {"thread_id": "1"}}
        return await agent.ainvoke(asked("what time is it in Tokyo right now?"), thread)

    (waits,) = asyncio.run(run())["__interrupt__"]
    assert waits.value["action_requests"][0]["name"] == NOW


def test_with_auto_and_without_deferral_tools_are_defined(
    with_envelope: Callable[..., Any],
) -> None:
    model = ScriptedModel(script=[calls((NOW, TOKYO)), says("Late.")] * 2)

    async def run(**named: Any) -> list[AnyMessage]:
        agent = await with_envelope(model, strategy="auto", **named)
        result = await agent.ainvoke(asked("what time is it in Tokyo right now?"))
        messages: list[AnyMessage] = result["messages"]
        return messages

    for named in ({"deferral": "off"}, {"search": False, "deferral": "always"}):
        assert "Asia/Tokyo" in answers(asyncio.run(run(**named)))[0]
    all_of_them, chosen = model.shown_tools[0], model.shown_tools[2]
    assert {NOW, STATUS} <= set(all_of_them)
    assert chosen == [NOW]
    assert CALL not in all_of_them


def test_while_toolgate_is_gone_the_described_tools_stay(
    client: Client, with_envelope: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    route, routes = client.route, iter([True, False])

    def routed(*given: Any, **named: Any) -> Any:
        if next(routes):
            return route(*given, **named)
        raise ToolgateError(grpc.StatusCode.UNAVAILABLE, "gone")

    monkeypatch.setattr(client, "route", routed)
    model = ScriptedModel(script=[enveloped((NOW, TOKYO)), says("Late.")])

    async def run() -> None:
        await (await with_envelope(model)).ainvoke(asked("what time is it in Tokyo right now?"))

    asyncio.run(run())
    assert [described(messages) for messages in model.shown_messages] == [[NOW], [NOW]]
    assert called(model.shown_messages[1]) == [CALL]
    assert model.shown_tools == [[SEARCH, CALL]] * 2


def test_mistakes_are_refused_at_once(client: Client) -> None:
    with pytest.raises(ValueError, match="no MCP server tims: the client has time"):
        asyncio.run(ToolgateMiddleware.from_mcp(client, servers(time=TIME), servers=["tims"]))
    made = ToolgateMiddleware(client, [])
    with pytest.raises(TypeError, match="from_mcp"):
        asyncio.run(made.refresh())
    bad: Any = {"time": {"etag": "no such version"}}
    with pytest.raises(ToolgateError):
        asyncio.run(ToolgateMiddleware.from_mcp(client, servers(time=TIME), register=bad))
    known = 'strategy is one of "auto", "cut", "envelope", "pass", "native", not '
    with pytest.raises(ValueError, match=f"{known}'cheap'$"):
        ToolgateMiddleware(client, [], strategy="cheap")
