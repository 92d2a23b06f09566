"""What a tool returned, as an intent of the Python integrations' next request (A16)."""

import asyncio
import json
from dataclasses import replace

import pytest
from llm_provider import Provider, serving
from test_integrations_types import (
    LARGE,
    Step,
    Talk,
    answered,
    with_a_loop,
    with_agents_sdk,
    with_langchain,
    with_langgraph,
    with_pydantic_ai,
)

from toolgate import Client

READ, POST = "mcp__filesystem__read_text_file", "mcp__slack__slack_post_message"
TODO = "1. Post a message to the Slack channel that the release is ready."
CASES: list[tuple[str, Talk]] = [
    ("anthropic", with_langchain),
    ("openai_responses", with_langchain),
    ("openai_chat", with_langgraph),
    ("openai_chat", with_agents_sdk),
    ("openai_responses", with_agents_sdk),
    ("anthropic", with_pydantic_ai),
    ("openai_chat", with_pydantic_ai),
    ("anthropic", with_a_loop),
]


@pytest.mark.parametrize(
    ("api", "talk"), CASES, ids=[f"{talk.__name__} {api}" for api, talk in CASES]
)
def test_a16_by_default_what_a_call_returned_brings_its_tool_in(
    client: Client, api: str, talk: Talk
) -> None:
    def described(returns: str) -> list[bool]:
        """Has the talk; returns which of its requests describe the tool."""
        desk = replace(LARGE, returns=returns)
        script: list[Step] = [(READ, {"path": "/TODO.txt"}), "It is read."]
        with serving(Provider(*answered(api, script))) as provider:
            said = ["read the file TODO.txt"]
            asyncio.run(talk(client, api, provider.url, "auto", said, desk))
        first, second = provider.sent
        assert returns in json.dumps(second.json), "the tool ran"
        texts = (json.dumps(sent.json).replace("\\", "") for sent in (first, second))
        return [f'"name":"{POST}"' in text.replace('": "', '":"') for text in texts]

    assert described(TODO) == [False, True]
    assert described("Nothing is left to do.") == [False, False]
