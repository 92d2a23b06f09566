#!/usr/bin/env python3
"""The cost of conversations over catalogs of different sizes; writes a table of
docs/conversations.md.

    TOOLGATE_BIN=... python tests/bench/catalog_costs.py --write docs/conversations.md

The conversations are the shipped single requests of people and of the English set, in their order,
as far as a tool of the catalog is right for them.
"""

import argparse
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from conversation_costs import APIS, METHODS, cheapest, ratio, rows, table
from document import rewrite

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "tests" / "data" / "servers"
INTENTS = [ROOT / "tests" / "data" / "intents" / f"{name}.jsonl" for name in ("people", "english")]
SMALL = ["fetch", "filesystem", "git", "slack", "time"]
CATALOGS: dict[str, list[str]] = {
    "37 tools": SMALL,
    "94 tools": [*SMALL, "kubernetes", "memory", "playwright"],
    "809 tools": sorted(path.stem for path in SHIPPED.glob("*.json")),
}
"""Names of the shipped MCP servers of each catalog."""
GRID = ["--history", "0,20000", "--turns", "1,5,20,60"]


def lines_over(servers: set[str]) -> Iterator[str]:
    """The requests whose right tools are all of these servers."""
    for path in INTENTS:
        for line in path.read_text(encoding="utf-8").splitlines():
            right = json.loads(line)["relevant"]
            if right and all(name.split("/")[0] in servers for name in right):
                yield line


def measured(binary: Path, servers: list[str], folder: Path) -> Iterator[list[str]]:
    """Lines of the table for the catalog of these servers."""
    catalog, queries, cells = folder / "servers", folder / "requests.jsonl", folder / "cells.json"
    catalog.mkdir()
    for name in servers:
        shutil.copy(SHIPPED / f"{name}.json", catalog)
    queries.write_text("".join(f"{line}\n" for line in lines_over(set(servers))), encoding="utf-8")
    command = [str(binary), "bench", "conversation", "--catalog", str(catalog)]
    command += ["--queries", str(queries), *GRID, "--json", str(cells)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1_800, check=False)
    # 3 says that a cell is too dear, which the table shows.
    if done.returncode not in {0, 3}:
        raise RuntimeError(done.stderr)
    (grid,) = json.loads(cells.read_text(encoding="utf-8"))["grids"]
    for (api, history, turns), row in rows(grid).items():
        costs = [
            "" if row[name]["calls_left_out"] else f"{row[name]['price_a_turn']:,.0f}"
            for name in METHODS
        ]
        best = METHODS[cheapest(row)["method"].replace("pass", "naive")]
        yield [APIS[api], f"{history:,}", str(turns), *costs, f"{ratio(row):.3f}", best]


def main() -> None:
    """Prints the table, or writes it into a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="page to write the table into")
    asked = parser.parse_args()
    binary = Path(os.environ["TOOLGATE_BIN"]).resolve()
    lines = []
    for name, servers in CATALOGS.items():
        with tempfile.TemporaryDirectory() as folder:
            lines += [[name, *line] for line in measured(binary, servers, Path(folder))]
    heads = ["catalog", "API", "history", "turns", *METHODS.values(), "ratio", "the cheapest"]
    text = table(heads, lines)
    if asked.write:
        rewrite(asked.write, "costs-catalogs", text)
    else:
        print(text)


if __name__ == "__main__":
    main()
