"""Tests the costs of a conversation, added up from Route's answers, and the model in requests."""

import json
import logging
from typing import Any

import pytest

from toolgate import ContextWarning, RouteResult
from toolgate._endpoints import Endpoint
from toolgate._forms import added, formed
from toolgate._gen.v1 import router_pb2
from toolgate._tally import Rates, Tally
from toolgate.enums import PromptStrategy
from toolgate.rendering import ModelRequest

LOG = logging.getLogger("toolgate.test_report")
CLAUDE = Endpoint("anthropic", "claude-opus-5-5")
FIND, READ = "mcp__notes__find", "mcp__notes__read"
ADDED = {
    "role": "system",
    "content": [
        {
            "type": "tool_addition",
            "tool": {"type": "tool_definition", "definition": {"name": READ, "input_schema": {}}},
        }
    ],
}


def turn(
    active: dict[str, int],
    said: int,
    messages: list[Any],
    *,
    tools: tuple[str, ...] = (FIND,),
    warnings: tuple[str, ...] = (),
    rho: float | None = None,
) -> RouteResult:
    answer = router_pb2.RouteResponse()
    for name, tokens in active.items():
        answer.active_tools.add(model_name=name, schema_tokens=tokens)
    answer.accounting.full_catalog_tokens = 10_000
    answer.accounting.phase2_tokens = sum(active.values())
    answer.accounting.conversation_tokens = said
    if rho is not None:
        answer.accounting.conversation_rho = rho
    answer.accounting.warnings.extend(
        router_pb2.ContextWarning.Value(f"CONTEXT_WARNING_{one}") for one in warnings
    )
    answer.rendered.tools_json = json.dumps([{"name": name} for name in tools])
    answer.rendered.messages_json = json.dumps(messages)
    answer.rendered.strategy = router_pb2.PROMPT_STRATEGY_NATIVE
    answer.rendered.reason = router_pb2.STRATEGY_REASON_CHEAPEST
    return RouteResult.from_proto(answer)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def test_prices_are_those_of_the_provider_beside_the_alternatives() -> None:
    first = [user("a")]
    tally = Tally()
    tally.add(turn({FIND: 200}, 2_000, first), CLAUDE, LOG)
    tally = Tally(json.loads(json.dumps(tally.to_dict())))
    tally.searched()
    tally.add(turn({READ: 300}, 2_500, [*first, user("b"), ADDED]), CLAUDE, LOG)
    report = tally.report()
    assert (report.requests, report.searches, report.strategies) == (2, 1, {"native": 2})
    assert report.shown_tokens == 200 + (200 + 300), "what was added stays, and what was defined"
    assert report.saved_tokens == 20_000 - 700
    assert report.price is not None
    assert report.price.sent == pytest.approx(2_200 * 1.25 + 2_200 * 0.1 + 800 * 1.25)
    assert report.price.all_tools == pytest.approx(12_000 * 1.25 + 12_000 * 0.1 + 500 * 1.25)
    assert report.price.routed_anew == pytest.approx(2_200 * 1.25 + 2_800 * 1.25)
    assert str(report).startswith("2 requests: 700 tokens of tools shown, 19,300 saved; 1 searches")


def test_a_changed_beginning_is_paid_for_again() -> None:
    for tools, messages in (((READ,), [user("a"), user("b")]), ((FIND,), [user("c"), user("b")])):
        tally = Tally()
        tally.add(turn({FIND: 200}, 2_000, [user("a")]), CLAUDE, LOG)
        tally.add(turn({FIND: 200, READ: 200}, 2_500, messages, tools=tools), CLAUDE, LOG)
        price = tally.report().price
        assert price is not None
        assert price.sent == pytest.approx(2_200 * 1.25 + 2_700 * 1.25)


def test_rates_are_those_of_the_service() -> None:
    def rates(api: str, model: str = "") -> Rates | None:
        return Rates.of(Endpoint(api, model))

    assert rates("anthropic") == Rates(1.25, 0.1, 1_024)
    assert rates("anthropic", "claude-haiku-4-5") == Rates(1.25, 0.1, 4_096)
    assert rates("anthropic", "claude-sonnet-4-6") == Rates(1.25, 0.1, 2_048)
    assert rates("anthropic", "claude-opus-4-7") == Rates(1.25, 0.1, 2_048)
    assert rates("anthropic", "claude-opus-5") == Rates(1.25, 0.1, 512)
    assert rates("openai_responses", "o3") == Rates(1.0, 0.1, 1_024, 128)
    assert rates("openai_chat", "gpt-4o") == Rates(1.0, 0.1, 1_024, 128)
    assert rates("openai_chat", "openai/gpt-5.6") == Rates(1.25, 0.1, 1_024, 128)
    assert rates("gemini", "gemini-2.5-pro") == Rates(1.0, 0.1, 2_048)
    assert rates("gemini", "gemini-3-pro") == Rates(1.0, 0.1, 4_096)
    assert rates("openai_chat", "llama-4") is None
    assert rates("openai_chat") is None
    openai = Rates(1.0, 0.1, 1_024, 128)
    assert openai.price_of(1_000, 1_000) == 1_000, "nothing of so short a prompt is cached"
    assert openai.price_of(2_000, 1_200) == pytest.approx(1_152 * 0.1 + 848)
    tally = Tally()
    tally.add(turn({}, 0, []), Endpoint("openai_chat", "llama-4"), LOG)
    assert tally.report().price is None


def test_warnings_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    both = ("LOW_UTILISATION", "WINDOW_NEARLY_FULL")
    for _ in range(2):
        tally = Tally()
        for _ in range(2):
            tally.add(turn({}, 0, [], warnings=both), CLAUDE, LOG)
        assert tally.report().warnings == (
            ContextWarning.LOW_UTILISATION,
            ContextWarning.WINDOW_NEARLY_FULL,
        )
        kept = tally.to_dict()["warnings"]
        assert [type(one) for one in kept] == [str] * 2, "a checkpoint takes no other types"
    told = [record.getMessage() for record in caplog.records]
    assert [text for text in told if "most of the request" in text] == told[:1]
    assert len(told) == 3, "a full window is told of in each conversation"


def test_utilisation_is_that_of_the_last_request_beside_the_highest() -> None:
    tally = Tally()
    tally.add(turn({}, 0, []), CLAUDE, LOG)
    assert (tally.report().rho, tally.report().highest_rho) == (None, None)
    assert "rho" not in str(tally.report())
    tally.add(turn({}, 0, [], rho=0.71), CLAUDE, LOG)
    tally = Tally(json.loads(json.dumps(tally.to_dict())))
    tally.add(turn({}, 0, [], rho=0.5), CLAUDE, LOG)
    assert (tally.report().rho, tally.report().highest_rho) == (0.5, 0.71)
    assert "; rho 0.50, at most 0.71" in str(tally.report())
    assert not tally.report().is_window_nearly_full
    tally.add(turn({}, 0, [], warnings=("WINDOW_NEARLY_FULL",)), CLAUDE, LOG)
    assert (tally.report().rho, tally.report().highest_rho) == (None, 0.71)
    assert tally.report().is_window_nearly_full
    assert str(tally.report()).endswith("; 70% of the context window or more is full")


def test_hosts_other_than_the_providers_own_are_told_only_with_a_mode() -> None:
    own = ("https://api.anthropic.com", "https://me.openai.azure.com/x", "http://api.openai.com/v1")
    for url in own:
        assert Endpoint(base_url=url).told({})["model_base_url"] == url
    for url in ("http://127.0.0.1:1/v1", "https://api.openai.com.evil.example", "http://[x"):
        endpoint = Endpoint("openai_responses", "gpt-6", url, carries_native=True)
        assert endpoint.told({}) == {"model": "gpt-6"}
        assert endpoint.told({"deferral": "always"})["model_base_url"] == url
        assert endpoint.render(PromptStrategy.AUTO).without_native
        assert not endpoint.render(PromptStrategy.NATIVE).without_native, "refused beside it"
    assert Endpoint(model="a").told({"model": "b"}) == {"model": "b"}


ENTRIES: list[dict[str, Any]] = [
    {"role": "user", "content": "my notes?"},
    {
        "role": "assistant",
        "content": "Let me see.",
        "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": FIND, "arguments": '{"a": 1}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "1", "content": "gone", "status": "error"},
]


@pytest.mark.parametrize("api", ["anthropic", "openai_chat", "openai_responses", "gemini"])
def test_additions_are_found_in_each_form(api: str) -> None:
    form = formed(ENTRIES, api)
    assert form.owners == ([0, 1, 1, 2] if api == "openai_responses" else [0, 1, 2])
    answered = json.loads(json.dumps(form.items))
    _append(answered[0], "x")
    _append(answered[-1], "y")
    if api == "gemini":
        answered[-1]["parts"][0]["functionResponse"]["name"] = "toolgate_call_tool"
    found = added(_request(answered), form)
    assert found is not None
    assert found.texts == {0: "\n\nx", 2: "\n\ny"}
    behind = [ADDED] if api == "anthropic" else [{"type": "additional_tools", "tools": []}]
    found = added(_request([*form.items, *behind]), form)
    assert found is not None
    assert found.blocks == {2: ADDED["content"] if api == "anthropic" else behind}
    assert added(_request(form.items[:-1]), form) is None
    assert added(_request([*form.items, {"role": "assistant", "content": "z"}]), form) is None


def _append(message: dict[str, Any], text: str) -> None:
    key = next(key for key in ("content", "output", "parts") if key in message)
    if isinstance(message[key], str):
        message[key] += f"\n\n{text}"
    else:
        message[key].append({"text": text})


def _request(messages: list[Any]) -> ModelRequest:
    strategy = PromptStrategy.ENVELOPE
    reason: Any = "CHEAPEST"
    return ModelRequest([], messages, (), "", strategy, reason, "")
