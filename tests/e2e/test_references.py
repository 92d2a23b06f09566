"""Tests what requests say of tools that are searched for: references, betas, the search."""

import json
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from catalogs import NOTES, WEATHER
from conftest import StartServer

from toolgate import SEARCH_TOOL, Call, Client, ModelRequest, RenderOptions, RouteResult

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


def hosted_search(server: str) -> Message:
    """A search that the provider calls by itself at an MCP server."""
    found = [{"type": "text", "text": json.dumps({"tools": [{"name": FORECAST}]})}]
    named = {"name": SEARCH_TOOL.model_name, "server_name": server}
    return {
        "role": "assistant",
        "content": [
            {"type": "mcp_tool_use", "id": "m1", "input": {}, **named},
            {"type": "mcp_tool_result", "tool_use_id": "m1", "is_error": False, "content": found},
        ],
    }


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
    # Both are too short for this model's cache, so that one strategy is the cheapest for both.
    with_gone, without = (
        route(notes, given, model="claude-opus-4-8").request for given in (both, searched)
    )
    assert with_gone.messages == without.messages
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


def test_b17_holds_where_all_tools_are_sent(notes: Client) -> None:
    text = {"type": "text", "text": "And tomorrow?"}
    loads = user(result([REFERENCE]))
    both = user(result("two notes", 0), result([REFERENCE], 1), text)
    for unable in ({"deferral": "off"}, {"render": RenderOptions("anthropic", strategy="pass")}):
        alone = route(notes, [ASK, calling(SEARCH_TOOL.model_name), loads], **unable).request
        assert alone.strategy == "PASS"
        assert alone.messages[-1] == user(result([REFERENCE]), LOADED), unable
        made = calling(FIND, SEARCH_TOOL.model_name)
        beside = route(notes, [ASK, made, both], **unable).request
        moved = [{"type": "text", "text": "two notes"}, text]
        assert beside.messages[-1] == user(result(moved, 0), result([REFERENCE], 1)), unable


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
    offered = route(notes, [ASK], deferral="always")
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


@pytest.fixture
def switched_off(start_server: StartServer) -> Iterator[Client]:
    """A client of a service whose operator turned the kill switch; otherwise the defaults."""
    with start_server({"deferral.kill_switch": "true"}).client() as client:
        client.register_server("notes", NOTES)
        client.register_server("weather", WEATHER)
        yield client


def test_b19_the_kill_switch_leaves_no_search_and_no_beta(switched_off: Client) -> None:
    apis = ("anthropic", "openai_chat", "openai_responses", "gemini")
    for api, strategy in product(apis, ("auto", "pass", "native", "envelope", "cut")):
        render = RenderOptions(api, strategy=strategy, search_tool=True)
        asked = {"role": "user", "parts": [{"text": ASK["content"]}]} if api == "gemini" else ASK
        turn = route(switched_off, [asked], deferral="always", render=render)
        request = turn.request
        assert not turn.deferral.offer_search
        assert (request.strategy, request.betas) == ("PASS", ()), (api, strategy)
        shown = [tool.get("function", tool)["name"] for tool in request.tools]
        assert SEARCH_TOOL.model_name not in shown
        assert len(shown) == len(NOTES) + len(WEATHER)
        assert request.messages == [asked]


def test_b19_the_kill_switch_strips_the_hosts_own_deferral_and_its_history(
    switched_off: Client,
) -> None:
    own = {"name": "read_file", "input_schema": {"type": "object"}}
    search = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
    searched: Message = {
        "role": "assistant",
        "content": [
            {"type": "server_tool_use", "id": "s1", "name": "tool_search_tool_bm25", "input": {}},
            {
                "type": "tool_search_tool_result",
                "tool_use_id": "s1",
                "content": {
                    "type": "tool_search_tool_search_result",
                    "tool_references": [{"type": "tool_reference", "tool_name": "read_file"}],
                },
            },
            {"type": "tool_use", "id": "toolu_0", "name": "read_file", "input": {}},
        ],
    }
    found = [calling(SEARCH_TOOL.model_name), user(result([REFERENCE]))]
    added = {"type": "tool_addition", "tool": {"type": "tool_reference", "name": FORECAST}}
    history = [ASK, searched, user(result("text")), {"role": "system", "content": [added]}, *found]
    render = RenderOptions(
        "anthropic",
        strategy="auto",
        search_tool=True,
        own_tools=[search, {**own, "defer_loading": True}],
    )
    request = route(switched_off, history, render=render).request
    assert request.tools[0] == own
    assert (request.strategy, request.betas) == ("PASS", ())
    sent = json.dumps([request.tools, request.messages])
    for trace in ("defer_loading", "tool_search", "tool_reference", "tool_addition"):
        assert trace not in sent, trace
    assert sent.count('"toolu_0"') == 4, "calls stay in pairs with their results"


def test_b19_the_kill_switch_loads_what_a_request_marks_as_deferred(
    switched_off: Client, notes: Client
) -> None:
    deferred = RenderOptions("anthropic", defer_loading=True)

    def rendered(client: Client) -> str:
        routed = client.route(ASK["content"], render=deferred).rendered_tools
        found = client.search_tools("select:" + FORECAST, render=deferred).rendered_tools
        fetched = client.batch_get_tool_schemas([FORECAST], render=deferred).rendered_tools
        return json.dumps([routed, found, fetched])

    assert rendered(notes).count("defer_loading") >= 3
    assert FORECAST in rendered(switched_off)
    assert "defer_loading" not in rendered(switched_off)


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
        [hosted_search("web")],
        [hosted_search("toolgate")],
    ],
    ids=[
        "an MCP tool's result",
        "in the assistant's",
        "bare",
        "the user's",
        "a text of a tool",
        "a server's tool that is named like our search",
        "one of a server that is named like us",
    ],
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


@pytest.mark.parametrize("api", ["anthropic", "openai_responses"])
def test_b21_what_history_adds_is_active_only_if_it_is_known_and_allowed(
    notes: Client, api: str
) -> None:
    deny = "rules: [{name: dry, match: {tools: [get_forecast]}, denied: true}]"
    unknown = "mcp__bank__pay"

    def adding(name: str, role: str) -> Message:
        if api == "openai_responses":
            tools = [{"type": "function", "name": name, "parameters": {}}]
            return {"type": "additional_tools", "role": role, "tools": tools}
        tool = {"type": "tool_definition", "definition": {"name": name, "input_schema": {}}}
        return {"role": role, "content": [{"type": "tool_addition", "tool": tool}]}

    def active(role: str) -> list[str]:
        history = [ASK, adding(FORECAST, role), adding(unknown, role)]
        shown = notes.route("thanks", state={"messages": history}, threshold=1, render=None)
        return [tool.model_name for tool in shown]

    author = "developer" if api == "openai_responses" else "system"
    assert active(author) == [FORECAST]
    assert active("user") == []
    notes.set_policy(deny)
    assert active(author) == []


def test_b22_a_search_says_how_many_tools_are_deferred_in_all(notes: Client) -> None:
    every = len(NOTES) + len(WEATHER)
    assert notes.search_tools("weather", max_results=1).deferred_tools == every
    shown = route(notes, [ASK], top_k=2, threshold=-1, render=None)
    assert len(shown) == 2
    assert notes.search_tools("weather", handle=shown.handle).deferred_tools == every - 2


@pytest.mark.parametrize("detail", ["references", "schemas"])
def test_b22_the_model_reads_how_many_tools_are_deferred_in_all(notes: Client, detail: str) -> None:
    shown = route(notes, [ASK], top_k=2, threshold=-1, render=None)
    asked = Call(SEARCH_TOOL.model_name, {"query": f"select:{FORECAST}"})
    answer = notes.answer_search(asked, handle=shown.handle, detail=detail)
    assert answer.found is not None
    deferred = len(NOTES) + len(WEATHER) - len(shown)
    assert json.loads(answer.text)["deferred_tools"] == deferred
    references = answer.found.to_tool_references()
    assert references == [{"type": "tool_reference", "tool_name": FORECAST}], "alone, as before"


def test_b22_searches_have_a_title_by_which_a_screen_leaves_them_out(notes: Client) -> None:
    listed = RenderOptions("mcp", search_tool=True)
    search, *others = notes.route(ASK["content"], render=listed).rendered_tools
    assert search["annotations"]["title"] == "Find tools"
    assert json.loads(SEARCH_TOOL.annotations_json) == search["annotations"]
    assert others
    assert not any("title" in tool.get("annotations", {}) for tool in others)
