#!/usr/bin/env python3
"""Measures the encoder before and after the adapter; prints the tables of docs/encoder-card.md."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import adapter
import numpy as np
import torch
from encoder import Encoder
from labelled import Request, read_requests
from metrics import area, found_at, line, short
from ranking import fused, overlaps, word_scores
from splits import (
    ROOT,
    TRAINED_PUBLIC,
    UNSEEN_PUBLIC,
    Shipped,
    held_out,
    held_out_public,
    read_repository,
    read_set,
)
from tools import Catalog
from train import MODEL_DIR, OUT

INTENTS = ROOT / "tests/data/intents"
# Sets of requests with one tool in mind: any tool that serves will do.
SINGLE = ("single", "terse", "chatty", "indirect")
LATIN = ("de", "fr", "es", "pt", "it", "tr")


@dataclass(frozen=True)
class Group:
    """Requests that are measured together, over one catalog."""

    name: str
    catalog: Catalog
    requests: list[Request]
    packs: Sequence[Request] = ()
    is_hit: bool = False


def main() -> None:
    """Prints one table, a row per group and way of ranking."""
    options = arguments().parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    before = Encoder(options.model_dir)
    after = adapter.read(options.model_dir, options.adapter, options.scale)
    print("| requests | n | ranking | before @1 / @5 / @10 [95% of @5] | after |")
    print("|---|---:|---|---|---|")
    for group in groups(options):
        for row in measured(group, before, after):
            print(row, flush=True)
    print_abstention(before, after)


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model-dir", type=Path, default=MODEL_DIR, help="the packaged model")
    parser.add_argument("--adapter", type=Path, default=OUT)
    parser.add_argument("--public", type=Path, help="folder of public sets, to be measured too")
    parser.add_argument("--fold", type=int, help="measure the servers that train.py held out")
    parser.add_argument("--scale", type=float, help="in place of what the file says")
    parser.add_argument("--threads", type=int)
    return parser


def groups(options: argparse.Namespace) -> Iterator[Group]:
    """Yields the measured sets: the fold's servers or all intents; then the public sets."""
    shipped = read_repository()
    yield from intent_groups(shipped, options.fold)
    if options.public:
        yield from public_groups(options.public)


def intent_groups(shipped: Shipped, fold: int | None) -> Iterator[Group]:
    """Test intents without packs; with packs too, where no servers are held out."""
    servers = held_out(shipped.catalog, fold) or {tool.server for tool in shipped.catalog.tools}
    if fold is not None:
        asked = [request for request in shipped.packs if request.servers <= servers]
        yield Group("requests of packs", shipped.catalog, asked, is_hit=True)
    for packs in ((), shipped.packs) if fold is None else ((),):
        suffix = ", with packs" if packs else ""
        for name, requests in by_kind(shipped.catalog, servers):
            is_hit = name != "multi-step"
            yield Group(name + suffix, shipped.catalog, requests, packs, is_hit)


def by_kind(catalog: Catalog, servers: set[str]) -> Iterator[tuple[str, list[Request]]]:
    """The test intents whose tools all are of these servers."""
    english = [
        request
        for name in ("people", "english")
        for request in read_requests(INTENTS / f"{name}.jsonl", catalog)
    ]
    foreign = read_requests(INTENTS / "multilingual.jsonl", catalog)
    kinds: dict[str, tuple[list[Request], Callable[[Request], bool]]] = {
        "single": (english, lambda request: request.kind in SINGLE),
        "multi-step": (english, lambda request: request.kind == "multi-step"),
        "long": (english, lambda request: request.kind == "long"),
        "other languages, Latin": (foreign, lambda request: request.language in LATIN),
        "other scripts": (foreign, lambda request: request.language not in LATIN),
    }
    for name, (requests, belongs) in kinds.items():
        chosen = [one for one in requests if one.tools and one.servers <= servers and belongs(one)]
        if chosen:
            yield name, chosen


def public_groups(folder: Path) -> Iterator[Group]:
    """The sets kept out of training, and the servers kept out of the trained ones."""
    for name in UNSEEN_PUBLIC:
        yield Group(name, *read_set(folder, name))
    for name in TRAINED_PUBLIC:
        catalog, requests = read_set(folder, name)
        held = held_out_public(catalog)
        unseen = [request for request in requests if request.servers <= held]
        yield Group(f"{name}, servers held out", catalog, unseen)


def measured(group: Group, before: Encoder, after: Encoder) -> Iterator[str]:
    """Rows of Markdown: by overlap alone, and fused with words."""
    texts = [request.text for request in group.requests]
    words = word_scores(group.catalog, group.packs, texts)
    near = [overlaps(one, group.catalog, group.packs, texts) for one in (before, after)]
    for name, scores in (("dense", near), ("fused", [fused(one, words) for one in near])):
        cells = [line(found_at(one, group.catalog, group.requests, group.is_hit)) for one in scores]
        yield f"| {group.name} | {len(texts)} | {name} | {' | '.join(cells)} |"


def print_abstention(before: Encoder, after: Encoder) -> None:
    """Prints how well the best overlap tells intents that no tool serves from the others."""
    shipped = read_repository()
    print("\n| no tool | packs | AUC before | after | median before, served / not | after |")
    print("|---|---|---|---|---|---|")
    for name in ("people", "english"):
        for packs in ((), shipped.packs):
            cells = [told_apart(one, shipped, packs, name) for one in (before, after)]
            areas, medians = zip(*cells, strict=True)
            is_packed = "with" if packs else "without"
            print(f"| {name} | {is_packed} | {' | '.join(areas)} | {' | '.join(medians)} |")


def told_apart(
    encoder: Encoder, shipped: Shipped, packs: Sequence[Request], name: str
) -> tuple[str, str]:
    """The AUC, and the medians of both."""
    requests = read_requests(INTENTS / f"{name}.jsonl", shipped.catalog)
    near = overlaps(encoder, shipped.catalog, packs, [one.text for one in requests]).max(axis=1)
    served = np.array([bool(one.tools) for one in requests])
    medians = f"{short(float(np.median(near[served])))} / {short(float(np.median(near[~served])))}"
    return short(area(near[served], near[~served])), medians


if __name__ == "__main__":
    main()
