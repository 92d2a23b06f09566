"""RegisterServer on bad input: what refuses the request, and what refuses one tool."""

import json
from typing import Any

import grpc
import pytest
from catalogs import body, invalid, nested, over_limit, refused, tool

from toolgate import (
    Call,
    Client,
    OutcomeKind,
    ToolSettings,
    all_of,
    cel,
    is_authenticated,
    milestone_reached,
)
from toolgate._gen.v1 import catalog_pb2, catalog_pb2_grpc, state_pb2

GOOD = tool("good")


@pytest.mark.parametrize(
    "broken",
    [
        b"not json",
        b'{"tools": [',
        b'{"tools": 3}',
        b'{"tools": {}}',
        b'{"other": []}',
        b'"text"',
        b"3",
        b"null",
        b'{"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no"}}',
        b"\xff\xfe\x00",
        b'[{"name": "a", "description": "\xff\xfe", "inputSchema": {"type": "object"}}]',
        b"[] trailing",
    ],
)
def test_a_body_that_is_no_tools_list(client: Client, broken: bytes) -> None:
    with invalid("MALFORMED_CATALOG"):
        client.register_server("docs", broken)


def test_where_the_json_breaks(client: Client) -> None:
    with invalid("MALFORMED_CATALOG") as caught:
        client.register_server("docs", b'{"tools": [\n  {"name" "a"}\n]}')
    assert caught.metadata["line"] == "2"
    assert int(caught.metadata["column"]) > 0


def test_an_absent_body(client: Client) -> None:
    with invalid("INVALID_FIELD", "MALFORMED_CATALOG"):
        client.register_server("docs", b"")


def test_a_body_of_brackets_does_not_exhaust_the_stack(client: Client) -> None:
    with invalid("MALFORMED_CATALOG", "LIMIT_EXCEEDED"):
        client.register_server("docs", b"[" * 1_000_000)
    assert client.register_server("docs", [GOOD]).server.tool_count == 1


CYCLE = {
    "type": "object",
    "properties": {"a": {"$ref": "#/$defs/a"}},
    "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
}


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (3, "tools[1]"),
        ({}, "name"),
        ({"name": 3, "inputSchema": {"type": "object"}}, "name"),
        (tool(""), "name"),
        (tool("x" * 2000), "name"),
        (tool("no_schema", inputSchema=None), "inputSchema"),
        ({"name": "absent_schema", "description": "x"}, "inputSchema"),
        (tool("text_schema", inputSchema="object"), "inputSchema"),
        (tool("list_schema", inputSchema=[]), "inputSchema"),
        (tool("wrong_type", inputSchema={"type": "objekt"}), "inputSchema"),
        (tool("wrong_keyword", inputSchema={"type": "object", "required": "a"}), "inputSchema"),
        (tool("wrong_description", description=["a"]), "description"),
        (tool("cycle", inputSchema=CYCLE), "inputSchema"),
        (tool("self_cycle", inputSchema={"$ref": "#"}), "inputSchema"),
        (tool("dangling", inputSchema={"type": "object", "$ref": "#/$defs/no"}), "inputSchema"),
        (
            tool("remote", inputSchema={"type": "object", "$ref": "http://127.0.0.1:9/s.json"}),
            "inputSchema",
        ),
        (
            tool("file", inputSchema={"type": "object", "$ref": "file:///etc/hostname"}),
            "inputSchema",
        ),
        (tool("deep", inputSchema=nested(80)), "tools[1]"),
        (tool("deeper_than_any_stack", inputSchema=nested(900)), "tools[1]"),
        (
            tool("big", inputSchema={"type": "object", "description": "x" * (256 * 1024)}),
            "tools[1]",
        ),
        (tool("wrong_output", outputSchema=3), "outputSchema"),
        (tool("wrong_annotations", annotations="x"), "annotations"),
    ],
    ids=lambda value: str(value.get("name") if isinstance(value, dict) else value)[:20],
)
def test_one_bad_tool_does_not_lose_the_rest(client: Client, bad: Any, field: str) -> None:
    answer = client.register_server("docs", json.dumps({"tools": [GOOD, bad]}))
    good, rejected = answer.outcomes
    assert good.kind is OutcomeKind.ACCEPTED
    assert rejected.kind is OutcomeKind.REJECTED
    assert field in rejected.field
    assert "tools[1]" in rejected.field
    assert rejected.message
    assert (rejected.model_name, rejected.new_hash) == ("", "")
    assert [t.name for t in client.list_tools()] == ["good"]


def test_a_recursive_schema_is_fine(client: Client) -> None:
    tree = {
        "type": "object",
        "properties": {"children": {"type": "array", "items": {"$ref": "#"}}},
    }
    answer = client.register_server("docs", [tool("tree", inputSchema=tree)])
    assert answer.outcomes[0].kind is OutcomeKind.ACCEPTED
    turn = client.route("tree", pinned_tools=["docs/tree"])
    calls = [
        Call("mcp__docs__tree", {"children": [{"children": []}]}),
        Call("mcp__docs__tree", {"children": [{"children": 3}]}),
    ]
    good, bad = client.gate(turn.handle, calls)
    assert good.allowed
    assert [v.pointer for v in bad.violations] == ["/children/0/children"]


def test_a_name_twice_is_never_silent(client: Client) -> None:
    answer = client.register_server("docs", [tool("same", "one"), tool("same", "two")])
    assert OutcomeKind.REJECTED in {o.kind for o in answer.outcomes}
    assert len(list(client.list_tools())) <= 1


def test_model_names_that_collide_are_never_silent(client: Client) -> None:
    answer = client.register_server("docs", [tool("read.page"), tool("read_page"), GOOD])
    stored = list(client.list_tools())
    assert len({t.model_name for t in stored}) == len(stored)
    accepted = [o for o in answer.outcomes if o.kind is OutcomeKind.ACCEPTED]
    assert len(accepted) == len(stored)
    assert "good" in {t.name for t in stored}


def test_long_model_names_are_cut_and_stay_apart(client: Client) -> None:
    names = ["n" * 120 + "a", "n" * 120 + "b"]
    answer = client.register_server("s" * 40, [tool(name) for name in names])
    cut = [o.model_name for o in answer.outcomes]
    assert all(0 < len(name) <= 64 for name in cut)
    assert cut[0] != cut[1]
    again = client.register_server("s" * 40, [tool(name) for name in names])
    assert [o.model_name for o in again.outcomes] == cut


def test_all_or_nothing_stores_nothing(client: Client) -> None:
    client.register_server("docs", [GOOD])
    with refused(grpc.StatusCode.FAILED_PRECONDITION, "TOOLS_REJECTED"):
        client.register_server("docs", [tool("new"), {"name": "bad"}], all_or_nothing=True)
    assert [t.name for t in client.list_tools()] == ["good"]


@pytest.mark.parametrize("name", ["", "a b", "a/b", "a__b", "é", "x" * 65, "../etc", "a\n"])
def test_server_names(client: Client, name: str) -> None:
    with invalid("INVALID_FIELD", field="server"):
        client.register_server(name, [GOOD])


@pytest.mark.parametrize("tenant", [".", "..", "a b", "a:b", "é", "x" * 65, "a/b", "a\x00"])
def test_tenant_names(catalog: catalog_pb2_grpc.CatalogServiceStub, tenant: str) -> None:
    request = catalog_pb2.RegisterServerRequest(
        tenant=tenant, server="docs", tools_list_json=body([GOOD])
    )
    with invalid("INVALID_FIELD", field="tenant"):
        catalog.RegisterServer(request)


def test_too_many_tools_in_one_request(client: Client) -> None:
    with over_limit(2048, 2049):
        client.register_server("docs", [tool(f"t{i}") for i in range(2049)])


@pytest.mark.parametrize(
    "settings",
    [
        ToolSettings("absent"),
        ToolSettings("good", search_hint="x" * 1025),
    ],
    ids=["unknown tool", "long hint"],
)
def test_settings(client: Client, settings: ToolSettings) -> None:
    with invalid("INVALID_FIELD", "LIMIT_EXCEEDED"):
        client.register_server("docs", [GOOD], tool_settings=[settings])
    with refused(grpc.StatusCode.NOT_FOUND, "TENANT_NOT_FOUND", "SERVER_NOT_FOUND"):
        client.get_server("docs")


def test_a_summary_over_sixty_tokens(client: Client) -> None:
    settings = [ToolSettings("good", summary="word " * 200)]
    answer = client.register_server("docs", [GOOD, tool("other")], tool_settings=settings)
    assert [o.kind.value for o in answer.outcomes] == ["REJECTED", "ACCEPTED"]
    assert "summary" in answer.outcomes[0].field


def test_one_page_of_several_must_not_remove_the_others(client: Client) -> None:
    page = json.dumps({"tools": [GOOD], "nextCursor": "more"})
    with invalid("INVALID_FIELD", field="tools_list_json"):
        client.register_server("docs", page)
    assert client.register_server("docs", page, mode="merge").server.tool_count == 1


def test_settings_twice_for_one_tool(client: Client) -> None:
    with invalid("INVALID_FIELD"):
        client.register_server(
            "docs", [GOOD], tool_settings=[ToolSettings("good"), ToolSettings("good")]
        )


def deep_not(levels: int) -> state_pb2.Precondition:
    message = state_pb2.Precondition(is_authenticated="a")
    for _ in range(levels):
        outer = state_pb2.Precondition()
        getattr(outer, "not").CopyFrom(message)
        message = outer
    return message


@pytest.mark.parametrize(
    "precondition",
    [
        state_pb2.Precondition(),
        state_pb2.Precondition(is_authenticated=""),
        state_pb2.Precondition(has_prior_tool_output=""),
        state_pb2.Precondition(milestone_reached=""),
        state_pb2.Precondition(all=state_pb2.PreconditionList()),
        state_pb2.Precondition(any=state_pb2.PreconditionList()),
        deep_not(8),
        all_of(*(milestone_reached(str(i)) for i in range(64))).to_proto(),
    ],
    ids=["none", "scope", "prefix", "milestone", "all", "any", "too deep", "too many"],
)
def test_preconditions(
    catalog: catalog_pb2_grpc.CatalogServiceStub,
    tenant: str,
    precondition: state_pb2.Precondition,
) -> None:
    request = catalog_pb2.RegisterServerRequest(
        tenant=tenant, server="docs", tools_list_json=body([GOOD]), precondition=precondition
    )
    with invalid("INVALID_FIELD", "LIMIT_EXCEEDED"):
        catalog.RegisterServer(request)


def test_the_largest_preconditions_are_taken(
    catalog: catalog_pb2_grpc.CatalogServiceStub, client: Client, tenant: str
) -> None:
    most = all_of(*(is_authenticated(str(i)) for i in range(63)))
    assert client.register_server("wide", [GOOD], precondition=most).server.tool_count == 1
    request = catalog_pb2.RegisterServerRequest(
        tenant=tenant, server="deep", tools_list_json=body([GOOD]), precondition=deep_not(7)
    )
    assert catalog.RegisterServer(request).server.tool_count == 1


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("nobody == 1", "line 1, column 1: unknown variable `nobody`"),
        ("true &&\n  frob(1)", "line 2, column 7: unknown function `frob`"),
        ("size(state.calls)", "must be a bool"),
        ("(" * 500, "nested too deep"),
        ("state.calls.all(a, state.calls.all(b, state.calls.all(c, a == c)))", "steps"),
        ("true" + " " * 3000, "at most 2048"),
    ],
)
def test_wrong_expressions(client: Client, expression: str, problem: str) -> None:
    with invalid("INVALID_FIELD", field="precondition") as caught:
        client.register_server("docs", [GOOD], precondition=cel(expression))
    assert problem in caught.field_violations[0].description


def test_too_many_expressions(client: Client) -> None:
    long = "true" + " " * 2000
    settings = [ToolSettings(f"t{i}", precondition=cel(long)) for i in range(40)]
    tools = [tool(f"t{i}") for i in range(40)]
    with invalid("INVALID_FIELD", field="tool_settings[32].precondition"):
        client.register_server("docs", tools, tool_settings=settings)


@pytest.mark.parametrize(
    "arguments",
    [{"description": "x" * 4097}, {"request_id": "x" * 129}],
    ids=lambda a: next(iter(a)),
)
def test_long_texts(client: Client, arguments: Any) -> None:
    with invalid("INVALID_FIELD", "LIMIT_EXCEEDED"):
        client.register_server("docs", [GOOD], **arguments)


@pytest.mark.parametrize("field", ["mode", "trust_tier", "transport_hint"])
def test_enum_values_that_nobody_defined(
    catalog: catalog_pb2_grpc.CatalogServiceStub, tenant: str, field: str
) -> None:
    request = catalog_pb2.RegisterServerRequest(
        tenant=tenant, server="docs", tools_list_json=body([GOOD])
    )
    setattr(request, field, 99)
    with invalid("INVALID_FIELD", field=field):
        catalog.RegisterServer(request)
