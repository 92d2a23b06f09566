#!/usr/bin/env python3
"""Measures how well tools are found at each turn, with and without the history; writes
tables of docs/conversations.md.

    make bench-turns

Plays the labelled conversations through `toolgate serve` with its defaults: each turn is one Route.
TOOLGATE_BIN names the binary.
"""

import argparse
import json
import os
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from statistics import mean
from typing import Any

from document import rewrite
from toolgate_process import ToolgateProcess

from toolgate import Client, RenderOptions
from toolgate._requests import RouteArguments

ROOT = Path(__file__).resolve().parents[2]
SERVERS = ROOT / "tests" / "data" / "servers"
CONVERSATIONS = ROOT / "tests" / "data" / "conversations"
SETS = {"dev": "dev.jsonl", "held-out": "held-out.jsonl", "unseen": "unseen.jsonl"}
DEFAULT_SETS = ["dev", "held-out"]
SPANS = ((1, 1), (2, 3), (4, 6), (7, 12), (13, 30))
KINDS = ("same-topic", "follow-up", "topic-change", "multi-step")
CUT = 5
RESAMPLES = 1000

Turn = dict[str, Any]
Conversation = list[Turn]


@dataclass(frozen=True)
class Way:
    """Facts about the conversation that Route is told."""

    name: str
    context: bool = True
    """True if `router.context` is on."""
    courtesies: bool = True
    """True if `router.courtesies` is on."""
    history: bool = True
    """True if the state has the messages so far."""
    handle: bool = False
    """True if the handle of the turn before is passed on."""
    request: bool = False
    """True if Route puts the request together, as it does for the integrations."""

    @property
    def settings(self) -> dict[str, str]:
        """Returns the server's settings."""
        keys = {"router.context": self.context, "router.courtesies": self.courtesies}
        return {key: "false" for key, is_on in keys.items() if not is_on}


WAYS = (
    Way("the message alone", history=False),
    Way("with history, `router.context` off", context=False),
    Way("with history"),
    Way("with history and handle", handle=True),
)
WITH_HISTORY = WAYS[2]
WITHOUT_COURTESIES = Way("with history, `router.courtesies` off", courtesies=False)
"""Shows what turns that need no tool get where none of them is known as one."""
AS_SENT = Way("in the request", handle=True, request=True)
"""Requests of the integrations: with the tools of earlier turns too, for as long as that pays."""
MODEL = "claude-opus-4-8"
DESCRIBED = re.compile(r'\{"name":"(mcp__[^"]+)"')
"""The beginning of a description, as the envelope has it."""


@dataclass(frozen=True)
class Played:
    """One turn, and what Route answered."""

    conversation: str
    number: int
    """1 for the first turn."""
    kind: str
    relevant: frozenset[str]
    ranked: tuple[str, ...]
    """Best first, before any cut."""
    chosen: frozenset[str]
    """The active set."""
    new: frozenset[str]
    """Those of them that the history does not call, and that no earlier set of the handle had."""
    shown: frozenset[str]
    """All tools that the model is shown: those of the request, or else of the active set."""

    def ranked_recall(self) -> float:
        """The share of the right tools among the first five."""
        return len(self.relevant.intersection(self.ranked[:CUT])) / len(self.relevant)

    def set_recall(self) -> float:
        """The share of the right tools in the active set."""
        return len(self.relevant & self.chosen) / len(self.relevant)

    def shown_recall(self) -> float:
        """The share of the right tools that the model is shown."""
        return len(self.relevant & self.shown) / len(self.relevant)

    def any_shown(self) -> float:
        """1 where the model is shown a right tool, else 0."""
        return float(bool(self.relevant & self.shown))

    def any_new(self) -> float:
        """1 where the active set has a new tool, else 0."""
        return float(bool(self.new))


Measure = Callable[[Played], float]


def read(path: Path) -> list[Conversation]:
    """The conversations of a file, in order."""
    turns = [json.loads(line) for line in path.read_text().splitlines()]
    return [list(group) for _, group in groupby(turns, itemgetter("conversation"))]


def model_name(tool: str) -> str:
    """The name that the model sees for `server/tool`."""
    server, name = tool.split("/", 1)
    return f"mcp__{server}__{name}".replace(".", "_")


def messages_of(turn: Turn, number: int) -> Iterator[dict[str, Any]]:
    """Returns a turn's additions to the conversation, as the Messages API has them."""
    yield {"role": "user", "content": turn["query"]}
    for at, call in enumerate(turn["calls"]):
        made = f"toolu_{number}_{at}"
        use = {"type": "tool_use", "id": made, "name": model_name(call["tool"])}
        yield {"role": "assistant", "content": [{**use, "input": call["arguments"]}]}
        result = {"type": "tool_result", "tool_use_id": made, "content": call["result"]}
        yield {"role": "user", "content": [result]}
    yield {"role": "assistant", "content": turn["answer"]}


def shown_in(value: Any) -> Iterator[str]:
    """The names of all tools that are defined or described in a part of a request."""
    if isinstance(value, dict):
        if "input_schema" in value and isinstance(value.get("name"), str):
            yield value["name"]
        for inner in value.values():
            yield from shown_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from shown_in(inner)
    elif isinstance(value, str):
        yield from DESCRIBED.findall(value)


def play(client: Client, conversation: Conversation, way: Way) -> Iterator[Played]:
    """Routes each turn of a conversation."""
    messages: list[dict[str, Any]] = []
    handle = ledger = ""
    held: set[str] = set()
    for number, turn in enumerate(conversation, 1):
        now = [*messages, {"role": "user", "content": turn["query"]}]
        arguments: RouteArguments = {"explain": True, "handle": handle}
        if way.history:
            arguments["state"] = {"messages": now}
        if way.request:
            arguments["model"] = MODEL
            arguments["render"] = RenderOptions(
                "anthropic", strategy="auto", search_tool=True, ledger=ledger
            )
        answer = client.route(turn["query"], **arguments)
        assert answer.ranking is not None
        assert not answer.degraded, answer.degraded
        chosen = shown = frozenset(tool.model_name for tool in answer)
        if way.request:
            ledger = answer.request.ledger
            shown = frozenset(shown_in([answer.request.tools, answer.request.messages]))
        yield Played(
            turn["conversation"],
            number,
            turn["kind"],
            frozenset(map(model_name, turn["relevant"])),
            tuple(tool.model_name for tool in answer.ranking.candidates),
            chosen,
            chosen - held,
            shown,
        )
        messages += messages_of(turn, number)
        if way.history:
            held.update(model_name(call["tool"]) for call in turn["calls"])
        if way.handle:
            handle = answer.handle
            held.update(chosen)


def played(
    server: ToolgateProcess, way: Way, conversations: Sequence[Conversation]
) -> list[Played]:
    """Plays the conversations for a tenant that has all shipped catalogs."""
    with server.client("turns", timeout=120) as client:
        for file in sorted(SERVERS.glob("*.json")):
            client.register_server(file.stem, file)
        known = set(client.get_summary_pool().apply_to({}))
        turns = [turn for talk in conversations for turn in play(client, talk, way)]
    unknown = {tool for turn in turns for tool in turn.relevant} - known
    assert not unknown, f"no such tools: {sorted(unknown)}"
    return turns


def measured(binary: Path, conversations: Sequence[Conversation]) -> dict[Way, list[Played]]:
    """Plays the conversations in every way."""
    answers: dict[Way, list[Played]] = {}
    ways = sorted([*WAYS, WITHOUT_COURTESIES, AS_SENT], key=lambda way: sorted(way.settings))
    for _, alike in groupby(ways, lambda way: way.settings):
        same = list(alike)
        with tempfile.TemporaryDirectory() as folder:
            server = ToolgateProcess(binary, Path(folder), same[0].settings).start()
            try:
                for way in same:
                    answers[way] = played(server, way, conversations)
            finally:
                server.stop()
    return answers


def interval(turns: Sequence[Played], measure: Measure) -> str:
    """The mean and its 95% interval over conversations, which are drawn whole."""
    of_talk: dict[str, list[float]] = {}
    for turn in turns:
        of_talk.setdefault(turn.conversation, []).append(measure(turn))
    return mean_of(of_talk)


def mean_of(of_talk: Mapping[str, Sequence[float]]) -> str:
    """The mean of the values of all conversations and its 95% interval; they are drawn whole."""
    talks = list(of_talk.values())
    draw = random.Random(1)
    means = sorted(
        mean(value for talk in draw.choices(talks, k=len(talks)) for value in talk)
        for _ in range(RESAMPLES)
    )
    least, most = means[round(RESAMPLES * 0.025)], means[round(RESAMPLES * 0.975) - 1]
    whole = mean(value for talk in talks for value in talk)
    return f"{figure(whole)} ({figure(least)}-{figure(most)})"


def figure(value: float) -> str:
    """Three digits, without a zero in front."""
    return f"{value:.3f}".removeprefix("0")


def groups(turns: Sequence[Played]) -> Iterator[tuple[str, list[Played]]]:
    """The turns that need a tool: by number, by kind, and all."""
    needing = [turn for turn in turns if turn.relevant]
    for first, last in SPANS:
        within = [turn for turn in needing if first <= turn.number <= last]
        yield f"turn {first}" if first == last else f"turns {first}-{last}", within
    for kind in KINDS:
        yield f"`{kind}`", [turn for turn in needing if turn.kind == kind]
    yield "all", needing


def table(answers: dict[Way, list[Played]], measure: Measure) -> Iterator[str]:
    """A row for each group, a column for each way."""
    yield "| turns that need a tool | | " + " | ".join(way.name for way in WAYS) + " |"
    yield "|---|---:|" + "---:|" * len(WAYS)
    by_way = [list(groups(answers[way])) for way in WAYS]
    for row in zip(*by_way, strict=True):
        cells = [interval(turns, measure) for _, turns in row]
        yield f"| {row[0][0]} | {len(row[0][1])} | " + " | ".join(cells) + " |"


def sent(turns: list[Played]) -> Iterator[str]:
    """A row for each group: what the model is shown of the right tools."""
    yield "| turns that need a tool | | recall of the request | some right tool in the request |"
    yield "|---|---:|---:|---:|"
    for name, group in groups(turns):
        cells = [interval(group, measure) for measure in (Played.shown_recall, Played.any_shown)]
        yield f"| {name} | {len(group)} | " + " | ".join(cells) + " |"


def no_tool(answers: dict[Way, list[Played]], of_set: dict[str, frozenset[str]]) -> Iterator[str]:
    """Returns how often turns that need no tool are sent a new one."""
    ways = (*WAYS[:2], WITHOUT_COURTESIES, *WAYS[2:])
    yield "| turns that need no tool, sent a new one | | " + " | ".join(w.name for w in ways) + " |"
    yield "|---|---:|" + "---:|" * len(ways)
    every = frozenset().union(*of_set.values())
    for name, talks in (("all", every), *((f"of `{SETS[one]}`", of_set[one]) for one in of_set)):
        rows = [
            [one for one in answers[way] if one.kind == "no-tool" and one.conversation in talks]
            for way in ways
        ]
        cells = [interval(turns, Played.any_new) for turns in rows]
        yield f"| {name} | {len(rows[0])} | " + " | ".join(cells) + " |"


def lost(answers: dict[Way, list[Played]]) -> str:
    """Counts the turns that lose a right tool by being taken for courtesies."""
    pairs = zip(answers[WITHOUT_COURTESIES], answers[WITH_HISTORY], strict=True)
    needing = [(without, with_it) for without, with_it in pairs if without.relevant]
    less = [one for one, other in needing if (one.relevant & one.chosen) - other.chosen]
    return f"Turns that `router.courtesies` takes a right tool from: {len(less)} of {len(needing)}."


def page(answers: dict[Way, list[Played]], of_set: dict[str, frozenset[str]]) -> Iterator[str]:
    """All tables as Markdown."""
    yield "Recall of the active set:\n"
    yield from table(answers, Played.set_recall)
    yield f"\nWhat an integration sends with its defaults (`auto`, {MODEL}):\n"
    yield from sent(answers[AS_SENT])
    yield "\nRecall at 5 of the ranking, before any cut:\n"
    yield from table(answers, Played.ranked_recall)
    yield ""
    yield from no_tool(answers, of_set)
    yield ""
    yield lost(answers)
    yield "\nRecall of the active set over all turns that need a tool, by file:\n"
    yield "| conversations | | " + " | ".join(way.name for way in WAYS) + " |"
    yield "|---|---:|" + "---:|" * len(WAYS)
    for name, talks in of_set.items():
        own = [
            [turn for turn in answers[way] if turn.relevant and turn.conversation in talks]
            for way in WAYS
        ]
        cells = [interval(turns, Played.set_recall) for turns in own]
        yield f"| {len(talks)} of `{SETS[name]}` | {len(own[0])} | " + " | ".join(cells) + " |"


def main() -> int:
    """Prints the tables, or writes them between the marks of a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="the page whose tables are written anew")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=DEFAULT_SETS)
    arguments = parser.parse_args()
    if arguments.write is not None and arguments.sets != DEFAULT_SETS:
        parser.error(f"--write is for {' and '.join(DEFAULT_SETS)}, which the page's tables are of")
    files = {name: read(CONVERSATIONS / SETS[name]) for name in arguments.sets}
    of_set = {
        name: frozenset(talk[0]["conversation"] for talk in talks) for name, talks in files.items()
    }
    binary = Path(os.environ["TOOLGATE_BIN"]).resolve()
    answers = measured(binary, [talk for talks in files.values() for talk in talks])
    text = "\n".join(page(answers, of_set))
    if arguments.write is None:
        print(text)
        return 0
    rewrite(arguments.write, "turns", f"\n{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
