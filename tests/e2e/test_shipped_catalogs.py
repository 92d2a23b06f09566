"""The catalogs in tests/data: all of them register, and routing over them saves tokens."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from catalogs import SHIPPED
from toolgate_process import ToolgateProcess

from toolgate import Client, OutcomeKind

FILES = sorted(SHIPPED.glob("*.json"))


@pytest.fixture(scope="module")
def shipped(server: ToolgateProcess) -> Iterator[Client]:
    with server.client("shipped", timeout=120) as client:
        for file in FILES:
            client.register_server(file.stem, file)
        yield client


def test_there_are_at_least_ten() -> None:
    assert len(FILES) >= 10


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_tool_is_stored_as_it_came(shipped: Client, file: Path) -> None:
    tools = json.loads(file.read_text())["tools"]
    stored = {t.name: t.definition for t in shipped.list_tools(file.stem)}
    assert stored == {t["name"]: t for t in tools}


def test_registering_again_changes_nothing(shipped: Client) -> None:
    again = shipped.register_server("gitlab", SHIPPED / "gitlab.json")
    assert {o.kind for o in again.outcomes} == {OutcomeKind.UNCHANGED}


def test_a_first_turn_saves_tokens(shipped: Client) -> None:
    cost = shipped.route("post in the team channel that the release is out").accounting
    assert cost.full_catalog_tokens > 100_000
    assert cost.saved_tokens > 0.7 * cost.full_catalog_tokens


@pytest.mark.parametrize(
    ("intent", "tool"),
    [
        ("post a message in a slack channel", "slack/slack_post_message"),
        ("what time is it in Tokyo right now", "time/get_current_time"),
        ("take a screenshot of the current page", "playwright/browser_take_screenshot"),
    ],
)
def test_an_obvious_tool_is_among_the_first_twenty(shipped: Client, intent: str, tool: str) -> None:
    turn = shipped.route(intent, top_k=20, threshold=0)
    assert tool in {f"{t.server}/{t.name}" for t in turn}


@pytest.mark.parametrize(
    ("intent", "wanted", "strangers"),
    [
        (
            "how do I get from the Berlin office to the airport by car right now",
            "mapbox/DirectionsTool",
            {"slack", "mongodb", "playwright"},
        ),
        (
            "what time is it for our people in Tokyo when we meet at 4pm in Lisbon",
            "time/convert_time",
            {"hubspot", "slack", "memory"},
        ),
    ],
)
def test_tools_of_something_else_do_not_pad_a_set(
    shipped: Client, intent: str, wanted: str, strangers: set[str]
) -> None:
    first, *others = shipped.route(intent)
    assert f"{first.server}/{first.name}" == wanted
    assert not strangers & {t.server for t in others}


def test_all_schemas_compile_into_validators(shipped: Client) -> None:
    names = [t.model_name for t in shipped.list_tools()]
    assert len(names) == len(set(names)) == 809
    for start in range(0, len(names), 100):
        answer = shipped.batch_get_tool_schemas(names[start : start + 100], timeout=60)
        assert not answer.refusals
