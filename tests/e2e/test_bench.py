"""`toolgate bench tax` with the real encoder: the tables that the page in the docs is made of."""

import json
import re
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from toolgate_command import run

ROOT = Path(__file__).resolve().parents[2]
# One server of those that ship: a debug build takes a while for the definitions of all.
CATALOG = ["--catalog", "tests/data/servers/git.json", "--queries", "tests/data/intents/tax.jsonl"]


def bench(binary: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(binary, "bench", "tax", *arguments, folder=ROOT)


@pytest.fixture(scope="module")
def written(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, str]:
    """Markdown, JSON and standard output of a small run."""
    folder = tmp_path_factory.mktemp("bench")
    files = [folder / "tax.md", folder / "tax.json"]
    outputs = ["--markdown", str(files[0]), "--json", str(files[1])]
    done = bench(binary, "--tasks", "10", "--seeds", "1", *CATALOG, *outputs)
    assert done.returncode == 0, done.stderr
    return files[0].read_text(), files[1].read_text(), done.stdout


def columns(text: str) -> list[str]:
    """The heading of every Markdown table."""
    lines = text.splitlines()
    return [line for line, below in pairwise(lines) if below.startswith("|---")]


def test_the_page_has_every_table_with_the_papers_figures(written: tuple[str, str, str]) -> None:
    page, _, shown = written
    # The page in the docs has three seeds, and this one has one.
    documented = columns((ROOT / "docs" / "tax.md").read_text())
    assert columns(page) == [line for line in documented if "| prompts, method |" not in line]
    for line in page.splitlines():
        if line.startswith("## "):
            assert line[3:] in shown
    full = re.search(r"^\| full schemas \| 48,600 \| 0 \| 48,600 \| 47,312 \|", page, re.MULTILINE)
    assert full, page
    assert page.count("Why it differs:") >= 3
    assert "## Projection: " in page


def test_tool_attention_finds_what_turns_take(written: tuple[str, str, str]) -> None:
    tables = {table["id"]: table for table in json.loads(written[1])["tables"]}
    rows = {row[0]: row for row in tables["methods"]["rows"]}
    found = tables["methods"]["columns"].index("found")
    assert rows["Tool Attention"][found] > 0.9
    as_sent = rows["Toolgate, as sent by default"]
    assert as_sent[found] > 0.9
    price = tables["methods"]["columns"].index("price")
    assert as_sent[price] < rows["Tool Attention"][price] < rows["full schemas"][price]
    assert rows["Tool Attention"][3] < rows["full schemas"][3] / 3
    assert rows["CLI lazy discovery"][found] is None
    kinds = {table["id"]: table["kind"] for table in tables.values()}
    assert [name for name, kind in kinds.items() if kind == "projection"] == ["projections"]
    kept_out = tables["poisoned"]["columns"].index("kept out, Toolgate")
    some, of = next(row for row in tables["poisoned"]["rows"] if row[0] == "all")[kept_out]
    assert 0 < some < of == 60


def test_a13_ablations_change_what_is_sent_and_each_cell_says_its_origin(
    written: tuple[str, str, str],
) -> None:
    tables = {table["id"]: table for table in json.loads(written[1])["tables"]}
    ablations = tables["ablations"]
    rows = {row[0]: dict(zip(ablations["columns"], row, strict=True)) for row in ablations["rows"]}
    whole = rows["Tool Attention"]
    words = rows["TF-IDF instead of the encoder"]
    assert words["phase 1"] == whole["phase 1"]
    # Of the testbed's tools, few share a rare word with an intent.
    assert 1 <= words["tools"] < whole["tools"] / 2
    assert 0 < words["phase 2"] < whole["phase 2"] / 2
    by_words = {row[0]: row[1:] for row in tables["catalog"]["rows"]}
    assert by_words["Tool Attention by TF-IDF"] != by_words["Tool Attention"]
    assert rows["no preconditions"]["tools"] > whole["tools"]
    assert rows["no preconditions"]["phase 2"] > whole["phase 2"]
    assert rows["k = 5"]["tools"] < whole["tools"] < rows["k = 20"]["tools"]
    assert rows["threshold .40"]["tools"] < whole["tools"] < rows["threshold .15"]["tools"]

    said = {"measured", "fitted", "copied", "published", "priced", "projected"}
    for name, table in tables.items():
        for row, origins in zip(table["rows"], table["origins"], strict=True):
            assert origins[0] == "none", "a title"
            for cell, origin in zip(row[1:], origins[1:], strict=True):
                assert (origin in said) is (cell is not None), (name, row[0], cell, origin)
                assert origin in {*said, "none"}
                assert (origin == "projected") is (table["kind"] == "projection")
    origins = dict(zip(rows, ablations["origins"], strict=True))
    assert origins["no check of calls"] == ["none", *["copied"] * 2, "published", *["copied"] * 2]
    assert set(origins["MPNet instead of MiniLM"]) == {"none", "published"}, "never loaded"
    paper = {row[ablations["columns"].index("paper")] for row in ablations["origins"]}
    assert paper == {"none", "published"}
    assert re.search(
        r"^\| no check of calls \|( [\d,]+ \(copied\) \|){2}", written[0], re.MULTILINE
    )


def test_what_is_wrong_is_told_before_anything_is_measured(binary: Path, tmp_path: Path) -> None:
    for arguments, code, words in [
        (["--catalog", "tests/data/servers"], 2, "--queries"),
        (["--tasks", "1"], 2, "from 10"),
        (["--markdown", str(tmp_path / "no" / "x.md")], 1, "cannot be written"),
        (["--catalog", "none.json", "--queries", "tests/data/intents/tax.jsonl"], 1, "none.json"),
    ]:
        done = bench(binary, *arguments)
        assert done.returncode == code, done.stderr
        assert words in done.stderr
        assert done.stdout == ""
