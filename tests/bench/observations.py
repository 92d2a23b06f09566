#!/usr/bin/env python3
"""Measures whether the next tool is found after a call has answered (A16); writes a table of
docs/conversations.md.

    TOOLGATE_BIN=... python tests/bench/observations.py --write docs/conversations.md

Plays the turns of the labelled conversations that have several calls: after each result but the
last, Route is asked again, and the tool of the next call is the right one.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from conversation_turns import (
    CONVERSATIONS,
    SERVERS,
    Conversation,
    mean_of,
    messages_of,
    model_name,
    read,
)
from document import rewrite
from toolgate_process import ToolgateProcess

from toolgate import Client, Intent

SETS = ("dev", "held-out", "unseen")
WAYS: dict[str, float | None] = {
    "the message again": 0.0,
    "the message and the result at .5, as integrations do": 0.5,
    "both at 1": 1.0,
    "the result alone": None,
}
"""Weights of the last result beside the message; None without the message."""


@dataclass(frozen=True)
class Step:
    """A call that follows another in its turn."""

    conversation: str
    is_same_server: bool
    """True if its tool is of the MCP server that was called before it."""
    found: dict[str, bool]
    """True, by the way, if its tool is in the active set."""


def intents(message: str, result: str, weight: float | None) -> list[Intent]:
    """Returns what Route is asked after a result."""
    if weight is None:
        return [Intent(result)]
    return [Intent(message), *([Intent(result, weight)] if weight else [])]


def steps(client: Client, conversation: Conversation) -> Iterator[Step]:
    """Asks after each result of a conversation that another call follows."""
    before: list[dict[str, object]] = []
    for number, turn in enumerate(conversation, 1):
        said = list(messages_of(turn, number))
        for at, (call, following) in enumerate(zip(turn["calls"], turn["calls"][1:], strict=False)):
            state = {"messages": [*before, *said[: 3 + 2 * at]]}
            found = {}
            for name, weight in WAYS.items():
                asked = intents(turn["query"], call["result"] or "ok", weight)
                answer = client.route(asked, state=state)
                found[name] = model_name(following["tool"]) in {tool.model_name for tool in answer}
            servers = [one["tool"].split("/")[0] for one in (call, following)]
            yield Step(turn["conversation"], servers[0] == servers[1], found)
        before += said


def interval(found: Sequence[Step], way: str) -> str:
    """The share of right tools that are found and its 95% interval over conversations."""
    by_talk: dict[str, list[float]] = {}
    for step in found:
        by_talk.setdefault(step.conversation, []).append(step.found[way])
    return mean_of(by_talk)


def table(found: dict[str, list[Step]]) -> Iterator[str]:
    """A row for each group of steps, a column for each way."""
    yield "| calls that follow another in their turn | | " + " | ".join(WAYS) + " |"
    yield "|---|---:|" + "---:|" * len(WAYS)
    every = [step for steps in found.values() for step in steps]
    groups = {f"`{name}.jsonl`": steps for name, steps in found.items()}
    groups["of the same server"] = [step for step in every if step.is_same_server]
    groups["of another server"] = [step for step in every if not step.is_same_server]
    for name, steps in {**groups, "all": every}.items():
        cells = [interval(steps, way) for way in WAYS]
        yield f"| {name} | {len(steps)} | " + " | ".join(cells) + " |"


def main() -> int:
    """Prints the table, or writes it into a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="page to write the table into")
    asked = parser.parse_args()
    found: dict[str, list[Step]] = {}
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(os.environ["TOOLGATE_BIN"]).resolve()
        server = ToolgateProcess(binary, Path(folder)).start()
        try:
            with server.client("steps", timeout=120) as client:
                for file in sorted(SERVERS.glob("*.json")):
                    client.register_server(file.stem, file)
                for name in SETS:
                    talks = read(CONVERSATIONS / f"{name}.jsonl")
                    found[name] = [step for talk in talks for step in steps(client, talk)]
        finally:
            server.stop()
    text = "\n".join(table(found))
    if asked.write is None:
        print(text)
    else:
        rewrite(asked.write, "observations", f"\n{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
