"""`toolgate llm`: requests and answers go through as they are, and fail as the provider's would."""

import http.client
import socket
import ssl
import subprocess
import threading
from pathlib import Path

import pytest
import trustme
from conftest import StartProxy
from llm_provider import Answer, Provider, Proxy, answer, events, serving
from waiting import wait_until

ODD = b'{ "model":"m", "n" : 1.50e3, "big":12345678901234567890123, "tools":[], "x":"\\u00e9" }'
KEY = "sk-secret-0123456789"


@pytest.mark.parametrize(
    ("face", "path"),
    [
        ("anthropic", "/v1/messages?beta=true"),
        ("openai", "/v1/chat/completions"),
        ("openai", "/v1/responses"),
        ("gemini", "/v1beta/models/m:generateContent?key=abc%2Fd"),
        ("openai", "/v1/files"),
    ],
)
def test_what_is_not_rewritten_goes_through_byte_for_byte(
    start: StartProxy, face: str, path: str
) -> None:
    body = b'{"ok": 1.0,  "id":"\\u00e9"}'
    given = Answer([body], status=201, headers={"x_request_id": "r1", "x_twice": "a"})
    with serving(Provider(given)) as provider:
        proxy = start(provider, "")
        got = proxy.ask(f"/{face}{path}", ODD, {"Authorization": f"Bearer {KEY}", "X-Own": "o"})
        [sent] = provider.sent
    assert (sent.method, sent.path, sent.body) == ("POST", path, ODD)
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.headers["x-own"] == "o"
    assert sent.headers["content-length"] == str(len(ODD))
    assert "transfer-encoding" not in sent.headers
    assert sent.headers["host"] == provider.url.removeprefix("http://")
    assert (got.status, got.body, got.headers["x-request-id"]) == (201, body, "r1")
    assert got.note.startswith("pass"), got.note
    assert KEY not in proxy.log()


@pytest.mark.parametrize("path", ["/anthropic/v1/messages", "/anthropic/v1/files"])
def test_a_large_request_keeps_its_length_and_its_bytes(start: StartProxy, path: str) -> None:
    body = b'{"model":"m","x":"' + b"0123456789" * 100_000 + b'"}'
    with serving(Provider(answer({"ok": True}))) as provider:
        got = start(provider, "").ask(path, body)
        [sent] = provider.sent
    assert got.status == 200
    assert sent.body == body
    assert sent.headers["content-length"] == str(len(body))
    assert "transfer-encoding" not in sent.headers


def test_other_methods_and_paths_go_through(start: StartProxy) -> None:
    steps = [answer({"data": []}), answer({"deleted": True})]
    with serving(Provider(*steps)) as provider:
        proxy = start(provider, "")
        assert proxy.ask("/openai/v1/models?a=1", method="GET").json == {"data": []}
        assert proxy.ask("/openai/v1/files/f", method="DELETE").json == {"deleted": True}
        shown = [(sent.method, sent.path, sent.body) for sent in provider.sent]
        assert "transfer-encoding" not in provider.sent[0].headers
    assert shown == [("GET", "/v1/models?a=1", b""), ("DELETE", "/v1/files/f", b"")]


@pytest.mark.parametrize("status", [400, 401, 429, 529])
def test_errors_of_the_provider_go_through(start: StartProxy, status: int) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "later"}}
    given = answer(error, status, retry_after="7")
    with serving(Provider(given)) as provider:
        proxy = start(provider, "")
        got = proxy.ask("/anthropic/v1/messages", {"model": "m"})
    assert (got.status, got.json, got.headers["retry-after"]) == (status, error, "7")


def test_pieces_of_a_stream_come_as_they_are_sent(start: StartProxy) -> None:
    hold = threading.Event()
    pieces = [b"event: ping\ndata: {}\n\n", b": odd\r\n\r\n", b"data: last\n\n"]
    given = Answer(pieces, kind="text/event-stream", hold=hold)
    with serving(Provider(given)) as provider:
        proxy = start(provider, "")
        connection = proxy.connection()
        connection.request("POST", "/anthropic/v1/messages", b"{}")
        response = connection.getresponse()
        first = b"".join(pieces[:2])
        # The last piece is not sent before these have come.
        assert response.read(len(first)) == first
        hold.set()
        assert response.read() == pieces[2]
        connection.close()


def test_a_cut_stream_is_cut_for_the_host(start: StartProxy) -> None:
    given = events(b"data: 1\n\n", b"data: 2\n", cut=True)
    with serving(Provider(given)) as provider:
        proxy = start(provider, "")
        connection = proxy.connection()
        connection.request("POST", "/openai/v1/chat/completions", b"{}")
        response = connection.getresponse()
        with pytest.raises(http.client.IncompleteRead) as cut:
            response.read()
        connection.close()
    assert cut.value.partial == b"data: 1\n\ndata: 2\n"


def test_a_host_that_leaves_ends_the_request_to_the_provider(start: StartProxy) -> None:
    given = Answer([b"data: 1\n\n"], kind="text/event-stream", endless=True)
    with serving(Provider(given)) as provider:
        proxy = start(provider, "")
        connection = proxy.connection()
        connection.request("POST", "/anthropic/v1/messages", b"{}")
        assert connection.getresponse().read(9) == b"data: 1\n\n"
        assert connection.sock is not None
        connection.sock.shutdown(socket.SHUT_RDWR)
        connection.close()
        wait_until(lambda: provider.left == 1, "the provider still answers")


def test_what_the_proxy_refuses_has_the_providers_shape(binary: Path, tmp_path: Path) -> None:
    nobody = "http://127.0.0.1:1"
    with Proxy(binary, tmp_path, nobody) as proxy:
        got = proxy.ask("/anthropic/v1/messages", {})
        assert (got.status, got.json["type"]) == (502, "error")
        assert nobody in got.json["error"]["message"], got.json
        assert proxy.ask("/openai/v1/models").json["error"]["code"] == "toolgate"
        assert proxy.ask("/gemini/v1beta/models").json["error"]["code"] == 502
        climbing = proxy.ask("/openai/v1/%2e%2e/x")
        assert climbing.status == 400, climbing
        page = proxy.ask("/openai/v1/models", headers={"Origin": "https://evil.example"})
        assert page.status == 403, page
        named = proxy.ask("/openai/v1/models", headers={"Host": "evil.example"})
        assert named.status == 403, named
        assert proxy.ask("/v1/messages").status == 404
        upgrade = {"Connection": "Upgrade", "Upgrade": "websocket"}
        socket_asked = proxy.ask("/openai/v1/responses", headers=upgrade, method="GET")
        assert socket_asked.status == 426, socket_asked


def test_certificates_of_ones_own_are_trusted_where_the_file_says_so(
    binary: Path, tmp_path: Path
) -> None:
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(tls)
    certificates = tmp_path / "own.pem"
    authority.cert_pem.write_to_path(str(certificates))
    with serving(Provider(answer({"data": []})), tls) as provider:
        with Proxy(binary, tmp_path, provider.url) as proxy:
            refused = proxy.ask("/openai/v1/models", method="GET")
        with Proxy(binary, tmp_path, provider.url, f'ca_file = "{certificates}"') as proxy:
            taken = proxy.ask("/openai/v1/models", method="GET")
    assert refused.status == 502
    assert "certificate" in refused.json["error"]["message"].lower(), refused.json
    assert (taken.status, taken.json) == (200, {"data": []})


def test_a_proxy_of_the_network_is_followed(binary: Path, tmp_path: Path) -> None:
    with serving(Provider(answer({"data": []}))) as network:
        proxy = Proxy(binary, tmp_path, "http://models.invalid")
        # The plane within the process is not behind it.
        around = {"HTTP_PROXY": network.url, "NO_PROXY": "127.0.0.1"}
        with proxy.started(environment=around):
            got = proxy.ask("/openai/v1/models", method="GET")
        [sent] = network.sent
    assert (got.status, got.json) == (200, {"data": []})
    assert sent.path == "http://models.invalid/v1/models"


def test_an_address_for_a_service_beside_it_is_told_and_warnings_come_once(
    binary: Path, tmp_path: Path
) -> None:
    proxy = Proxy(binary, tmp_path, "http://models.invalid")
    named = {"TOOLGATE_SERVER_LISTEN": "127.0.0.1:1", "TOOLGATE_NOVELTY": "1"}
    counts = "is for `toolgate serve` and counts for nothing here: the plane within the proxy"
    with proxy.started("--set", "server.admin_listen=127.0.0.1:2", environment=named):
        said = proxy.log()
    assert said.count(f"environment variable TOOLGATE_SERVER_LISTEN: server.listen {counts}") == 1
    assert said.count(f"flag --set server.admin_listen: server.admin_listen {counts}") == 1
    assert said.count("TOOLGATE_NOVELTY: no such setting; it has no effect") == 1, said


def test_a_mistake_in_the_file_is_told(binary: Path, tmp_path: Path) -> None:
    (tmp_path / "llm.toml").write_text('[llm]\nlisten = "0.0.0.0:0"\n')
    ended = subprocess.run(
        [str(binary), "llm"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 2, ended
    assert "llm.public_url" in ended.stderr
