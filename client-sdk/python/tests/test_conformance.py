"""The cases of client-sdk/conformance, which every client runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from toolgate import (
    SEARCH_TOOL,
    ActiveTool,
    Call,
    Client,
    SearchAnswer,
    announce,
    layout,
)
from toolgate._gen.v1 import router_pb2
from toolgate.searching import SearchResult

CASES = Path(__file__).resolve().parents[2] / "conformance"


def cases(pattern: str) -> list[Any]:
    return [
        pytest.param(path.stem, case, id=f"{path.stem}: {case['name']}")
        for path in sorted(CASES.glob(pattern))
        for case in json.loads(path.read_text())["cases"]
    ]


@pytest.mark.parametrize(("group", "case"), cases("prompt/layout.json"))
def test_layout(group: str, case: dict[str, Any]) -> None:
    tools = [ActiveTool.from_proto(router_pb2.ActiveTool(**tool)) for tool in case["tools"]]
    summaries = dict(case["summaries"])
    assert case["expect"] == {
        "anthropic_system": layout.anthropic_system(case["system"], summaries),
        "openai_system": layout.openai_system(case["system"], summaries),
        "user_message": layout.user_message(case["content"], tools),
        "responses_input": layout.responses_input(case["content"], tools),
    }, group


@pytest.mark.parametrize(("group", "case"), cases("prompt/announce.json"))
def test_announce(group: str, case: dict[str, Any]) -> None:
    said = announce(dict(case["searchable"]), loaded=case["loaded"], announced=case["announced"])
    assert case["expect"] == {
        "full": said.full,
        "added": [list(item) for item in said.added.items()],
        "removed": list(said.removed),
        "announced": list(said.announced),
        "text": said.text(),
    }, group


@pytest.mark.parametrize(("group", "case"), cases("search/tool.json"))
def test_search_tool(group: str, case: dict[str, Any]) -> None:
    assert case["expect"] == {
        "name": SEARCH_TOOL.name,
        "model_name": SEARCH_TOOL.model_name,
        "description": SEARCH_TOOL.description,
        "input_schema": SEARCH_TOOL.input_schema,
        "annotations": json.loads(SEARCH_TOOL.annotations_json),
        "signature": SEARCH_TOOL.signature,
        "signature_lossy": SEARCH_TOOL.signature_lossy,
        "schema_tokens": SEARCH_TOOL.schema_tokens,
    }, group


@pytest.mark.parametrize(("group", "case"), cases("search/answer.json"))
def test_search_answer(group: str, case: dict[str, Any]) -> None:
    found = SearchResult.from_proto(router_pb2.SearchToolsResponse(**case["found"]))
    answer = SearchAnswer.from_result(found)
    assert (json.loads(answer.text), answer.failed) == (case["expect"], False), group


@pytest.mark.parametrize(("group", "case"), cases("search/mistake.json"))
def test_search_mistake(group: str, case: dict[str, Any]) -> None:
    with Client("127.0.0.1:1") as client:  # Nothing is sent.
        answer = client.answer_search(Call(SEARCH_TOOL.model_name, case["arguments"]), handle="h")
    assert json.loads(answer.text) == case["expect"], group
    assert (answer.failed, answer.handle, answer.found) == (True, "h", None)


def test_every_file_of_cases_is_run() -> None:
    folders = ("prompt/*.json", "search/*.json")
    assert all(cases(folder) for folder in folders)
