"""The labelled intents in tests/data, for the end-to-end tests and what measures with them."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent.parent / "data" / "intents"
ENGLISH = _FOLDER / "english.jsonl"
PEOPLE = _FOLDER / "people.jsonl"
MULTILINGUAL = _FOLDER / "multilingual.jsonl"
OWN_LANGUAGE = _FOLDER / "own-language.jsonl"
LANGUAGES = {
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "pt": "Portuguese",
    "it": "Italian",
    "ru": "Russian",
    "zh": "Chinese",
    "ja": "Japanese",
    "ar": "Arabic",
    "hi": "Hindi",
    "ko": "Korean",
    "tr": "Turkish",
}


@dataclass(frozen=True)
class LabelledIntent:
    """An intent, the tools that serve it as server/tool, and its language or kind."""

    query: str
    relevant: frozenset[str]
    sort: str

    def is_of(self, servers: Collection[str]) -> bool:
        """Returns True if tools serve it, all of them of these MCP servers."""
        return bool(self.relevant) and all(tool.split("/")[0] in servers for tool in self.relevant)

    @property
    def has_letters_beyond_ascii(self) -> bool:
        return any(letter.isalpha() and not letter.isascii() for letter in self.query)


def read(file: Path) -> list[LabelledIntent]:
    lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return [
        LabelledIntent(
            line["query"], frozenset(line["relevant"]), line.get("language") or line["kind"]
        )
        for line in lines
    ]
