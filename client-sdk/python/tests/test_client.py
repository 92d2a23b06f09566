"""Both clients: what they send, what they make of the answers, and their deadlines."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from conftest import FakeService, fail

from toolgate import (
    ActiveSetChange,
    AgentState,
    Approval,
    AsyncClient,
    Call,
    Client,
    ContextWarning,
    FoundBy,
    Intent,
    Loss,
    ModelRequest,
    OutcomeKind,
    PriorCall,
    PromptStrategy,
    RankedTool,
    Ranking,
    RefusalCode,
    Rendered,
    RenderOptions,
    StrategyReason,
    ToolFormat,
    ToolgateError,
    ToolSettings,
    enums,
    is_authenticated,
)
from toolgate._gen.v1 import catalog_pb2, error_pb2, router_pb2, state_pb2, usage_pb2

SCHEMA = '{"type":"object","properties":{"q":{"type":"string"}}}'
ROUTED = router_pb2.RouteResponse(
    active_tools=[
        router_pb2.ActiveTool(
            server="notes",
            name="find",
            model_name="mcp__notes__find",
            overlap=0.5,
            found_by=router_pb2.FOUND_BY_OVERLAP,
            description="Finds notes.",
            input_schema_json=SCHEMA,
        )
    ],
    active_set_handle="h1",
    accounting=router_pb2.TokenAccounting(full_catalog_tokens=100, rho=0.5),
    timings=[router_pb2.StageTiming(stage="embed", micros=12)],
)


def test_route_sends_every_argument(service: FakeService) -> None:
    service.answer("Route", ROUTED)
    with Client(service.target, tenant="acme") as client:
        client.route(
            ["where are my notes", Intent("last week", 0.5)],
            state={
                "scopes": ["notes:read"],
                "calls": [{"tool": "login", "status": "succeeded", "turn": 3}],
                "milestones": ["signed_in"],
                "attributes": {"plan": "pro", "seats": 3},
                "discovered_tools": ["mcp__notes__find"],
            },
            handle="h0",
            top_k=3,
            threshold=0.25,
            schema_token_budget=0,
            detail="names",
            pinned_tools=["notes/find"],
            excluded_tools=["notes/drop"],
            servers=["notes"],
            context_window=200_000,
            system_tokens=500,
            model="some-model",
            explain=True,
            deferral="auto",
            deferral_percent=5,
            model_base_url="https://proxy.example",
            selection_rule="tool_attention",
            known_pool_revision=0,
            min_revision=9,
            turn_id="t1",
        )
    sent = service.requests[0]
    state = sent.state
    assert sent.tenant == "acme"
    assert [intent.text for intent in sent.intents] == ["where are my notes", "last week"]
    assert not sent.intents[0].HasField("weight")
    assert sent.intents[1].weight == 0.5
    assert state.calls[0] == state_pb2.PriorCall(
        tool="login", status=state_pb2.CALL_STATUS_SUCCEEDED, turn=3
    )
    assert dict(state.attributes) == {"plan": "pro", "seats": 3.0}
    assert sent.known_pool_revision == 0
    assert sent.HasField("known_pool_revision")
    assert sent.options == router_pb2.RouteOptions(
        top_k=3,
        threshold=0.25,
        schema_token_budget=0,
        detail=router_pb2.DETAIL_NAMES,
        pinned_tools=["notes/find"],
        excluded_tools=["notes/drop"],
        servers=["notes"],
        context_window=200_000,
        model="some-model",
        explain=True,
        system_tokens=500,
        deferral=router_pb2.DEFERRAL_MODE_AUTO,
        deferral_percent=5,
        model_base_url="https://proxy.example",
        selection_rule=router_pb2.SELECTION_RULE_TOOL_ATTENTION,
    )
    assert (sent.active_set_handle, sent.min_revision, sent.turn_id) == ("h0", 9, "t1")


def test_what_is_not_said_is_absent(service: FakeService) -> None:
    service.answer("Route", ROUTED)
    with Client(service.target) as client:
        client.route("hello")
    sent = service.requests[0]
    assert not sent.HasField("state")
    assert not sent.HasField("known_pool_revision")
    assert sent.options == router_pb2.RouteOptions()


def test_the_answer_is_plain_values(service: FakeService) -> None:
    service.answer("Route", ROUTED)
    with Client(service.target) as client:
        turn = client.route("hello")
    assert [tool.found_by for tool in turn] == [FoundBy.OVERLAP]
    assert turn.summary_pool is None
    assert (turn.accounting.rho, turn.accounting.rho_full) == (0.5, None)
    assert (turn.accounting.conversation_tokens, turn.accounting.conversation_rho) == (0, None)
    assert turn.accounting.warnings == ()
    assert (turn.servers, turn.conversation_snapshot) == ((), None)
    assert turn.timings == {"embed": 12}
    with pytest.raises(AttributeError):
        turn.handle = "other"  # type: ignore[misc]


def test_the_conversation_is_accounted_for_and_its_snapshot_sent_again(
    service: FakeService,
) -> None:
    accounting = router_pb2.TokenAccounting(
        conversation_tokens=30,
        conversation_rho=0.25,
        warnings=[router_pb2.CONTEXT_WARNING_LOW_UTILISATION, 99],  # type: ignore[list-item]
    )
    answer = router_pb2.RouteResponse(
        accounting=accounting, servers=["git", "time"], conversation_snapshot='{"turns":1}'
    )
    service.answer("Route", answer)
    with Client(service.target) as client:
        turn = client.route("hello", state={"messages": [{"role": "user", "content": "hello"}]})
        client.route("again", state={"snapshot": turn.conversation_snapshot, "messages": []})
    told = turn.accounting
    assert (told.conversation_tokens, told.conversation_rho) == (30, 0.25)
    assert told.warnings == (ContextWarning.LOW_UTILISATION, ContextWarning.UNSPECIFIED)
    assert turn.servers == ("git", "time")
    assert json.loads(service.requests[1].state.messages_json) == [{"turns": 1}]


def test_the_change_since_the_turn_before_is_told(service: FakeService) -> None:
    changed = router_pb2.ActiveSetChange(
        added=["a"],
        kept=["b", "c"],
        removed=["d"],
        evictable=["c"],
        kept_for_cache=True,
        cache_loss_tokens=9,
        cache_saving_tokens=4,
    )
    service.answer("Route", router_pb2.RouteResponse(change=changed))
    with Client(service.target) as client:
        change = client.route("hello").change
    assert change == ActiveSetChange(
        added=("a",),
        kept=("b", "c"),
        removed=("d",),
        evictable=("c",),
        kept_for_cache=True,
        cache_loss_tokens=9,
        cache_saving_tokens=4,
    )
    with pytest.raises(AttributeError):
        change.added = ()  # type: ignore[misc]


def test_how_tools_were_ranked_is_told(service: FakeService) -> None:
    candidate = router_pb2.RankedTool(
        model_name="mcp__git__git_log",
        score=0.75,
        overlap=0.5,
        words=1.0,
        whole=0.75,
        clause=0.25,
        found_by=router_pb2.FOUND_BY_OVERLAP,
        chosen=True,
    )
    ranking = router_pb2.Ranking(abstain_below=0.25, candidates=[candidate])
    service.answer("Route", router_pb2.RouteResponse(ranking=ranking))
    with Client(service.target) as client:
        told = client.route("hello", explain=True).ranking
    ranked = RankedTool(
        model_name="mcp__git__git_log",
        score=0.75,
        overlap=0.5,
        words=1.0,
        whole=0.75,
        clause=0.25,
        found_by=FoundBy.OVERLAP,
        chosen=True,
    )
    assert told == Ranking(abstain_below=0.25, candidates=(ranked,))


RENDERED = router_pb2.RenderedTools(
    tools_json='[{"name": "mcp__notes__find"}]',
    losses=[router_pb2.RenderLoss(model_name="b", pointer="/p", keyword="oneOf", message="gone")],
)


def test_a_turn_comes_in_a_providers_format(service: FakeService) -> None:
    service.answer("Route", router_pb2.RouteResponse(rendered=RENDERED))
    options = RenderOptions("anthropic", search_tool=True, defer_loading=True)
    with Client(service.target) as client:
        turn = client.route("hello", render=options)
        client.route("hello", render="openai_chat")
        client.route("hello")
    deferred = router_pb2.AnthropicRenderOptions(defer_loading=True)
    assert [request.render for request in service.requests] == [
        router_pb2.RenderOptions(
            format=router_pb2.TOOL_FORMAT_ANTHROPIC, search_tool=True, anthropic=deferred
        ),
        router_pb2.RenderOptions(format=router_pb2.TOOL_FORMAT_OPENAI_CHAT),
        router_pb2.RenderOptions(),
    ]
    assert not service.requests[2].HasField("render")
    assert turn.rendered_tools == [{"name": "mcp__notes__find"}]
    assert turn.rendered == Rendered(turn.rendered_tools, (Loss("b", "/p", "oneOf", "gone"),))


def test_a_strategy_gives_the_whole_request(service: FakeService) -> None:
    rendered = router_pb2.RenderedTools(
        tools_json='[{"name": "own"}]',
        messages_json='[{"role": "user", "content": "hello"}, {"role": "system", "content": []}]',
        strategy=router_pb2.PROMPT_STRATEGY_NATIVE,
        reason=router_pb2.STRATEGY_REASON_CHEAPEST,
        reason_message="native, because",
        ledger="{}",
        betas=["inline-tools"],
    )
    service.answer("Route", router_pb2.RouteResponse(rendered=rendered))
    options = RenderOptions("anthropic", strategy="auto", own_tools=[{"name": "own"}], ledger="l")
    messages = [{"role": "user", "content": "hello"}]
    with Client(service.target) as client:
        request = client.route("hello", state={"messages": messages}, render=options).request
    (sent,) = service.requests
    assert json.loads(sent.state.messages_json) == messages
    assert sent.render == router_pb2.RenderOptions(
        format=router_pb2.TOOL_FORMAT_ANTHROPIC,
        strategy=router_pb2.PROMPT_STRATEGY_AUTO,
        own_tools_json='[{"name": "own"}]',
        ledger="l",
    )
    assert request == ModelRequest(
        tools=[{"name": "own"}],
        messages=[*messages, {"role": "system", "content": []}],
        betas=("inline-tools",),
        ledger="{}",
        strategy=PromptStrategy.NATIVE,
        reason=StrategyReason.CHEAPEST,
        reason_message="native, because",
    )


def test_without_a_strategy_there_is_no_request(service: FakeService) -> None:
    service.answer("Route", router_pb2.RouteResponse(rendered=RENDERED))
    with Client(service.target) as client:
        turn = client.route("hello", render="anthropic")
    with pytest.raises(ValueError, match="no strategy was asked for"):
        assert turn.request


@pytest.mark.parametrize("messages", ["hello", {"role": "user"}, [object()]])
def test_messages_that_are_no_list_never_leave(service: FakeService, messages: object) -> None:
    with Client(service.target) as client, pytest.raises(TypeError):
        client.route("hello", state={"messages": messages})
    assert not service.requests


def test_searches_and_schemas_come_in_a_providers_format(service: FakeService) -> None:
    service.answer("SearchTools", router_pb2.SearchToolsResponse(rendered=RENDERED))
    answer = router_pb2.BatchGetToolSchemasResponse(rendered=RENDERED)
    service.answer("BatchGetToolSchemas", answer)
    with Client(service.target) as client:
        found = client.search_tools("notes", render=ToolFormat.GEMINI)
        fetched = client.batch_get_tool_schemas(["a"], render=ToolFormat.GEMINI)
    assert found.rendered_tools == fetched.rendered_tools == [{"name": "mcp__notes__find"}]
    formats = [request.render.format for request in service.requests]
    assert formats == [router_pb2.TOOL_FORMAT_GEMINI] * 2


def test_tools_that_were_not_rendered_say_what_to_do(service: FakeService) -> None:
    service.answer("Route", ROUTED)
    with Client(service.target) as client:
        turn = client.route("hello")
    with pytest.raises(ValueError, match="render=, openai_chat or openai_responses or anthropic"):
        assert turn.rendered_tools


@pytest.mark.parametrize(
    ("render", "error"), [("claude", ValueError), ({"format": "mcp"}, TypeError)]
)
def test_a_format_that_is_none_is_refused(
    service: FakeService, render: Any, error: type[Exception]
) -> None:
    with Client(service.target) as client, pytest.raises(error):
        client.route("hello", render=render)
    assert not service.requests


@pytest.mark.parametrize(
    "arguments",
    [{"topk": 3}, {"state": {"scope": []}}, {"state": {"scopes": "one"}}, {"servers": "one"}],
)
def test_mistaken_arguments_never_leave(service: FakeService, arguments: dict[str, object]) -> None:
    with Client(service.target) as client, pytest.raises(TypeError):
        client.route("hello", **arguments)  # type: ignore[arg-type]
    assert not service.requests


def test_a_misspelt_argument_is_told_the_nearest() -> None:
    with Client() as client, pytest.raises(TypeError, match="did you mean top_k"):
        client.route("hello", topk=3)  # type: ignore[call-arg]


@pytest.mark.parametrize("intents", [None, ["a", None], {"text": "a"}, b"a", 7])
def test_what_is_no_intent_is_said(intents: object) -> None:
    with Client() as client, pytest.raises(TypeError, match="intent"):
        client.route(intents)  # type: ignore[arg-type]


@pytest.mark.parametrize("calls", [{"name": "f", "input": {}}, [{"name": "f"}], ["f"]])
def test_gate_says_that_it_takes_calls(calls: object) -> None:
    with Client() as client, pytest.raises(TypeError, match=r"Call\(tool, arguments, call_id\)"):
        client.gate("h", calls)  # type: ignore[arg-type]


@pytest.mark.parametrize(("said", "sent"), [("auto:5", 5), ("AUTO:0", 0), ("auto:100", 100)])
def test_the_percentage_may_be_said_with_the_mode(
    service: FakeService, said: str, sent: int
) -> None:
    service.answer("Route", ROUTED)
    with Client(service.target) as client:
        client.route("hello", deferral=said)
    assert service.requests[0].options == router_pb2.RouteOptions(
        deferral=router_pb2.DEFERRAL_MODE_AUTO, deferral_percent=sent
    )


@pytest.mark.parametrize("said", ["auto:", "auto:101", "auto:-1", "auto:5%", "auto:\u0665"])
def test_a_percentage_that_is_none_is_refused(said: str) -> None:
    with Client() as client, pytest.raises(ValueError, match="whole number from 0 to 100"):
        client.route("hello", deferral=said)


def test_the_percentage_is_said_once() -> None:
    with Client() as client, pytest.raises(ValueError, match="leave deferral_percent out"):
        client.route("hello", deferral="auto:5", deferral_percent=5)


def test_an_unknown_detail_names_the_known_ones() -> None:
    with Client() as client, pytest.raises(ValueError, match="NAMES, SIGNATURES, SCHEMAS"):
        client.route("hello", detail="all")


@pytest.mark.parametrize("given", ["bytes", "text", "path", "object", "list"])
def test_tools_may_come_in_any_form(service: FakeService, given: str, tmp_path: Path) -> None:
    body = {"tools": [{"name": "find", "inputSchema": {"type": "object"}}]}
    text = json.dumps(body)
    file = tmp_path / "tools.json"
    file.write_text(text)
    forms = {
        "bytes": text.encode(),
        "text": text,
        "path": file,
        "object": body,
        "list": body["tools"],
    }
    service.answer("RegisterServer", catalog_pb2.RegisterServerResponse())
    with Client(service.target) as client:
        client.register_server("notes", forms[given])  # type: ignore[arg-type]
    sent = json.loads(service.requests[0].tools_list_json)
    assert sent == (body["tools"] if given == "list" else body)


@pytest.mark.parametrize("name", ["tools.json", "tools.txt"])
def test_a_path_as_text_is_told_from_json(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tools.txt").write_text("[]")
    monkeypatch.chdir(tmp_path)
    with Client() as client, pytest.raises(ValueError, match=rf"pass Path\('{name}'\)"):
        client.register_server("notes", name)


def test_other_text_is_the_services_to_judge(service: FakeService) -> None:
    service.answer("RegisterServer", catalog_pb2.RegisterServerResponse())
    with Client(service.target) as client:
        client.register_server("notes", "no JSON\0")
    assert service.requests[0].tools_list_json == b"no JSON\0"


def test_register_sends_every_argument(service: FakeService) -> None:
    service.answer(
        "RegisterServer",
        catalog_pb2.RegisterServerResponse(
            outcomes=[
                catalog_pb2.ToolOutcome(name="a", kind=catalog_pb2.OUTCOME_KIND_ACCEPTED),
                catalog_pb2.ToolOutcome(name="b", kind=catalog_pb2.OUTCOME_KIND_REJECTED),
            ]
        ),
    )
    with Client(service.target) as client:
        outcome = client.register_server(
            "notes",
            [],
            description="Notes",
            transport_hint="stdio",
            tool_settings=[
                ToolSettings("find", precondition=is_authenticated("n"), always_load=True)
            ],
            precondition=is_authenticated("s"),
            required_scopes=["x"],
            trust_tier="untrusted",
            mode="merge",
            etag="e",
            request_id="r",
            all_or_nothing=True,
        )
    sent = service.requests[0]
    assert sent.precondition.is_authenticated == "s"
    assert sent.tool_settings[0].precondition.is_authenticated == "n"
    assert sent.tool_settings[0].always_load
    assert not sent.tool_settings[0].critical
    assert sent.mode == catalog_pb2.REGISTER_MODE_MERGE
    assert sent.trust_tier == catalog_pb2.TRUST_TIER_UNTRUSTED
    assert sent.transport_hint == catalog_pb2.TRANSPORT_HINT_STDIO
    assert (sent.etag, sent.request_id, sent.all_or_nothing) == ("e", "r", True)
    assert list(sent.required_scopes) == ["x"]
    assert [o.kind for o in outcome.rejected] == [OutcomeKind.REJECTED]


def test_each_registration_has_its_own_request_id(service: FakeService) -> None:
    service.answer("RegisterServer", catalog_pb2.RegisterServerResponse())
    with Client(service.target) as client:
        client.register_server("notes", [])
        client.register_server("notes", [])
    first, second = (request.request_id for request in service.requests)
    assert first
    assert second
    assert first != second


def test_an_approval_says_what_was_not_accepted(service: FakeService) -> None:
    answer = catalog_pb2.ApproveToolsResponse(catalog_revision=7)
    answer.refusals.add(name="moon", code=error_pb2.REFUSAL_CODE_SCHEMA_CHANGED)
    service.answer("ApproveTools", answer)
    with Client(service.target, tenant="acme") as client:
        approval = client.approve_tools("sea", {"tides": "0f", "moon": "f0"})
    assert approval == Approval(7, {"moon": RefusalCode.SCHEMA_CHANGED})
    (sent,) = service.requests
    assert (sent.tenant, sent.server) == ("acme", "sea")
    assert [(one.name, one.hash) for one in sent.approvals] == [("tides", "0f"), ("moon", "f0")]


def test_search_sends_every_argument(service: FakeService) -> None:
    service.answer(
        "SearchTools",
        router_pb2.SearchToolsResponse(
            tools=[router_pb2.ActiveTool(model_name="mcp__git__log", signature="mcp__git__log()")],
            active_set_handle="h2",
            form=router_pb2.SEARCH_FORM_KEYWORDS,
            pending_servers=["jira"],
            message="m",
            searched_tools=7,
            deferred_tools=40,
        ),
    )
    with Client(service.target, tenant="t") as client:
        result = client.search_tools(
            "+git log",
            max_results=3,
            detail="signatures",
            handle="h",
            min_revision=4,
            state={"scopes": ["s"]},
        )
        client.search_tools("git")
    sent, plain = service.requests
    assert (sent.tenant, sent.query, sent.max_results) == ("t", "+git log", 3)
    assert (sent.detail, sent.active_set_handle) == (router_pb2.DETAIL_SIGNATURES, "h")
    assert (sent.min_revision, list(sent.state.scopes)) == (4, ["s"])
    assert not plain.HasField("max_results")
    assert (result.form, result.handle, result.searched_tools) == ("KEYWORDS", "h2", 7)
    assert result.deferred_tools == 40
    assert result.to_tool_references() == [{"type": "tool_reference", "tool_name": "mcp__git__log"}]
    assert result.to_tool_result() == {
        "tools": [{"name": "mcp__git__log", "signature": "mcp__git__log()"}],
        "deferred_tools": 40,
        "message": "m",
        "pending_servers": ["jira"],
    }


def test_the_pool_and_announcements_send_every_argument(service: FakeService) -> None:
    pool = router_pb2.SummaryPoolDelta(revision=3, full=True, rendered="a\n")
    service.answer("GetSummaryPool", router_pb2.GetSummaryPoolResponse(pool=pool))
    service.answer(
        "RegisterServer",
        catalog_pb2.RegisterServerResponse(
            server=catalog_pb2.McpServer(name="jira", pending=True), catalog_revision=4
        ),
    )
    with Client(service.target, tenant="t") as client:
        answer = client.get_summary_pool(
            since_revision=2, names_only=True, render=True, state={"scopes": ["s"]}
        )
        announced = client.announce_server("jira", description="d", required_scopes=["r"])
    asked, sent = service.requests
    assert (asked.since_revision, asked.names_only, asked.render) == (2, True, True)
    assert (list(asked.state.scopes), answer.rendered) == (["s"], "a\n")
    assert (sent.server, sent.pending, sent.description) == ("jira", True, "d")
    assert (list(sent.required_scopes), sent.tools_list_json) == (["r"], b"")
    assert announced.server.pending


def test_gate_tells_the_model_what_to_do(service: FakeService) -> None:
    service.answer(
        "Gate",
        router_pb2.GateResponse(
            verdicts=[
                router_pb2.GateVerdict(
                    call_id="c1",
                    code=error_pb2.REFUSAL_CODE_TOOL_NOT_AVAILABLE,
                    message="not in the active set",
                    available_tools=["mcp__notes__find"],
                    search_query="select:mcp__notes__drop",
                ),
                router_pb2.GateVerdict(
                    code=error_pb2.REFUSAL_CODE_ARGUMENTS_INVALID,
                    message="q is missing",
                    violations=[router_pb2.ArgumentViolation(pointer="/q", message="required")],
                    input_schema_json=SCHEMA,
                ),
                router_pb2.GateVerdict(allowed=True, server="notes", name="find"),
            ]
        ),
    )
    calls = [
        Call("mcp__notes__drop", {"id": 1}, "c1"),
        Call.from_anthropic({"type": "tool_use", "id": "c2", "name": "f", "input": {}}),
        Call.from_openai({"id": "c3", "function": {"name": "f", "arguments": "{oops"}}),
    ]
    with Client(service.target) as client:
        result = client.gate("h", calls, state=AgentState(calls=[PriorCall("login")]))
    sent = service.requests[0].calls
    assert [c.arguments_json for c in sent] == ['{"id": 1}', "{}", "{oops"]
    assert result[0].to_tool_error() == {
        "error": "tool_not_available",
        "message": "not in the active set",
        "available": ["mcp__notes__find"],
        "search": "select:mcp__notes__drop",
    }
    assert result[1].to_tool_error() == {
        "error": "arguments_invalid",
        "message": "q is missing",
        "violations": [{"pointer": "/q", "message": "required"}],
        "input_schema": json.loads(SCHEMA),
    }
    assert len(result) == 3
    with pytest.raises(ValueError, match="allowed"):
        result[2].to_tool_error()


def test_listings_follow_the_pages(service: FakeService) -> None:
    def page(
        request: catalog_pb2.ListToolsRequest, _context: object
    ) -> catalog_pb2.ListToolsResponse:
        number = int(request.page_token or "0")
        return catalog_pb2.ListToolsResponse(
            tools=[catalog_pb2.Tool(name=f"t{number}")],
            next_page_token=str(number + 1) if number < 2 else "",
        )

    service.answer("ListTools", page)
    with Client(service.target) as client:
        names = [tool.name for tool in client.list_tools("notes", page_size=1)]
    assert names == ["t0", "t1", "t2"]
    assert {request.server for request in service.requests} == {"notes"}


def test_a_deadline_is_always_set(service: FakeService) -> None:
    service.answer("Route", ROUTED)
    with Client(service.target) as client:
        client.route("hello", timeout=60)
        client.route("hello")
    assert 30 < service.seconds_left[0] <= 60.1
    # By now there is a connection.
    assert 1 < service.seconds_left[1] <= 5.1


def test_summaries_change_in_order() -> None:
    from toolgate import SummaryEntry, SummaryPool

    delta = SummaryPool(2, False, (SummaryEntry("a", "new"),), ("b",), 10)
    held = {"a": "old", "b": "gone", "c": "stays"}
    assert list(delta.apply_to(held).items()) == [("c", "stays"), ("a", "new")]
    assert SummaryPool(3, True, (SummaryEntry("z", "z"),), (), 1).apply_to(held) == {"z": "z"}


def test_a_number_from_a_newer_service_is_unspecified() -> None:
    code = enums.from_wire(RefusalCode, error_pb2.RefusalCode, "REFUSAL_CODE_", 999)
    assert code is RefusalCode.UNSPECIFIED


@pytest.mark.parametrize(
    ("members", "wire", "prefix"),
    [
        (enums.RefusalCode, error_pb2.RefusalCode, "REFUSAL_CODE_"),
        (enums.Detail, router_pb2.Detail, "DETAIL_"),
        (enums.FoundBy, router_pb2.FoundBy, "FOUND_BY_"),
        (enums.DegradedReason, router_pb2.DegradedReason, "DEGRADED_REASON_"),
        (enums.OutcomeKind, catalog_pb2.OutcomeKind, "OUTCOME_KIND_"),
        (enums.RegisterMode, catalog_pb2.RegisterMode, "REGISTER_MODE_"),
        (enums.TransportHint, catalog_pb2.TransportHint, "TRANSPORT_HINT_"),
        (enums.TrustTier, catalog_pb2.TrustTier, "TRUST_TIER_"),
        (enums.CallStatus, state_pb2.CallStatus, "CALL_STATUS_"),
        (enums.UsageGranularity, usage_pb2.UsageGranularity, "USAGE_GRANULARITY_"),
        (enums.DeferralVerdict, usage_pb2.DeferralVerdict, "DEFERRAL_VERDICT_"),
    ],
)
def test_enums_are_those_of_the_contract(
    members: type[enums.WireEnum], wire: object, prefix: str
) -> None:
    names = {name.removeprefix(prefix) for name in wire.keys()}  # type: ignore[attr-defined] # noqa: SIM118
    assert {member.value for member in members} == names


def test_asyncio_does_the_same(service: FakeService) -> None:
    service.answer("Route", ROUTED)
    service.answer(
        "ListServers", catalog_pb2.ListServersResponse(servers=[catalog_pb2.McpServer()])
    )
    service.answer("GetServer", fail(grpc.StatusCode.NOT_FOUND, "no such MCP server"))

    async def talk() -> None:
        async with AsyncClient(service.target, tenant="acme") as client:
            turn = await client.route("hello", top_k=1)
            assert turn.handle == "h1"
            servers: AsyncIterator[object] = client.list_servers()
            assert len([server async for server in servers]) == 1
            with pytest.raises(ToolgateError, match="no such MCP server"):
                await client.get_server("absent")

    asyncio.run(talk())
    assert {request.tenant for request in service.requests} == {"acme"}


def test_both_clients_have_the_same_methods() -> None:
    def public(kind: type) -> set[str]:
        return {name for name in vars(kind) if not name.startswith("_")}

    assert public(Client) == public(AsyncClient)
