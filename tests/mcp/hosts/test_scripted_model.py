"""The scripts of the model, what counts as a host's trouble, and what golden files keep."""

import json
from pathlib import Path

import golden_bodies
import hosts
import pytest
from scripted_model import (
    DONE,
    LOOKS_MAX,
    MESSAGE,
    SEARCH,
    ScriptedModel,
    Step,
    Turn,
    find,
    found_text,
    grow_behind_search,
    grow_in_list,
    mend,
    read_text,
)

GATEWAY = ["Bash", "mcp__tg__discover_tools", "mcp__tg__call_read_tool", "mcp__tg__call_tool"]
CALL = {"name": "fixture__echo#k3f9a1", "arguments": {"message": MESSAGE}}
SHOWN = "fixture__echo#k3f9a1(message: string) read: Gives back the message"


def test_behind_a_gateway_it_searches_then_calls_what_was_shown_then_ends() -> None:
    assert find(Turn(GATEWAY, [])) == Step("mcp__tg__discover_tools", SEARCH)
    assert find(Turn(GATEWAY, [SHOWN])) == Step("mcp__tg__call_read_tool", CALL)
    assert find(Turn(GATEWAY, [SHOWN, MESSAGE])) is None


def test_before_a_server_itself_it_calls_the_echo_tool_once() -> None:
    assert find(Turn(["tg_echo"], [])) == Step("tg_echo", {"message": MESSAGE})
    assert find(Turn(["tg_echo"], [MESSAGE])) is None
    assert find(Turn(["echoes", "bash"], [])) is None


def test_a_refused_call_is_mended_by_what_the_refusal_says() -> None:
    schema = {"type": "object", "required": ["message"]}
    refusal = f"the arguments do not fit\ninput schema: {json.dumps(schema)}"
    wrong = mend(Turn(GATEWAY, [SHOWN]))
    assert wrong is not None
    assert "message" not in wrong.arguments["arguments"]
    # Some hosts hand the text on as JSON within a string.
    for text in [refusal, json.dumps(refusal)]:
        assert mend(Turn(GATEWAY, [SHOWN, text])) == Step("mcp__tg__call_read_tool", CALL)
    assert mend(Turn(GATEWAY, [SHOWN, "no"])) is None, "nothing says what is right"
    assert mend(Turn(GATEWAY, [SHOWN, refusal, MESSAGE])) is None


def test_a_tool_that_was_added_is_searched_until_it_is_found() -> None:
    script = grow_behind_search("fern")
    found = ["garden__find_plant#aaaaaa(plant: string)", found_text("fern")]
    search = script(Turn(GATEWAY, found))
    assert search is not None
    assert search.tool == "mcp__tg__discover_tools"
    assert script(Turn(GATEWAY, [*found, "nothing"])) == search
    called = script(Turn(GATEWAY, [*found, "nothing", "garden__read_about_fern#bbbbbb() read"]))
    wanted = {"name": "garden__read_about_fern#bbbbbb", "arguments": {}}
    assert called == Step("mcp__tg__call_read_tool", wanted)
    assert script(Turn(GATEWAY, [*found, "garden__read_about_fern", read_text("fern")])) is None
    assert script(Turn(GATEWAY, [*found, *["nothing"] * LOOKS_MAX])) is None


def test_a_tool_that_was_added_is_called_once_it_is_listed() -> None:
    script = grow_in_list("fern")
    before = ["tg__find_plant"]
    looks = [found_text("fern")]
    assert script(Turn(before, [])) == script(Turn(before, looks))
    after = [*before, "tg__read_about_fern"]
    assert script(Turn(after, looks)) == Step("tg__read_about_fern", {})
    assert script(Turn(after, [])) is None, "it was there before it was added"
    assert script(Turn(before, looks * LOOKS_MAX)) is None
    assert script(Turn(after, [*looks, read_text("fern")])) is None


def test_a_host_that_lists_nothing_or_loses_the_answer_is_in_trouble() -> None:
    model = ScriptedModel()
    assert "never asked" in (hosts.trouble(model, DONE) or "")
    model.decide(Turn(["bash"], []))
    assert "showed no tool" in (hosts.trouble(model, DONE) or "")
    model.decide(Turn(["tg_echo"], []))
    assert "did not come back" in (hosts.trouble(model, DONE) or "")
    model.decide(Turn(["tg_echo"], [MESSAGE]))
    assert hosts.trouble(model, "") == "it did not finish"
    assert hosts.trouble(model, DONE) is None


def test_golden_bodies_keep_what_is_the_gateways_and_nothing_that_varies() -> None:
    body = {
        "session_id": "one",
        "system": f"You are a host.\n{'x' * 400}\nSearch with discover_tools first.",
        "tools": [
            {"name": "Bash", "description": "runs", "input_schema": {}},
            {"name": "tg__discover_tools", "description": "y" * 10, "input_schema": {"a": 1}},
        ],
        "messages": [{"id": "m1", "content": "fixture__echo#k3f9a1 at 127.0.0.1:81, 2026-11-28"}],
    }
    kept = json.loads(golden_bodies.normalised(body))
    assert kept["system"] == "Search with discover_tools first."
    assert kept["tools"] == [{"name": "Bash"}, body["tools"][1]]
    said = {"id": "VARIES", "content": "fixture__echo#TAG at ADDRESS, DATE"}
    assert (kept["session_id"], kept["messages"]) == ("VARIES", [said])


def test_a_golden_file_is_compared_until_it_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(golden_bodies, "FOLDER", tmp_path)
    assert "is missing" in (golden_bodies.difference("host", {"a": 1}, is_update=False) or "")
    assert golden_bodies.difference("host", {"a": 1}, is_update=True) is None
    assert golden_bodies.difference("host", {"a": 1}, is_update=False) is None
    assert "+ " in (golden_bodies.difference("host", {"a": 2}, is_update=False) or "")
