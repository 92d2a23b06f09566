"""Catalogs of tools, and the text by which Toolgate knows each: its summary."""

import functools
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tiktoken

SUMMARY_TOKENS = 60
DESCRIPTION_CHARACTERS = 4096
SEPARATORS = re.compile(r"[_\-./\s]")
ABBREVIATIONS = ("e.g.", "i.e.", "etc.", "vs.")


@dataclass(frozen=True)
class Tool:
    """A tool of one MCP server, as its `tools/list` has it."""

    server: str
    name: str
    description: str
    schema: dict[str, Any] = field(hash=False, compare=False, repr=False)

    @property
    def key(self) -> str:
        """Returns its key in labels."""
        return f"{self.server}/{self.name}"

    @functools.cached_property
    def summary(self) -> str:
        """Returns the text for the encoder."""
        return summarise(self.name, self.description)


@dataclass
class Catalog:
    """Tools that are ranked against one another."""

    name: str
    tools: list[Tool]

    def __post_init__(self) -> None:
        self.position = {tool.key: i for i, tool in enumerate(self.tools)}

    @property
    def summaries(self) -> list[str]:
        """One a tool, in their order."""
        return [tool.summary for tool in self.tools]


def read_shipped(folder: Path) -> Catalog:
    """The catalogs of `tests/data/servers`, as one."""
    servers = [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))]
    return Catalog("shipped", tools_of(servers))


def read_public(folder: Path) -> Catalog:
    """A public set's `catalog.json`."""
    servers = json.loads((folder / "catalog.json").read_text("utf-8"))["servers"]
    return Catalog(folder.name, tools_of(servers))


def tools_of(servers: list[dict[str, Any]]) -> list[Tool]:
    """All tools of some servers, one after the other."""
    return [
        Tool(
            server["name"], one["name"], one.get("description") or "", one.get("inputSchema") or {}
        )
        for server in servers
        for one in server["tools"]
    ]


def summarise(name: str, description: str) -> str:
    """The words of the name and the first sentences of the description, 60 tokens at most."""
    start = in_words(name)
    rest = " ".join(description[:DESCRIPTION_CHARACTERS].split())
    if not rest:
        return start
    whole = f"{start}: {rest}"
    if tokens_of(whole) <= SUMMARY_TOKENS:
        return whole
    return whole_sentences(whole, len(start) + 2) or whole_words(whole)


def in_words(name: str) -> str:
    """`getUserByID` is "get user by ID"."""
    found = []
    for part in SEPARATORS.split(name):
        found += re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[^A-Z]+|[A-Z]+", part)
    return " ".join(one if len(one) > 1 and one.isupper() else one.lower() for one in found)


def whole_sentences(whole: str, start: int) -> str | None:
    """As many sentences as fit, if the first one does."""
    best = None
    for end in (match.start() for match in re.finditer(r" |$", whole) if match.start() > start):
        word = whole[start:end].rsplit(" ", 1)[-1].lower()
        if not word.endswith((".", "!", "?")) or word.endswith(ABBREVIATIONS):
            continue
        if tokens_of(whole[:end]) > SUMMARY_TOKENS:
            break
        best = whole[:end]
    return best


def whole_words(whole: str) -> str:
    """As many words as fit."""
    ranks = encoding()
    words = whole.split(" ")
    kept = len(ranks.decode(ranks.encode_ordinary(whole)[:SUMMARY_TOKENS]).split(" "))
    while kept > 1 and tokens_of(" ".join(words[:kept])) > SUMMARY_TOKENS:
        kept -= 1
    return " ".join(words[:kept])


def tokens_of(text: str) -> int:
    """Counts the tokens of cl100k_base in a text."""
    return len(encoding().encode_ordinary(text))


@functools.cache
def encoding() -> tiktoken.Encoding:
    """The tokens that summaries are measured by."""
    return tiktoken.get_encoding("cl100k_base")
