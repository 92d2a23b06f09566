"""Phase 1 in the requests of the Python integrations: the listing of the search's description."""

import asyncio
from typing import Any

import pytest
from catalogs import NOTES, WEATHER
from llm_provider import Provider, serving
from test_integrations_types import (
    SAID,
    Talk,
    answered,
    sent_tools,
    with_a_loop,
    with_agents_sdk,
    with_langchain,
    with_langgraph,
    with_pydantic_ai,
)

from toolgate import SEARCH_TOOL, Client

CASES: list[tuple[str, Talk, str]] = [
    ("openai_chat", with_agents_sdk, "envelope"),
    ("openai_responses", with_agents_sdk, "native"),
    ("anthropic", with_pydantic_ai, "envelope"),
    ("openai_responses", with_langchain, "native"),
    ("openai_chat", with_langgraph, "envelope"),
    ("anthropic", with_a_loop, "native"),
]


@pytest.mark.parametrize(
    ("api", "talk", "strategy"),
    CASES,
    ids=[f"{talk.__name__} {api} {strategy}" for api, talk, strategy in CASES],
)
def test_the_search_lists_what_an_integration_is_asked_for(
    client: Client, api: str, talk: Talk, strategy: str
) -> None:
    def listed(**route: Any) -> str:
        with serving(Provider(*answered(api, ["Hello."]))) as provider:
            asyncio.run(talk(client, api, provider.url, strategy, SAID[:1], **route))
        tools = [one.get("function", one) for one in sent_tools(api, provider.sent[0].json)]
        (search,) = (one for one in tools if one.get("name") == SEARCH_TOOL.model_name)
        return str(search["description"])

    nothing = listed(prompt_listing="none")
    assert "It finds:" not in nothing
    names = ", ".join(tool.model_name for tool in client.list_tools())
    assert listed() == listed(prompt_listing="names") == f"{nothing} It finds: {names}."
    few = listed(prompt_listing="summaries", prompt_listing_tokens=60)
    assert few.startswith(f"{nothing} It finds:\nmcp__notes__")
    assert few.endswith(" more")
    whole = listed(prompt_listing="summaries", prompt_listing_tokens=900)
    assert whole.count("\nmcp__") == len(NOTES) + len(WEATHER)
