#!/usr/bin/env python3
"""Orders the first tools of the ranking anew by a linear model, and prints what that brings.

The model is fitted on requests of packs, and shown on people's, of servers that it did not see.
"""

import argparse
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import adapter
import numpy as np
import torch
from arguments import embedded
from encoder import Encoder
from labelled import ENGLISH, Request, read_packs, read_requests
from metrics import DEPTHS, interval, short
from mixed import NOT_FOUND, Index
from splits import FOLDS, ROOT
from tools import Catalog, Tool, tools_of
from train import MODEL_DIR, OUT
from words import Matrix

FIRST = 20  # tools that are ordered anew
SERVER = 10  # tools among which those of a server are counted
HELD = 2  # requests of each tool that are asked, and so left out of its row
FEATURES = ("final", "whole", "clause", "leads", "near", "share", "overlap", "server", "siblings")
JOINTS = (", then ", " and then ", ". then ", ", and ", " and ", ". after that ")
EVERYDAY = 192
INTENTS = ROOT / "tests/data/intents"


@dataclass(frozen=True)
class Lists:
    """The first tools for some requests: features, labels, and what is shown of each request."""

    features: Matrix  # requests, FIRST, FEATURES
    labels: Matrix
    tools: Matrix  # how many serve each request
    folds: Matrix
    packs: Matrix  # 1: all its tools have a pack; 0: none has one; -1: some have
    kinds: Matrix  # of the requests

    def inputs(self) -> Matrix:
        """Features, and again for tools with a pack, and where clauses agree and where not."""
        parts = self.features[..., : len(FEATURES)]
        packed, divided, agreement = np.moveaxis(self.features[..., len(FEATURES) :], -1, 0)
        disagreeing = divided * (1 - agreement)
        factors = [packed, divided, disagreeing]
        scaled = [parts * factor[..., None] for factor in factors]
        joined: Matrix = np.concatenate([parts, *scaled, packed[..., None]], axis=-1)
        return joined.astype(np.float32)


def main() -> None:
    """Reads, ranks, fits, prints."""
    options = command_line().parse_args()
    torch.set_num_threads(options.threads)
    encoder = adapter.read(options.model_dir, OUT)
    folders = [ROOT / "tests/data/servers", ROOT / "tests/data/packed", *options.others]
    catalog = read_catalog(folders)
    packs = read_packs_of(catalog)
    folds = folds_of(catalog)
    trained = [
        of_packs(encoder, catalog, packs, folds, draw, options.requests)
        for draw in range(options.draws)
    ]
    print("| people's requests | n | as ranked, @1 / @5 / @10 | anew | difference at 5 |")
    print("|---|---:|---|---|---|")
    for draw in range(options.draws):
        shown = of_people(encoder, catalog, packs, folds, draw)
        for row in rows(shown, anew(trained, shown)):
            print(f"| draw {draw + 1}, {row}", flush=True)


def command_line() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model-dir", type=Path, default=MODEL_DIR, help="the packaged model")
    parser.add_argument("--others", type=Path, nargs="*", default=[], help="more catalogs")
    parser.add_argument("--draws", type=int, default=3, help="halves of the packs to leave out")
    parser.add_argument("--requests", type=int, default=2300, help="to train on, in each draw")
    parser.add_argument("--threads", type=int, default=1)
    return parser


def read_catalog(folders: Sequence[Path]) -> Catalog:
    """The catalogs of some folders as one; of two tools with one key the first stays."""
    paths = [path for folder in folders for path in sorted(folder.glob("*.json"))]
    servers = [json.loads(path.read_text("utf-8")) for path in paths]
    tools: dict[str, Tool] = {}
    for tool in tools_of(servers):
        tools.setdefault(tool.key, tool)
    return Catalog("mixed", list(tools.values()))


def read_packs_of(catalog: Catalog) -> list[Request]:
    """The requests of the packs of a catalog's servers, for the tools that it has."""
    return read_packs(ROOT / "server/routing/packs", catalog, is_whole=False)


def folds_of(catalog: Catalog) -> dict[str, int]:
    """The fold of each MCP server."""
    servers = sorted({tool.server for tool in catalog.tools})
    random.Random(7).shuffle(servers)
    return {server: place % FOLDS for place, server in enumerate(servers)}


def left_out(packs: Sequence[Request], draw: int) -> set[str]:
    """The half of the servers with a pack that do without it in a draw."""
    servers = sorted({server for request in packs for server in request.servers})
    random.Random(draw).shuffle(servers)
    return set(servers[: len(servers) // 2])


def grouped(requests: Sequence[Request]) -> dict[str, list[str]]:
    """The texts of requests by their tool."""
    found: dict[str, list[str]] = {}
    for request in requests:
        found.setdefault(request.tools[0], []).append(request.text)
    return found


def everyday(packs: Sequence[Request]) -> list[str]:
    """A sample of the packs' requests, evenly spread."""
    english = [request.text for request in packs if request.language == "en"]
    return [english[place * len(english) // EVERYDAY] for place in range(EVERYDAY)]


def of_packs(
    encoder: Encoder,
    catalog: Catalog,
    packs: Sequence[Request],
    folds: Mapping[str, int],
    draw: int,
    most: int,
) -> Lists:
    """Lists for requests of packs that are in no row, and for such requests joined."""
    rng = random.Random(draw)
    asked, kept = list[Request](), list[Request]()
    out = left_out(packs, 100 + draw)
    by_key: dict[str, list[Request]] = {}
    for request in packs:
        by_key.setdefault(request.tools[0], []).append(request)
    for requests in by_key.values():
        drawn = rng.sample(requests, len(requests))
        held = [request for request in drawn if request.kind in ENGLISH][:HELD]
        asked += held
        kept += [one for one in drawn if one not in held and not one.servers & out]
    rng.shuffle(asked)
    chosen = asked[: most * 2 // 3] + joined(asked, folds, most // 3, rng)
    index = Index(encoder, catalog, grouped(kept), everyday(packs))
    return lists(index, chosen, folds)


def joined(
    requests: Sequence[Request], folds: Mapping[str, int], count: int, rng: random.Random
) -> list[Request]:
    """Requests of two things: short ones of one fold's servers, with a word between them."""
    short_ones = [request for request in requests if request.kind in ("terse", "chatty")]
    by_fold: dict[int, list[Request]] = {}
    for request in short_ones:
        by_fold.setdefault(fold_of(request, folds), []).append(request)
    found = list[Request]()
    while len(found) < count:
        first = rng.choice(short_ones)
        second = rng.choice(by_fold[fold_of(first, folds)])
        if first.tools != second.tools:
            text = first.text.rstrip(".?! ") + rng.choice(JOINTS) + second.text
            found.append(Request(text, (*first.tools, *second.tools), "joined"))
    return found


def of_people(
    encoder: Encoder,
    catalog: Catalog,
    packs: Sequence[Request],
    folds: Mapping[str, int],
    draw: int,
) -> Lists:
    """Lists for people's and English requests, with whole packs."""
    out = left_out(packs, draw)
    kept = [request for request in packs if not request.servers & out]
    index = Index(encoder, catalog, grouped(kept), everyday(packs))
    read = [read_requests(INTENTS / f"{name}.jsonl", catalog) for name in ("people", "english")]
    return lists(index, [one for some in read for one in some if one.tools], folds)


def fold_of(request: Request, folds: Mapping[str, int]) -> int:
    """The fold of the server of the request's first tool."""
    return folds[request.tools[0].split("/")[0]]


def lists(index: Index, requests: Sequence[Request], folds: Mapping[str, int]) -> Lists:
    """Ranks the tools for each request."""
    features, labels, packs = [], [], []
    for request in requests:
        order, row = first_tools(index, request.text)
        wanted = [index.catalog.position[key] for key in request.tools]
        features.append(row)
        labels.append(np.isin(order, wanted))
        share = float(index.packed[wanted].mean())
        packs.append(int(share) if share in (0.0, 1.0) else -1)
    return Lists(
        features=np.stack(features),
        labels=np.stack(labels).astype(np.float32),
        tools=np.array([len(request.tools) for request in requests]),
        folds=np.array([fold_of(request, folds) for request in requests]),
        packs=np.array(packs),
        kinds=np.array([request.kind for request in requests]),
    )


def first_tools(index: Index, text: str) -> tuple[Matrix, Matrix]:
    """The first tools for a text, and their features."""
    ranked = index.rank(text)
    order = np.argsort(-ranked.final, kind="stable")[:FIRST]
    scores, servers = np.maximum(ranked.final[order], 0), index.servers[order]
    best = {server: scores[servers == server].max() for server in set(servers)}
    vector = index.encoder.embed([embedded(text)])[0]
    columns = {
        "final": scores,
        "whole": ranked.whole[order],
        "clause": ranked.clause[order],
        "leads": ranked.leads[order],
        "near": ranked.nearness[order],
        "share": ranked.share[order],
        "overlap": index.summaries[order] @ vector,
        "server": [best[server] for server in servers],
        "siblings": [(servers[:SERVER] == server).mean() for server in servers],
    }
    states = [index.packed[order], np.full(FIRST, ranked.is_divided)]
    states.append(np.full(FIRST, ranked.agreement))
    row = np.stack([np.asarray(columns[name], dtype=float) for name in FEATURES] + states, axis=1)
    row[ranked.final[order] <= NOT_FOUND] = 0
    return order, row.astype(np.float32)


def anew(trained: Sequence[Lists], shown: Lists) -> Matrix:
    """Scores of the shown lists, each by a model that saw no server of its fold."""
    scores = np.zeros(shown.labels.shape)
    for fold in range(FOLDS):
        weights = fit([select(one, one.folds != fold) for one in trained])
        here = shown.folds == fold
        scores[here] = shown.inputs()[here] @ weights
    return scores


def select(some: Lists, which: Matrix) -> Lists:
    """The lists of some requests."""
    return replace(some, **{name: value[which] for name, value in vars(some).items()})


def fit(trained: Sequence[Lists], epochs: int = 10, batch: int = 256) -> Matrix:
    """Fits the weights: the tools that serve a request shall have all of a softmax."""
    inputs = np.concatenate([one.inputs() for one in trained])
    labels = np.concatenate([one.labels for one in trained])
    inputs, labels = inputs[labels.any(axis=1)], labels[labels.any(axis=1)]
    spread = inputs.reshape(-1, inputs.shape[-1]).std(axis=0) + 1e-6
    scaled, wanted = torch.tensor(inputs / spread), torch.tensor(labels)
    torch.manual_seed(1)
    weights = torch.zeros(inputs.shape[-1], requires_grad=True)
    optimizer = torch.optim.Adam([weights], lr=0.05)
    pace = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0.05, epochs)
    for _ in range(epochs):
        for rows_ in torch.randperm(len(scaled)).split(batch):
            logs = (scaled[rows_] @ weights).log_softmax(dim=1)
            gained = (logs * wanted[rows_]).sum(dim=1) / wanted[rows_].sum(dim=1)
            loss = 1e-3 * weights.square().sum() - gained.mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        pace.step()
    found: Matrix = weights.detach().numpy() / spread
    return found


def found_at(labels: Matrix, scores: Matrix, tools: Matrix) -> Matrix:
    """For each request and depth the share of its tools that are found."""
    order = np.argsort(-scores, axis=1, kind="stable")
    found = np.take_along_axis(labels, order, axis=1).cumsum(axis=1)
    table: Matrix = np.stack([found[:, depth - 1] for depth in DEPTHS], axis=1) / tools[:, None]
    return table


def rows(shown: Lists, scores: Matrix) -> list[str]:
    """Cells of the table: all requests, by packs, by kind."""
    before = found_at(shown.labels, shown.features[..., 0], shown.tools)
    after = found_at(shown.labels, scores, shown.tools)
    of_several = shown.kinds == "multi-step"
    groups = {
        "all": shown.folds >= 0,
        "of servers with a pack": shown.packs == 1,
        "of servers without": shown.packs == 0,
        "several steps": of_several,
        "others": ~of_several,
    }
    return [cells(name, before[which], after[which]) for name, which in groups.items()]


def cells(name: str, before: Matrix, after: Matrix) -> str:
    """One row, without its beginning."""
    low, high = interval(after[:, 1] - before[:, 1])
    means = [" / ".join(short(value) for value in one.mean(axis=0)) for one in (before, after)]
    gain = short(float((after - before)[:, 1].mean()))
    return (
        f"{name} | {len(before)} | {means[0]} | {means[1]} | {gain} [{short(low)}, {short(high)}] |"
    )


if __name__ == "__main__":
    main()
