"""Several gateways as one: sessions that any of them takes, over a database that they share."""

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from conftest import StartServer
from gateway_process import (
    GatewayProcess,
    Json,
    answer_of,
    free_address,
    message,
    plain_server,
    text_of,
)
from postgres_server import PostgresServer
from waiting import wait_until

REVISION = "2025-06-18"
OPENING: Json = {
    "protocolVersion": REVISION,
    "capabilities": {"roots": {}},
    "clientInfo": {"name": "wanderer", "version": "1"},
}
KEY = base64.b64encode(bytes(range(32))).decode()


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    server = PostgresServer().start()
    yield server
    server.remove()


class Wanderer:
    """A host of 2025-06-18 whose requests alternate between gateways."""

    def __init__(self, gateways: list[GatewayProcess]) -> None:
        self.gateways = gateways
        self._turn = 0
        self.session = ""
        self._last_id = 0

    def gateway(self) -> GatewayProcess:
        """The one that gets the next request."""
        self._turn += 1
        return self.gateways[self._turn % len(self.gateways)]

    def request(self, method: str, params: Json) -> tuple[int, Json]:
        """The status and the answer of a request."""
        self._last_id += 1
        body: Json = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        status, text, headers = self.gateway().send("POST", "/mcp", self._headers(), body)
        self.session = headers.get("mcp-session-id", self.session)
        return status, answer_of(text)

    def result(self, method: str, params: Json) -> Json:
        """The result of a request."""
        status, answer = self.request(method, params)
        assert status == 200, answer
        result: Json = answer["result"]
        return result

    def open(self) -> None:
        """Shakes hands."""
        self.result("initialize", OPENING)
        assert self.session
        ready: Json = {"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}}
        status, text, _ = self.gateway().send("POST", "/mcp", self._headers(), ready)
        assert status == 202, text

    def end(self, gateway: GatewayProcess) -> None:
        """Ends the session."""
        status, text, _ = gateway.send("DELETE", "/mcp", self._headers(), None)
        assert status == 202, text

    def _headers(self) -> dict[str, str]:
        session = {"Mcp-Session-Id": self.session} if self.session else {}
        return {"MCP-Protocol-Version": REVISION, **session}


def wander(host: Wanderer) -> None:
    """Lists, searches and calls, each at another gateway than the request before."""
    host.open()
    for _ in range(2):
        names = [tool["name"] for tool in host.result("tools/list", {})["tools"]]
        assert "discover_tools" in names
        asked = {"name": "discover_tools", "arguments": {"query": "keep a note"}}
        assert "notes__keep_note" in text_of(host.result("tools/call", asked))
        call = {"name": "notes__keep_note", "arguments": {"text": "x"}}
        kept = host.result("tools/call", {"name": "call_tool", "arguments": call})
        assert text_of(kept).startswith("kept")


def refused_everywhere(host: Wanderer) -> bool:
    """Returns True if no gateway takes the session any more."""
    statuses = [host.request("tools/list", {})[0] for _ in host.gateways]
    assert set(statuses) <= {200, 404}
    return set(statuses) == {404}


def config(folder: Path, store: str = "") -> str:
    key = folder / "sealing-key"
    key.write_text("0f" * 32)
    lines = ["[gateway]", f'sealing_key = "file:{key}"']
    lines += [f'store_url = "{store}"'] if store else []
    return "\n".join([*lines, plain_server("notes")])


def test_a_host_wanders_between_gateways_before_one_plane(
    postgres: PostgresServer, start_server: StartServer, binary: Path, tmp_path: Path
) -> None:
    url = postgres.database()
    plane = start_server({"store.url": url, "handle.key": KEY})
    before = ("--server", f"http://{plane.target}")
    text = config(tmp_path, url)
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
    one, other = (GatewayProcess(binary, folder, text, before) for folder in folders)
    with one, other:
        host = Wanderer([one, other])
        wander(host)
        again = Wanderer([other, one])
        again.session = host.session
        host.end(other)
        wait_until(lambda: refused_everywhere(host), "a session that was ended goes on")
        assert refused_everywhere(again)
        fresh = Wanderer([one, other])
        wander(fresh)
        strangers = [fresh.session[:-4] + "AAAA", "x", host.session]
        for session in strangers:
            stranger = Wanderer([one, other])
            stranger.session = session
            assert refused_everywhere(stranger)
    database = urlsplit(url).path.removeprefix("/")
    ended = postgres.sql(database, "SELECT id FROM toolgate.ended_sessions")
    assert len(ended.splitlines()) == 1


def test_gateways_with_planes_of_their_own_share_a_database(
    postgres: PostgresServer, binary: Path, tmp_path: Path
) -> None:
    settings = ["--set", f"store.url={postgres.database()}", "--set", f"handle.key={KEY}"]
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
    both, mail = plain_server("notes"), plain_server("mail")
    one, other = (
        GatewayProcess(binary, folder, text, ("--data-dir", str(folder / "data"), *settings))
        for folder, text in zip(folders, [both, both], strict=True)
    )
    with one, other:
        host = Wanderer([one, other])
        wander(host)
        shown = one.text("discover_tools", {"query": "select:notes__keep_note"})
        [tagged] = set(re.findall(r"notes__keep_note#\w+", shown))
        kept = other.text("call_tool", {"name": tagged, "arguments": {"text": "y"}})
        assert kept.startswith("kept"), "a definition that the one showed is called at the other"
        one.reload(both + mail, "mail: ready")
        other.reload(both + mail, "mail: ready")
        one.reload(both, "read again")
        wait_until(lambda: "mail__read_note" not in searched(other), "it was taken out for both")
        host.end(one)
        wait_until(lambda: refused_everywhere(host), "a session that was ended goes on")


def test_a_result_that_one_gateway_cut_is_read_at_another(
    start_server: StartServer, binary: Path, tmp_path: Path
) -> None:
    plane = start_server({})
    gateways = []
    for name in ["one", "other"]:
        folder = tmp_path / name
        folder.mkdir()
        address = free_address()
        own = f'result_limit = "1KiB"\nreplica_url = "http://{address}"\n'
        text = config(tmp_path).replace("[gateway]\n", "[gateway]\n" + own)
        before = ("--server", f"http://{plane.target}")
        gateways.append(GatewayProcess(binary, folder, text, before, address))
    one, other = gateways
    call = {"name": "notes__list_lines", "arguments": {"count": 2_000}}
    with other:
        with one:
            cut = one.text("call_tool", call)
            pointer = re.search(r"read_result handle=(\S+) offset=(\d+)", cut)
            assert pointer, cut
            asked = {"handle": pointer[1], "offset": int(pointer[2])}
            there = other.text("read_result", asked)
            assert there == one.text("read_result", asked)
            assert "line 100\n" in there
        gone = other.call("read_result", asked)
    assert gone["isError"] is True
    assert "there is no result" in text_of(gone)


def searched(gateway: GatewayProcess) -> str:
    status, answer = gateway.post(
        "/mcp", message("tools/call", {"name": "discover_tools", "arguments": {"query": "mail"}})
    )
    assert status == 200, answer
    return text_of(answer["result"])


def test_a_session_outlives_its_gateway(binary: Path, tmp_path: Path) -> None:
    gateway = GatewayProcess(binary, tmp_path, plain_server("notes"))
    with gateway:
        host = Wanderer([gateway])
        host.open()
    with gateway:
        host.result("tools/list", {})
        host.end(gateway)
        assert refused_everywhere(host)


def test_probes_need_no_credential_and_no_name(binary: Path, tmp_path: Path) -> None:
    with GatewayProcess(binary, tmp_path, plain_server("notes")) as gateway:
        for page in ["/livez", "/readyz"]:
            status, text, _ = gateway.send("GET", page, {"Host": "10.0.0.9:7080"}, None)
            assert (status, text) == (200, "")


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ('sealing_key = "abc"', "gateway.sealing_key"),
        ('sealing_key = "file:/nowhere"', "gateway.sealing_key"),
        ('replica_url = "10.0.0.1"', "gateway.replica_url"),
        ('store_url = "sqlite://x"', "gateway.store_url"),
    ],
)
def test_settings_that_make_no_sense_are_told(
    binary: Path, tmp_path: Path, setting: str, told: str
) -> None:
    gateway = GatewayProcess(binary, tmp_path, f"[gateway]\n{setting}\n")
    with pytest.raises(AssertionError, match=told):
        gateway.start()
