"""A conversation as an agent's author writes it, with the SDK's own parts and a real server."""

import json
from itertools import count
from typing import Any

import pytest
from catalogs import NOTES, SHIPPED, WEATHER

from toolgate import (
    SEARCH_TOOL,
    Call,
    Client,
    RenderOptions,
    RouteResult,
    ToolSettings,
    announce,
    can_defer,
    has_prior_tool_output,
    layout,
)

FIND, DELETE = "mcp__notes__find_notes", "mcp__notes__delete_note"
FORECAST = "mcp__weather__get_forecast"
SONNET, HAIKU = "claude-sonnet-4-5", "claude-3-5-haiku"

_ids = count(1)


def calls(tool: str, answer: str, *, failed: bool = False) -> list[dict[str, Any]]:
    """The model's call and its result, as the Messages API has them."""
    made = f"toolu_{next(_ids)}"
    result = {"type": "tool_result", "tool_use_id": made, "content": answer, "is_error": failed}
    return [
        {"role": "assistant", "content": [{"type": "tool_use", "id": made, "name": tool}]},
        {"role": "user", "content": [result]},
    ]


def names(turn: RouteResult) -> list[str]:
    return [tool.model_name for tool in turn]


@pytest.fixture
def guarded(client: Client) -> Client:
    """Notes can be deleted once they were searched."""
    needs = ToolSettings("delete_note", precondition=has_prior_tool_output(FIND))
    client.register_server("notes", NOTES, tool_settings=[needs])
    client.register_server("weather", WEATHER)
    return client


def test_a_precondition_follows_the_history_through_a_compaction(guarded: Client) -> None:
    intent = "delete the note about milk forever"
    messages: list[Any] = [layout.user_message(intent, [])]

    def route() -> RouteResult:
        return guarded.route(intent, state={"messages": messages}, threshold=0.0)

    assert DELETE not in names(route())
    messages += calls(FIND, "the index is broken", failed=True)
    assert DELETE not in names(route()), "a failed call is no output"
    messages += calls(FIND, "one note")
    assert DELETE in names(route())

    state = {
        "messages": [layout.user_message("Summary: one note.", [])],
        "snapshot": route().conversation_snapshot,
    }
    turn = guarded.route(intent, state=state, threshold=0.0)
    assert DELETE in names(turn)
    assert turn.conversation_snapshot == state["snapshot"]
    call = Call(DELETE, {"text": "milk"})
    snapshot = {"snapshot": turn.conversation_snapshot}
    assert guarded.gate(turn.handle, call, state=snapshot)[0].allowed
    assert not guarded.gate(turn.handle, call)[0].allowed


def test_b9_what_the_model_searched_for_outlives_compaction_and_handle(guarded: Client) -> None:
    def route(**state: Any) -> RouteResult:
        return guarded.route("write down a note", top_k=1, threshold=0.0, state=state)

    messages: list[Any] = [layout.user_message("write down a note", [])]
    assert FORECAST not in names(route(messages=messages))
    search = Call(SEARCH_TOOL.model_name, {"query": f"select:{FORECAST}"})
    for detail in ("references", "schemas"):
        answer = guarded.answer_search(search, detail=detail)
        after = route(messages=[*messages, *calls(SEARCH_TOOL.model_name, answer.text)])
        snapshot = after.conversation_snapshot
        assert snapshot is not None
        assert snapshot["discovered"] == [FORECAST]
        for turn in (after, route(messages=messages, snapshot=snapshot)):
            assert FORECAST in names(turn), "without the handle"


def test_what_a_model_is_told_it_can_search_follows_the_catalog(guarded: Client) -> None:
    pool = guarded.get_summary_pool()
    held = pool.apply_to({})
    turn = guarded.route("search through my notes", top_k=1, threshold=0.0)
    first = announce(held, loaded=names(turn))
    assert first.full
    assert set(first.added) == set(held) - set(names(turn))

    guarded.unregister_server("weather")
    change = guarded.get_summary_pool(since_revision=pool.revision)
    later = announce(change.apply_to(held), loaded=names(turn), announced=first.announced)
    assert set(later.removed) == {"mcp__weather__get_forecast", "mcp__weather__get_rain_alerts"}
    assert later.added == {}


def test_deferred_tools_go_where_the_model_takes_them(guarded: Client) -> None:
    loaded = guarded.route("search through my notes", top_k=1, threshold=0.0)
    pool = guarded.get_summary_pool().apply_to({})
    others = [name for name in pool if name not in names(loaded)]
    assert others
    for model, is_deferred in ((SONNET, True), (HAIKU, False)):
        options = RenderOptions("anthropic", defer_loading=can_defer(model))
        found = guarded.batch_get_tool_schemas(others, render=options)
        refused = {refusal.model_name for refusal in found.refusals}
        tools = found.rendered_tools
        assert [tool["name"] for tool in tools] == [name for name in others if name not in refused]
        assert len(tools) > 1
        assert all(tool.get("defer_loading", False) is is_deferred for tool in tools)


INTENTS = (
    "what changed in the repository since yesterday?",
    "read the file with the release notes",
    "tell the team in slack that the release is out",
    "who wrote the last commit?",
    "list what is in this folder",
    "reply in the thread about the incident",
)


def test_thirty_turns_append_only(client: Client) -> None:
    for server in ("git", "slack", "filesystem"):
        client.register_server(server, SHIPPED / f"{server}.json")
    pool = client.get_summary_pool()
    summaries = pool.apply_to({})
    system = json.dumps(layout.anthropic_system("Be brief.", summaries))
    messages: list[Any] = []
    shown: list[Any] = []
    handle, prompt = "", ""
    for number in range(30):
        state = {"messages": messages}
        intent = INTENTS[number % len(INTENTS)]
        turn = client.route(
            intent,
            state=state,
            handle=handle,
            top_k=3,
            active_set_limit=30,
            known_pool_revision=pool.revision,
        )
        assert turn.summary_pool is None, "the catalog did not change"
        handle = turn.handle
        tools = [(tool.model_name, tool.input_schema_json) for tool in turn]
        assert tools[: len(shown)] == shown, "kept tools keep their places"
        shown = tools
        new = [tool for tool in turn if tool.newly_promoted]
        messages.append(layout.user_message(intent, new))
        now = system + "".join(map(json.dumps, messages))
        assert now.startswith(prompt)
        prompt = now
        messages += calls(names(turn)[0], "done") if names(turn) else []
    assert len(shown) > 3
