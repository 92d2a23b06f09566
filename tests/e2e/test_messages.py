"""A conversation in the agent's state: what it called and found counts as if it had been listed."""

import json
from typing import Any

import grpc
import pytest
from catalogs import tool
from conftest import StartServer

from toolgate import Client, ContextWarning, DeferralReason, RouteResult, has_prior_tool_output
from toolgate._gen.v1 import router_pb2, router_pb2_grpc, state_pb2

ARGUMENTS = {"url": "http://localhost/"}


def openai_chat(output: str) -> list[dict[str, Any]]:
    function = {"name": "mcp__web__fetch_page", "arguments": json.dumps(ARGUMENTS)}
    return [
        {"role": "user", "content": "what does the page say"},
        {
            "role": "assistant",
            "tool_calls": [{"id": "1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "1", "content": output},
    ]


def openai_responses(output: str) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": "what does the page say"},
        {"type": "function_call", "call_id": "1", "name": "fetch_page", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": output},
    ]


def anthropic(output: str) -> list[dict[str, Any]]:
    use = {"type": "tool_use", "id": "1", "name": "mcp__web__fetch_page", "input": ARGUMENTS}
    result = {"type": "tool_result", "tool_use_id": "1", "content": output}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]


def mcp(output: str) -> list[dict[str, Any]]:
    content = [{"type": "text", "text": output}]
    return [
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "fetch_page"}},
        {"jsonrpc": "2.0", "id": 1, "result": {"content": content, "isError": "error" in output}},
    ]


def request(tenant: str, messages_json: str, **state: Any) -> router_pb2.RouteRequest:
    return router_pb2.RouteRequest(
        tenant=tenant,
        intents=[router_pb2.Intent(text="summarize the page")],
        options=router_pb2.RouteOptions(threshold=-1),
        state=state_pb2.AgentState(messages_json=messages_json, **state),
    )


@pytest.mark.parametrize("messages", [openai_chat, openai_responses, anthropic, mcp])
def test_what_was_called_in_a_conversation_unlocks(
    client: Client, router: router_pb2_grpc.RouterServiceStub, tenant: str, messages: Any
) -> None:
    fetched = has_prior_tool_output("fetch_")
    client.register_server("web", [tool("summarize_page")], precondition=fetched)
    for output, shown in [("It says hello.", 1), ('{"error": "no such page"}', 0)]:
        answer = router.Route(request(tenant, json.dumps(messages(output))))
        assert len(answer.active_tools) == shown, output
    gate = router_pb2.GateRequest(
        tenant=tenant,
        active_set_handle=router.Route(
            request(tenant, json.dumps(messages("It says hello.")))
        ).active_set_handle,
        calls=[router_pb2.RequestedCall(tool="mcp__web__summarize_page", arguments_json="{}")],
    )
    assert not router.Gate(gate).verdicts[0].allowed
    gate.state.messages_json = json.dumps(messages("It says hello."))
    assert router.Gate(gate).verdicts[0].allowed


def test_a_follow_up_finds_the_tool_that_the_message_alone_does_not(
    notes: Client, router: router_pb2_grpc.RouterServiceStub, tenant: str
) -> None:
    asked = "will it rain in Oslo in the coming days?"
    follow_up = "and the day after?"
    query = router_pb2.RouteRequest(tenant=tenant, intents=[router_pb2.Intent(text=follow_up)])
    alone = [shown.name for shown in router.Route(query).active_tools]
    assert "get_forecast" not in alone
    messages = [
        {"role": "user", "content": asked},
        {"role": "assistant", "content": "Not before Friday."},
        {"role": "user", "content": follow_up},
    ]
    query.state.messages_json = json.dumps(messages)
    shown = router.Route(query).active_tools
    assert shown[0].name == "get_forecast"


def test_thanks_get_no_tool_unless_they_may_be_assent(
    notes: Client, router: router_pb2_grpc.RouterServiceStub, tenant: str
) -> None:
    asked = {"role": "user", "content": "will it rain in Oslo in the coming days?"}

    def routed(answer: str, said: str) -> router_pb2.RouteResponse:
        query = router_pb2.RouteRequest(tenant=tenant, intents=[router_pb2.Intent(text=said)])
        spoken = {"role": "assistant", "content": answer}
        messages = [asked, spoken, {"role": "user", "content": said}]
        query.state.messages_json = json.dumps(messages)
        return router.Route(query)

    thanked = routed("Not before Friday.", "ok great, thanks. bye!")
    assert not thanked.active_tools
    assert thanked.fit.kind == router_pb2.FIT_KIND_NONE
    assert thanked.fit.message == "No tool is asked for: answer without one."
    for answer, said in [
        ("Shall I look up the week after, too?", "ok great, thanks. bye!"),
        ("Not before Friday. Let me know and I look again.", "ok, thanks"),
        ("Not before Friday.", "ok"),
        ("Not before Friday.", "thanks, and Bergen?"),
    ]:
        shown = [tool.name for tool in routed(answer, said).active_tools]
        assert "get_forecast" in shown, f"{answer} {said}"


def test_a_conversation_that_is_none_is_refused(
    router: router_pb2_grpc.RouterServiceStub, tenant: str
) -> None:
    call = state_pb2.PriorCall(tool="fetch_page")
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("{}", {}, "must be a JSON list of messages"),
        ("[", {}, "line 1 column 1"),
        ("[]", {"calls": [call]}, "must be empty, or calls and discovered_tools must"),
        ("[]", {"discovered_tools": ["a"]}, "must be empty, or calls and discovered_tools must"),
    ]
    for messages_json, state, problem in cases:
        with pytest.raises(grpc.RpcError, match=problem) as raised:
            router.Route(request(tenant, messages_json, **state))
        assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert "state.messages_json" in str(raised.value.details())


def test_a_conversation_has_a_limit(start_server: StartServer) -> None:
    server = start_server({"limits.max_messages_size": "1KiB"})
    with server.client("long") as client, grpc.insecure_channel(server.target) as channel:
        client.register_server("web", [tool("summarize_page")])
        stub = router_pb2_grpc.RouterServiceStub(channel)
        long = json.dumps(openai_chat("x" * 1_000))
        with pytest.raises(grpc.RpcError, match=r"limits\.max_messages_size") as raised:
            stub.Route(request("long", long))
        assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        stub.Route(request("long", json.dumps(openai_chat("x" * 100))))


def test_a_conversation_is_counted_beside_the_tools(
    client: Client, router: router_pb2_grpc.RouterServiceStub, tenant: str
) -> None:
    client.register_server("web", [tool("summarize_page")])

    def cost(words: int, window: int, system: int = 0) -> router_pb2.TokenAccounting:
        asked = request(tenant, json.dumps(openai_chat("word " * words)))
        asked.options.context_window, asked.options.system_tokens = window, system
        return router.Route(asked).accounting

    long = cost(1_000, 100_000)
    tools = long.phase1_tokens + long.phase2_tokens
    assert 1_000 < long.conversation_tokens < 1_100
    share = long.conversation_tokens / (long.conversation_tokens + tools)
    assert long.conversation_rho == pytest.approx(share)
    assert list(long.warnings) == []
    full = cost(1_000, 1_000).warnings
    assert list(full) == [router_pb2.CONTEXT_WARNING_WINDOW_NEARLY_FULL]
    crowded = cost(1, 100_000, system=5_000)
    assert crowded.conversation_rho < 0.3
    assert list(crowded.warnings) == [router_pb2.CONTEXT_WARNING_LOW_UTILISATION]
    without = router.Route(request(tenant, "")).accounting
    assert without.conversation_tokens == 0
    assert not without.HasField("conversation_rho")
    assert list(without.warnings) == []


def test_a19_a_full_window_is_warned_of_where_only_the_model_is_told(
    client: Client,
) -> None:
    client.register_server("web", [tool("summarize_page")])
    # A digit and a space are a token each, so that the task has 720,000.
    messages = [{"role": "user", "content": " 0" * 30_000} for _ in range(12)]

    def asked(**options: Any) -> RouteResult:
        return client.route("what does the page say", state={"messages": messages}, **options)

    known = asked(model="claude-opus-4-8")
    assert 700_000 < known.accounting.conversation_tokens < 900_000
    assert ContextWarning.WINDOW_NEARLY_FULL in known.accounting.warnings
    assert known.accounting.rho is not None
    told = asked(model="claude-opus-4-8", context_window=2_000_000)
    assert told.accounting.warnings == ()
    unknown = asked(model="never-heard-of")
    assert (unknown.accounting.warnings, unknown.accounting.rho) == ((), None)
    # Facts about a model decide nothing about deferral.
    auto = asked(model="claude-opus-4-8", deferral="auto")
    assert auto.deferral.reason is DeferralReason.NO_WINDOW
