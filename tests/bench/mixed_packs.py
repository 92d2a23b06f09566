#!/usr/bin/env python3
"""Measures how tools are found where some servers have a pack; writes a table of docs/packs.md.

    make bench-packs

Leaves the packs of half of the shipped servers out at random, five times, and ranks people's and
English intents by `toolgate eval`, with both encoders. TOOLGATE_BIN names the binary.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from document import rewrite

ROOT = Path(__file__).resolve().parents[2]
SERVERS = ROOT / "tests" / "data" / "servers"
INTENTS = {
    name: ROOT / "tests" / "data" / "intents" / f"{name}.jsonl" for name in ("people", "english")
}
ENCODERS = {"default": [], "multilingual": ["--set=encoder.model=multilingual-e5-small"]}
SEEDS = range(1, 6)
CUTS = (1, 5, 10)
SECONDS = 1200


@dataclass(frozen=True)
class Ranked:
    """One intent, and the tools that were ranked for it, best first."""

    relevant: frozenset[str]
    tools: list[str]

    def recall(self, cut: int) -> float:
        """The share of its tools among the first so many."""
        return len(self.relevant.intersection(self.tools[:cut])) / len(self.relevant)

    def servers(self) -> set[str]:
        """The MCP servers of its tools."""
        return {tool.split("/", 1)[0] for tool in self.relevant}


def main() -> None:
    """Measures, and prints the table or rewrites it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="the document whose table is replaced")
    arguments = parser.parse_args()
    binary = Path(os.environ["TOOLGATE_BIN"]).resolve()
    with tempfile.TemporaryDirectory() as scratch:
        text = "\n".join(rows(binary, Path(scratch)))
    if arguments.write is None:
        print(text)
    else:
        rewrite(arguments.write, "mixed", text)


def rows(binary: Path, scratch: Path) -> Iterator[str]:
    """The table in Markdown."""
    yield (
        "| intents, encoder | packs for all | half left out: of servers with a pack "
        "| of servers without | packs for none |"
    )
    yield "| --- | ---: | ---: | ---: | ---: |"
    for encoder, flags in ENCODERS.items():
        for name, queries in INTENTS.items():
            everyone = evaluate(binary, queries, scratch, *flags)
            nobody = evaluate(binary, queries, scratch, *flags, "--set=packs.enabled=false")
            having, lacking = [], []
            for seed in SEEDS:
                left_out = drawn(seed)
                without = [f"--without-pack={server}" for server in sorted(left_out)]
                for one in evaluate(binary, queries, scratch, *flags, *without):
                    if one.servers() <= left_out:
                        lacking.append(one)
                    elif not one.servers() & left_out:
                        having.append(one)
            cells = [cell(group) for group in (everyone, having, lacking, nobody)]
            row = f"| {name}, {encoder} | {' | '.join(cells)} |"
            print(row, file=sys.stderr, flush=True)
            yield row


def drawn(seed: int) -> set[str]:
    """Half of the shipped servers."""
    names = sorted(file.stem for file in SERVERS.glob("*.json"))
    return set(random.Random(seed).sample(names, len(names) // 2))


def evaluate(binary: Path, queries: Path, scratch: Path, *flags: str) -> list[Ranked]:
    """The ranking of every intent that some tool serves."""
    lines = scratch / "ranked.jsonl"
    command: list[str | Path] = [
        binary,
        "eval",
        "--catalog",
        SERVERS,
        "--queries",
        queries,
        "--ranked",
        lines,
    ]
    inherited = {name: value for name, value in os.environ.items() if name != "TOOLGATE_BIN"}
    subprocess.run(
        [*command, "--resamples=0", *flags],
        env=inherited,
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=SECONDS,
    )
    labelled = [json.loads(line) for line in queries.read_text(encoding="utf-8").splitlines()]
    ranked = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    return [
        Ranked(frozenset(intent["relevant"]), one["ranked"])
        for intent, one in zip(labelled, ranked, strict=True)
        if intent.get("relevant")
    ]


def cell(group: list[Ranked]) -> str:
    """Recall at each cut."""
    means = [mean(one.recall(cut) for one in group) for cut in CUTS]
    return " / ".join(f"{figure:.3f}".removeprefix("0") for figure in means)


if __name__ == "__main__":
    main()
