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
    history,
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


@pytest.mark.parametrize(("group", "case"), cases("history/scan-*.json"))
def test_scan(group: str, case: dict[str, Any]) -> None:
    seen = history.scan(case["messages"], case.get("snapshot"))
    snapshot = seen.snapshot()
    assert {key: snapshot[key] for key in case["expect"]} == case["expect"], group
    seen.state().to_proto()


def covered() -> list[Any]:
    """Cases whose calls have identifiers of their own, without which they can't be known again."""
    found = []
    for param in cases("history/scan-*.json"):
        ids = [call["id"] for call in param.values[1]["expect"]["calls"]]
        if "" not in ids and len(set(ids)) == len(ids):
            found.append(param)
    return found


@pytest.mark.parametrize(("group", "case"), covered())
def test_scanning_again_after_a_compaction_changes_nothing(
    group: str, case: dict[str, Any]
) -> None:
    seen = history.scan(case["messages"], case.get("snapshot"))
    again = history.scan(
        history.compacted(case["messages"], case["messages"], case.get("snapshot"))
    )
    assert (again.discovered, again.calls) == (seen.discovered, seen.calls), group


@pytest.mark.parametrize(("group", "case"), cases("history/strip.json"))
def test_strip(group: str, case: dict[str, Any]) -> None:
    before = json.dumps(case["messages"])
    stripped = history.strip(case["messages"], case["available"], references=case["references"])
    assert stripped.messages == case["expect"]["messages"], group
    removed = [
        {"message": r.message, "kind": r.kind, "name": r.name, "reason": r.reason}
        for r in stripped.removed
    ]
    assert removed == case["expect"]["removed"]
    assert json.dumps(case["messages"]) == before, "the history that was given is left alone"
    again = history.strip(stripped.messages, case["available"], references=case["references"])
    assert (again.messages, again.removed) == (stripped.messages, ())


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
    assert len(cases("history/scan-*.json")) > 30
