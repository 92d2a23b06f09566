"""The held-out requests of tests/data/unseen: format, labels, and no tool's name in them."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
UNSEEN = ROOT / "tests" / "data" / "unseen"
SERVERS = UNSEEN / "servers"
KINDS = {"single", "long", "multi-step", "no-tool", "near-miss"}
WITHOUT_TOOLS = {"no-tool", "near-miss"}
LANGUAGES = {"de", "fr", "es", "it", "pt", "pl", "ja", "zh"}


def _requests() -> list[dict[str, Any]]:
    lines = (UNSEEN / "requests.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _tools() -> set[str]:
    return {
        f"{path.stem}/{tool['name']}"
        for path in SERVERS.glob("*.json")
        for tool in json.loads(path.read_text(encoding="utf-8"))["tools"]
    }


def _words(text: str) -> str:
    """Returns the words in lower case, with one space before, between and after them."""
    return " ".join(["", *re.findall(r"[^\W_]+", text.lower()), ""])


def test_every_unseen_request_has_the_fields_of_its_kind() -> None:
    for request in _requests():
        query = request["query"]
        assert query.strip() == query != ""
        assert set(request) <= {"query", "relevant", "kind", "language"}, query
        assert request["kind"] in KINDS, query
        assert request.get("language", "de") in LANGUAGES, query
        assert (request["relevant"] == []) == (request["kind"] in WITHOUT_TOOLS), query
        assert request["kind"] != "multi-step" or len(request["relevant"]) > 1, query


def test_every_label_of_an_unseen_request_is_a_tool_of_its_catalog() -> None:
    named = Counter(tool for request in _requests() for tool in set(request["relevant"]))
    assert set(named) - _tools() == set()
    assert all(len(set(r["relevant"])) == len(r["relevant"]) for r in _requests())
    assert {tool.split("/")[0] for tool in named} == {path.stem for path in SERVERS.glob("*.json")}


def test_no_unseen_request_comes_twice() -> None:
    asked = Counter(_words(request["query"]) for request in _requests())
    assert [query for query, times in asked.items() if times > 1] == []


def test_no_unseen_request_names_its_tool() -> None:
    for request in _requests():
        words = _words(request["query"])
        for tool in request["relevant"]:
            assert _words(tool.split("/")[1]) not in words, (tool, request["query"])


def test_no_unseen_server_is_shipped_or_has_a_pack() -> None:
    shipped = {path.stem for path in (ROOT / "tests" / "data" / "servers").glob("*.json")}
    packed = {path.stem for path in (ROOT / "server" / "routing" / "packs").glob("*.yaml")}
    assert {path.stem for path in SERVERS.glob("*.json")} & (shipped | packed) == set()


def test_the_unseen_readme_counts_its_requests() -> None:
    requests = _requests()
    readme = (UNSEEN / "README.md").read_text(encoding="utf-8")
    own = Counter(r["kind"] for r in requests if "language" not in r)
    languages = Counter(r["language"] for r in requests if "language" in r)
    for sort, count in (*own.items(), *languages.items()):
        assert f"| `{sort}` | {count} |" in readme
    assert f"{len(requests)} requests" in readme
    assert f"{len(_tools())} tools" in readme
