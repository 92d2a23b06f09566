"""GetSummaryPool and its deltas in Route; BatchGetToolSchemas."""

import pytest
from catalogs import NOTES, WEATHER, invalid, too_many, tool

from toolgate import Call, Client, RefusalCode

CREATE = "mcp__notes__create_note"
FORECAST = "mcp__weather__get_forecast"


def test_the_whole_pool(notes: Client) -> None:
    pool = notes.get_summary_pool()
    assert pool.full
    assert pool.removed == ()
    assert {e.model_name for e in pool.added} == {t.model_name for t in notes.list_tools()}
    by_name = {t.model_name: t for t in notes.list_tools()}
    for entry in pool.added:
        assert entry.summary == by_name[entry.model_name].summary
    assert pool.pool_tokens > 0


def test_the_pool_is_the_same_from_turn_to_turn(notes: Client) -> None:
    first = notes.get_summary_pool()
    notes.route("anything")
    assert notes.get_summary_pool() == first


def test_a_delta_leads_from_one_pool_to_the_next(notes: Client) -> None:
    before = notes.get_summary_pool()
    held = before.apply_to({})
    changed = {**NOTES[0], "description": "Write a reminder to yourself."}
    notes.register_server("notes", [changed, NOTES[1], tool("archive_note", "Put a note away.")])
    delta = notes.get_summary_pool(since_revision=before.revision)
    assert not delta.full
    assert {e.model_name for e in delta.added} == {CREATE, "mcp__notes__archive_note"}
    assert "mcp__notes__delete_note" in delta.removed
    after = notes.get_summary_pool()
    assert delta.apply_to(held) == after.apply_to({})
    assert (delta.revision, delta.pool_tokens) == (after.revision, after.pool_tokens)


def test_a_delta_over_several_changes(client: Client) -> None:
    client.register_server("weather", WEATHER)
    before = client.get_summary_pool()
    client.register_server("notes", NOTES)
    client.unregister_server("weather")
    client.register_server("weather", WEATHER[:1])
    delta = client.get_summary_pool(since_revision=before.revision)
    whole = client.get_summary_pool()
    assert delta.apply_to(before.apply_to({})) == whole.apply_to({})


def test_route_brings_the_delta_only_when_there_is_one(notes: Client) -> None:
    pool = notes.get_summary_pool()
    assert notes.route("x").summary_pool is None
    assert notes.route("x", known_pool_revision=pool.revision).summary_pool is None
    notes.register_server("weather", WEATHER[:1])
    delta = notes.route("x", known_pool_revision=pool.revision).summary_pool
    assert delta is not None
    assert delta.removed == ("mcp__weather__get_rain_alerts",)
    assert delta.added == ()
    assert delta.apply_to(pool.apply_to({})) == notes.get_summary_pool().apply_to({})


@pytest.mark.parametrize("revision", [0, 2**63, 2**64 - 1])
def test_a_revision_that_never_was_gets_the_whole_pool(notes: Client, revision: int) -> None:
    answer = notes.get_summary_pool(since_revision=revision)
    whole = notes.get_summary_pool()
    assert answer.apply_to({}) == whole.apply_to({})
    routed = notes.route("x", known_pool_revision=revision).summary_pool
    assert routed is not None
    assert routed.apply_to({}) == whole.apply_to({})


def test_schemas_by_either_name_in_the_order_asked(notes: Client) -> None:
    answer = notes.batch_get_tool_schemas([FORECAST, "notes/create_note", "no/such"])
    assert [t.model_name for t in answer.tools] == [FORECAST, CREATE]
    assert answer.tools[1].input_schema == NOTES[0]["inputSchema"]
    assert [(r.name, r.code) for r in answer.refusals] == [("no/such", RefusalCode.UNKNOWN_TOOL)]


def test_a_fetched_schema_may_be_called(notes: Client) -> None:
    fetched = notes.batch_get_tool_schemas([FORECAST])
    calls = [Call(FORECAST), Call(CREATE, {"title": "a"})]
    forecast, create = notes.gate(fetched.handle, calls)
    assert forecast.allowed
    assert create.code is RefusalCode.TOOL_NOT_AVAILABLE


def test_a_fetched_schema_joins_the_active_set(notes: Client) -> None:
    turn = notes.route("note", threshold=-1, servers=["notes"])
    fetched = notes.batch_get_tool_schemas([FORECAST], handle=turn.handle)
    verdicts = notes.gate(fetched.handle, [Call(FORECAST), Call(CREATE, {"title": "a"})])
    assert all(v.allowed for v in verdicts)
    following = notes.route("note", threshold=1, handle=fetched.handle)
    assert FORECAST in {t.model_name for t in following}
    assert not any(t.newly_promoted for t in following)


def test_how_many_names(notes: Client) -> None:
    with invalid("INVALID_FIELD", field="names"):
        notes.batch_get_tool_schemas([])
    assert len(notes.batch_get_tool_schemas([f"no/such{i}" for i in range(100)]).refusals) == 100
    with too_many("names"):
        notes.batch_get_tool_schemas([f"no/such{i}" for i in range(101)])


def test_d1_the_pool_by_names_and_as_text(notes: Client) -> None:
    whole = notes.get_summary_pool(render=True)
    lines = [f"{e.model_name}: {e.summary}" for e in whole.added]
    assert whole.rendered.splitlines() == lines
    names = notes.get_summary_pool(names_only=True, render=True)
    assert names.rendered.splitlines() == [e.model_name for e in whole.added]
    assert {e.summary for e in names.added} == {""}
    assert names.pool_tokens < whole.pool_tokens


def test_b10_a_change_is_a_block_to_append(notes: Client) -> None:
    whole = notes.get_summary_pool(render=True)
    notes.register_server("weather", [WEATHER[0], tool("new_tool", "Just came.")])
    delta = notes.get_summary_pool(since_revision=whole.revision, render=True)
    assert delta.rendered == (
        "These tools are gone:\nmcp__weather__get_rain_alerts\n"
        "These tools are new, or described anew:\n"
        "mcp__weather__new_tool: new tool: Just came.\n"
    )
    again = notes.get_summary_pool(since_revision=delta.revision, render=True)
    assert again.rendered == ""
    # A tool that is loaded meanwhile is not gone.
    turn = notes.search_tools("select:new_tool")
    assert turn.tools
    assert notes.get_summary_pool(since_revision=delta.revision).removed == ()


@pytest.mark.parametrize("detail", ["names", "signatures", "references", "schemas"])
def test_tools_by_name_at_every_detail(notes: Client, detail: str) -> None:
    [found] = notes.batch_get_tool_schemas([CREATE], detail=detail).tools
    assert bool(found.input_schema_json) == (detail == "schemas")
    assert bool(found.signature) == (detail == "signatures")
    signature = (
        "mcp__notes__create_note(title: string, pages?: integer, tags?: string[]) - "
        "Write down a new note so that it can be found again later."
    )
    if detail == "signatures":
        assert (found.signature, found.signature_lossy) == (signature, True)
