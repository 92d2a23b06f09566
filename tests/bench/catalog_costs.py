#!/usr/bin/env python3
"""The cost of conversations of single requests, over catalogs of different sizes: writes
docs/conversations/catalogs.csv, and its summary into docs/conversations.md.

    TOOLGATE_BIN=... python tests/bench/catalog_costs.py --cells docs/conversations/catalogs.csv \\
        --write docs/conversations.md

The conversations are the shipped intents of one set, in their order, as far as a tool of the
catalog is right for them. Each number of turns is played over all of them: as single turns, as
conversations of five, and so on. The small catalogs have few of each set, so that they get
people's and the English ones together.
"""

import argparse
import csv
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from conversation_costs import (
    APIS,
    DATA,
    METHODS,
    TOLERANCE,
    Row,
    cheapest,
    play,
    ratio,
    rows,
    table,
)
from document import rewrite

SHIPPED = DATA / "servers"
OTHERS = DATA / "other-languages"
SMALL = ["fetch", "filesystem", "git", "slack", "time"]
SMALL_FILES = [SHIPPED / f"{name}.json" for name in SMALL]
MIXED = ["people", "english"]
LENGTHS = (1, 5, 20, 60)
"""Numbers of turns. Each has as many conversations as the intents make of that length."""


@dataclass(frozen=True)
class Played:
    """Intents of these sets as conversations over a catalog."""

    catalog: str
    servers: list[Path]
    sets: list[str]

    @property
    def intents(self) -> str:
        return " and ".join(self.sets)

    def lines(self) -> Iterator[str]:
        """The intents whose right tools are all of the catalog."""
        names = {path.stem for path in self.servers}
        for name in self.sets:
            text = (DATA / "intents" / f"{name}.jsonl").read_text(encoding="utf-8")
            for line in text.splitlines():
                right = json.loads(line)["relevant"]
                if right and all(tool.split("/")[0] in names for tool in right):
                    yield line


BESIDE_SMALL = [SHIPPED / f"{name}.json" for name in ("kubernetes", "memory", "playwright")]
ALL = sorted(SHIPPED.glob("*.json"))
PLAYED = [
    Played("37 tools", SMALL_FILES, MIXED),
    Played("48 tools", sorted(OTHERS.glob("*.json")), ["own-language"]),
    Played("94 tools", [*SMALL_FILES, *BESIDE_SMALL], MIXED),
    *(Played("809 tools", ALL, [name]) for name in ("people", "english", "multilingual")),
]


@dataclass(frozen=True)
class Place:
    """A cell of the grid: where, and what each method costs there."""

    played: Played
    conversations: int
    api: str
    history: int
    turns: int
    row: Row

    @property
    def ratio(self) -> float:
        return ratio(self.row)

    @property
    def best(self) -> str:
        return METHODS[str(cheapest(self.row)["method"]).replace("pass", "naive")]


def measured(binary: Path, played: Played, folder: Path) -> list[Place]:
    """The cells of one catalog and its intents."""
    catalog = folder / "servers"
    queries = folder / "requests.jsonl"
    catalog.mkdir()
    for path in played.servers:
        shutil.copy(path, catalog)
    lines = list(played.lines())
    queries.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    places: list[Place] = []
    for length in LENGTHS:
        if length <= len(lines):
            grid = play(binary, catalog, queries, [length], len(lines))
            for (api, history, turns), row in rows(grid).items():
                conversations = grid["conversations"]
                places.append(Place(played, conversations, APIS[api], history, turns, row))
    order = list(APIS.values())
    return sorted(places, key=lambda one: (order.index(one.api), one.history, one.turns))


def write_cells(places: list[Place], file: Path) -> None:
    """Writes all cells; the price of a method is empty where it had no place for a called tool."""
    with file.open("w", encoding="utf-8", newline="") as out:
        lines = csv.writer(out, lineterminator="\n")
        heads = ["catalog", "set", "conversations", "API", "history", "turns"]
        lines.writerow([*heads, *METHODS, "ratio", "cheapest"])
        for place in places:
            row = place.row
            prices = [
                "" if row[name]["calls_left_out"] else f"{row[name]['price_a_turn']:.0f}"
                for name in METHODS
            ]
            where: list[Any] = [place.played.catalog, place.played.intents, place.conversations]
            where += [place.api, place.history, place.turns]
            lines.writerow([*where, *prices, f"{place.ratio:.3f}", place.best.strip("`")])


def summary(places: list[Place]) -> str:
    """How far `auto` is from the cheapest, by catalog, set and API."""
    lines = []
    for (played, api), group in groupby(places, lambda place: (place.played, place.api)):
        cells = list(group)
        ratios = [cell.ratio for cell in cells]
        worst = max(cells, key=lambda cell: cell.ratio)
        over = sum(one > TOLERANCE for one in ratios)
        figures = [str(len(cells)), f"{sum(ratios) / len(ratios):.3f}", f"{worst.ratio:.3f}"]
        at = [f"{worst.history:,}", str(worst.turns)]
        lines.append([played.catalog, played.intents, api, *figures, *at, str(over)])
    heads = ["catalog", "set", "API", "cells", "mean", "worst", "at history", "turns", "above 1.02"]
    return table(heads, lines)


def kept_throughout(places: list[Place], of: Place) -> tuple[str, float]:
    """The method that is the least dear in its worst length of these conversations, and by what."""
    where = (of.played, of.api, of.history)
    same = [one for one in places if (one.played, one.api, one.history) == where]
    lacking = {name for one in same for name in METHODS if one.row[name]["calls_left_out"]}
    usable = [name for name in METHODS if name != "auto" and name not in lacking]

    def worst(method: str) -> float:
        price = "price_a_turn"
        return max(float(one.row[method][price] / cheapest(one.row)[price]) for one in same)

    best = min(usable, key=worst)
    return METHODS[best], worst(best)


def dearer(places: list[Place]) -> str:
    """Cells in which `auto` is too dear."""
    lines = []
    for place in places:
        if place.ratio > TOLERANCE:
            method, worst = kept_throughout(places, place)
            where = [place.played.catalog, place.played.intents, place.api]
            at = [f"{place.history:,}", str(place.turns)]
            lines.append([*where, *at, f"{place.ratio:.3f}", place.best, method, f"{worst:.3f}"])
    if not lines:
        return "No cell is dearer by more than 2%.\n"
    heads = ["catalog", "set", "API", "history", "turns", "`auto` to the cheapest", "the cheapest"]
    return table([*heads, "best kept throughout", "its worst"], lines)


def main() -> None:
    """Prints the summary, or writes it into a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=Path, metavar="CSV", help="file to write all cells into")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="page to write the tables into")
    asked = parser.parse_args()
    binary = Path(os.environ["TOOLGATE_BIN"]).resolve()
    places: list[Place] = []
    for played in PLAYED:
        with tempfile.TemporaryDirectory() as folder:
            places += measured(binary, played, Path(folder))
    if asked.cells:
        write_cells(places, asked.cells)
    texts = {"costs-catalogs": summary(places), "costs-catalogs-dearer": dearer(places)}
    for name, text in texts.items():
        if asked.write:
            rewrite(asked.write, name, f"\n{text}")
        else:
            print(text)


if __name__ == "__main__":
    main()
