"""Route: the active set, its order, its handle, and what it costs."""

import itertools
import json
from functools import partial
from typing import Any

import pytest
from catalogs import NOTES, WEATHER, tool
from waiting import PATIENCE

from toolgate import (
    Call,
    Client,
    DegradedReason,
    FitKind,
    FoundBy,
    Intent,
    OutcomeKind,
    RefusalCode,
    RouteResult,
    ToolSettings,
    is_authenticated,
)
from toolgate._gen.v1 import router_pb2, router_pb2_grpc

RAIN = "will it rain in Oslo tomorrow?"
WRITE = "jot down what we agreed on today"


def names(turn: RouteResult) -> list[str]:
    return [tool.model_name for tool in turn]


def codes(turn: RouteResult) -> dict[str, str]:
    return {refusal.name: refusal.code.value for refusal in turn.refusals}


def test_the_right_tool_comes_first(notes: Client) -> None:
    assert notes.route(RAIN, threshold=-1).tools[0].server == "weather"
    assert notes.route(WRITE, threshold=-1).tools[0].name == "create_note"


def test_how_well_the_best_tool_fits_is_told(notes: Client) -> None:
    """Two servers that do the same can't be told apart by what is asked; an agent can ask back."""
    clear = notes.route("what will the weather be in Oslo in the coming days?").fit
    assert (clear.kind, clear.contenders, clear.message) == (FitKind.CLEAR, (), "")
    named = notes.route("call delete_note").fit
    assert named.kind == FitKind.CLEAR
    none = notes.route("thanks, that is all for today").fit
    assert none.kind == FitKind.NONE
    assert "ask" in none.message
    notes.register_server("memos", NOTES)
    both = notes.route("delete the note about the party forever").fit
    assert both.kind == FitKind.AMBIGUOUS
    assert set(both.contenders) == {
        "mcp__notes__delete_note",
        "mcp__memos__delete_note",
    }
    assert all(name in both.message for name in both.contenders)


def test_an_active_tool_is_described_as_registered(client: Client, tenant: str) -> None:
    schema = '{ "type":"object",\n "properties" : {"q": {"type": "string"}} }'
    definition = (
        '{"name": "find", "description": "Find a page.", "inputSchema": %s,'
        ' "outputSchema": {"type":  "object"}, "annotations": {"readOnlyHint":true}}'
    )
    client.register_server("wiki", '{"tools": [%s]}' % (definition % schema))
    (found,) = client.route("find a page", threshold=-1)
    assert found.id == f"tenants/{tenant}/servers/wiki/tools/find"
    assert (found.server, found.name, found.model_name) == (
        "wiki",
        "find",
        "mcp__wiki__find",
    )
    assert found.description == "Find a page."
    assert found.input_schema_json == schema
    assert found.output_schema_json == '{"type":  "object"}'
    assert found.annotations_json == '{"readOnlyHint":true}'
    assert found.found_by in (FoundBy.OVERLAP, FoundBy.NAME)
    assert found.newly_promoted
    assert found.signature == ""
    assert 0.3 < found.overlap <= 1.0001


def test_a_schema_of_an_older_dialect_is_shown_in_its_current_form(client: Client) -> None:
    """Providers refuse all tools of a request for one schema that is not JSON Schema 2020-12."""
    point = {"type": "array", "items": [{"type": "number"}, {"type": "string"}]}
    count = {"type": "integer", "minimum": 0, "exclusiveMinimum": True}
    schema = {"type": "object", "properties": {"point": point, "count": count}}
    definition = {"name": "mark", "description": "Mark a point.", "inputSchema": schema}
    client.register_server("maps", [definition])
    current = {
        "type": "object",
        "properties": {
            "point": {"type": "array", "prefixItems": point["items"]},
            "count": {"type": "integer", "exclusiveMinimum": 0},
        },
    }
    turn = client.route("mark a point", threshold=-1)
    assert json.loads(turn.tools[0].input_schema_json) == current
    searched = client.search_tools("select:mcp__maps__mark").tools[0]
    assert json.loads(searched.input_schema_json) == current
    calls = [
        Call("mcp__maps__mark", {"point": [1, "a"], "count": 1}),
        Call("mcp__maps__mark", {"point": ["a", 1], "count": 0}),
    ]
    good, bad = client.gate(turn.handle, calls)
    assert good.allowed
    pointers = {violation.pointer for violation in bad.violations}
    assert pointers == {"/count", "/point/0", "/point/1"}
    assert json.loads(bad.input_schema_json) == current
    (listed,) = client.list_tools()
    assert listed.definition["inputSchema"] == schema


def test_new_tools_are_ordered_by_overlap(notes: Client) -> None:
    turn = notes.route("the weather", threshold=-1)
    scores = [t.score for t in turn]
    assert scores == sorted(scores, reverse=True)
    assert len(turn) == len(NOTES) + len(WEATHER)


def test_the_same_question_has_the_same_answer(notes: Client) -> None:
    first, second = (notes.route(WRITE, threshold=-1) for _ in range(2))
    assert first.tools == second.tools


@pytest.mark.parametrize("top_k", [1, 3, 100])
def test_top_k_caps(notes: Client, top_k: int) -> None:
    assert len(notes.route(WRITE, threshold=-1, top_k=top_k)) == min(top_k, 5)


def test_the_default_cap_is_ten(client: Client) -> None:
    client.register_server("many", [tool(f"send_mail_{i}", "Send a mail.") for i in range(30)])
    assert len(client.route("send a mail")) == 10


def test_the_threshold_cuts(notes: Client) -> None:
    overlaps = sorted((t.overlap for t in notes.route(RAIN, threshold=-1)), reverse=True)
    between = (overlaps[1] + overlaps[2]) / 2
    turn = notes.route(RAIN, threshold=between)
    assert len(turn) == 2
    assert all(t.overlap >= between for t in turn)
    assert len(notes.route(RAIN, threshold=1)) == 0


def test_the_default_threshold_is_28_hundredths(notes: Client) -> None:
    assert names(notes.route(RAIN)) == names(notes.route(RAIN, threshold=0.28))
    assert all(t.overlap >= 0.28 for t in notes.route(RAIN))


def test_each_intent_brings_its_own_tools(notes: Client) -> None:
    turn = notes.route([RAIN, WRITE], threshold=-1, top_k=2)
    assert {t.server for t in turn.tools} == {"notes", "weather"}
    alone = {t.name: t.overlap for t in notes.route(RAIN, threshold=-1)}
    for found in turn:
        assert found.overlap >= alone[found.name] - 1e-5


def test_weights_move_tools(notes: Client) -> None:
    light = notes.route([Intent(RAIN, 0.01), WRITE], threshold=-1)
    heavy = notes.route([RAIN, Intent(WRITE, 0.01)], threshold=-1)
    assert light.tools[0].server == "notes"
    assert heavy.tools[0].server == "weather"


def test_details(notes: Client) -> None:
    schemas, signatures, bare = (
        notes.route(WRITE, threshold=-1, detail=detail)
        for detail in ("schemas", "signatures", "names")
    )
    assert names(schemas) == names(signatures) == names(bare)
    assert all(t.input_schema_json and t.description and not t.signature for t in schemas)
    assert not any(t.input_schema_json or t.description for t in signatures)
    assert not any(t.input_schema_json or t.description or t.signature for t in bare)
    create = next(t for t in signatures if t.name == "create_note")
    assert "title" in create.signature
    assert "pages?" in create.signature
    assert "\n" not in create.signature
    spent = [turn.accounting.phase2_tokens for turn in (schemas, signatures, bare)]
    assert spent[0] > spent[1] > spent[2]


def test_the_accounting_adds_up(notes: Client) -> None:
    turn = notes.route(WRITE, threshold=-1, top_k=2, prompt_listing="summaries")
    cost = turn.accounting
    assert notes.route(WRITE, threshold=-1, top_k=2).accounting.phase1_tokens == 0
    assert cost.tokenizer == "cl100k_base"
    assert cost.phase2_tokens == sum(t.schema_tokens for t in turn)
    assert cost.full_catalog_tokens == sum(t.schema_tokens for t in notes.list_tools())
    assert cost.phase1_tokens == notes.get_summary_pool().pool_tokens
    assert cost.saved_tokens == (cost.full_catalog_tokens - cost.phase1_tokens - cost.phase2_tokens)
    assert cost.rho is None
    assert cost.rho_full is None


def test_rho_is_the_share_left_to_the_task(notes: Client) -> None:
    window, system = 2_000, 300
    turn = notes.route(WRITE, threshold=-1, context_window=window, system_tokens=system)
    cost = turn.accounting
    tools = cost.phase1_tokens + cost.phase2_tokens
    assert cost.rho == pytest.approx((window - tools - system) / window)
    assert cost.rho_full == pytest.approx((window - cost.full_catalog_tokens - system) / window)


def test_rho_is_never_negative(notes: Client) -> None:
    cost = notes.route(WRITE, threshold=-1, context_window=10).accounting
    assert (cost.rho, cost.rho_full) == (0, 0)


def test_a_token_budget_is_kept(notes: Client) -> None:
    every = notes.route(WRITE, threshold=-1)
    budget = every.tools[0].schema_tokens + every.tools[1].schema_tokens
    turn = notes.route(WRITE, threshold=-1, schema_token_budget=budget, explain=True)
    assert 0 < len(turn) < len(every)
    assert turn.accounting.phase2_tokens <= budget
    assert RefusalCode.OVER_TOKEN_BUDGET in codes(turn).values()
    assert len(notes.route(WRITE, threshold=-1, schema_token_budget=0)) == 0


def test_pinned_tools_come_whatever_their_overlap(notes: Client) -> None:
    pins = ["mcp__weather__get_forecast", "notes/delete_note"]
    turn = notes.route(WRITE, threshold=1, pinned_tools=pins)
    assert names(turn) == ["mcp__weather__get_forecast", "mcp__notes__delete_note"]
    assert {t.found_by for t in turn} == {FoundBy.PIN}


def test_pins_come_on_top_of_top_k(notes: Client) -> None:
    turn = notes.route(WRITE, threshold=-1, top_k=1, pinned_tools=["weather/get_forecast"])
    assert len(turn) == 2
    assert turn.tools[0].name == "get_forecast"


def test_an_unknown_pin_is_refused_without_asking_for_reasons(notes: Client) -> None:
    turn = notes.route(WRITE, pinned_tools=["nowhere/nothing"])
    assert codes(turn) == {"nowhere/nothing": "UNKNOWN_TOOL"}
    assert (turn.refusals[0].server, turn.refusals[0].model_name) == ("", "")


def test_excluded_tools_and_servers(notes: Client) -> None:
    turn = notes.route(WRITE, threshold=-1, excluded_tools=["notes/create_note"])
    assert {t.name for t in turn} == {t["name"] for t in NOTES + WEATHER} - {"create_note"}
    only = notes.route(WRITE, threshold=-1, servers=["weather"])
    assert {t.server for t in only} == {"weather"}


def test_an_exclusion_wins_over_a_pin(notes: Client) -> None:
    turn = notes.route(
        WRITE,
        pinned_tools=["notes/create_note"],
        excluded_tools=["mcp__notes__create_note"],
    )
    assert "create_note" not in {t.name for t in turn}
    assert codes(turn)["create_note"] == "EXCLUDED"


def test_explain_gives_a_reason_for_each_tool_left_out(notes: Client) -> None:
    turn = notes.route(RAIN, threshold=0.2, top_k=1, explain=True)
    assert len(turn) + len(turn.refusals) == 5
    assert set(codes(turn).values()) <= {
        "BELOW_THRESHOLD",
        "BELOW_CUTOFF",
        "BEYOND_TOP_K",
    }
    assert codes(turn)[
        "get_rain_alerts" if turn.tools[0].name == "get_forecast" else "get_forecast"
    ]
    assert all(r.message for r in turn.refusals)
    overlaps = [r.overlap for r in turn.refusals]
    assert overlaps == sorted(overlaps, reverse=True)
    assert not notes.route(RAIN, threshold=0.2, top_k=1).refusals


def test_a_tool_far_below_the_best_is_told_so_and_not_with_a_threshold(notes: Client) -> None:
    turn = notes.route(RAIN, explain=True)
    (below,) = [one for one in turn.refusals if one.name == "delete_note"]
    assert below.code is RefusalCode.BELOW_CUTOFF
    assert "router.relative_cutoff" in below.message
    assert "learned gate" not in below.message
    named = notes.route(RAIN, threshold=0.99, explain=True)
    assert set(codes(named).values()) == {"BELOW_THRESHOLD"}
    assert all("of 0.990 for each tool" in one.message for one in named.refusals)
    assert not any("no tool fits" in one.message for one in named.refusals)


def test_where_no_tool_fits_that_is_what_is_told(notes: Client) -> None:
    turn = notes.route("how many legs does a spider have?", explain=True)
    assert not turn.tools
    assert set(codes(turn).values()) == {"BELOW_THRESHOLD"}
    assert all(one.message.startswith("no tool fits: ") for one in turn.refusals)


def test_tools_keep_their_places_through_a_conversation(notes: Client) -> None:
    first = notes.route(RAIN, threshold=-1, top_k=2)
    held = partial(notes.route, threshold=-1, top_k=2, active_set_limit=10)
    second = held(WRITE, handle=first.handle)
    assert names(second)[: len(first)] == names(first)
    kept, new = second.tools[: len(first)], second.tools[len(first) :]
    assert {t.found_by for t in kept} == {FoundBy.KEPT}
    assert not any(t.newly_promoted for t in kept)
    assert new
    assert all(t.newly_promoted for t in new)
    third = held(RAIN, handle=second.handle)
    assert names(third) == names(second)
    assert not any(t.newly_promoted for t in third)


def test_kept_tools_come_on_top_of_top_k_and_budget(notes: Client) -> None:
    first = notes.route(RAIN, threshold=-1, top_k=2)
    on = partial(
        notes.route, WRITE, threshold=-1, top_k=1, schema_token_budget=0, handle=first.handle
    )
    assert names(on(active_set_limit=10)) == names(first)
    narrower = on()
    assert len(narrower) == 1, "a narrower top_k takes out what is over, not all"


def test_a_kept_tool_that_changed_is_promoted_anew(client: Client) -> None:
    client.register_server("weather", WEATHER)
    first = client.route(RAIN, threshold=-1)
    changed = {
        **WEATHER[0],
        "description": "Get the weather forecast for a city, hour by hour.",
    }
    client.register_server("weather", [changed, WEATHER[1]])
    second = client.route(RAIN, threshold=-1, handle=first.handle)
    promoted = {t.name for t in second if t.newly_promoted}
    assert promoted == {"get_forecast"}
    assert "hour by hour" in next(t for t in second if t.name == "get_forecast").description


def test_a_kept_tool_that_is_gone_is_gone(client: Client) -> None:
    client.register_server("weather", WEATHER)
    first = client.route(RAIN, threshold=-1)
    client.register_server("weather", WEATHER[:1])
    assert names(client.route(RAIN, threshold=-1, handle=first.handle)) == [
        "mcp__weather__get_forecast"
    ]


def test_a_turn_tells_what_changed(notes: Client) -> None:
    first = notes.route(RAIN, threshold=-1, top_k=2)
    assert (list(first.change.added), first.change.kept) == (names(first), ())
    second = notes.route(WRITE, threshold=-1, top_k=2, active_set_limit=10, handle=first.handle)
    assert list(second.change.kept) == names(first)
    assert list(second.change.added) == names(second)[len(first) :]
    gone = names(first)[0]
    third = notes.route(
        WRITE, top_k=2, active_set_limit=10, excluded_tools=[gone], handle=second.handle
    )
    assert third.change.removed == (gone,)
    assert not third.change.kept_for_cache


def test_a_kept_tool_that_is_off_topic_may_go(notes: Client) -> None:
    turn = notes.route(RAIN, top_k=2)
    for _ in range(4):
        turn = notes.route(WRITE, top_k=1, active_set_limit=10, threshold=0.5, handle=turn.handle)
    assert "mcp__weather__get_forecast" in turn.change.evictable
    assert set(turn.change.evictable) <= set(turn.change.kept)


def test_always_loaded_tools_come_first(client: Client) -> None:
    by_meta = tool("by_meta", "Unrelated.", _meta={"anthropic/alwaysLoad": True})
    client.register_server("weather", WEATHER)
    client.register_server(
        "base",
        [tool("by_setting", "Unrelated."), by_meta, tool("ordinary", "Unrelated.")],
        tool_settings=[ToolSettings("by_setting", always_load=True)],
        trust_tier="trusted",
    )
    turn = client.route(RAIN, threshold=0.25)
    assert {t.name for t in turn.tools[:2]} == {"by_setting", "by_meta"}
    assert {t.found_by for t in turn.tools[:2]} == {FoundBy.ALWAYS_LOAD}
    assert "ordinary" not in {t.name for t in turn}


def test_always_loaded_tools_wait_for_their_preconditions(client: Client) -> None:
    settings = ToolSettings("a", always_load=True, precondition=is_authenticated("s"))
    client.register_server("base", [tool("a")], tool_settings=[settings])
    assert len(client.route("x", threshold=1)) == 0
    assert len(client.route("x", threshold=1, state={"scopes": ["s"]})) == 1


def test_a_tool_named_in_the_intent_is_found(notes: Client) -> None:
    turn = notes.route("call mcp__notes__delete_note on the old one", threshold=0.9)
    assert "delete_note" in {t.name for t in turn}


def test_an_intent_longer_than_the_encoder_reads_is_said(notes: Client) -> None:
    long = RAIN + " and after that" * 400
    assert notes.route(long).degraded == (DegradedReason.INTENT_TRUNCATED,)
    assert notes.route(RAIN).degraded == ()


@pytest.mark.parametrize(
    "intent", ["Wird es morgen regnen?", "明天会下雨吗", "🌧️?", "a", "\u202e\x00"]
)
def test_any_words_get_an_answer(notes: Client, intent: str) -> None:
    assert len(notes.route(intent, threshold=-1)) == 5


def test_stages_are_timed_in_the_order_of_work(notes: Client) -> None:
    stages = list(notes.route(RAIN).timings)
    order = ["admit", "embed", "gate", "search", "promote"]
    assert stages == [stage for stage in order if stage in stages]
    assert "embed" in stages


def test_an_answer_is_based_on_what_was_acknowledged(client: Client) -> None:
    for number in itertools.islice(itertools.count(), 5):
        answer = client.register_server("weather", [tool(f"rain_{number}", "Rain forecast.")])
        assert answer.outcomes[0].kind is OutcomeKind.ACCEPTED
        turn = client.route(RAIN, min_revision=answer.catalog_revision, threshold=-1)
        assert turn.catalog_revision >= answer.catalog_revision
        assert names(turn) == [f"mcp__weather__rain_{number}"]


def test_a_turn_is_rendered_in_two_formats(notes: Client) -> None:
    turn = notes.route(WRITE, threshold=-1, render="anthropic")
    create = next(t for t in turn.rendered_tools if t["name"] == "mcp__notes__create_note")
    assert create["input_schema"] == NOTES[0]["inputSchema"]
    chat = notes.route(WRITE, threshold=-1, render="openai_chat")
    assert [t["function"]["name"] for t in chat.rendered_tools] == names(turn)


def test_the_servers_of_a_turn_are_told_for_a_sandbox(
    notes: Client, router: router_pb2_grpc.RouterServiceStub, tenant: str
) -> None:
    def servers(text: str, **options: Any) -> tuple[list[str], list[str]]:
        request = router_pb2.RouteRequest(
            tenant=tenant,
            intents=[router_pb2.Intent(text=text)],
            options=router_pb2.RouteOptions(**options),
        )
        turn = router.Route(request, timeout=PATIENCE)
        best_first = sorted(turn.active_tools, key=lambda tool: -tool.score)
        return list(turn.servers), list(dict.fromkeys(tool.server for tool in best_first))

    rain, expected = servers(RAIN, threshold=-1)
    assert rain == expected
    assert (rain[0], sorted(rain)) == ("weather", ["notes", "weather"])
    assert servers(WRITE, threshold=-1)[0][0] == "notes"
    assert servers(RAIN, threshold=-1, servers=["weather"])[0] == ["weather"]
    assert servers(RAIN, threshold=1)[0] == []


def test_a20_the_papers_rule_is_one_option_of_route(notes: Client) -> None:
    ruled = notes.route(RAIN, selection_rule="tool_attention", explain=True)
    assert ruled.ranking is not None
    overlaps = {tool.model_name: tool.overlap for tool in ruled.ranking.candidates}
    passing = {name for name, overlap in overlaps.items() if overlap >= 0.28}
    assert passing == set(names(ruled))
    assert len(passing) < len(overlaps), "some are below"
    few = notes.route(RAIN, selection_rule="tool_attention", top_k=1)
    assert names(few) == [max(overlaps, key=lambda name: overlaps[name])]
    named = "create_note: will it rain in Oslo?"
    assert names(notes.route(named, threshold=0.9)) == ["mcp__notes__create_note"]
    assert names(notes.route(named, selection_rule="tool_attention", threshold=0.9)) == []
