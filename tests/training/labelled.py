"""Requests and the tools they are for: of packs, of the public sets, of the test intents."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml
from tools import Catalog

# Of a pack's request of several steps, siblings of its tool may well serve a step.
SEVERAL_STEPS = "multi_step"
ENGLISH = ("terse", "chatty", "indirect", "long", SEVERAL_STEPS)


@dataclass(frozen=True)
class Request:
    """A request, and the keys of the tools that serve it; none, if no tool does."""

    text: str
    tools: tuple[str, ...]
    kind: str = ""
    language: str = "en"

    @property
    def servers(self) -> set[str]:
        """The MCP servers of its tools."""
        return {key.split("/")[0] for key in self.tools}


def read_packs(folder: Path, catalog: Catalog, is_whole: bool = True) -> list[Request]:
    """The requests of the catalog's servers' packs, `not` left out.

    A catalog that is whole has every tool of its servers' packs.
    """
    found = []
    servers = {tool.server for tool in catalog.tools}
    for path in sorted(path for path in folder.glob("*.yaml") if path.stem in servers):
        for name, voices in yaml.safe_load(path.read_text("utf-8"))["tools"].items():
            key = f"{path.stem}/{name}"
            if key not in catalog.position:
                if not is_whole:
                    continue
                raise ValueError(f"{path}: no tool {name}")
            found += [
                Request(text, (key,), voice, "en" if voice in ENGLISH else voice)
                for voice, texts in voices.items()
                if voice != "not"
                for text in texts
            ]
    return found


def read_requests(path: Path, catalog: Catalog) -> list[Request]:
    """Labelled lines of JSON; labels that the catalog lacks are dropped."""
    found = []
    for line in path.read_text("utf-8").splitlines():
        one = json.loads(line)
        known = tuple(key for key in one.get("relevant", ()) if key in catalog.position)
        found.append(Request(one["query"], known, one.get("kind", ""), one.get("language", "en")))
    return found


def by_tool(requests: Iterable[Request]) -> dict[str, list[str]]:
    """The texts for each tool."""
    found: dict[str, list[str]] = {}
    for request in requests:
        for key in request.tools:
            found.setdefault(key, []).append(request.text)
    return found
