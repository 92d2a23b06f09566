"""`toolgate eval` over small made-up sets: its files, its comparisons, the formats it reads."""

import json
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from catalogs import NOTES, WEATHER
from toolgate_command import command_environment

QUERIES: list[dict[str, Any]] = [
    {"query": "write down a note for later", "relevant": ["notes/create_note"], "kind": "plain"},
    {"query": "which notes did I write earlier?", "relevant": ["notes/find_notes"]},
    {"query": "get rid of a note", "relevant": ["notes/delete_note"], "kind": "plain"},
    {"query": "will it rain in Oslo?", "relevant": ["weather/get_forecast"], "language": "en"},
    {"query": "storm warnings near Bergen", "relevant": ["weather/get_rain_alerts"]},
    {"query": "hm", "kind": "plain"},
]
SMALL_TALK = [{"query": "who wrote Faust?"}, {"query": "tell me a joke about physics"}]


class Folder:
    """A folder with a set, and `toolgate eval` run in it."""

    def __init__(self, binary: Path, path: Path) -> None:
        self.binary = binary
        self.path = path
        servers = [{"name": "notes", "tools": NOTES}, {"name": "weather", "tools": WEATHER}]
        self.write("catalog.json", json.dumps({"servers": servers}))
        self.write_lines("queries.jsonl", QUERIES)
        self.write_lines("chat.jsonl", SMALL_TALK)

    def write(self, name: str, text: str) -> None:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def write_lines(self, name: str, lines: Sequence[object]) -> None:
        self.write(name, "".join(json.dumps(line) + "\n" for line in lines))

    def run(self, *flags: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.binary, "eval", *flags],
            env={**command_environment(), "XDG_CONFIG_HOME": str(self.path / "config")},
            cwd=self.path,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def report(self, *flags: str) -> dict[str, Any]:
        done = self.run(*flags, "--json", "report.json")
        assert done.returncode == 0, done.stderr
        report: dict[str, Any] = json.loads((self.path / "report.json").read_text())
        return report


DATA = Path(__file__).parents[1] / "data"
OWN = ("--catalog", "catalog.json", "--queries", "queries.jsonl")


@pytest.fixture
def folder(binary: Path, tmp_path: Path) -> Folder:
    return Folder(binary, tmp_path)


def test_everything_is_measured_and_written(folder: Folder) -> None:
    files = ("--markdown", "report.md", "--plots", "plots", "--ranked", "ranked.jsonl")
    report = folder.report(*OWN, "--no-tool", "chat.jsonl", "--baseline", *files)
    counts = report["counts"]
    assert (counts["queries"], counts["labelled_queries"], counts["no_tool_queries"]) == (6, 5, 2)
    metrics = report["metrics"]
    assert metrics["recall@5"] == 1
    assert metrics["recall@1"] <= metrics["mrr"] <= 1
    assert 0 < metrics["set_precision"] <= metrics["set_recall"] <= 1
    assert 0 < metrics["set_tokens"] < report["token_tax"]["full_catalog_tokens"]
    low, high = report["intervals"]["mrr"]
    assert low <= metrics["mrr"] <= high
    abstention = report["abstention"]
    assert abstention["auc"] > 0.8
    rates = [(point["false_accepts"], point["false_rejects"]) for point in abstention["curve"]]
    assert rates[0] == (1, 0)
    assert rates[-1] == (0, 1)
    latency = report["latency"]["rank_and_cut_us"]
    assert 0 < latency["p50"] <= latency["p90"] <= latency["p99"] <= latency["max"]
    assert [group["name"] for group in report["kinds"]] == ["plain"]
    assert report["kinds"][0]["labelled"]["queries"] == 2
    assert [group["name"] for group in report["languages"]] == ["en"]
    assert [compared["with"] for compared in report["comparisons"]] == ["plain"]

    assert len((folder.path / "ranked.jsonl").read_text().splitlines()) == len(QUERIES)
    page = (folder.path / "report.md").read_text()
    for part in ("## Ranking", "## Active set", "## Abstention", "## By kind", "recall.svg"):
        assert part in page
    for name in ("recall.svg", "abstention.svg"):
        root = ET.fromstring((folder.path / "plots" / name).read_text())
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert list(root.iter("{http://www.w3.org/2000/svg}polyline"))


def test_a23_reasons_are_counted_over_a_labelled_set(folder: Folder) -> None:
    one = (*OWN, "--set", "router.top_k=1")
    before = folder.report(*one)["failures"]
    assert set(before) == {"multi_hop", "strict_cut", "ambiguous", "poor_text"}
    unlike = {"query": "will it rain in Oslo?", "relevant": ["notes/delete_note"]}
    both = {
        "query": "write down a note for later",
        "relevant": ["notes/create_note", "weather/get_forecast"],
    }
    folder.write_lines("queries.jsonl", [*QUERIES, unlike, both])
    after = folder.report(*one)["failures"]
    assert after["multi_hop"] == before["multi_hop"] + 1, "one of its two tools is there"
    assert sum(after.values()) == sum(before.values()) + 2, "each query counts once"


def test_the_same_seed_gives_the_same_intervals(folder: Folder) -> None:
    first, again = folder.report(*OWN), folder.report(*OWN)
    assert first["intervals"] == again["intervals"]
    assert folder.report(*OWN, "--resamples", "0")["intervals"] == {}


def test_configurations_and_reports_are_compared(folder: Folder) -> None:
    folder.write("one.toml", "[router]\ntop_k = 1\n")
    flags = ("--against", "one.toml", "--against-set", "router.threshold=0.1", "--per-query")
    report = folder.report(*OWN, "--no-tool", "chat.jsonl", *flags)
    (compared,) = report["comparisons"]
    assert compared["with"] == "one.toml, router.threshold=0.1"
    measures = compared["measures"]
    assert measures["recall@5"]["difference"] == 0
    assert measures["recall@5"]["p"] == 1
    assert measures["set_size"]["other"] == 1
    assert measures["set_size"]["this"] == report["metrics"]["set_size"]
    assert measures["false_accepts"]["other"] >= measures["false_accepts"]["this"]

    folder.write("earlier.json", (folder.path / "report.json").read_text())
    report = folder.report(*OWN, "--set", "router.top_k=1", "--compare", "earlier.json")
    (compared,) = report["comparisons"]
    size = compared["measures"]["set_size"]
    assert size["this"] == 1
    assert size["difference"] == pytest.approx(size["this"] - size["other"])


def test_a_published_set_is_known_by_its_content(folder: Folder) -> None:
    question = {
        "id": "simple_python_0",
        "question": [[{"role": "user", "content": "Write down a note."}]],
        "function": [
            {
                "name": "notes.create",
                "description": "Write down a new note.",
                "parameters": {"type": "dict", "properties": {"size": {"type": "float"}}},
            }
        ],
    }
    answer = {"id": "simple_python_0", "ground_truth": [{"notes.create": {"size": [1.5]}}]}
    folder.write_lines("BFCL_v4_simple_python.json", [question])
    folder.write_lines("possible_answer/BFCL_v4_simple_python.json", [answer])
    report = folder.report("--queries", "BFCL_v4_simple_python.json")
    assert report["metrics"]["recall@1"] == 1
    assert report["rejected"] == []
    assert report["kinds"][0]["name"] == "simple_python"


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        (("--queries", "queries.jsonl"), "queries.jsonl: toolgate queries come without tools"),
        (("--queries", "catalog.json"), 'objects with "servers"'),
        ((*OWN, "--no-tool", "queries.jsonl"), 'queries.jsonl:1: "relevant" names'),
        ((*OWN, "--compare", "catalog.json"), "--per-query"),
        ((*OWN, "--against-set", "router.topk=1"), "--against-set router.topk"),
        ((*OWN, "--markdown", "absent/report.md"), "absent/report.md: cannot be written"),
    ],
)
def test_mistakes_say_what_would_be_right(
    folder: Folder, flags: tuple[str, ...], wanted: str
) -> None:
    done = folder.run(*flags)
    assert done.returncode == 1
    assert wanted in done.stderr


def test_a_report_of_other_queries_is_refused(folder: Folder) -> None:
    folder.report(*OWN, "--per-query")
    folder.write_lines("fewer.jsonl", QUERIES[1:])
    flags = ("--catalog", "catalog.json", "--queries", "fewer.jsonl", "--compare", "report.json")
    done = folder.run(*flags)
    assert done.returncode == 1
    assert "report.json: is of other queries: 5 labelled ones there, 4 here" in done.stderr


def test_no_kept_set_is_dearer(folder: Folder) -> None:
    lines = (DATA / "intents" / "english.jsonl").read_text().splitlines(keepends=True)
    folder.write("intents.jsonl", "".join(lines[:40]))
    flags = ("--catalog", str(DATA / "servers"), "--queries", "intents.jsonl", "--resamples", "0")
    conversation = folder.report(*flags, "--conversation", "40")["conversation"]
    assert conversation["turns"] == 40
    lengths = [played["history_tokens"] for played in conversation["histories"]]
    assert lengths == [0, 5_000, 20_000, 60_000]
    assert not any(played["default_is_dearer"] for played in conversation["histories"])
    for played in conversation["histories"]:
        most = {one["layout"]: one["most_tools"] for one in played["layouts"]}
        assert most["the default's set first"] <= 10
        assert most["the default's set before the message"] <= 10


def test_a7_hit_rates_of_thirty_turns_stand_beside_the_naive_layout(folder: Folder) -> None:
    servers = ("filesystem", "git", "kubernetes", "slack")
    for name in servers:
        folder.write(f"servers/{name}.json", (DATA / "servers" / f"{name}.json").read_text())
    lines = (DATA / "intents" / "people.jsonl").read_text().splitlines()
    asked: list[dict[str, Any]] = [json.loads(line) for line in lines]
    folder.write_lines(
        "intents.jsonl",
        [
            one
            for one in asked
            if one["relevant"] and all(name.split("/")[0] in servers for name in one["relevant"])
        ],
    )
    flags = ("--catalog", "servers", "--queries", "intents.jsonl", "--resamples", "0")
    conversation = folder.report(*flags, "--conversation", "30")["conversation"]
    assert conversation["turns"] == 30
    assert len(conversation["histories"]) == 4
    for played in conversation["histories"]:
        layouts = {one["layout"]: one for one in played["layouts"]}
        rates = {name: one["hit_rate"] for name, one in layouts.items()}
        for name, one in layouts.items():
            assert rates[name] == pytest.approx(one["cached_tokens"] / one["tokens"])
            assert 0 <= rates[name] < 1
        anew = rates["the best schemas first, anew each turn"]
        paper = "summaries first, schemas anew before the message (the paper's)"
        default = "the default's set before the message"
        assert all(rates[name] > anew + 0.2 for name in ("all schemas first", paper, default))
        # A high rate is no small price.
        priced = {name: one["priced_tokens"] for name, one in layouts.items()}
        assert rates["all schemas first"] > rates[paper]
        assert priced["all schemas first"] > priced[paper] > priced[default]
