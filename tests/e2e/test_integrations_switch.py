"""The operator's kill switch, thrown amid conversations of the Python integrations."""

import asyncio
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from catalogs import NOTES
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool
from llm_provider import Answer, Provider, Sent, serving
from llm_tools import DEFERRAL
from provider_types import check_request
from pydantic import SecretStr
from test_integrations_types import (
    ADDING,
    FIND,
    FORECAST,
    LARGE,
    LONG_SAID,
    MESSAGES,
    MODELS,
    SAID,
    SMALL,
    Step,
    Talk,
    answered,
    declared,
    langchain_middleware,
    sent_tools,
    with_a_loop,
    with_agents_sdk,
    with_langchain,
    with_langgraph,
    with_pydantic_ai,
)
from toolgate_process import ToolgateProcess
from waiting import PATIENCE, wait_until

from toolgate import SEARCH_TOOL, Client, DeferralReason

SEARCH = SEARCH_TOOL.model_name
SCRIPT: tuple[Step, ...] = (
    (FORECAST, {"city": "Oslo"}),
    (SEARCH, {"query": f"select:{FIND}"}),
    (FIND, {"text": "milk"}),
    "Rain, and a note.",
    (FORECAST, {"city": "Bergen"}),
    "Rain there too.",
)
THROWN_AT = 1
"""The answer before which the switch is thrown."""
TRACES = (*DEFERRAL, "[Toolgate]")


class Operator:
    """Someone who changes the settings of a server while it runs."""

    def __init__(self, server: ToolgateProcess, settings: Path, probe: Client) -> None:
        self.server = server
        self._settings = settings
        self._probe = probe

    def throw(self, *, is_on: bool) -> None:
        """Throws the kill switch; returns once it is so."""
        self._settings.write_text(f"[deferral]\nkill_switch = {str(is_on).lower()}\n")
        os.kill(self.server.process.pid, signal.SIGHUP)

        def is_so() -> bool:
            reason = self._probe.route("x").deferral.reason
            return (reason is DeferralReason.KILL_SWITCH) is is_on

        wait_until(is_so, "the switch is not heeded")


@pytest.fixture(scope="module")
def operator(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """The operator of a server of its own."""
    folder = tmp_path_factory.mktemp("switched")
    settings = folder / "config" / "toolgate" / "toolgate.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text("")
    server = ToolgateProcess(binary, folder, {}).start()
    with server.client("probe") as probe:
        probe.register_server("notes", NOTES)
        yield Operator(server, settings, probe)
    assert server.stop() == 0


CASES: list[tuple[str, Talk, str]] = [
    ("anthropic", with_langchain, "cut"),
    ("anthropic", with_langchain, "envelope"),
    ("anthropic", with_langchain, "native"),
    ("anthropic", with_langgraph, "native"),
    ("anthropic", with_pydantic_ai, "cut"),
    ("anthropic", with_pydantic_ai, "envelope"),
    ("anthropic", with_a_loop, "native"),
    ("openai_responses", with_agents_sdk, "cut"),
    ("openai_responses", with_agents_sdk, "envelope"),
    ("openai_responses", with_agents_sdk, "native"),
    ("openai_responses", with_pydantic_ai, "cut"),
    ("openai_responses", with_a_loop, "native"),
    ("openai_chat", with_langgraph, "envelope"),
    ("gemini", with_a_loop, "envelope"),
    ("anthropic", with_langchain, "auto"),
    ("anthropic", with_langgraph, "auto"),
    ("anthropic", with_pydantic_ai, "auto"),
    ("anthropic", with_a_loop, "auto"),
    ("openai_responses", with_agents_sdk, "auto"),
    ("openai_chat", with_langgraph, "auto"),
    ("gemini", with_a_loop, "auto"),
]


def steps(api: str, operator: Operator) -> Iterator[Callable[[Sent], Answer]]:
    """The script's answers, with the switch thrown amid them."""
    for at, step in enumerate(answered(api, SCRIPT)):

        def thrown(sent: Sent, step: Callable[[Sent], Answer] = step) -> Answer:
            operator.throw(is_on=True)
            return step(sent)

        yield thrown if at == THROWN_AT else step


@pytest.mark.parametrize(
    ("api", "talk", "strategy"),
    CASES,
    ids=[f"{talk.__name__} {api} {strategy}" for api, talk, strategy in CASES],
)
def test_b19_the_kill_switch_amid_a_conversation_leaves_no_trace_of_deferral(
    operator: Operator, tenant: str, api: str, talk: Talk, strategy: str
) -> None:
    operator.throw(is_on=False)
    said, desk = (LONG_SAID, LARGE) if strategy == "auto" else (SAID, SMALL)
    with operator.server.client(tenant) as client, serving(Provider(*steps(api, operator))) as p:
        asyncio.run(talk(client, api, p.url, strategy, said, desk))
        sent = p.sent
    assert len(sent) == len(SCRIPT), "the conversation finishes"
    before, after = sent[: THROWN_AT + 1], sent[THROWN_AT + 1 :]
    signs = ADDING.get(strategy, (SEARCH,))
    assert any(sign in json.dumps(before[-1].json) for sign in signs)
    if strategy == "native" and api == "anthropic":
        assert all(one.headers["anthropic-beta"] for one in before)
    for one in before:
        assert len(defined(api, one) & desk.names) < len(desk.names), "tools are deferred"
    for one in after:
        text = json.dumps(one.json)
        assert [trace for trace in TRACES if trace in text] == []
        # Anthropic's package sends an empty list of betas as an empty header.
        assert not one.headers.get("anthropic-beta")
        assert defined(api, one) == desk.names
        messages = one.json[MESSAGES.get(api, "messages")]
        check_request(api, [], [declared(talk, api, message) for message in messages])
    assert json.dumps(messages).count("done") == 3, "all of the tools ran"


def test_b19_the_kill_switch_leaves_what_an_agents_own_code_defers_and_names(
    operator: Operator, tenant: str
) -> None:
    named = "context-management-2025-06-27"
    own = StructuredTool(
        name="clock",
        description="Tells the time.",
        args_schema={"type": "object", "properties": {}},
        func=lambda: "noon",
        extras={"defer_loading": True},
    )
    operator.throw(is_on=True)
    with (
        operator.server.client(tenant) as client,
        serving(Provider(*answered("anthropic", ["Hello."]))) as provider,
    ):
        toolgate = langchain_middleware(client, SMALL, {})
        model = ChatAnthropic(
            model_name=MODELS["anthropic"],
            api_key=SecretStr("none"),
            base_url=provider.url,
            timeout=PATIENCE,
            stop=None,
            betas=[named],
        )
        agent: Any = create_agent(model, [own], middleware=[toolgate])
        agent.invoke({"messages": [HumanMessage(SAID[0])]})
    (sent,) = provider.sent
    assert named in sent.headers["anthropic-beta"]
    deferred = {tool["name"]: tool.get("defer_loading", False) for tool in sent.json["tools"]}
    assert deferred == {"clock": True} | dict.fromkeys(SMALL.names, False)


def defined(api: str, sent: Sent) -> set[str]:
    """The names of the tools that a request defines; the type of a provider's own tool."""
    tools = (tool.get("function", tool) for tool in sent_tools(api, sent.json))
    return {tool.get("name") or tool["type"] for tool in tools}
