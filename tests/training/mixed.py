"""The product's ranking in catalogs where some servers have a pack: kinds of requests, clauses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from arguments import clauses, embedded
from encoder import Encoder
from tools import Catalog
from words import Matrix, WordIndex, terms

POOL = 100
WORDS = 0.4
OWN = 0.4  # what a summary counts beside the mean of its tool's requests
KINDS = 3
BEST_NEARER = 0.11
CLAUSE_REACH = 0.8
NOT_FOUND = -1.0


@dataclass(frozen=True)
class Found:
    """Scores of all tools for one text; tools that it does not find have `NOT_FOUND`."""

    scores: Matrix
    nearness: Matrix
    words: Matrix
    best_overlap: float


@dataclass(frozen=True)
class Ranking:
    """What a request as a whole and its clauses make of all tools."""

    final: Matrix
    whole: Matrix
    clause: Matrix
    leads: Matrix  # True for the best tool of the whole and of each clause
    nearness: Matrix
    share: Matrix  # of the request's words, by rarity
    is_divided: bool
    agreement: float  # share of the clauses whose best tool is of the whole's MCP server


class Index:
    """A catalog, and the requests of those of its tools that have a pack."""

    def __init__(
        self,
        encoder: Encoder,
        catalog: Catalog,
        packs: Mapping[str, Sequence[str]],
        everyday: Sequence[str],
    ) -> None:
        self.encoder, self.catalog = encoder, catalog
        self.words = WordIndex(catalog.tools, {key: list(texts) for key, texts in packs.items()})
        self.servers = np.array([tool.server for tool in catalog.tools])
        self.rows = encoder.embed(catalog.summaries)
        self.kinds = np.zeros((len(self.rows), KINDS, self.rows.shape[1]), dtype=np.float32)
        self.packed = np.zeros(len(self.rows), dtype=np.float32)
        requests = encoder.embed([embedded(text) for text in everyday])
        self.summaries = self.rows.copy()
        for key, texts in packs.items():
            self.add(catalog.position[key], encoder.embed([embedded(text) for text in texts]))
        self.pull = self.kinds_pull = self.best_pull = 0.0
        if packs:
            has = self.packed > 0
            own = float((self.summaries[has] @ requests.T).mean())
            self.pull = max(float((self.rows[has] @ requests.T).mean()) - own, 0.0)
            self.kinds_pull = max(float((self.kinds[has] @ requests.T).max(1).mean()) - own, 0.0)
            self.best_pull = BEST_NEARER * (1 - float(np.square(requests.mean(axis=0)).sum()))

    def add(self, tool: int, requests: Matrix) -> None:
        """Mixes requests into a tool's row, and their kinds."""
        summary = self.rows[tool].copy()
        self.packed[tool] = 1
        self.rows[tool] = unit(OWN * summary + requests.mean(axis=0))
        kinds = unit(OWN * summary + centroids(requests))
        self.kinds[tool] = kinds[np.minimum(np.arange(KINDS), len(kinds) - 1)]

    def found(self, text: str, by_kinds: bool) -> Found:
        """Fuses overlap and words; `by_kinds` for a text that asks for one thing."""
        vector = self.encoder.embed([embedded(text)])[0]
        overlaps = self.rows @ vector - self.pull * self.packed
        said = self.words.search([text])[0]
        near = overlaps.copy()
        if by_kinds:
            kinds = (self.kinds @ vector).max(axis=1) - self.kinds_pull
            near = np.where(self.packed > 0, (overlaps + kinds) / 2, overlaps)
        near -= self.best_pull * self.packed
        pool = np.union1d(best_of(overlaps), [i for i in best_of(said) if said[i] > 0]).astype(int)
        low, high = near[pool].min(), near[pool].max()
        nearness, words = np.zeros_like(near), np.zeros_like(near)
        nearness[pool] = (near[pool] - low) / max(high - low, 1e-9)
        words[pool] = said[pool] / max(said.max(), 1e-9)
        scores = np.full_like(near, NOT_FOUND)
        scores[pool] = (1 - WORDS) * nearness[pool] + WORDS * words[pool]
        return Found(scores, nearness, words, float(overlaps.max()))

    def rank(self, text: str) -> Ranking:
        """Ranks all tools for a request."""
        parts = clauses(text)
        whole = self.found(text, by_kinds=not parts)
        reach = CLAUSE_REACH * whole.best_overlap
        others = [self.found(part, by_kinds=False) for part in parts]
        others = [one for one in others if one.best_overlap >= reach]
        leading = [int(one.scores.argmax()) for one in (whole, *others)]
        leads = np.zeros(len(self.rows), dtype=bool)
        leads[leading] = True
        clause = np.max([one.scores for one in (whole, *others)], axis=0)
        own = np.maximum(whole.scores, 0)
        final = np.where(clause > NOT_FOUND, (own + clause) / 2, NOT_FOUND)
        agreeing = self.servers[leading[1:]] == self.servers[leading[0]]
        return Ranking(
            final=final if others else whole.scores,
            whole=own,
            clause=np.maximum(clause, 0),
            leads=leads,
            nearness=self.found(text, by_kinds=True).nearness if parts else whole.nearness,
            share=self.share(text),
            is_divided=bool(others),
            agreement=float(agreeing.mean()) if others else 1.0,
        )

    def share(self, text: str) -> Matrix:
        """Returns the share of the text's words that each tool has, by rarity."""
        known = {self.words.columns[t] for t in terms(text)[:256] if t in self.words.columns}
        unknown = len({t for t in terms(text)[:256] if t not in self.words.columns})
        columns = sorted(known)
        weights = self.words.rarity[columns]
        asked = weights.sum() + unknown * np.log(1 + (len(self.rows) + 0.5) / 0.5)
        has = (self.words.scores[columns] > 0).T @ weights if columns else np.zeros(len(self.rows))
        share: Matrix = np.asarray(has).ravel() / max(asked, 1e-9)
        return share


def best_of(scores: Matrix) -> Matrix:
    """The first `POOL` tools."""
    order: Matrix = np.argsort(-scores, kind="stable")[:POOL]
    return order


def unit(vectors: Matrix) -> Matrix:
    """The vectors at unit length."""
    scaled: Matrix = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-9)
    return scaled


def centroids(vectors: Matrix) -> Matrix:
    """Groups requests into kinds, as `packs/kinds.rs` does."""
    chosen = [vectors[0]]
    while len(chosen) < min(KINDS, len(vectors)):
        chosen.append(vectors[(vectors @ np.array(chosen).T).max(axis=1).argmin()])
    found: Matrix = np.array(chosen)
    for _ in range(20):
        nearest = (vectors @ found.T).argmax(axis=1)
        moved = [
            unit(vectors[nearest == kind].sum(axis=0)) if (nearest == kind).any() else found[kind]
            for kind in range(len(found))
        ]
        if np.array_equal(moved, found):
            break
        found = np.array(moved)
    return found
