"""The texts that every engine embeds: intents and descriptions as agents and tools have them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[1] / "golden" / "all-MiniLM-L6-v2.json"
BATCH = 32
# One text in eight is long, two are medium, the rest are short.
MIXED = ("short", "short", "medium", "short", "long", "short", "medium", "short")
PLACES = (
    "Lisbon", "Berlin", "Oslo", "Madrid", "Vienna", "Dublin", "Prague", "Athens",
    "Rome", "Paris", "London", "Bern", "Warsaw", "Riga", "Porto", "Milan",
    "Turin", "Geneva", "Munich", "Hamburg", "Lyon", "Nice", "Naples", "Seville",
    "Boston", "Denver", "Dallas", "Austin", "Chicago", "Seattle", "Toronto", "Sydney",
)  # fmt: skip
SHORT = "find the cheapest flight to {} next Friday evening, please"
SENTENCE = (
    "Lists the open issues of the {} office, newest first, with labels, assignee and the last "
    "comment's date. "
)
TEXTS = {"short": SHORT, "medium": SENTENCE * 2, "long": SENTENCE * 8}


def workloads() -> Iterator[dict[str, Any]]:
    """One text at a time by length, batches of 32, and texts whose fp32 embeddings are known."""
    for length in TEXTS:
        yield {"name": length, "batch": 1, "texts": _texts((length,))}
    yield {"name": "mixed_b32", "batch": BATCH, "texts": _texts(MIXED)}
    yield {"name": "short_b32", "batch": BATCH, "texts": _texts(("short",))}
    cases = json.loads(GOLDEN.read_text(encoding="utf-8"))
    embeddings = [case["embedding"] for case in cases]
    texts = [case["text"] for case in cases]
    yield {"name": "golden", "batch": 1, "texts": texts, "embeddings": embeddings}


def _texts(lengths: tuple[str, ...]) -> list[str]:
    """A batch of texts, no two of them alike."""
    return [
        TEXTS[lengths[number % len(lengths)]].format(*[place] * 8).strip()
        for number, place in enumerate(PLACES)
    ]
