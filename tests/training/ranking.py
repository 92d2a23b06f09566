"""Toolgate's ranking, without clauses: overlap and words, fused over the best of both."""

from collections.abc import Sequence

import numpy as np
from encoder import Encoder
from labelled import Request, by_tool
from tools import Catalog
from words import Matrix, WordIndex

POOL = 100
WORDS = 0.4
OWN = 0.4  # what a summary counts beside the mean of its tool's requests
PACKED = 0.2  # taken off the overlaps of tools with a pack


def rows(encoder: Encoder, catalog: Catalog, packs: Sequence[Request] = ()) -> Matrix:
    """A tool's row: its summary's embedding, with that of its requests where it has some."""
    summaries = encoder.embed(catalog.summaries)
    texts = by_tool(packs)
    for i, tool in enumerate(catalog.tools):
        if tool.key in texts:
            total = OWN * summaries[i] + encoder.embed(texts[tool.key]).mean(axis=0)
            summaries[i] = total / np.linalg.norm(total)
    return summaries


def overlaps(
    encoder: Encoder,
    catalog: Catalog,
    packs: Sequence[Request],
    texts: Sequence[str],
    shift: float = PACKED,
) -> Matrix:
    """The cosine of each text and each tool."""
    packed = np.array([tool.key in by_tool(packs) for tool in catalog.tools], dtype=np.float32)
    found: Matrix = encoder.embed(texts) @ rows(encoder, catalog, packs).T - shift * packed
    return found


def fused(overlap: Matrix, words: Matrix, weight: float = WORDS) -> Matrix:
    """Both scores, each brought to 0 to 1, over the tools that stand high in one of them."""
    scores = np.full_like(overlap, -np.inf)
    for i, (near, said) in enumerate(zip(overlap, words, strict=True)):
        pool = best_of_both(near, said)
        low, high = near[pool].min(), near[pool].max()
        nearness = (near[pool] - low) / max(high - low, 1e-9)
        scores[i, pool] = (1 - weight) * nearness + weight * said[pool] / max(said.max(), 1e-9)
    return scores


def best_of_both(near: Matrix, said: Matrix) -> Matrix:
    """The tools that are among the best by overlap or by words."""
    if len(near) <= POOL:
        return np.arange(len(near))
    by_overlap = np.argpartition(-near, POOL)[:POOL]
    by_words = np.argpartition(-said, POOL)[:POOL]
    return np.union1d(by_overlap, by_words[said[by_words] > 0])


def best(scores: Matrix, count: int) -> Matrix:
    """The positions of the best tools, best first."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :count]


def word_scores(catalog: Catalog, packs: Sequence[Request], texts: Sequence[str]) -> Matrix:
    """BM25 of each text and each tool."""
    return WordIndex(catalog.tools, by_tool(packs)).search(texts)
