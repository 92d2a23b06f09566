"""The half of Toolgate's ranking that goes by words: BM25 over four fields of a tool."""

import functools
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse
import snowballstemmer
from tools import Tool

STOP_WORDS = Path(__file__).parents[2] / "server/routing/src/shard/words/stop_words.rs"
WORD = re.compile(r"[^\W_]+")
HUMP = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[^A-Z]+|[A-Z]+")
K1, B = 1.2, 0.75
WEIGHTS = {"server": 1.0, "name": 3.0, "description": 1.0, "parameters": 0.5, "requests": 0.5}
FIELD_CHARACTERS = 4096

Matrix: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@functools.cache
def stop_words() -> frozenset[str]:
    """The product's own list, read from its source."""
    english = STOP_WORDS.read_text("utf-8").split("ENGLISH", 1)[1].split("];", 1)[0]
    return frozenset(re.findall(r'"([^"]+)"', english))


@functools.cache
def stem(word: str) -> str:
    """An English word's stem; other letters stay."""
    if not word.isascii():
        return word
    return str(snowballstemmer.stemmer("english").stemWord(word))


def terms(text: str) -> list[str]:
    """The stems of a text; of `getUser` both parts and the whole."""
    found = []
    for match in WORD.finditer(text):
        word = match.group()[:64]
        parts = HUMP.findall(word) or [word]
        lowered = [part.lower() for part in parts]
        found += [stem(part) for part in lowered if part not in stop_words()]
        if len(parts) > 1:
            found.append(stem(word.lower()))
    return found


def parameters(schema: dict[str, Any]) -> str:
    """Names and descriptions of parameters, nested ones too."""
    lines: list[str] = []
    collect(schema, lines)
    return "\n".join(lines)


def collect(schema: object, lines: list[str]) -> None:
    """Adds the properties of one schema, up to the field's length."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return
    for name, one in properties.items():
        described = one.get("description", "") if isinstance(one, dict) else ""
        line = f"{name} {described if isinstance(described, str) else ''}"
        if sum(map(len, lines)) + len(line) > FIELD_CHARACTERS:
            return
        lines.append(line)
    for one in properties.values():
        if isinstance(one, dict):
            collect(one, lines)
            collect(one.get("items"), lines)


def fields(tool: Tool, requests: Sequence[str]) -> dict[str, float]:
    """Returns how often each term counts for a tool."""
    texts = {
        "server": tool.server,
        "name": tool.name,
        "description": tool.description[:FIELD_CHARACTERS],
        "parameters": parameters(tool.schema),
        "requests": "\n".join(requests),
    }
    counts: defaultdict[str, float] = defaultdict(float)
    for name, text in texts.items():
        for term in terms(text):
            counts[term] += WEIGHTS[name]
    return counts


class WordIndex:
    """BM25 of texts against tools."""

    def __init__(self, tools: Sequence[Tool], requests: dict[str, list[str]] | None = None) -> None:
        documents = [fields(tool, (requests or {}).get(tool.key, ())) for tool in tools]
        self.columns = {
            term: i for i, term in enumerate(dict.fromkeys(t for d in documents for t in d))
        }
        counts = sparse(documents, self.columns)
        lengths = np.asarray(counts.sum(axis=1)).ravel()
        holding = np.asarray((counts > 0).sum(axis=0)).ravel()
        self.rarity = np.log(1 + (len(tools) - holding + 0.5) / (holding + 0.5))
        damping = K1 * (1 - B + B * lengths / max(lengths.mean(), 1))
        scores = counts.tocoo()
        scores.data *= self.rarity[scores.col] * (K1 + 1) / (scores.data + damping[scores.row])
        self.scores = scores.T.tocsr()

    def search(self, texts: Sequence[str]) -> Matrix:
        """A row of scores a text."""
        asked = [dict.fromkeys(terms(text)[:256], 1.0) for text in texts]
        return (sparse(asked, self.columns) @ self.scores).toarray().astype(np.float32)


def sparse(rows: Sequence[Mapping[str, float]], columns: dict[str, int]) -> scipy.sparse.csr_matrix:
    """Counts of known terms as a matrix."""
    cells = [
        (i, columns[t], n) for i, row in enumerate(rows) for t, n in row.items() if t in columns
    ]
    where = ([i for i, _, _ in cells], [j for _, j, _ in cells])
    shape = (len(rows), len(columns))
    return scipy.sparse.csr_matrix(([n for _, _, n in cells], where), shape=shape, dtype=np.float64)
