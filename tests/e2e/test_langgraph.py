"""LangGraph graphs of one's own, without `create_agent`, over real MCP servers."""

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from catalogs import SHIPPED
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_mcp_adapters.client import MultiServerMCPClient
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import tools_condition
from mcp_sessions import sessions
from scripted_model import ScriptedModel, calls, says
from toolgate_process import ToolgateProcess
from waiting import PATIENCE

from toolgate import SEARCH_TOOL, AsyncClient, Client
from toolgate.langchain import (
    ToolgateMiddleware,
    ToolgateState,
    calls_condition,
    mcp_definitions,
    model_facing,
    model_node,
    tool_node,
)

NOW, CONVERT = "mcp__time__get_current_time", "mcp__time__convert_time"
STATUS = "mcp__git__git_status"
SEARCH, CALL = SEARCH_TOOL.model_name, "toolgate_call_tool"
TOKYO, OSLO = {"timezone": "Asia/Tokyo"}, {"timezone": "Europe/Oslo"}
THREAD: Any = {"configurable": {"thread_id": "1"}}


def stdio(module: str) -> Any:
    return {"transport": "stdio", "command": sys.executable, "args": ["-m", module]}


def graph_of(
    toolgate: ToolgateMiddleware,
    model: ScriptedModel,
    *,
    edge: Callable[[Any], str] = calls_condition,
    saver: Any = None,
    own: Any = (),
    **named: Any,
) -> Any:
    graph = StateGraph(ToolgateState)
    graph.add_node("model", model_node(toolgate, model, own, **named))
    graph.add_node("tools", tool_node(toolgate, own))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", edge, ["tools", "model", "__end__"])
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=saver)


async def over_servers(client: Client | AsyncClient, **options: Any) -> ToolgateMiddleware:
    mcp = MultiServerMCPClient({"time": stdio("mcp_server_time"), "git": stdio("mcp_server_git")})
    options = {"top_k": 1, "deferral": "always", **options}
    return await ToolgateMiddleware.from_mcp(client, mcp, **options)


def asked(text: str) -> Any:
    return {"messages": [HumanMessage(text)]}


def answers(messages: list[AnyMessage]) -> list[ToolMessage]:
    return [message for message in messages if isinstance(message, ToolMessage)]


def called(messages: list[Any]) -> list[str]:
    return [call["name"] for m in messages if isinstance(m, AIMessage) for call in m.tool_calls]


def test_a_checkpointed_graph_goes_on_with_parallel_calls_of_which_one_is_refused(
    client: Client,
) -> None:
    model = ScriptedModel(
        script=[
            calls((NOW, TOKYO), (NOW, {"city": "Oslo"})),
            calls((NOW, OSLO)),
            says("Late, and noon."),
            calls((STATUS, {"repo_path": "/nowhere"})),
            says("There is none."),
        ]
    )
    saver = InMemorySaver()

    async def run() -> list[AnyMessage]:
        graph = graph_of(await over_servers(client), model, saver=saver)
        await graph.ainvoke(asked("what time is it in Tokyo and Oslo right now?"), THREAD)
        elsewhere = graph_of(await over_servers(client), model, saver=saver)
        result = await elsewhere.ainvoke(asked("show me the git status here"), THREAD)
        messages: list[AnyMessage] = result["messages"]
        return messages

    messages = asyncio.run(run())
    refused, tokyo, oslo, status = answers(messages)
    assert json.loads(refused.text)["error"] == "arguments_invalid"
    assert ("Asia/Tokyo" in tokyo.text, "Europe/Oslo" in oslo.text) == (True, True)
    assert status.name == STATUS
    # From the second request on, tools are described in the messages: the list stays as it is.
    assert model.shown_tools == [[SEARCH, NOW]] + [[SEARCH, "toolgate_call_tool"]] * 4
    assert called(messages) == [NOW, NOW, NOW, STATUS]


def test_a_call_that_was_refused_never_runs_whatever_the_edges_are(client: Client) -> None:
    ran: list[str] = []

    @tool
    def add_event(title: str, hour: int) -> str:
        """Add an event to today's calendar."""
        ran.append(f"{title} {hour}")
        return "added"

    def always_tools(state: ToolgateState) -> str:
        message = next(m for m in reversed(state["messages"]) if isinstance(m, AIMessage))
        return tools_condition([message])

    client.register_server("calendar", mcp_definitions([add_event]))
    managed = model_facing([add_event], client.list_tools("calendar"))
    add = managed[0].name
    model = ScriptedModel(
        script=[
            calls((add, {"title": "Lunch", "hour": "noon"}), (add, {"title": "Tea", "hour": 16})),
            calls((add, {"title": "Lunch", "hour": "noon"})),
            calls((add, {"title": "Lunch", "hour": 12})),
            says("Added."),
        ]
    )
    toolgate = ToolgateMiddleware(client, managed)
    result = graph_of(toolgate, model, edge=always_tools).invoke(asked("add lunch at noon"))
    assert ran == ["Tea 16", "Lunch 12"]
    statuses = [answer.status for answer in answers(result["messages"])]
    assert statuses == ["error", "success", "error", "success"], "one answer to each call"


def test_a_refusal_alone_goes_back_to_the_model_and_a_search_shows_what_it_found(
    server: ToolgateProcess, tenant: str
) -> None:
    model = ScriptedModel(
        script=[
            calls(("mcp__time__tell_fortune", {})),
            calls((SEARCH, {"query": f"select:{CONVERT}"})),
            calls((CONVERT, {"source_timezone": "UTC", "time": "12:00", "target_timezone": "UTC"})),
            says("Noon."),
        ]
    )

    async def run() -> Any:
        async with AsyncClient(server.target, tenant=tenant, timeout=PATIENCE) as own:
            graph = graph_of(await over_servers(own, strategy="cut"), model)
            steps = graph.astream(asked("what is the current time in Tokyo?"))
            return [name async for step in steps for name in step]

    assert asyncio.run(run()) == ["model"] * 3 + ["tools", "model"]
    assert CONVERT not in model.shown_tools[1]
    assert CONVERT in model.shown_tools[2]


def test_with_the_envelope_definitions_and_prefix_stay(client: Client) -> None:
    model = ScriptedModel(
        script=[
            calls((CALL, {"name": NOW, "arguments": TOKYO})),
            says("Late."),
            calls((CALL, {"name": STATUS, "arguments": {"repo_path": "/nowhere"}})),
            says("There is none."),
        ]
    )

    async def run() -> list[AnyMessage]:
        toolgate = await over_servers(client, strategy="envelope")
        graph = graph_of(toolgate, model, saver=InMemorySaver(), prompt="Be brief.")
        await graph.ainvoke(asked("what time is it in Tokyo right now?"), THREAD)
        result = await graph.ainvoke(asked("show me the git status here"), THREAD)
        messages: list[AnyMessage] = result["messages"]
        return messages

    messages = asyncio.run(run())
    assert called(messages) == [NOW, STATUS], "the state has the tools' own names"
    assert "Asia/Tokyo" in answers(messages)[0].text
    assert model.shown_tools == [[SEARCH, CALL]] * 4
    assert {shown[0].text for shown in model.shown_messages} == {"Be brief."}
    for before, after in pairwise(model.shown_messages):
        assert [m.content for m in after[: len(before)]] == [m.content for m in before]


def test_tools_of_the_graphs_own_are_shown_and_run(client: Client) -> None:
    @tool
    def roll_dice() -> str:
        """Roll a die."""
        return "four"

    model = ScriptedModel(script=[calls(("roll_dice", {})), says("A four.")])

    async def run() -> Any:
        graph = graph_of(await over_servers(client), model, own=[roll_dice])
        return await graph.ainvoke(asked("what time is it in Tokyo right now?"))

    (answer,) = answers(asyncio.run(run())["messages"])
    assert answer.text == "four"
    assert model.shown_tools[0] == ["roll_dice", SEARCH, NOW]


BUILD, WATER = "mcp__garden__build_greenhouse", "mcp__garden__water_tomatoes"
CATALOG, GROWING = (
    str(Path(__file__).with_name(f"{name}_mcp_server.py")) for name in ("catalog", "growing")
)
SERVERS = {
    "time": ["-m", "mcp_server_time"],
    "garden": [GROWING],
    "git": [CATALOG, str(SHIPPED / "git.json")],
    "filesystem": [CATALOG, str(SHIPPED / "filesystem.json")],
}


@dataclass
class Played:
    """A conversation with the defaults."""

    model: ScriptedModel
    messages: list[AnyMessage] = field(default_factory=list)
    """The graph's state at its end."""
    streamed: list[Any] = field(default_factory=list)
    """The messages of `stream_mode="messages"`."""

    def shows(self, name: str) -> list[bool]:
        """Tells of each request if it defines or describes a tool."""
        requests = zip(self.model.shown_tools, self.model.shown_messages, strict=True)
        opening = f'{{"name":"{name}"'
        return [
            name in tools or any(opening in message.text for message in messages)
            for tools, messages in requests
        ]


@pytest.fixture(scope="module")
def played(server: ToolgateProcess) -> dict[str, Played]:
    """Conversations of one graph over the same MCP servers, with the defaults."""
    tokyo = "what time is it in Tokyo right now?"
    talks = {
        "changes": (
            "build a greenhouse in the garden and water the tomatoes",
            [calls((BUILD, {})), calls((WATER, {})), says("Watered.")],
        ),
        "an error": (
            tokyo,
            [calls((NOW, {"timezone": "Nowhere/Atlantis"})), calls((NOW, TOKYO)), says("Late.")],
        ),
        "streamed": (
            tokyo,
            [calls((CALL, {"name": NOW, "arguments": TOKYO})), says("It is late.")],
        ),
    }

    async def run() -> dict[str, Played]:
        async with (
            sessions(SERVERS) as connected,
            AsyncClient(server.target, tenant="langgraph-defaults", timeout=PATIENCE) as client,
        ):
            toolgate = await ToolgateMiddleware.from_mcp(client, connected)
            played = {}
            for name, (text, script) in talks.items():
                played[name] = talk = Played(ScriptedModel(script=script))
                graph = graph_of(toolgate, talk.model)
                modes = ["values", "messages"]
                async for mode, step in graph.astream(asked(text), stream_mode=modes):
                    if mode == "values":
                        talk.messages = step["messages"]
                    else:
                        talk.streamed.append(step[0])
            return played

    return asyncio.run(run())


def test_by_default_a_tool_that_comes_amid_a_run_is_shown_and_called(
    played: dict[str, Played],
) -> None:
    talk = played["changes"]
    assert talk.shows(BUILD)[0]
    assert talk.shows(WATER) == [False, True, True]
    assert [answer.text for answer in answers(talk.messages)] == ["built", "watered"]


def test_by_default_an_error_of_a_tool_is_told_and_mended(played: dict[str, Played]) -> None:
    talk = played["an error"]
    failed, told = answers(talk.messages)
    assert (failed.status, told.status) == ("error", "success")
    assert "Invalid timezone" in failed.text
    assert "Asia/Tokyo" in told.text
    assert talk.shows(NOW) == [True] * 3
    assert talk.shows(STATUS) == [False] * 3, "the others are deferred"


def test_by_default_calls_and_texts_are_streamed_as_the_model_writes_them(
    played: dict[str, Played],
) -> None:
    talk = played["streamed"]
    pieces = [one for one in talk.streamed if isinstance(one, AIMessageChunk)]
    called_in = [piece for one in pieces for piece in one.tool_call_chunks]
    assert [piece["name"] for piece in called_in] == [CALL, None]
    given = json.loads("".join(piece["args"] or "" for piece in called_in))
    assert given == {"name": NOW, "arguments": TOKYO}
    assert [one.text for one in pieces if one.text] == ["It", " is late."]
    (answer,) = answers(talk.streamed)
    assert (answer.name, "Asia/Tokyo" in answer.text) == (NOW, True)
    assert called(talk.messages) == [NOW], "the state has the tool's own call"
