"""The provider's cache over a long conversation, with an agent of each Python framework."""

from collections.abc import Iterator
from itertools import pairwise

import langchain_talk
import langgraph_talk
import openai_agents_talk
import own_loop_talk
import pydantic_ai_talk
import pytest
from forty_messages import (
    Framework,
    Request,
    Stage,
    added,
    cached,
    check_envelope,
    check_native,
    described,
    right_share,
)
from toolgate_process import ToolgateProcess

from toolgate import Client

FRAMEWORKS = {
    "langchain": langchain_talk.FRAMEWORK,
    "langgraph": langgraph_talk.FRAMEWORK,
    "openai-agents": openai_agents_talk.FRAMEWORK,
    "own-loop": own_loop_talk.FRAMEWORK,
    "pydantic-ai": pydantic_ai_talk.FRAMEWORK,
}
CLAUDE, GPT = "claude-opus-4-8", "gpt-5.5"
"""Models that take tools amid a conversation, each at its provider's own host."""
NATIVE: dict[str, tuple[Framework, dict[str, str]]] = {
    "langchain-messages": (langchain_talk.FRAMEWORK, {"anthropic": CLAUDE}),
    "langchain-responses": (langchain_talk.FRAMEWORK, {"responses": GPT}),
    "langgraph-messages": (langgraph_talk.FRAMEWORK, {"anthropic": CLAUDE}),
    "openai-agents-responses": (openai_agents_talk.FRAMEWORK, {"responses": GPT}),
    "own-loop-messages": (own_loop_talk.FRAMEWORK, {"api": "anthropic", "model": CLAUDE}),
    "own-loop-responses": (own_loop_talk.FRAMEWORK, {"api": "openai_responses", "model": GPT}),
}
"""The frameworks with models that take "native", and what their talks are told of them."""


@pytest.fixture(scope="module")
def one_tenant(server: ToolgateProcess) -> Iterator[Client]:
    """A tenant for all talks: what they register and ask for is embedded once."""
    with server.client("forty-messages") as client:
        yield client


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """MCP servers for all talks: each takes half a second to start."""
    stage = Stage(tmp_path_factory.mktemp("stage"))
    yield stage
    stage.close()


@pytest.fixture(scope="module")
def compared(stage: Stage, one_tenant: Client) -> tuple[list[Request], list[Request]]:
    """The requests with "cut", and those with all tools."""
    options = {"strategy": "cut"}, {"deferral": "off"}
    cut, whole = stage.plays(langchain_talk.FRAMEWORK, one_tenant, *options)
    return cut, whole


@pytest.mark.parametrize("framework", FRAMEWORKS.values(), ids=FRAMEWORKS)
def test_over_forty_turns_the_envelope_and_the_default_keep_the_prefix(
    framework: Framework,
    stage: Stage,
    one_tenant: Client,
    compared: tuple[list[Request], list[Request]],
) -> None:
    cut, whole = compared
    envelope, default = stage.plays(framework, one_tenant, {"strategy": "envelope"}, {})
    check_envelope(envelope)
    assert right_share(envelope) == 1, "the tool of each message is shown"
    assert right_share(default) == 1, "the tool of each message is shown"
    assert changes(default) <= 2, "the definitions stay, once the requests are long enough"
    assert uncached(default) < uncached(cut) / 2
    assert uncached(default) < sent(default) * 0.15, "the cache serves 85% or more"
    assert sent(default) < sent(whole), "less is sent than with all tools"
    every = len(whole[0].tools)
    assert all(shown(one) < every for one in default), "and never all of them"


@pytest.mark.parametrize(("framework", "model"), NATIVE.values(), ids=NATIVE)
def test_over_forty_turns_native_and_the_default_keep_the_prefix(
    framework: Framework, model: dict[str, str], stage: Stage, one_tenant: Client
) -> None:
    native, default = stage.plays(framework, one_tenant, {**model, "strategy": "native"}, model)
    check_native(native)
    assert right_share(native) == 1, "the tool of each message is shown"
    assert right_share(default) == 1, "the tool of each message is shown"
    assert changes(default) <= 2, "the definitions stay, once the requests are long enough"
    # Tools that nothing uses are dropped where carrying them along costs more than what is behind.
    # LangChain tells Route the texts of Responses' items alone, so that it drops more: .914.
    assert served(native) > 0.9
    assert served(default) > 0.9


def test_over_forty_turns_cut_loses_the_prefix(
    compared: tuple[list[Request], list[Request]],
) -> None:
    cut, _ = compared
    assert changes(cut) > len(cut) / 3, "the set goes with what is asked"


def changes(requests: list[Request]) -> int:
    """Returns how often other tools are defined than in the request before."""
    return sum(before.tools != after.tools for before, after in pairwise(requests))


def sent(requests: list[Request]) -> int:
    """Returns the number of characters of all requests."""
    return sum(len(one.text) for one in requests)


def shown(request: Request) -> int:
    """Returns the number of the catalog's tools that a request defines or describes."""
    names = {*request.tools, *described(request), *added(request)}
    return sum(name.startswith("mcp__") for name in names)


def uncached(requests: list[Request]) -> int:
    """Returns the number of characters that no cache serves."""
    kept = [0, *map(len, cached(requests))]
    return sum(len(one.text) - prefix for one, prefix in zip(requests, kept, strict=True))


def served(requests: list[Request]) -> float:
    """Returns the share of all characters that the provider's cache serves."""
    return 1 - uncached(requests) / sent(requests)
