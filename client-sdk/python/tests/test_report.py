"""Tests the costs of a conversation, added up from Route's answers, and the model in requests."""

import json
import logging
from dataclasses import replace
from typing import Any

import pytest

from toolgate import SEARCH_TOOL, ContextWarning, Price, RouteResult
from toolgate._endpoints import Endpoint
from toolgate._forms import added, formed
from toolgate._gen.v1 import router_pb2
from toolgate._tally import Rates, Sent, Tally
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
    phases: tuple[int, int] | None = None,
    warnings: tuple[str, ...] = (),
    rho: float | None = None,
) -> RouteResult:
    answer = router_pb2.RouteResponse()
    for name, tokens in active.items():
        answer.active_tools.add(model_name=name, schema_tokens=tokens)
    answer.accounting.full_catalog_tokens = 10_000
    phase1, phase2 = phases or (0, sum(active.values()))
    answer.accounting.phase1_tokens = phase1
    answer.accounting.phase2_tokens = phase2
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


def add(tally: Tally, told: RouteResult, endpoint: Endpoint = CLAUDE, own: int = 0) -> None:
    tally.add(told, Sent([tool.model_name for tool in told], own), endpoint, LOG)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def test_prices_are_those_of_the_provider_beside_the_alternatives() -> None:
    first = [user("a")]
    tally = Tally()
    add(tally, turn({FIND: 200}, 2_000, first))
    tally = Tally(json.loads(json.dumps(tally.to_dict())))
    tally.searched()
    behind = [*first, user("b"), ADDED]
    add(tally, turn({READ: 300}, 2_500, behind, phases=(0, 500)))
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
        add(tally, turn({FIND: 200}, 2_000, [user("a")]))
        add(tally, turn({FIND: 200, READ: 200}, 2_500, messages, tools=tools))
        price = tally.report().price
        assert price is not None
        assert price.sent == pytest.approx(2_200 * 1.25 + 2_900 * 1.25)


def test_tools_are_what_route_says_of_the_whole_request() -> None:
    tally = Tally()
    add(tally, turn({FIND: 200}, 2_000, [user("a")], phases=(480, 200)))
    add(tally, turn({FIND: 200}, 2_000, [user("a")], phases=(480, 700)))
    report = tally.report()
    assert report.shown_tokens == 680 + 1_180, "the search lists what it finds"
    assert report.price is not None
    anew = 2_200 * 1.25 + 2_200 * 0.1
    assert report.price.routed_anew == pytest.approx(anew), "tools of earlier turns are not in it"
    tally = Tally()
    told = turn({FIND: 200}, 2_000, [user("a")], phases=(480, 700))
    tally.add(told, Sent([SEARCH_TOOL.model_name, FIND], is_whole=False), CLAUDE, LOG)
    assert tally.report().shown_tokens == SEARCH_TOOL.schema_tokens + 200


def test_what_two_requests_begin_with_is_cached_message_by_message() -> None:
    said = [user(f"{at:02}") for at in range(10)]
    anew = Tally()
    add(anew, turn({FIND: 1_000}, 10_000, said))
    assert anew.report().price == Price(11_000 * 1.25, 20_000 * 1.25, 11_000 * 1.25)
    # Additions are dropped from a message near the end.
    less = [*said[:8], user("xx"), said[9], user("10")]
    for changed, messages, shared in (
        ((FIND,), [*said, user("10")], 11_000),
        ((FIND,), less, 1_000 + 8_000),
        ((FIND,), said[1:], 1_000),
        ((FIND,), said[:5], 1_000 + 5_000),
        ((FIND, READ), said, 1_000),
        ((READ, FIND), said, 0),
    ):
        tally = Tally(json.loads(json.dumps(anew.to_dict())))
        active = dict.fromkeys(changed, 1_000)
        add(tally, turn(active, 10_000, messages, tools=changed))
        price = tally.report().price
        assert price is not None
        whole = 1_000 * len(changed) + 10_000
        sent = shared * 0.1 + (whole - shared) * 1.25
        assert price.sent == pytest.approx(11_000 * 1.25 + sent), (changed, messages)


def test_of_a_long_conversation_the_newest_messages_are_compared_one_by_one() -> None:
    said = [user(f"{at:03}") for at in range(100)]
    begun = Tally()
    add(begun, turn({FIND: 1_000}, 10_000, said))
    kept = begun.to_dict()
    assert len(kept["last"]["messages"]) == 65, "what is kept stays small"
    for at, shared in ((99, 10_900), (36, 4_600), (35, 1_000)):
        tally = Tally(json.loads(json.dumps(kept)))
        add(tally, turn({FIND: 1_000}, 10_000, [*said[:at], user("x"), *said[at + 1 :]]))
        price = tally.report().price
        assert price is not None
        sent = shared * 0.1 + (11_000 - shared) * 1.25
        assert price.sent == pytest.approx(11_000 * 1.25 + sent)


@pytest.mark.parametrize("strategy", ["CUT", "PASS"])
def test_alternatives_are_priced_in_the_apis_form(strategy: str) -> None:
    gemini = Endpoint("gemini", "gemini-3-pro")
    tally, messages = Tally(), [user("a")]
    for _ in range(2):
        told = turn({FIND: 4_200}, 50, messages, phases=(0, 3_700))
        told = replace(told, accounting=replace(told.accounting, full_catalog_tokens=4_200))
        assert told.rendered is not None
        request = replace(told.request, strategy=PromptStrategy(strategy))
        add(tally, replace(told, rendered=replace(told.rendered, request=request)), gemini)
    report = tally.report()
    assert report.all_tools_tokens == 2 * 4_200
    assert report.shown_tokens == 2 * 3_700
    assert report.price == Price(7_500, 7_500, 7_500), "none of them is long enough to be cached"


def test_definitions_are_no_longer_than_route_says() -> None:
    begun = Tally()
    add(begun, turn({FIND: 4_200}, 1_000, [user("a")], phases=(0, 3_700)))
    add(begun, turn({FIND: 4_200}, 1_500, [user("a"), user("b")], phases=(0, 3_700)))
    price = begun.report().price
    assert price is not None
    assert price.sent == pytest.approx(4_700 * 1.25 + 4_700 * 0.1 + 500 * 1.25)


def test_the_agents_own_definitions_are_a_part_of_the_beginning_without_a_price() -> None:
    begun = Tally()
    add(begun, turn({FIND: 1_000}, 1_000, [user("a")], tools=("clock", FIND)), own=1)
    for own, shared in (("clock", 2_000), ("date", 0)):
        tally = Tally(begun.to_dict())
        add(tally, turn({FIND: 1_000}, 1_000, [user("a")], tools=(own, FIND)), own=1)
        price = tally.report().price
        assert price is not None
        assert price.sent == pytest.approx(2_500 + shared * 0.1 + (2_000 - shared) * 1.25)


def test_what_an_older_version_kept_is_gone_on_with() -> None:
    last = {"tools": "0", "active": "1", "shown": 200, "routed": 200, "said": 2_000, "begin": "2"}
    tally = Tally({"counts": {"requests": 1, "shown": 200}, "last": {**last, "messages": 1}})
    add(tally, turn({FIND: 200}, 2_000, [user("a")]))
    assert (tally.report().requests, tally.report().shown_tokens) == (2, 400)


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
    add(tally, turn({}, 0, []), Endpoint("openai_chat", "llama-4"))
    assert tally.report().price is None


def test_a_report_without_a_price_says_why() -> None:
    tally = Tally()
    assert "price" not in str(tally.report()), "nothing was asked yet"
    add(tally, turn({}, 0, []), Endpoint("openai_chat", "llama-4"))
    add(tally, turn({}, 0, []), Endpoint("openai_chat"))
    tally = Tally(json.loads(json.dumps(tally.to_dict())))
    add(tally, turn({}, 0, []))
    report = tally.report()
    assert report.price is None, "a part of the conversation has none"
    assert report.unpriced.startswith("how llama-4 caches is not known behind Chat Completions")
    assert f"; no price, since {report.unpriced}" in str(report)
    unknown = Tally()
    add(unknown, turn({}, 0, []), Endpoint("openai_chat"))
    assert unknown.report().unpriced == "nothing says which model is asked"
    priced = Tally()
    add(priced, turn({}, 0, []))
    assert priced.report().unpriced == ""


def test_warnings_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    both = ("LOW_UTILISATION", "WINDOW_NEARLY_FULL")
    for _ in range(2):
        tally = Tally()
        for _ in range(2):
            add(tally, turn({}, 0, [], warnings=both))
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
    add(tally, turn({}, 0, []))
    assert (tally.report().rho, tally.report().highest_rho) == (None, None)
    assert "rho" not in str(tally.report())
    add(tally, turn({}, 0, [], rho=0.71))
    tally = Tally(json.loads(json.dumps(tally.to_dict())))
    add(tally, turn({}, 0, [], rho=0.5))
    assert (tally.report().rho, tally.report().highest_rho) == (0.5, 0.71)
    assert "; rho 0.50, at most 0.71" in str(tally.report())
    assert not tally.report().is_window_nearly_full
    add(tally, turn({}, 0, [], warnings=("WINDOW_NEARLY_FULL",)))
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
