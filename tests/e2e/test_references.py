"""What requests to a provider say of tools that are searched for: references, betas, the search."""

import json
from typing import Any

import pytest
from catalogs import NOTES, WEATHER
from conftest import StartServer

from toolgate import SEARCH_TOOL, Client, ModelRequest, RenderOptions, RouteResult

FORECAST = "mcp__weather__get_forecast"
FIND = "mcp__notes__find_notes"
MODEL, OLDER = "claude-opus-5-5", "claude-haiku-4-5"
ASK = {"role": "user", "content": "will it rain in Oslo?"}
REFERENCE = {"type": "tool_reference", "tool_name": FORECAST}
LOADED = {"type": "text", "text": "Tool loaded."}

Message = dict[str, Any]


def calling(*tools: str) -> Message:
    """The model's calls, numbered from 0."""
    use = [
        {"type": "tool_use", "id": f"toolu_{at}", "name": tool, "input": {}}
        for at, tool in enumerate(tools)
    ]
    return {"role": "assistant", "content": use}


def result(content: Any, call: int = 0) -> Message:
    return {"type": "tool_result", "tool_use_id": f"toolu_{call}", "content": content}


def user(*content: Message) -> Message:
    return {"role": "user", "content": list(content)}


def route(client: Client, messages: list[Message], **arguments: Any) -> RouteResult:
    """Route as an agent calls it that lets Toolgate choose how tools stand in the request."""
    return client.route(
        ASK["content"],
        **{
            "state": {"messages": messages},
            "model": MODEL,
            "render": RenderOptions("anthropic", strategy="auto", search_tool=True),
            **arguments,
        },
    )


def names(request: ModelRequest) -> list[str]:
    return [tool["name"] for tool in request.tools]


def test_b14_route_takes_references_out_that_the_request_can_not_resolve(notes: Client) -> None:
    searched = [ASK, calling(SEARCH_TOOL.model_name), user(result([REFERENCE]))]
    gone = {"type": "tool_reference", "tool_name": "mcp__gone__tool"}
    both = [ASK, calling(SEARCH_TOOL.model_name), user(result([gone, REFERENCE]))]
    assert route(notes, both).request.messages == route(notes, searched).request.messages
    assert '"tool_reference"' in json.dumps(route(notes, searched).request.messages)
    chat = RenderOptions("openai_chat", strategy="auto", search_tool=True)
    for unable in ({"model": OLDER}, {"render": chat}):
        sent = route(notes, searched, **unable).request.messages
        assert '"tool_reference"' not in json.dumps(sent), unable
        assert '"toolu_0"' in json.dumps(sent), "calls stay in pairs with their results"
    notes.unregister_server("weather")
    sent = route(notes, searched).request.messages
    assert '"tool_reference"' not in json.dumps(sent)


def test_b17_a_message_that_only_loads_tools_says_so(notes: Client) -> None:
    loads = user(result([REFERENCE]))
    request = route(notes, [ASK, calling(SEARCH_TOOL.model_name), loads]).request
    assert request.messages[-1] == user(result([REFERENCE]), LOADED)
    answered = user(result("two notes"))
    request = route(notes, [ASK, calling(FIND), answered]).request
    assert request.messages[-1] == answered, "a result is no end of a turn"


def test_b17_a_text_beside_references_moves_to_the_last_result_that_takes_it(
    notes: Client,
) -> None:
    text = {"type": "text", "text": "And tomorrow?"}
    made = calling(FIND, SEARCH_TOOL.model_name)
    said = user(result("two notes", 0), result([REFERENCE], 1), text)
    request = route(notes, [ASK, made, said]).request
    both = [{"type": "text", "text": "two notes"}, text]
    assert request.messages[-1] == user(result(both, 0), result([REFERENCE], 1))


def test_b18_where_the_request_can_not_be_searched_in_all_tools_go(notes: Client) -> None:
    every = {f"mcp__notes__{tool['name']}" for tool in NOTES}
    every |= {f"mcp__weather__{tool['name']}" for tool in WEATHER}
    offered = route(notes, [ASK])
    assert offered.deferral.offer_search
    assert SEARCH_TOOL.model_name in names(offered.request)
    assert not every <= set(names(offered.request))
    without_search = RenderOptions("anthropic", strategy="auto")
    for refused in (
        {"render": without_search},
        {"model_base_url": "https://llm.corp.example/v1"},
        {"deferral": "off"},
    ):
        request = route(notes, [ASK], **refused).request
        assert set(names(request)) == every, refused
        assert request.strategy == "PASS"


def test_b19_the_kill_switch_leaves_no_search_and_no_beta(start_server: StartServer) -> None:
    settings = {"deferral.kill_switch": "true"}
    with start_server(settings).client() as client:
        client.register_server("notes", NOTES)
        client.register_server("weather", WEATHER)
        turn = route(client, [ASK], deferral="always")
    assert not turn.deferral.offer_search
    assert turn.request.betas == ()
    assert SEARCH_TOOL.model_name not in names(turn.request)
    assert len(turn.request.tools) == len(NOTES) + len(WEATHER)
    assert turn.request.messages == [ASK]


def test_b20_the_search_names_what_is_deferred_until_the_catalog_changes(client: Client) -> None:
    native = RenderOptions("anthropic", strategy="native", search_tool=True)
    client.register_server("notes", NOTES)
    first = route(client, [ASK], render=native, top_k=1, threshold=-1).request
    (search,) = first.tools
    assert all(tool["name"] in search["description"] for tool in NOTES)
    assert first.betas, "named from the first request on, since the provider caches by them"
    more = [ASK, {"role": "assistant", "content": "It will."}, {**ASK, "content": "Note that."}]
    later = route(client, more, render=native, top_k=2, threshold=-1).request
    assert (later.tools, later.betas) == (first.tools, first.betas)
    client.register_server("weather", WEATHER)
    (changed,) = route(client, more, render=native).request.tools
    assert all(tool["name"] in changed["description"] for tool in [*NOTES, *WEATHER])


@pytest.mark.parametrize(
    "messages",
    [
        [calling(FIND), user(result([REFERENCE]))],
        [{"role": "assistant", "content": [result([REFERENCE])]}],
        [{"role": "assistant", "content": [REFERENCE]}],
        [user(REFERENCE)],
        [calling(FIND), user(result(f'{{"tools": [{{"name": "{FORECAST}"}}]}}'))],
    ],
    ids=["an MCP tool's result", "in the assistant's", "bare", "the user's", "a text of a tool"],
)
def test_b21_references_elsewhere_than_in_a_searchs_result_load_nothing(
    notes: Client, messages: list[Message]
) -> None:
    def discovered(after: list[Message]) -> list[str]:
        snapshot = route(notes, [ASK, *after], render=None).conversation_snapshot
        assert snapshot is not None
        return list(snapshot["discovered"])

    searched = [calling(SEARCH_TOOL.model_name), user(result([REFERENCE]))]
    assert FORECAST in discovered(searched)
    assert FORECAST not in discovered(messages)


def test_b22_a_search_says_how_many_tools_are_deferred_in_all(notes: Client) -> None:
    every = len(NOTES) + len(WEATHER)
    assert notes.search_tools("weather", max_results=1).deferred_tools == every
    shown = route(notes, [ASK], top_k=2, threshold=-1, render=None)
    assert len(shown) == 2
    assert notes.search_tools("weather", handle=shown.handle).deferred_tools == every - 2
