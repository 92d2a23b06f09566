"""Splits the data: for training, and kept from it to be measured."""

import random
from dataclasses import dataclass
from pathlib import Path

from batches import Source
from encoder import Encoder
from labelled import Request, read_packs, read_requests
from tools import Catalog, read_public, read_shipped

ROOT = Path(__file__).parents[2]
FOLDS = 5
SEED = 1
TRAINED_PUBLIC = ("stabletoolbench", "sealtools")
UNSEEN_PUBLIC = ("azure", "metatool_single", "metatool_multi")


@dataclass(frozen=True)
class Shipped:
    """The repository's own data: its catalogs and packs."""

    catalog: Catalog
    packs: list[Request]


def read_repository() -> Shipped:
    """The catalogs and packs of this checkout."""
    catalog = read_shipped(ROOT / "tests/data/servers")
    return Shipped(catalog, read_packs(ROOT / "server/routing/packs", catalog))


def held_out(catalog: Catalog, fold: int | None) -> set[str]:
    """The MCP servers of one fold; none without a fold."""
    if fold is None:
        return set()
    return set(shuffled(catalog)[fold::FOLDS])


def held_out_public(catalog: Catalog) -> set[str]:
    """A fifth of a public set's servers, none of whose tools is trained on."""
    servers = shuffled(catalog)
    return set(servers[: len(servers) // FOLDS])


def shuffled(catalog: Catalog) -> list[str]:
    """A catalog's servers, in an order that is the same every time."""
    servers = sorted({tool.server for tool in catalog.tools})
    random.Random(SEED).shuffle(servers)
    return servers


def pack_source(shipped: Shipped, fold: int | None, untuned: Encoder) -> Source:
    """The packs of the servers that aren't held out, over their tools alone."""
    held = held_out(shipped.catalog, fold)
    tools = [tool for tool in shipped.catalog.tools if tool.server not in held]
    requests = [request for request in shipped.packs if not request.servers & held]
    return Source(Catalog("shipped", tools), requests, untuned)


def public_sources(folder: Path, untuned: Encoder) -> list[Source]:
    """The public pairs none of whose tools is held out."""
    found = []
    for name in TRAINED_PUBLIC:
        catalog, requests = read_set(folder, name)
        held = held_out_public(catalog)
        trained = [request for request in requests if not request.servers & held]
        found.append(Source(catalog, trained, untuned))
    return found


def read_set(folder: Path, name: str) -> tuple[Catalog, list[Request]]:
    """A public set: its tools, and the queries that have one."""
    catalog = read_public(folder / name)
    requests = read_requests(folder / name / "queries.jsonl", catalog)
    return catalog, [request for request in requests if request.tools]
