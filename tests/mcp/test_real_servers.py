"""The comparer of real servers, with the fixture in their place."""

from pathlib import Path

import pytest
from fixture_process import BINARY, fixture_url
from mcp_client import MODERN, Client, Http, fields_of, items_of
from real_servers import Call, Observed, Server, differences, direct, observe

FIXTURE = Server(
    "fixture",
    [BINARY, "--stdio"],
    [Call("echo", {"message": "hello"}), Call("test_error_handling"), Call("no_such_tool")],
)


@pytest.fixture(scope="module")
def over_stdio(tmp_path_factory: pytest.TempPathFactory) -> Observed:
    box: Path = tmp_path_factory.mktemp("box")
    return observe(FIXTURE, direct(FIXTURE, box))


def test_a_server_is_the_same_over_stdio_and_behind_a_url(over_stdio: Observed) -> None:
    with fixture_url() as url:
        over_http = observe(FIXTURE, Client(Http(url)))
    assert over_stdio.era == over_http.era == MODERN
    assert differences(FIXTURE, over_stdio, over_http) == []


def test_answers_are_kept_as_they_came(over_stdio: Observed) -> None:
    echo, failure, unknown = over_stdio.answers
    assert '"text":"hello"' in echo
    assert '"isError":true' in failure
    assert '"error":{"code":-32602' in unknown


def test_texts_are_taken_apart_as_they_were_written() -> None:
    text = r'{ "a":1e400, "b" : [ 1.10,{"x":"\u0041,]"} ] ,"c":{}}'
    fields = fields_of(text)
    assert fields == {"a": "1e400", "b": r'[ 1.10,{"x":"\u0041,]"} ]', "c": "{}"}
    assert items_of(fields["b"]) == ["1.10", r'{"x":"\u0041,]"}']
    assert fields_of("{}") == {}
    assert items_of("[ ]") == []


def test_a_changed_definition_and_a_changed_answer_are_differences(over_stdio: Observed) -> None:
    changed = Observed(
        over_stdio.era,
        over_stdio.tools,
        over_stdio.tools_text.replace("Gives back", "Gives"),
        ["{}", *over_stdio.answers[1:]],
    )
    found = differences(FIXTURE, over_stdio, changed)
    assert [line.split(":")[0] for line in found] == ["tools/list", "echo"]
