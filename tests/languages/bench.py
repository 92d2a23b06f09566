#!/usr/bin/env python3
"""Measures finding by intents in other languages; writes the tables of docs/languages.md.

    make bench-languages

Ranks tests/data/intents over tests/data/servers by `toolgate eval`, with the default encoder and
with a multilingual one, and asks servers at default settings how many intents get no tool at all.
Then the same for tools in other languages among those, asked for in their own.
TOOLGATE_BIN names the binary.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from catalogs import OTHER_LANGUAGES, SHIPPED
from intents import ENGLISH, LANGUAGES, MULTILINGUAL, OWN_LANGUAGE, LabelledIntent, read
from toolgate_process import ToolgateProcess

EVAL_SECONDS = 1200
REGISTER_SECONDS = 600
CUTS = (1, 5, 10)
MULTILINGUAL_MODEL = "multilingual-e5-small"
"""As `toolgate model fetch --model` knows it."""
BEGIN, END = "<!-- measured:begin -->", "<!-- measured:end -->"

Row = list[str]
Ranking = dict[str, tuple[list[str], float]]
"""By intent: the tools as server/tool, best first, and the overlap of the first."""


@dataclass(frozen=True)
class Encoder:
    """A model by its name; `None` for the one that the binary takes by itself."""

    name: str
    model: str | None

    @property
    def settings(self) -> dict[str, str]:
        return {} if self.model is None else {"encoder.model": self.model}

    @property
    def flags(self) -> list[str]:
        return [f"--set={key}={value}" for key, value in self.settings.items()]


@dataclass(frozen=True)
class Group:
    """Some intents that are measured together."""

    name: str
    intents: list[LabelledIntent]


def main() -> None:
    """Measures and rewrites the tables, or prints them."""
    parser = argparse.ArgumentParser(description="Measure other languages.")
    parser.add_argument("--write", type=Path, help="the document whose tables are replaced")
    arguments = parser.parse_args()
    encoders = [Encoder("default", None), Encoder("multilingual", MULTILINGUAL_MODEL)]
    binary = Path(os.environ["TOOLGATE_BIN"]).resolve()
    with tempfile.TemporaryDirectory() as scratch:
        text = "\n\n".join(measured(binary, encoders, Path(scratch)))
    if arguments.write is None:
        print(text)
    else:
        rewrite(arguments.write, text)


def measured(binary: Path, encoders: list[Encoder], scratch: Path) -> Iterator[str]:
    """The tables, and a sentence."""
    rankings = [rank(binary, encoder, scratch) for encoder in encoders]
    yield recall_table(binary, encoders, rankings, scratch)
    yield route_table(binary, encoders, scratch)
    areas = [
        f"{separation(ranking):.2f} with the {encoder.name} encoder"
        for encoder, ranking in zip(encoders, rankings, strict=True)
    ]
    yield (
        "Chance that the first tool's overlap, the cosine with its summary, is greater for an "
        "English intent with tools than for one that no tool serves (AUC): "
        f"{', '.join(areas)}. `toolgate eval` has the best overlap of any tool in its place."
    )
    yield own_language_table(binary, encoders, scratch)


def groups(wanted: Callable[[LabelledIntent], bool]) -> Iterator[Group]:
    """Each language, then all of them; each kind of English, then all of it."""
    for file, names, total in (
        (MULTILINGUAL, LANGUAGES, "**all but English**"),
        (ENGLISH, {}, "**English**"),
    ):
        intents = [intent for intent in read(file) if wanted(intent)]
        for sort in dict.fromkeys(intent.sort for intent in intents):
            members = [intent for intent in intents if intent.sort == sort]
            yield Group(names.get(sort, f"English, {sort}"), members)
        yield Group(total, intents)


def recall_table(
    binary: Path, encoders: list[Encoder], rankings: list[Ranking], scratch: Path
) -> str:
    """Recall by group: overlap alone with the first encoder, Toolgate with each."""
    first = f"overlap alone, {encoders[0].name} encoder"
    heading = ["recall at 1 / 5 / 10", "intents", first]
    heading += [f"{encoder.name} encoder" for encoder in encoders]
    rows = []
    for group in groups(lambda intent: bool(intent.relevant)):
        alone = evaluate(binary, encoders[0], group.intents, scratch, "--baseline")["baseline"]
        row = [group.name, str(len(group.intents)), cell([alone[f"recall@{cut}"] for cut in CUTS])]
        for ranking in rankings:
            row.append(cell([recall(group.intents, ranking, cut) for cut in CUTS]))
        print(" | ".join(row), file=sys.stderr, flush=True)
        rows.append(row)
    return table(heading, rows)


def own_language_table(binary: Path, encoders: list[Encoder], scratch: Path) -> str:
    """Recall for tools in other languages that are asked for in their own."""
    catalog = scratch / "catalog"
    catalog.mkdir()
    for file in [*SHIPPED.glob("*.json"), *OTHER_LANGUAGES.glob("*.json")]:
        (catalog / file.name).symlink_to(file)
    intents = read(OWN_LANGUAGE)
    sorts = dict.fromkeys(intent.sort for intent in intents)
    every = [Group(LANGUAGES[sort], [one for one in intents if one.sort == sort]) for sort in sorts]
    every.append(Group("**all**", intents))
    first = f"overlap alone, {encoders[0].name} encoder"
    heading = ["asked for in their own language", "intents", first]
    heading += [f"{encoder.name} encoder" for encoder in encoders]
    rows = []
    for group in every:
        reports = [
            evaluate(binary, encoder, group.intents, scratch, "--baseline", catalog=catalog)
            for encoder in encoders
        ]
        measured = [reports[0]["baseline"], *(report["metrics"] for report in reports)]
        cells = [cell([one[f"recall@{cut}"] for cut in CUTS]) for one in measured]
        rows.append([group.name, str(len(group.intents)), *cells])
    return table(heading, rows)


def rank(binary: Path, encoder: Encoder, scratch: Path) -> Ranking:
    """The best tools for each intent, before any cut, and the overlap of the first."""
    intents = [*read(MULTILINGUAL), *read(ENGLISH)]
    lines = scratch / "ranked.jsonl"
    evaluate(binary, encoder, intents, scratch, "--ranked", lines)
    best = map(json.loads, lines.read_text(encoding="utf-8").splitlines())
    return {
        intent.query: (one["ranked"], one["top"]) for intent, one in zip(intents, best, strict=True)
    }


def evaluate(
    binary: Path,
    encoder: Encoder,
    intents: list[LabelledIntent],
    scratch: Path,
    *flags: str | Path,
    catalog: Path = SHIPPED,
) -> dict[str, dict[str, float]]:
    """Returns the report of `toolgate eval`."""
    queries, report = scratch / "queries.jsonl", scratch / "report.json"
    lines = [{"query": one.query, "relevant": sorted(one.relevant)} for one in intents]
    queries.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    command: list[str | Path] = [binary, "eval", "--catalog", catalog, "--queries", queries]
    inherited = {name: value for name, value in os.environ.items() if name != "TOOLGATE_BIN"}
    subprocess.run(
        [*command, "--json", report, *encoder.flags, *flags],
        env=inherited,
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=EVAL_SECONDS,
    )
    measured: dict[str, dict[str, float]] = json.loads(report.read_text(encoding="utf-8"))
    return measured


def recall(intents: list[LabelledIntent], ranking: Ranking, cut: int) -> float:
    """The mean share of an intent's tools that are among its first ones."""
    return mean(
        len(one.relevant.intersection(ranking[one.query][0][:cut])) / len(one.relevant)
        for one in intents
    )


def separation(ranking: Ranking) -> float:
    """Returns how often an English intent with tools has the greater overlap; half where equal."""
    tops: dict[bool, list[float]] = {True: [], False: []}
    for intent in read(ENGLISH):
        tops[bool(intent.relevant)].append(ranking[intent.query][1])
    pairs = [(with_, without) for with_ in tops[True] for without in tops[False]]
    return mean((with_ > without) + (with_ == without) / 2 for with_, without in pairs)


def route_table(binary: Path, encoders: list[Encoder], scratch: Path) -> str:
    """Intents without any tool from Route at default settings, and the mean size of the others."""
    heading = ["intents with no tool at all; mean tools of the others", "intents"]
    heading += [encoder.name for encoder in encoders]
    every = list(groups(lambda intent: bool(intent.relevant)))
    every += [group for group in groups(lambda intent: not intent.relevant) if group.intents][:1]
    rows = [[group.name, str(len(group.intents))] for group in every]
    for encoder in encoders:
        with routing(binary, encoder, scratch) as sizes:
            for group, row in zip(every, rows, strict=True):
                row.append(emptiness([sizes(one.query) for one in group.intents]))
    return table(heading, rows)


@contextmanager
def routing(binary: Path, encoder: Encoder, scratch: Path) -> Iterator[Callable[[str], int]]:
    """A server over the shipped catalogs, as a function from an intent to its active set's size."""
    server = ToolgateProcess(binary, scratch / f"server-{encoder.name}", encoder.settings).start()
    try:
        with server.client("languages", timeout=REGISTER_SECONDS) as client:
            for file in sorted(SHIPPED.glob("*.json")):
                client.register_server(file.stem, file)
            yield lambda intent: len(client.route(intent))
    finally:
        server.stop()


def emptiness(sizes: list[int]) -> str:
    """Returns how many are empty, and how many tools the others have."""
    filled = [size for size in sizes if size]
    return f"{len(sizes) - len(filled)}; {mean(filled):.1f}" if filled else f"{len(sizes)}; -"


def cell(figures: list[float]) -> str:
    """Some recalls as one cell."""
    return " / ".join(f"{figure:.3f}".removeprefix("0") for figure in figures)


def table(heading: Row, rows: list[Row]) -> str:
    """A table in Markdown."""
    marks = ["---", *("---:" for _ in heading[1:])]
    return "\n".join("| " + " | ".join(row) + " |" for row in [heading, marks, *rows])


def rewrite(document: Path, text: str) -> None:
    """Replaces what stands between the marks."""
    before, _, rest = document.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    if not after:
        raise ValueError(f"{document} has no {BEGIN} ... {END}")
    document.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
