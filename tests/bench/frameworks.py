#!/usr/bin/env python3
"""The cost of forty messages in each agent framework, by strategy; writes tables of
docs/frameworks.md.

    make bench-frameworks

The agents have real MCP servers and a scripted model. TOOLGATE_BIN names the binary. The scripts of
client-sdk/typescript must be built (`npm run build && npm run build:test`). To try it with few
messages: TALK_TURNS=3, `--catalog small`, `--only "own loop"`. `--only "(Messages)"` with `--write`
measures the rows of that API anew, and leaves the others as they stand on the page.
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import langchain_talk
import langgraph_talk
import node_talk
import openai_agents_talk
import own_loop_talk
import pydantic_ai_talk
from document import rewrite, written
from forty_messages import Framework, Request, commands, common_prefix, right_share
from rates import Rates
from toolgate_process import ToolgateProcess

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "tests" / "data" / "servers"
CATALOGS: dict[str, tuple[str, ...]] = {"small": (), "large": ("atlassian", "mongodb", "notion")}
"""The shipped catalogs that stand beside the talk's three MCP servers."""
STRATEGIES: dict[str, dict[str, Any]] = {
    "before: all tools, `deferral` off": {"deferral": "off"},
    "after: `auto`, the default": {},
    "`cut`": {"strategy": "cut"},
    "`envelope`": {"strategy": "envelope"},
    "`native`": {"strategy": "native"},
}
"""Options of the integrations, by what the tables call them."""

Talk = Callable[[ToolgateProcess, str, Path, dict[str, Any]], list[Request]]
"""Has the talk with a framework, given the service, a tenant, a folder and options."""


CLAUDE, GPT = "claude-opus-4-8", "gpt-5.5"
"""Models that take tools amid a conversation."""

FLASH = "gemini-3.5-flash"


@dataclass(frozen=True)
class Prompt:
    """A request in tokens."""

    tokens: int
    shared: int
    """The tokens of the longest beginning that an earlier request has too."""


class Counter:
    """Counts cl100k_base tokens, each text once."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def count(self, texts: Sequence[str]) -> list[int]:
        """The tokens of each text."""
        new = sorted({text for text in texts if text not in self._known})
        if new:
            done = subprocess.run(
                ["node", node_talk.SDK / "build" / "test" / "count-tokens.js"],
                input=json.dumps(new),
                capture_output=True,
                text=True,
                check=True,
                timeout=900,
            )
            self._known.update(zip(new, json.loads(done.stdout), strict=True))
        return [self._known[text] for text in texts]


@dataclass(frozen=True)
class Api:
    """A provider's API."""

    name: str
    form: str
    """Its name in `RenderOptions`."""
    model: str
    """The model whose rules its requests are priced by."""
    takes_native: bool = True
    """True if it takes tools amid a conversation."""

    @property
    def rates(self) -> Rates:
        """The rules by which its requests are priced."""
        return Rates.of(self.form, self.model)

    @property
    def strategies(self) -> dict[str, dict[str, Any]]:
        """Those of `STRATEGIES` that it can carry."""
        carried = STRATEGIES.items()
        return {sent: said for sent, said in carried if self.takes_native or sent != "`native`"}


CHAT = Api("Chat Completions", "openai_chat", GPT, takes_native=False)
RESPONSES = Api("Responses", "openai_responses", GPT)
MESSAGES = Api("Messages", "anthropic", CLAUDE)
GEMINI = Api("Gemini", "gemini", FLASH, takes_native=False)


@dataclass(frozen=True)
class Agent:
    """An agent of a framework, and the API in whose form its requests are."""

    framework: str
    talk: Talk
    api: Api = CHAT

    @property
    def name(self) -> str:
        """What tells it from others: the framework and the API."""
        return f"{self.framework} ({self.api.name})"


def of_python(framework: Framework, **fixed: Any) -> Talk:
    """The talk with a framework in Python; further options are the same for each strategy."""

    def talk(
        server: ToolgateProcess, tenant: str, folder: Path, options: dict[str, Any]
    ) -> list[Request]:
        with server.client(tenant, timeout=600) as client:
            (requests,) = asyncio.run(framework.plays(client, folder, {**fixed, **options}))
            return requests

    return talk


def of_node(script: str, **fixed: Any) -> Talk:
    """The talk with a framework in TypeScript; further options are the same for each strategy."""

    def talk(
        server: ToolgateProcess, tenant: str, folder: Path, options: dict[str, Any]
    ) -> list[Request]:
        return node_talk.play(script, server.target, tenant, folder, **fixed, **options)

    return talk


FRAMEWORKS: dict[str, Talk] = {
    "LangChain": of_python(langchain_talk.FRAMEWORK),
    "LangGraph": of_python(langgraph_talk.FRAMEWORK),
    "OpenAI Agents": of_python(openai_agents_talk.FRAMEWORK),
    "Pydantic AI": of_python(pydantic_ai_talk.FRAMEWORK),
    "Vercel AI SDK": of_node("ai-talk"),
    "LangChain.js": of_node("langchain-talk"),
    "OpenAI Agents, TypeScript": of_node("openai-agents-talk"),
}
"""The frameworks, whose requests here are of Chat Completions."""

SAID: dict[Api, dict[str, str]] = {
    api: {"api": api.form, "model": api.model} for api in (CHAT, RESPONSES, MESSAGES)
}
"""The API and its model, as a loop of one's own and the talks in TypeScript name them. No base URL:
the provider's own host."""

ENVELOPED_RESPONSES = replace(RESPONSES, takes_native=False)
ENVELOPED_MESSAGES = replace(MESSAGES, takes_native=False)
"""The APIs as frameworks use them that have nothing for tools amid a conversation."""


def with_claude(framework: Framework) -> Talk:
    """The talk with a framework in Python whose own class asks Anthropic."""
    return of_python(framework, anthropic=CLAUDE)


def with_gpt(framework: Framework) -> Talk:
    """The talk with a framework in Python whose own class asks OpenAI's Responses."""
    return of_python(framework, responses=GPT)


LANGCHAIN = langchain_talk.FRAMEWORK
LANGGRAPH = langgraph_talk.FRAMEWORK
PYDANTIC = pydantic_ai_talk.FRAMEWORK
PROVIDERS: list[Agent] = [
    Agent("LangChain, `ChatAnthropic`", with_claude(LANGCHAIN), MESSAGES),
    Agent("LangChain, `ChatOpenAI`", with_gpt(LANGCHAIN), RESPONSES),
    Agent("LangGraph, `ChatAnthropic`", with_claude(LANGGRAPH), MESSAGES),
    Agent("LangGraph, `ChatOpenAI`", with_gpt(LANGGRAPH), RESPONSES),
    Agent(
        "OpenAI Agents, its default model class", with_gpt(openai_agents_talk.FRAMEWORK), RESPONSES
    ),
    Agent("Pydantic AI, `AnthropicModel`", with_claude(PYDANTIC), ENVELOPED_MESSAGES),
    Agent("Pydantic AI, `OpenAIResponsesModel`", with_gpt(PYDANTIC), ENVELOPED_RESPONSES),
    Agent("Vercel AI SDK, `@ai-sdk/anthropic`", of_node("ai-talk", **SAID[MESSAGES]), MESSAGES),
    Agent(
        "Vercel AI SDK, `@ai-sdk/openai`",
        of_node("ai-talk", **SAID[RESPONSES]),
        ENVELOPED_RESPONSES,
    ),
    Agent("LangChain.js, `ChatAnthropic`", of_node("langchain-talk", **SAID[MESSAGES]), MESSAGES),
    Agent("LangChain.js, `ChatOpenAI`", of_node("langchain-talk", **SAID[RESPONSES]), RESPONSES),
    Agent(
        "OpenAI Agents, TypeScript, `OpenAIResponsesModel`",
        of_node("openai-agents-talk", **SAID[RESPONSES]),
        RESPONSES,
    ),
]
"""Frameworks with a provider's own model, asked at the provider's host."""

AGENTS = [
    *(Agent(name, talk) for name, talk in FRAMEWORKS.items()),
    *PROVIDERS,
    *(
        Agent("own loop, Python", of_python(own_loop_talk.FRAMEWORK, **said), api)
        for api, said in {**SAID, GEMINI: {"api": GEMINI.form, "model": GEMINI.model}}.items()
    ),
    *(
        Agent("own loop, TypeScript", of_node("loop-talk", **said), api)
        for api, said in SAID.items()
    ),
]


def parts(request: Request) -> list[str]:
    """Splits a request into its definitions, then each message."""
    body = json.loads(request.text)
    every = [body["tools"], *body["messages"]]
    return [json.dumps(part, ensure_ascii=False, separators=(",", ":")) for part in every]


def shared(before: list[str], after: list[str]) -> list[str]:
    """The beginning that two requests have in common, part by part."""
    common: list[str] = []
    for one, other in zip(before, after, strict=False):
        if one != other:
            return [*common, common_prefix(one, other)]
        common.append(one)
    return common


def prompts(requests: Sequence[Request], counter: Counter) -> list[Prompt]:
    """The requests in tokens, each held against all earlier ones."""
    texts = [parts(request) for request in requests]
    counted = []
    for at, text in enumerate(texts):
        common = [shared(earlier, text) for earlier in texts[:at]]
        longest = max(common, key=lambda one: sum(map(len, one)), default=[])
        counted.append(Prompt(sum(counter.count(text)), sum(counter.count(longest))))
    return counted


@dataclass(frozen=True)
class Row:
    """The requests of a talk, and their average cost."""

    sent: str
    requests: Sequence[Request]
    prompts: Sequence[Prompt]

    def price(self, rates: Rates) -> float:
        """The price of a request."""
        return sum(rates.price(one.tokens, one.shared) for one in self.prompts) / len(self.prompts)

    def cells(self, api: Api, cheapest: float) -> Iterator[str]:
        """The cells of the table after the names of the framework and the API."""
        whole = sum(one.tokens for one in self.prompts)
        yield self.sent
        yield f"{sum(len(one.tools) for one in self.requests) / len(self.requests):.1f}"
        yield f"{len({tuple(one.tools) for one in self.requests})}"
        yield f"{whole / len(self.prompts):,.0f}"
        yield f"{sum(api.rates.cached(one.shared) for one in self.prompts) / whole:.1%}"
        price = f"{self.price(api.rates):,.0f}"
        yield f"**{price}**" if self.price(api.rates) == cheapest else price
        yield f"{right_share(list(self.requests)):.0%}"


def rows(
    agent: Agent, server: ToolgateProcess, tenant: str, folder: Path, counter: Counter
) -> Iterator[str]:
    """Has an agent's talk with each strategy; the rows of its table."""
    measured = []
    for sent, options in agent.api.strategies.items():
        requests = agent.talk(server, tenant, folder, options)
        measured.append(Row(sent, requests, prompts(requests, counter)))
    cheapest = min(row.price(agent.api.rates) for row in measured)
    for at, row in enumerate(measured):
        named = " | " if at else f"{agent.framework} | {agent.api.name}"
        yield f"| {named} | " + " | ".join(row.cells(agent.api, cheapest)) + " |"
    print(f"{agent.name} is measured over the {tenant} catalog", file=sys.stderr, flush=True)


class Page:
    """The tables as they stood before: rows of each catalog's agents, by their names."""

    def __init__(self, document: Path | None) -> None:
        text = written(document, "frameworks") if document else ""
        _, *tables = text.split("\nOver the MCP servers ")
        self._rows = {
            catalog: _rows_of(table) for catalog, table in zip(CATALOGS, tables, strict=False)
        }

    def rows(self, catalog: str, agent: Agent) -> list[str]:
        """Returns an agent's rows; none if it has none yet."""
        return self._rows.get(catalog, {}).get(agent.name, [])


def _rows_of(table: str) -> dict[str, list[str]]:
    """Returns the rows of a table, by the agent that the first of them names."""
    found: dict[str, list[str]] = {}
    name = ""
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    for line in lines[1:]:
        _, framework, api, *_ = (cell.strip() for cell in line.split("|"))
        name = f"{framework} ({api})" if framework else name
        found.setdefault(name, []).append(line)
    return found


@dataclass(frozen=True)
class Chosen:
    """What is measured anew."""

    catalogs: Sequence[str]
    agents: Sequence[Agent]

    def has(self, catalog: str, agent: Agent) -> bool:
        """Returns whether an agent is measured over a catalog."""
        return catalog in self.catalogs and agent in self.agents


def tables(server: ToolgateProcess, folder: Path, chosen: Chosen, before: Page) -> Iterator[str]:
    """The tables as Markdown: rows that are measured anew, and others as they were."""
    counter = Counter()
    yield (
        "Requests of Chat Completions and Responses are priced by OpenAI's rules, those of "
        "Messages by Anthropic's, and those of Gemini by Google's. Before is what was sent "
        "without Toolgate: all tools, which `deferral` off sends; after is what it sends by "
        "default."
    )
    for catalog in CATALOGS:
        own = folder / catalog
        own.mkdir()
        for name in CATALOGS[catalog]:
            shutil.copy(SHIPPED / f"{name}.json", own)
        yield f"\nOver the MCP servers {', '.join(commands(own))}:\n"
        yield (
            "| framework | API | sent | tools defined | sets of tools | tokens a request "
            "| cached | price | right tool shown |"
        )
        yield "|---|---|---|---:|---:|---:|---:|---:|---:|"
        for agent in AGENTS:
            if chosen.has(catalog, agent):
                yield from rows(agent, server, catalog, own, counter)
            else:
                yield from before.rows(catalog, agent)


def main() -> int:
    """Prints the tables, or writes them between the marks of a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="the page whose tables are written anew")
    parser.add_argument("--catalog", choices=CATALOGS, help="the only one to measure")
    parser.add_argument(
        "--only",
        action="append",
        help="measure agents whose names have this text, such as `(Messages)`; may be repeated",
    )
    arguments = parser.parse_args()
    only = arguments.only or [""]
    chosen = Chosen(
        [arguments.catalog] if arguments.catalog else list(CATALOGS),
        [agent for agent in AGENTS if any(text in agent.name for text in only)],
    )
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(os.environ["TOOLGATE_BIN"]).resolve()
        server = ToolgateProcess(binary, Path(folder) / "server").start()
        try:
            before = Page(arguments.write)
            text = "\n".join(tables(server, Path(folder), chosen, before)).strip()
        finally:
            server.stop()
    if arguments.write is None:
        print(text)
        return 0
    rewrite(arguments.write, "frameworks", f"\n{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
