"""RegisterServer and UnregisterServer: outcomes, modes, etags and request ids."""

import json
import uuid

import grpc
import pytest
from catalogs import NOTES, WEATHER, body, refused, tool
from toolgate_process import ToolgateProcess

from toolgate import Client, OutcomeKind, Registration, ToolSettings, TransportHint, TrustTier

SEARCH = tool("search", "Search all documents.")
EDIT = tool("edit", "Edit a document.")


def kinds(registration: Registration) -> dict[str, str]:
    return {outcome.name: outcome.kind.value for outcome in registration.outcomes}


def test_tenants_may_be_named_as_identity_providers_name_them(
    server: ToolgateProcess, tenant: str
) -> None:
    with (
        server.client(f"Team_1@{tenant}.example") as one,
        server.client(f"team_1@{tenant}.example") as other,
    ):
        assert one.register_server("docs", [SEARCH]).server.id.startswith("tenants/Team_1@")
        assert [tool.name for tool in one.route("search all documents")] == ["search"]
        with refused(grpc.StatusCode.NOT_FOUND, "TENANT_NOT_FOUND"):
            other.route("search all documents")


def test_a_new_server_is_stored_as_described(client: Client, tenant: str) -> None:
    answer = client.register_server(
        "docs",
        [SEARCH, EDIT],
        description="Documents of the team.",
        transport_hint="streamable_http",
        trust_tier="trusted",
    )
    server = answer.server
    assert server.id == f"tenants/{tenant}/servers/docs"
    assert (server.name, server.description) == ("docs", "Documents of the team.")
    assert server.transport_hint is TransportHint.STREAMABLE_HTTP
    assert server.trust_tier is TrustTier.TRUSTED
    assert (server.tool_count, server.revision) == (2, answer.catalog_revision)
    assert server.etag
    assert client.get_server("docs") == server
    assert [o.kind for o in answer.outcomes] == [OutcomeKind.ACCEPTED, OutcomeKind.ACCEPTED]
    assert [o.model_name for o in answer.outcomes] == ["mcp__docs__search", "mcp__docs__edit"]
    assert all(len(o.new_hash) == 64 and not o.old_hash for o in answer.outcomes)


@pytest.mark.parametrize("form", ["result", "response", "array"])
def test_the_three_forms_of_a_tools_list(client: Client, form: str) -> None:
    forms = {
        "result": {"tools": [SEARCH]},
        "response": {"jsonrpc": "2.0", "id": 1, "result": {"tools": [SEARCH]}},
        "array": [SEARCH],
    }
    answer = client.register_server("docs", json.dumps(forms[form]))
    assert kinds(answer) == {"search": "ACCEPTED"}


def test_the_trust_tier_is_standard_unless_said(client: Client) -> None:
    assert client.register_server("docs", [SEARCH]).server.trust_tier is TrustTier.STANDARD


def test_replace_reports_every_change(client: Client) -> None:
    first = client.register_server("docs", [SEARCH, EDIT])
    changed = {**EDIT, "description": "Edit a document and keep its history."}
    second = client.register_server("docs", [changed, tool("share")])
    assert kinds(second) == {"edit": "CHANGED", "share": "ACCEPTED", "search": "REMOVED"}
    assert [o.name for o in second.outcomes] == ["edit", "share", "search"]
    edit = second.outcomes[0]
    assert edit.old_hash == first.outcomes[1].new_hash
    assert edit.new_hash not in ("", edit.old_hash)
    assert second.outcomes[2].new_hash == ""
    assert second.catalog_revision > first.catalog_revision
    assert second.server.etag != first.server.etag
    assert {t.name for t in client.list_tools()} == {"edit", "share"}


def test_merge_keeps_what_is_not_named(client: Client) -> None:
    client.register_server("docs", [SEARCH, EDIT])
    answer = client.register_server("docs", [tool("share")], mode="merge")
    assert kinds(answer) == {"share": "ACCEPTED"}
    assert answer.server.tool_count == 3
    assert {t.name for t in client.list_tools()} == {"search", "edit", "share"}


def test_unchanged_content_keeps_its_revision(client: Client) -> None:
    first = client.register_server("docs", [SEARCH, EDIT])
    again = client.register_server("docs", [SEARCH, EDIT])
    assert set(kinds(again).values()) == {"UNCHANGED"}
    assert again.catalog_revision == first.catalog_revision
    assert again.server.etag == first.server.etag


def test_the_hash_ignores_the_layout_of_the_json(client: Client) -> None:
    client.register_server("docs", json.dumps([SEARCH]))
    rearranged = json.dumps([dict(reversed(SEARCH.items()))], indent=4)
    assert kinds(client.register_server("docs", rearranged)) == {"search": "UNCHANGED"}


def test_changed_settings_are_a_change(client: Client) -> None:
    first = client.register_server("docs", [SEARCH])
    second = client.register_server(
        "docs", [SEARCH], tool_settings=[ToolSettings("search", always_load=True)]
    )
    assert second.catalog_revision > first.catalog_revision
    assert [t.always_load for t in client.list_tools()] == [True]


def test_an_etag_guards_against_lost_updates(client: Client) -> None:
    old = client.register_server("docs", [SEARCH]).server.etag
    new = client.register_server("docs", [EDIT], etag=old).server.etag
    with refused(grpc.StatusCode.ABORTED, "ETAG_MISMATCH"):
        client.register_server("docs", [SEARCH, EDIT], etag=old)
    with refused(grpc.StatusCode.ABORTED, "ETAG_MISMATCH"):
        client.unregister_server("docs", etag=old)
    assert {t.name for t in client.list_tools()} == {"edit"}
    client.unregister_server("docs", etag=new)


def test_an_etag_for_a_server_that_is_not_there_mismatches(client: Client) -> None:
    client.register_server("docs", [SEARCH])
    with refused(grpc.StatusCode.ABORTED, "ETAG_MISMATCH"):
        client.register_server("other", [SEARCH], etag="some-etag")


def test_a_replayed_request_changes_nothing(client: Client) -> None:
    request_id = uuid.uuid4().hex
    first = client.register_server("docs", body([SEARCH]), request_id=request_id)
    client.register_server("docs", body([EDIT]))
    replay = client.register_server("docs", body([SEARCH]), request_id=request_id)
    assert (first.replayed, replay.replayed) == (False, True)
    assert replay.outcomes == first.outcomes
    assert replay.catalog_revision == first.catalog_revision
    assert {t.name for t in client.list_tools()} == {"edit"}


def test_a_replay_comes_before_the_etag_check(client: Client) -> None:
    etag = client.register_server("docs", [SEARCH]).server.etag
    request_id = uuid.uuid4().hex
    client.register_server("docs", body([EDIT]), etag=etag, request_id=request_id)
    again = client.register_server("docs", body([EDIT]), etag=etag, request_id=request_id)
    assert again.replayed


def test_a_request_id_names_one_request_only(client: Client) -> None:
    request_id = uuid.uuid4().hex
    client.register_server("docs", body([SEARCH]), request_id=request_id)
    with refused(grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED"):
        client.register_server("docs", body([EDIT]), request_id=request_id)
    with refused(grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED"):
        client.register_server("other", body([SEARCH]), request_id=request_id)


def test_unregistering_removes_the_tools(notes: Client) -> None:
    before = notes.get_server("notes").revision
    removal = notes.unregister_server("notes")
    assert removal.removed_tools == len(NOTES)
    assert removal.catalog_revision > before
    with refused(grpc.StatusCode.NOT_FOUND, "SERVER_NOT_FOUND"):
        notes.get_server("notes")
    with refused(grpc.StatusCode.NOT_FOUND, "SERVER_NOT_FOUND"):
        notes.unregister_server("notes")
    assert {t.server for t in notes.list_tools()} == {"weather"}
    assert {t.server for t in notes.route("notes", threshold=-1, top_k=100)} == {"weather"}


def test_an_emptied_tenant_routes_to_nothing(notes: Client) -> None:
    notes.unregister_server("notes")
    notes.unregister_server("weather")
    turn = notes.route("anything")
    assert len(turn) == 0
    assert turn.accounting.full_catalog_tokens == 0


def test_a_server_may_have_no_tools(client: Client) -> None:
    assert client.register_server("empty", []).server.tool_count == 0
    assert [s.name for s in client.list_servers()] == ["empty"]


def test_tenants_do_not_see_each_other(client: Client, server: ToolgateProcess) -> None:
    client.register_server("notes", NOTES)
    with server.client("somebody-else") as other:
        other.register_server("weather", WEATHER)
        assert {t.server for t in other.list_tools()} == {"weather"}
        seen = other.route("write a note", threshold=-1, top_k=100, explain=True)
        assert {t.server for t in seen} == {"weather"}
        assert {r.server for r in seen.refusals} <= {"weather"}
        with refused(grpc.StatusCode.NOT_FOUND, "SERVER_NOT_FOUND"):
            other.get_server("notes")
    assert {t.server for t in client.list_tools()} == {"notes"}
