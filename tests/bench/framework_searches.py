#!/usr/bin/env python3
"""The cost of forty messages with each framework's own search for tools, beside Toolgate.

    make bench-frameworks

Writes tables of docs/frameworks.md. `requirements-searches.txt` must be importable, TOOLGATE_BIN
names the binary, and the scripts of client-sdk/typescript must be built.
"""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import search_talks
from document import rewrite
from forty_messages import TURNS, Request, commands, texts
from frameworks import (
    CATALOGS,
    CHAT,
    FRAMEWORKS,
    MESSAGES,
    SHIPPED,
    Counter,
    Prompt,
    prompts,
)
from rates import Rates
from search_talks import Play, Played, Setting
from searching import in_one_form, shown
from toolgate_process import ToolgateProcess

WITHOUT_SEARCHES = TURNS + TURNS // 5
"""The requests of the talk: one for each message, and one more after each call."""
TOOLGATE: dict[str, dict[str, Any]] = {
    "all tools": {"deferral": "off"},
    "Toolgate's `auto`": {},
}
AT_PROVIDERS = {
    "OpenAI Agents": search_talks.openai_toolgate,
    "LangChain": search_talks.langchain_toolgate,
}
"""Frameworks whose model of the provider's own host takes `native`."""
SEARCHES: dict[str, dict[str, Play]] = {
    "OpenAI Agents": {
        "`ToolSearchTool`, functions": search_talks.openai_functions,
        "`ToolSearchTool`, namespaces": search_talks.openai_namespaces,
    },
    "Pydantic AI": {
        "`ToolSearch`, its own": search_talks.pydantic_words,
        "`ToolSearch`, Anthropic's": search_talks.pydantic_anthropic,
    },
    "LangChain": {
        "`ProviderToolSearchMiddleware`, Anthropic's": search_talks.langchain_anthropic_search,
        "`LLMToolSelectorMiddleware`": search_talks.langchain_selector,
    },
    "LangGraph": {"langgraph-bigtool": search_talks.langgraph_bigtool},
    "Vercel AI SDK": {"`toolSearch`": search_talks.ai_sdk},
}


@dataclass(frozen=True)
class Cost:
    """Cost of a talk."""

    played: Played
    prompts: Sequence[Prompt]

    @staticmethod
    def of(played: Played, counter: Counter) -> "Cost":
        """Counts the requests in one form."""
        return Cost(played, prompts([in_one_form(one) for one in played.requests], counter))

    def price(self, rates: Rates) -> float:
        """The price of a message, with all its requests."""
        return sum(rates.price(one.tokens, one.shared) for one in self.prompts) / TURNS

    def calls(self) -> int:
        """The extra calls of a model that a client makes."""
        return len(self.prompts) - WITHOUT_SEARCHES - self.played.hosted

    def tokens(self) -> float:
        """The tokens of a request."""
        return sum(one.tokens for one in self.prompts) / len(self.prompts)


def right_turns(requests: Sequence[Request]) -> set[int]:
    """The turns in which one of the requests shows the tool that the message is about."""
    return {one.turn for one in requests if texts()[one.turn][0] in shown(one)}


def cells(cost: Cost) -> Iterator[str]:
    """The cells of a row after what is sent."""
    requests = cost.played.requests
    yield f"{cost.calls()}"
    yield f"{cost.played.hosted}"
    yield f"{len(right_turns([one for one in requests if one.is_first])) / TURNS:.0%}"
    yield f"{len(right_turns(requests)) / TURNS:.0%}"
    yield f"{cost.tokens():,.0f}"
    yield from (f"{cost.price(rates):,.0f}" for rates in (CHAT.rates, MESSAGES.rates))


HEADER = (
    "| framework | sent | extra calls | searches by the provider | right tool at once "
    "| in the end | tokens a request | price of a message, OpenAI's rules | Anthropic's rules |"
)


def toolgate_talk(
    framework: str, server: ToolgateProcess, tenant: str, folder: Path, options: dict[str, Any]
) -> Played:
    """Has the talk with Toolgate."""
    if framework not in AT_PROVIDERS:
        return Played(FRAMEWORKS[framework](server, tenant, folder, options))
    with server.client(tenant, timeout=600) as client:
        return asyncio.run(AT_PROVIDERS[framework](client, folder, **options))


def rows(
    framework: str, server: ToolgateProcess, binary: Path, folder: Path, counter: Counter
) -> Iterator[str]:
    """The rows of a framework."""
    for sent, options in TOOLGATE.items():
        played = toolgate_talk(framework, server, folder.name, folder, options)
        yield row(framework, sent, Cost.of(played, counter))
    for sent, play in SEARCHES[framework].items():
        played = asyncio.run(play(Setting(folder, binary)))
        yield row(framework, sent, Cost.of(played, counter))


def row(framework: str, sent: str, cost: Cost) -> str:
    """The cells of a row after the framework."""
    text = " | ".join([sent, *cells(cost)])
    print(f"{framework}: {text}", file=sys.stderr, flush=True)
    return text


def page(
    server: ToolgateProcess, binary: Path, folder: Path, catalogs: Sequence[str]
) -> Iterator[str]:
    """The tables of these catalogs as Markdown."""
    counter = Counter()
    for catalog in catalogs:
        own = folder / catalog
        own.mkdir()
        for name in CATALOGS[catalog]:
            shutil.copy(SHIPPED / f"{name}.json", own)
        yield f"\nOver the MCP servers {', '.join(commands(own))}:\n"
        yield HEADER
        yield "|---|---|" + "---:|" * 7
        for framework in SEARCHES:
            for at, text in enumerate(rows(framework, server, binary, own, counter)):
                yield f"| {'' if at else framework} | {text} |"


def main() -> int:
    """Prints the tables, or writes them between the marks of a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="the page whose tables are written anew")
    parser.add_argument("--catalog", choices=CATALOGS, help="the only one to measure")
    parser.add_argument("--framework", choices=SEARCHES, help="the only one to measure")
    parser.add_argument("--searches", action="store_true", help="leave Toolgate's rows out")
    arguments = parser.parse_args()
    catalogs = [arguments.catalog] if arguments.catalog else list(CATALOGS)
    for left_out in set(SEARCHES) - {arguments.framework or name for name in SEARCHES}:
        del SEARCHES[left_out]
    if arguments.searches:
        TOOLGATE.clear()
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(os.environ["TOOLGATE_BIN"]).resolve()
        server = ToolgateProcess(binary, Path(folder) / "server").start()
        try:
            text = "\n".join(page(server, binary, Path(folder), catalogs)).strip()
        finally:
            server.stop()
    if arguments.write is None:
        print(text)
        return 0
    rewrite(arguments.write, "framework-searches", f"\n{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
