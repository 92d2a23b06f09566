"""Batches of a step: requests and tools, each tool among those it is mistaken for."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from encoder import Encoder
from labelled import SEVERAL_STEPS, Request
from ranking import best, fused, word_scores
from tools import Catalog, Tool
from words import Matrix

MISTAKEN = 10  # wrong tools that are looked at, of each request's ranking
NEIGHBOURS = 12  # of them, how many a tool keeps
ALIKE_ELSEWHERE = 0.75  # cosine of summaries from which tools of two servers may do the same
ALIKE_HERE = 0.95


@dataclass(frozen=True)
class Row:
    """A request, a text of the tool that it is for, and what says which other tools would do."""

    request: Request
    tool: Tool
    positive: str
    vector: Matrix


class Source:
    """The requests over one catalog, and for each tool those that are mistaken for it."""

    def __init__(self, catalog: Catalog, requests: Sequence[Request], untuned: Encoder) -> None:
        self.catalog = catalog
        self.requests: dict[int, list[Request]] = {}
        for request in requests:
            for key in request.tools:
                self.requests.setdefault(catalog.position[key], []).append(request)
        self.vectors = untuned.embed(catalog.summaries)
        self.neighbours = self.mine(requests, untuned)

    def mine(self, requests: Sequence[Request], untuned: Encoder) -> dict[int, list[int]]:
        """The wrong tools that the untuned ranking puts first, most frequent first."""
        texts = [request.text for request in requests]
        overlap = untuned.embed(texts) @ self.vectors.T
        order = best(fused(overlap, word_scores(self.catalog, (), texts)), MISTAKEN)
        wrong: dict[int, Counter[int]] = {}
        for request, tools in zip(requests, order.tolist(), strict=True):
            right = {self.catalog.position[key] for key in request.tools}
            trained = [tool for tool in tools if tool in self.requests and tool not in right]
            for tool in right:
                wrong.setdefault(tool, Counter()).update(trained)
        return {tool: [i for i, _ in n.most_common(NEIGHBOURS)] for tool, n in wrong.items()}


class Sampler:
    """Draws batches from sources by their shares; every tool comes as often as any other."""

    def __init__(
        self, sources: Sequence[tuple[Source, float]], by_request: float, group: int, seed: int
    ) -> None:
        self.sources = [source for source, _ in sources]
        self.shares = [share for _, share in sources]
        self.by_request = by_request
        self.group = group
        self.random = random.Random(seed)
        self.queues: dict[tuple[int, int], list[Request]] = {}
        self.seeds: dict[int, list[int]] = {}

    def batch(self, size: int) -> list[Row]:
        """Groups of a tool and those mistaken for it; no tool comes twice."""
        rows: dict[tuple[int, int], Row] = {}
        while len(rows) < size:
            at = self.random.choices(range(len(self.sources)), self.shares)[0]
            source, seed = self.sources[at], self.next_seed(at)
            near = source.neighbours.get(seed, [])
            group = [seed, *self.random.sample(near, min(self.group - 1, len(near)))]
            for tool in group:
                if (at, tool) not in rows and len(rows) < size:
                    rows[at, tool] = self.row(at, tool)
        return list(rows.values())

    def next_seed(self, at: int) -> int:
        """The tools of a source, in an order that is drawn anew when all had their turn."""
        if not self.seeds.get(at):
            tools = list(self.sources[at].requests)
            self.seeds[at] = self.random.sample(tools, len(tools))
        return self.seeds[at].pop()

    def row(self, at: int, tool: int) -> Row:
        """A tool's next request, with its summary or another request as what is to be found."""
        source = self.sources[at]
        if not self.queues.get((at, tool)):
            known = source.requests[tool]
            self.queues[at, tool] = self.random.sample(known, len(known))
        request = self.queues[at, tool].pop()
        others = [one.text for one in source.requests[tool] if one.text != request.text]
        positive = source.catalog.tools[tool].summary
        if others and self.random.random() < self.by_request:
            positive = self.random.choice(others)
        return Row(request, source.catalog.tools[tool], positive, source.vectors[tool])


def may_serve(rows: Sequence[Row]) -> Matrix:
    """Tells whether the tool of a column may serve the request of a row, its own apart."""
    vectors = np.stack([row.vector for row in rows])
    servers = np.array([row.tool.server for row in rows])
    same = servers[:, None] == servers[None, :]
    mask = vectors @ vectors.T > np.where(same, ALIKE_HERE, ALIKE_ELSEWHERE)
    for i, row in enumerate(rows):
        mask[i] |= [other.tool.key in row.request.tools for other in rows]
        if row.request.kind == SEVERAL_STEPS:
            mask[i] |= same[i]
    np.fill_diagonal(mask, False)
    return mask
