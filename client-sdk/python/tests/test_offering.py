"""The search as a tool of the model's: its definition, its calls, and the answers to them."""

import asyncio
import json
from typing import Any

import grpc
import pytest
from conftest import FakeService, fail
from google.rpc import error_details_pb2

from toolgate import SEARCH_TOOL, AsyncClient, Call, Client, ToolgateError, layout
from toolgate._gen.v1 import router_pb2

NAME = SEARCH_TOOL.model_name
FOUND = router_pb2.SearchToolsResponse(
    tools=[router_pb2.ActiveTool(model_name="mcp__git__log")], active_set_handle="h2"
)


def search(arguments: dict[str, Any] | str) -> Call:
    return Call(NAME, arguments, "c1")


def test_it_may_be_defined_as_text() -> None:
    definition = json.loads(layout.phase_2([SEARCH_TOOL]).splitlines()[1])
    assert definition["name"] == NAME
    assert definition["input_schema"] == SEARCH_TOOL.input_schema
    assert set(definition["input_schema"]["properties"]) == {"query", "max_results"}


@pytest.mark.parametrize(
    "arguments", [{"query": "git log", "max_results": 3}, '{"query": "git log", "max_results": 3}']
)
def test_a_call_becomes_a_search(service: FakeService, arguments: Any) -> None:
    service.answer("SearchTools", FOUND)
    with Client(service.target, tenant="t") as client:
        answer = client.answer_search(search(arguments), handle="h1", state={"scopes": ["s"]})
    (sent,) = service.requests
    assert (sent.tenant, sent.query, sent.max_results) == ("t", "git log", 3)
    assert (sent.active_set_handle, list(sent.state.scopes)) == ("h1", ["s"])
    assert sent.detail == router_pb2.DETAIL_REFERENCES
    assert (answer.text, answer.failed) == ('{"tools": [{"name": "mcp__git__log"}]}', False)
    assert (answer.handle, [tool.model_name for tool in answer.tools]) == ("h2", ["mcp__git__log"])
    assert answer.found is not None
    assert answer.found.to_tool_references()[0]["tool_name"] == "mcp__git__log"


def test_what_the_call_does_not_say_is_absent(service: FakeService) -> None:
    service.answer("SearchTools", FOUND)
    with Client(service.target) as client:
        client.answer_search(search({"query": "git", "max_results": None}), detail="schemas")
    assert not service.requests[0].HasField("max_results")
    assert service.requests[0].detail == router_pb2.DETAIL_SCHEMAS


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "query"),
        ({"query": 7}, "query"),
        ({"query": "\ud800"}, "query"),
        ({"query": "x", "max_results": 0}, "max_results"),
        ({"query": "x", "max_results": 101}, "max_results"),
        ({"query": "x", "max_results": "5"}, "max_results"),
        ({"query": "x", "max_results": True}, "max_results"),
        ("{oops", "JSON object"),
        ("[]", "JSON object"),
        ("[" * 100_000, "JSON object"),
    ],
)
def test_a_mistaken_call_is_told_to_the_model(
    service: FakeService, arguments: Any, says: str
) -> None:
    with Client(service.target) as client:
        answer = client.answer_search(search(arguments), handle="h1")
    told = json.loads(answer.text)
    assert (told["error"], says in told["message"]) == ("arguments_invalid", True)
    assert (answer.failed, answer.handle, answer.found, answer.tools) == (True, "h1", None, ())
    assert not service.requests


def refusing(field: str = "", limit: str = "") -> Any:
    violations = [error_details_pb2.BadRequest.FieldViolation(field=field)] if field else []
    metadata = {"limit": limit} if limit else {}
    return fail(
        grpc.StatusCode.INVALID_ARGUMENT,
        "the query is blank",
        error_details_pb2.ErrorInfo(reason="R", domain="toolgate", metadata=metadata),
        error_details_pb2.BadRequest(field_violations=violations),
    )


@pytest.mark.parametrize("named", [{"field": "query"}, {"limit": "limits.max_intent_size"}])
def test_a_query_that_the_service_refuses_is_told_to_the_model(
    service: FakeService, named: dict[str, str]
) -> None:
    service.answer("SearchTools", refusing(**named))
    with Client(service.target) as client:
        answer = client.answer_search(search({"query": " "}), handle="h1")
    assert json.loads(answer.text)["message"] == "the query is blank"
    assert (answer.failed, answer.handle) == (True, "h1")


@pytest.mark.parametrize("named", [{"field": "state"}, {"limit": "limits.max_state_size"}, {}])
def test_a_mistake_of_the_callers_is_raised(service: FakeService, named: dict[str, str]) -> None:
    service.answer("SearchTools", refusing(**named))
    with Client(service.target) as client:
        with pytest.raises(ToolgateError):
            client.answer_search(search({"query": "x"}))
        with pytest.raises(ValueError, match="NAMES"):
            client.answer_search(search({"query": "x"}), detail="all")
        with pytest.raises(TypeError, match=r"answer_search takes Call\("):
            client.answer_search({"query": "x"})  # type: ignore[arg-type]


def test_asyncio_answers_the_same(service: FakeService) -> None:
    service.answer("SearchTools", FOUND)

    async def ask() -> None:
        async with AsyncClient(service.target) as client:
            answer = await client.answer_search(search({"query": "git log"}), handle="h1")
            assert (answer.handle, answer.failed) == ("h2", False)
            mistaken = await client.answer_search(search({}), handle="h1")
            assert (mistaken.handle, mistaken.failed) == ("h1", True)

    asyncio.run(ask())
