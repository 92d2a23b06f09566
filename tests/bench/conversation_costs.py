#!/usr/bin/env python3
"""Tables and the plot of docs/conversations.md, "Whole conversations, by strategy".

    TOOLGATE_BIN=... python tests/bench/conversation_costs.py \\
        --write docs/conversations.md --plot docs/conversations/price-by-turns.svg

Plays the recorded conversations by `toolgate bench conversation`, and says how far `auto` is from
the cheapest of the others. Conversations are joined until they have as many turns as the longest
length of a run. Each set has two runs, so that short lengths are of every recorded conversation.
The plot needs matplotlib.
"""

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from document import rewrite

DATA = Path(__file__).resolve().parents[2] / "tests" / "data"
HISTORIES = "0,1000,20000,100000"
SHORT = [1, 2, 3, 5, 8]
RUNS = {"held-out": [SHORT, [12, 20]], "dev": [SHORT, [20, 60]]}
"""Numbers of turns of each run, by the name of the conversations' file."""

APIS = {
    "anthropic": "Messages",
    "openai_responses": "Responses",
    "openai_chat": "Chat",
    "gemini": "Gemini",
}
METHODS = {
    "naive": "naive",
    "paper": "the paper's layout",
    "anew": "anew",
    "cut": "`cut`",
    "envelope": "`envelope`",
    "native": "`native`",
    "auto": "`auto`",
}
TOLERANCE = 1.02
TURNS = (1, 3, 5, 20, 60)
"""Turns of the tables. The grid may have others between them."""

Row = dict[str, Any]
"""Cells of one API, history and number of turns, by method."""


def play(
    binary: Path, catalog: Path, queries: Path, turns: Sequence[int], conversations: int
) -> Row:
    """Plays a file's queries as at most so many conversations, and returns the grid.

    Raises:
        RuntimeError: The command failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        cells = Path(folder) / "cells.json"
        command = [str(binary), "bench", "conversation", "--catalog", str(catalog)]
        command += ["--queries", str(queries), "--history", HISTORIES]
        command += ["--turns", ",".join(map(str, turns))]
        command += ["--conversations", str(conversations), "--json", str(cells)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=3_600, check=False)
        # 3 says that a cell is too dear, which the tables show.
        if done.returncode not in {0, 3}:
            raise RuntimeError(done.stderr)
        (grid,) = json.loads(cells.read_text(encoding="utf-8"))["grids"]
        return dict(grid)


def played(binary: Path, name: str) -> Row:
    """Plays the recorded conversations of one set."""
    queries = DATA / "conversations" / f"{name}.jsonl"
    catalog = DATA / "servers"
    cells = [
        cell for turns in RUNS[name] for cell in play(binary, catalog, queries, turns, 60)["cells"]
    ]
    apis = list(APIS)
    cells.sort(key=lambda cell: (apis.index(cell["api"]), cell["history"], cell["turns"]))
    return {"set": name, "cells": cells}


def rows(grid: Row) -> dict[tuple[str, int, int], Row]:
    found: dict[tuple[str, int, int], Row] = {}
    for cell in grid["cells"]:
        place = (cell["api"], cell["history"], cell["turns"])
        found.setdefault(place, {})[cell["method"]] = cell
    return found


def cheapest(row: Row) -> Row:
    """The cheapest of the others that had a place for each tool that was called."""
    others = [cell for name, cell in row.items() if name != "auto" and not cell["calls_left_out"]]
    best: Row = min(others, key=lambda cell: float(cell["price_a_turn"]))
    return best


def ratio(row: Row) -> float:
    return float(row["auto"]["price_a_turn"]) / float(cheapest(row)["price_a_turn"])


def table(heads: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    heads = list(heads)
    texts = {"API", "catalog", "set", "the cheapest", "best kept throughout"}
    rule = ["---" if head in texts else "---:" for head in heads]
    return "\n".join(f"| {' | '.join(line)} |" for line in [heads, rule, *lines]) + "\n"


def prices(grid: Row) -> str:
    """Prices of a turn, and `auto` to the cheapest of the others."""
    lines = []
    for (api, history, turns), row in rows(grid).items():
        if turns in TURNS:
            costs = [f"{row[name]['price_a_turn']:,.0f}" for name in METHODS]
            costs[-1] = f"**{costs[-1]}**"
            lines.append([APIS[api], f"{history:,}", str(turns), *costs, f"{ratio(row):.3f}"])
    return table(["API", "history", "turns", *METHODS.values(), "ratio"], lines)


def dearer(grids: Iterable[Row]) -> str:
    """Cells in which `auto` is too dear."""
    lines = []
    for grid in grids:
        for (api, history, turns), row in rows(grid).items():
            if ratio(row) > TOLERANCE:
                method = cheapest(row)["method"]
                name = METHODS.get(method, f"`{method}`")
                place = [grid["set"], APIS[api], f"{history:,}", str(turns)]
                lines.append([*place, f"{ratio(row):.3f}", name])
    if not lines:
        return "No cell is dearer by more than 2%.\n"
    return table(
        ["set", "API", "history", "turns", "`auto` to the cheapest", "the cheapest"], lines
    )


def summary(grids: Iterable[Row]) -> str:
    """Returns how far `auto` is from the cheapest of the others."""
    lines = []
    for grid in grids:
        ratios = sorted(ratio(row) for row in rows(grid).values())
        over = sum(one > TOLERANCE for one in ratios)
        mean = sum(ratios) / len(ratios)
        figures = [f"{mean:.3f}", f"{ratios[len(ratios) * 9 // 10]:.3f}", f"{ratios[-1]:.3f}"]
        lines.append([grid["set"], str(len(ratios)), str(over), *figures])
    return table(["set", "cells", "above 1.02", "mean", "nine in ten below", "worst"], lines)


def draw(grid: Row, file: Path) -> None:
    import_module("matplotlib").rcParams["svg.hashsalt"] = file.name
    canvas = import_module("matplotlib.figure").Figure(figsize=(10, 8), layout="constrained")
    found = rows(grid)
    histories = [min(place[1] for place in found), 20_000]
    panels = canvas.subplots(len(histories), len(APIS), sharex=True, sharey="row")
    for across, history in zip(panels, histories, strict=True):
        for axes, (api, title) in zip(across, APIS.items(), strict=True):
            turns = sorted(place[2] for place in found if place[:2] == (api, history))
            for name in METHODS:
                costs = [found[api, history, number][name]["price_a_turn"] for number in turns]
                style = "--" if name == "auto" else "-"
                axes.plot(turns, costs, style, label=name, linewidth=2.2 if name == "auto" else 1.3)
            axes.set(title=f"{title}, {history:,} before", xscale="log", yscale="log")
            axes.set_xticks(turns, [str(number) for number in turns], minor=False)
            axes.set_xticks([], minor=True)
            axes.grid(alpha=0.3)
    panels[0][0].legend(fontsize=8)
    canvas.supxlabel("turns")
    canvas.supylabel("price of a turn, in tokens of uncached input")
    file.parent.mkdir(parents=True, exist_ok=True)
    canvas.savefig(file, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="page to write the tables into")
    parser.add_argument("--plot", type=Path, metavar="SVG", help="file to draw the plot in")
    asked = parser.parse_args()
    binary = Path(os.environ["TOOLGATE_BIN"]).resolve()
    held_out = played(binary, "held-out")
    dev = played(binary, "dev")
    texts = {
        "costs-held-out": prices(held_out),
        "costs-dearer": dearer([held_out, dev]),
        "costs-dev": prices(dev),
    }
    print(summary([held_out, dev]))
    for name, text in texts.items():
        if asked.write:
            rewrite(asked.write, name, f"\n{text}")
        else:
            print(text)
    if asked.plot:
        draw(held_out, asked.plot)


if __name__ == "__main__":
    main()
