"""GetServer, ListServers and ListTools: contents, order, pages and their bad input."""

import json
from collections.abc import Callable

import grpc
import pytest
from catalogs import NOTES, invalid, refused, tool
from toolgate_process import ToolgateProcess

from toolgate import Client, ToolSettings, is_authenticated, milestone_reached
from toolgate._gen.v1 import catalog_pb2, catalog_pb2_grpc, state_pb2


def test_a_tool_is_listed_as_registered(client: Client, tenant: str) -> None:
    odd_layout = '{"name" :"a",  "description": "Caf\\u00e9.", "inputSchema":{ "type":"object" }}'
    client.register_server("docs", '{"tools": [' + odd_layout + "]}")
    (listed,) = client.list_tools()
    assert listed.definition_json == odd_layout
    assert listed.id == f"tenants/{tenant}/servers/docs/tools/a"
    assert (listed.server, listed.name, listed.model_name) == ("docs", "a", "mcp__docs__a")
    assert len(listed.hash) == 64
    assert listed.schema_tokens > 0
    assert listed.summary_tokens > 0
    assert listed.precondition is None
    assert listed.required_scopes == ()
    assert [listed.quarantined, listed.always_load, listed.critical] == [False] * 3


def test_settings_are_listed_with_the_servers_own(client: Client) -> None:
    client.register_server(
        "docs",
        [tool("a"), tool("b")],
        precondition=is_authenticated("docs"),
        required_scopes=["read"],
        tool_settings=[
            ToolSettings(
                "a",
                summary="Opens the archive.",
                precondition=milestone_reached("approved"),
                required_scopes=["write"],
                critical=True,
            )
        ],
    )
    a, b = client.list_tools()
    assert a.summary == "Opens the archive."
    assert set(a.required_scopes) == {"read", "write"}
    assert 'is_authenticated("docs")' in str(a.precondition)
    assert 'milestone_reached("approved")' in str(a.precondition)
    assert a.critical
    assert str(b.precondition) == 'is_authenticated("docs")'
    assert b.required_scopes == ("read",)


def test_a_derived_summary_is_short_and_says_what_it_is(client: Client) -> None:
    long = "Search through every mailbox of the company. " + "And much more besides. " * 200
    client.register_server("mail", [tool("searchAllMail", long)])
    (listed,) = client.list_tools()
    assert listed.summary_tokens < 100
    assert "mailbox" in listed.summary


def test_pages_hold_everything_once_and_in_order(notes: Client) -> None:
    whole = [t.id for t in notes.list_tools()]
    assert whole == sorted(whole)
    assert len(whole) == 5
    for size in (1, 2, 5, 1000):
        assert [t.id for t in notes.list_tools(page_size=size)] == whole
    assert [s.name for s in notes.list_servers(page_size=1)] == ["notes", "weather"]


def test_a_listing_of_one_server(notes: Client) -> None:
    assert {t.name for t in notes.list_tools("notes")} == {t["name"] for t in NOTES}


def test_the_last_page_has_no_token(
    notes: Client, catalog: catalog_pb2_grpc.CatalogServiceStub, tenant: str
) -> None:
    page = catalog.ListServers(catalog_pb2.ListServersRequest(tenant=tenant, page_size=2))
    assert len(page.servers) == 2
    assert page.next_page_token == ""


def test_no_page_size_is_one_hundred(
    client: Client, catalog: catalog_pb2_grpc.CatalogServiceStub, tenant: str
) -> None:
    client.register_server("many", [tool(f"t{i:03}") for i in range(120)])
    page = catalog.ListTools(catalog_pb2.ListToolsRequest(tenant=tenant))
    assert len(page.tools) == 100
    rest = catalog.ListTools(
        catalog_pb2.ListToolsRequest(tenant=tenant, page_token=page.next_page_token)
    )
    assert len(rest.tools) == 20


def test_a_huge_page_size_is_cut(
    notes: Client, catalog: catalog_pb2_grpc.CatalogServiceStub, tenant: str
) -> None:
    page = catalog.ListTools(catalog_pb2.ListToolsRequest(tenant=tenant, page_size=2_000_000_000))
    assert len(page.tools) == 5


@pytest.mark.parametrize("agent", [None, state_pb2.AgentState()])
def test_names_alone_are_pages_of_the_same_listing(
    notes: Client,
    catalog: catalog_pb2_grpc.CatalogServiceStub,
    tenant: str,
    agent: state_pb2.AgentState | None,
) -> None:
    whole = catalog.ListTools(catalog_pb2.ListToolsRequest(tenant=tenant)).tools
    token = ""
    names: list[catalog_pb2.Tool] = []
    while token or not names:
        request = catalog_pb2.ListToolsRequest(
            tenant=tenant,
            page_size=2,
            page_token=token,
            as_agent=agent,
            view=catalog_pb2.TOOL_VIEW_NAMES,
        )
        page = catalog.ListTools(request)
        names += page.tools
        token = page.next_page_token
    told = [
        catalog_pb2.Tool(
            id=one.id, server=one.server, name=one.name, model_name=one.model_name, hash=one.hash
        )
        for one in whole
    ]
    assert names == told


def test_a_view_that_is_none_is_refused(
    notes: Client, catalog: catalog_pb2_grpc.CatalogServiceStub, tenant: str
) -> None:
    request = catalog_pb2.ListToolsRequest(tenant=tenant)
    request.MergeFromString(b"\x30\x07")
    with invalid("INVALID_FIELD", field="view"):
        catalog.ListTools(request)


def test_bad_pages(
    notes: Client, catalog: catalog_pb2_grpc.CatalogServiceStub, tenant: str
) -> None:
    with invalid("INVALID_FIELD", field="page_size"):
        catalog.ListTools(catalog_pb2.ListToolsRequest(tenant=tenant, page_size=-1))
    with invalid("PAGE_TOKEN_INVALID"):
        catalog.ListTools(catalog_pb2.ListToolsRequest(tenant=tenant, page_token="guess"))
    token = catalog.ListServers(
        catalog_pb2.ListServersRequest(tenant=tenant, page_size=1)
    ).next_page_token
    assert token
    with invalid("PAGE_TOKEN_INVALID"):
        catalog.ListTools(catalog_pb2.ListToolsRequest(tenant=tenant, page_token=token))


def test_a_page_token_is_for_its_own_listing(
    notes: Client, catalog: catalog_pb2_grpc.CatalogServiceStub, tenant: str
) -> None:
    token = catalog.ListTools(
        catalog_pb2.ListToolsRequest(tenant=tenant, page_size=1)
    ).next_page_token
    request = catalog_pb2.ListToolsRequest(tenant=tenant, server="weather", page_token=token)
    with invalid("PAGE_TOKEN_INVALID"):
        catalog.ListTools(request)


@pytest.mark.parametrize("call", ["get", "servers", "tools", "unregister", "route", "pool"])
def test_a_tenant_that_never_registered(client: Client, call: str) -> None:
    calls: dict[str, Callable[[], object]] = {
        "get": lambda: client.get_server("docs"),
        "servers": lambda: list(client.list_servers()),
        "tools": lambda: list(client.list_tools()),
        "unregister": lambda: client.unregister_server("docs"),
        "route": lambda: client.route("hello"),
        "pool": client.get_summary_pool,
    }
    with refused(grpc.StatusCode.NOT_FOUND, "TENANT_NOT_FOUND"):
        calls[call]()


def test_a_server_that_is_not_there(notes: Client) -> None:
    with refused(grpc.StatusCode.NOT_FOUND, "SERVER_NOT_FOUND"):
        notes.get_server("absent")
    with invalid("INVALID_FIELD", field="server"):
        notes.get_server("")


def test_no_tenant_is_the_default_one(server: ToolgateProcess) -> None:
    with server.client() as nobody, server.client("default") as default:
        nobody.register_server("docs", [tool("a")])
        assert default.get_server("docs") == nobody.get_server("docs")
        assert json.loads(next(iter(default.list_tools())).definition_json)["name"] == "a"
