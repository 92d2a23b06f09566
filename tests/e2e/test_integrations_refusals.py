"""Refusals in the messages of the Python integrations, counted by what became of them (A22)."""

import asyncio
import json
from typing import Any

import pytest
from llm_provider import Provider, serving
from test_integrations_types import (
    DEFERRED,
    FORECAST,
    LARGE,
    LONG_SAID,
    SAID,
    SMALL,
    Desk,
    Step,
    Talk,
    answered,
    with_a_loop,
    with_agents_sdk,
    with_langchain,
    with_langgraph,
    with_pydantic_ai,
)

from toolgate import SEARCH_TOOL, Client, RefusalCode, RefusalOutcomes

WRONG: Step = (FORECAST, {"text": 7})
TURNS: dict[str, tuple[Step, ...]] = {
    SAID[0]: (
        WRONG,
        (FORECAST, {"text": "Oslo"}),
        "Rain.",
    ),
    "and the weather in the coming days there?": (WRONG, "Which place do you mean?"),
    "the weather in Bergen, in the coming days": (WRONG, "That did not work."),
    "thank you": ("You are welcome.",),
}
"""A refusal that a later call mends, one that the user is asked about, one that is given up, and
the message by which the last is counted."""
CASES: list[tuple[str, Talk]] = [
    ("anthropic", with_langchain),
    ("openai_responses", with_langchain),
    ("openai_chat", with_langgraph),
    ("openai_responses", with_agents_sdk),
    ("anthropic", with_pydantic_ai),
    ("openai_responses", with_pydantic_ai),
    ("anthropic", with_a_loop),
    ("openai_chat", with_a_loop),
    ("openai_responses", with_a_loop),
    ("gemini", with_a_loop),
]


@pytest.mark.parametrize(
    ("desk", "route"), [(SMALL, DEFERRED), (LARGE, {})], ids=["deferred", "by default"]
)
@pytest.mark.parametrize(
    ("api", "talk"), CASES, ids=[f"{talk.__name__} {api}" for api, talk in CASES]
)
def test_a22_refusals_are_counted_as_the_integrations_write_them(
    client: Client, api: str, talk: Talk, desk: Desk, route: dict[str, Any]
) -> None:
    said = [LONG_SAID[0] if desk is LARGE else SAID[0], *list(TURNS)[1:]]
    script = [step for steps in TURNS.values() for step in steps]
    with serving(Provider(*answered(api, script))) as provider:
        asyncio.run(talk(client, api, provider.url, "auto", said, desk, **route))
    for sent in provider.sent:
        text = json.dumps(sent.json)
        searches = (f'"{SEARCH_TOOL.model_name}"', '"type": "tool_search"')
        assert any(search in text for search in searches), "tools are deferred"
    usage = client.get_usage()
    assert usage.refusals == {RefusalCode.ARGUMENTS_INVALID: 3}
    assert usage.refusal_outcomes == RefusalOutcomes(1, 1, 1)
