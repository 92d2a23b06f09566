"""`toolgate llm` as the external processor of a real Envoy."""

import http.client
import json
import threading
from pathlib import Path

import pytest
import test_llm_proxy_gemini as gemini
import trustme
import yaml
from conftest import StartProxy
from credentials import Certificates, Keys, client_certificate
from envoy_process import (
    EXAMPLE,
    WITHOUT_OVERRIDE,
    Envoy,
    commented_socket,
    envoy,
    ext_proc_of,
)
from llm_provider import Answer, Json, Provider, answer, ask, events, serving
from llm_tools import CALL, PATIENT, SEARCH, enveloped
from test_llm_proxy_envelope import (
    anthropic_answer,
    anthropic_events,
    anthropic_request,
    chat_answer,
    chat_call,
    chat_events,
    chat_request,
    names,
    read_anthropic,
    use,
)
from toolgate_process import free_port
from waiting import wait_until

PORT = free_port()
"""Port of the proxies of this module for Envoy."""
SETTINGS = PATIENT + f'ext_proc_listen = "127.0.0.1:{PORT}"\n'
DUPLEX = {
    "request_body_mode": "FULL_DUPLEX_STREAMED",
    "request_trailer_mode": "SEND",
    "response_body_mode": "FULL_DUPLEX_STREAMED",
    "response_trailer_mode": "SEND",
}
MODES = {
    "example": {},
    "duplex": DUPLEX,
    "buffered": {"request_body_mode": "BUFFERED", "response_body_mode": "BUFFERED"},
}
MESSAGES = "/v1/messages"
DONE = anthropic_answer({"type": "text", "text": "No."})


@pytest.fixture(params=MODES)
def modes(request: pytest.FixtureRequest) -> Json:
    """Modes of Envoy's filter."""
    return MODES[request.param]


def test_the_documentation_shows_the_filter_of_the_example() -> None:
    blocks = (EXAMPLE.parents[2] / "docs/llm-proxy.md").read_text().split("```yaml\n")[1:]
    [[shown]] = [yaml.safe_load(block.partition("```")[0]) for block in blocks]
    assert shown["typed_config"] == ext_proc_of(yaml.safe_load(EXAMPLE.read_text()))


def step(message: Json, streamed: bool) -> Answer:
    """An answer of the provider, as the host asked for it."""
    return events(*anthropic_events(message)) if streamed else answer(message)


@pytest.mark.parametrize("streamed", [True, False])
def test_a_search_is_answered_behind_envoy(
    start: StartProxy, tmp_path: Path, modes: Json, streamed: bool
) -> None:
    text = {"type": "text", "text": "Let me see. "}
    searching = anthropic_answer(text, use(SEARCH, {"query": "select:mcp__mail__send"}, "toolu_s"))
    called = anthropic_answer(use(CALL, enveloped("mcp__mail__send", {"city": "x"})))
    provider = Provider(step(searching, streamed), step(called, streamed))
    with serving(provider):
        proxy = start(provider, SETTINGS)
        with envoy(tmp_path, PORT, provider.url, modes) as front:
            request = anthropic_request(stream=streamed)
            headers = {"x_api_key": "secret", "accept_encoding": "gzip", **proxy.keys}
            got = front.ask(f"{MESSAGES}?beta=true", request, **headers)
            assert got.status == 200, got.body
        first, second = provider.sent
    assert got.note.startswith("envelope; deferred=6"), got.headers
    message = read_anthropic(got.body) if streamed else got.json
    assert message["content"] == [text, use("mcp__mail__send", {"city": "x"})]
    assert message["usage"]["output_tokens"] == 10
    for sent in (first, second):
        assert sent.path == f"{MESSAGES}?beta=true"
        assert names(sent) == ["Bash", SEARCH, CALL]
        assert sent.headers["x-api-key"] == "secret"
        assert sent.headers["accept-encoding"] == "identity"
    assert "x-forwarded-proto" in first.headers, "Envoy sends the first request"
    assert second.json["messages"][2]["content"][0]["tool_use_id"] == "toolu_s"


def test_other_requests_keep_their_bytes(start: StartProxy, tmp_path: Path, modes: Json) -> None:
    body = bytes(range(256)) * 999
    said = Answer([b"\xff\x00", body], kind="application/octet-stream", headers={"x_own": "1"})
    provider = Provider(said, said)
    with serving(provider):
        start(provider, SETTINGS)
        with envoy(tmp_path, PORT, provider.url, modes) as front:
            posted = front.ask("/v1/files?a=%2F", body, te="trailers", x_toolgate_key="k")
            got = front.ask("/v1/models", method="GET")
    first, second = provider.sent
    assert (first.path, first.body) == ("/v1/files?a=%2F", body)
    assert (second.method, second.path, second.body) == ("GET", "/v1/models", b"")
    for one in (posted, got):
        assert (one.status, one.body, one.headers["x-own"]) == (200, b"\xff\x00" + body, "1")
        assert "x-toolgate" not in one.headers


def test_chats_without_a_plane_keep_their_bytes(
    start_afresh: StartProxy, tmp_path: Path, modes: Json
) -> None:
    port = free_port()
    settings = PATIENT + f'ext_proc_listen = "127.0.0.1:{port}"\n'
    provider = Provider(*[answer(DONE)] * 2)
    with serving(provider):
        start_afresh(provider, settings, "--server", f"http://127.0.0.1:{free_port()}")
        with envoy(tmp_path, port, provider.url, modes) as front:
            request = json.dumps(anthropic_request(), indent=2).encode()
            got = front.ask(MESSAGES, request, accept_encoding="gzip")
    [sent] = provider.sent
    assert (got.status, got.json, got.note) == (200, DONE, "pass; reason=plane-failed")
    assert (sent.body, sent.headers["accept-encoding"]) == (request, "gzip")


@pytest.mark.parametrize("mode", ["example", "buffered"])
def test_chats_without_toolgate_keep_their_bytes(tmp_path: Path, mode: str) -> None:
    # In full duplex, Envoy does not keep what it sends where nobody listens.
    modes = MODES[mode]
    provider = Provider(answer(DONE))
    with serving(provider), envoy(tmp_path, free_port(), provider.url, modes) as front:
        request = json.dumps(anthropic_request(), indent=2).encode()
        got = front.ask(MESSAGES, request)
    [sent] = provider.sent
    assert (got.status, got.json, sent.body) == (200, DONE, request)


def test_what_the_provider_refuses_is_sent_as_it_came(
    start: StartProxy, tmp_path: Path, modes: Json
) -> None:
    refusal = answer({"type": "error", "error": {"message": "tools"}}, 400)
    provider = Provider(refusal, answer(DONE))
    with serving(provider):
        proxy = start(provider, SETTINGS)
        with envoy(tmp_path, PORT, provider.url, modes) as front:
            request = json.dumps(anthropic_request(model=proxy.unique)).encode()
            got = front.ask(MESSAGES, request, **proxy.keys)
    assert (got.status, got.json, got.note) == (200, DONE, "pass; reason=refused")
    assert provider.sent[1].body == request


def test_an_answer_may_come_before_the_body_of_the_one_that_it_replaces(
    start: StartProxy, tmp_path: Path
) -> None:
    # Envoy takes no piece of a body before it has sent one.
    refused = threading.Event()
    refusal = answer({"type": "error", "error": {"message": "tools"}}, 400)
    refusal.hold = refused
    provider = Provider(refusal, answer(DONE))
    with serving(provider):
        proxy = start(provider, SETTINGS)
        with envoy(tmp_path, PORT, provider.url, DUPLEX) as front:
            request = json.dumps(anthropic_request(model=proxy.unique)).encode()
            headers = {"Content-Type": "application/json", **proxy.keys}
            connection = front.connection()
            connection.request("POST", MESSAGES, request, headers)
            response = connection.getresponse()
            refused.set()
            got = json.loads(response.read())
            connection.close()
    assert (response.status, got) == (200, DONE)


def test_a_body_that_envoy_does_not_hold_goes_on_as_it_came(
    start: StartProxy, tmp_path: Path
) -> None:
    provider = Provider(answer(DONE))
    with serving(provider):
        start(provider, SETTINGS)
        with envoy(tmp_path, PORT, provider.url, {}, buffer=32 << 10) as front:
            said = {"role": "user", "content": "rain " * 99_999}
            request = json.dumps(anthropic_request(said)).encode()
            got = front.ask(MESSAGES, request)
    [sent] = provider.sent
    assert (got.status, got.json, sent.body) == (200, DONE, request)


def test_a_filter_that_shows_no_bodies_is_warned_of(
    start_afresh: StartProxy, tmp_path: Path
) -> None:
    port = free_port()
    provider = Provider(*[answer(DONE)] * 2)
    with serving(provider):
        proxy = start_afresh(provider, PATIENT + f'ext_proc_listen = "127.0.0.1:{port}"\n')
        with envoy(tmp_path, port, provider.url, WITHOUT_OVERRIDE) as front:
            request = json.dumps(anthropic_request()).encode()
            got = [front.ask(MESSAGES, request) for _ in range(2)]
    assert [(one.status, one.json) for one in got] == [(200, DONE)] * 2
    assert [sent.body for sent in provider.sent] == [request] * 2
    assert proxy.log().count("set allow_mode_override") == 1


def test_a_stream_ends_when_its_host_leaves(start: StartProxy, tmp_path: Path) -> None:
    pieces = anthropic_events(anthropic_answer({"type": "text", "text": "No."}))
    endless = Answer(pieces[:3], kind="text/event-stream", endless=True)
    provider = Provider(endless)
    with serving(provider):
        proxy = start(provider, SETTINGS)
        with envoy(tmp_path, PORT, provider.url, {}) as front:
            leave_amid_a_stream(front)
            wait_until(lambda: provider.left == 1)
            page = "\ntoolgate_llm_requests_open 0\n"
            wait_until(lambda: page in proxy.ask("/metrics", method="GET").body.decode())


def leave_amid_a_stream(front: Envoy) -> None:
    """Reads the beginning of an answer and hangs up."""
    connection = front.connection()
    connection.request("POST", MESSAGES, json.dumps(anthropic_request(stream=True)))
    response = connection.getresponse()
    assert response.read(9) == b"event: me"
    response.close()
    connection.close()


def test_an_answer_that_breaks_off_is_cut(start: StartProxy, tmp_path: Path) -> None:
    search = anthropic_answer(use(SEARCH, {"query": "mail"}, "toolu_s"))
    begun = events(*anthropic_events(DONE)[:3], cut=True)
    provider = Provider(events(*anthropic_events(search)), begun)
    with serving(provider):
        proxy = start(provider, SETTINGS)
        with (
            envoy(tmp_path, PORT, provider.url, {}) as front,
            pytest.raises(http.client.IncompleteRead) as broken,
        ):
            front.ask(MESSAGES, anthropic_request(stream=True), **proxy.keys)
    assert b"message_start" in broken.value.partial


@pytest.mark.parametrize("streamed", [True, False])
def test_chat_completions_and_gemini_go_behind_envoy_too(
    start: StartProxy, tmp_path: Path, modes: Json, streamed: bool
) -> None:
    called = chat_call(CALL, enveloped("mcp__mail__send", {"city": "x"}), "k1")
    chatted = events(*chat_events(called)) if streamed else answer(chat_answer(called))
    said = gemini.response({"text": "No."})
    provider = Provider(chatted, gemini.step(said, streamed))
    how = "streamGenerateContent?alt=sse" if streamed else "generateContent"
    with serving(provider):
        proxy = start(provider, SETTINGS)
        with envoy(tmp_path, PORT, provider.url, modes) as front:
            chat = front.ask("/v1/chat/completions", chat_request(stream=streamed), **proxy.keys)
            answered = front.ask(f"/v1beta/models/m:{how}", gemini.request(), **proxy.keys)
    assert names(provider.sent[0]) == ["Bash", SEARCH, CALL]
    assert gemini.names(provider.sent[1])[-2:] == [SEARCH, CALL]
    assert chat.note.startswith("envelope; deferred=6")
    assert answered.note.startswith("envelope; deferred=6")
    assert b'"mcp__mail__send"' in chat.body
    assert CALL.encode() not in chat.body
    assert gemini.parts_of(gemini.read(answered.body, streamed)) == gemini.parts_of(said)


def new_key(binary: Path, folder: Path) -> str:
    """Creates an agent's key in a store in this folder."""
    created = Keys(binary, folder / "keys").create("agent", tenant="acme")
    return str(created["key"])


def asking_for_keys(folder: Path, port: int) -> str:
    """Returns the settings of a proxy that asks for the keys of that store."""
    store = folder / "keys" / "data"
    return f'{PATIENT}ext_proc_listen = "127.0.0.1:{port}"\nkey_store = "{store}"\n'


def test_keys_of_toolgate_are_asked_of_chats(
    start_afresh: StartProxy, tmp_path: Path, binary: Path, modes: Json
) -> None:
    key = new_key(binary, tmp_path)
    port = free_port()
    settings = asking_for_keys(tmp_path, port)
    provider = Provider(answer(DONE), answer(DONE))
    with serving(provider):
        start_afresh(provider, settings)
        with envoy(tmp_path, port, provider.url, modes) as front:
            missing = front.ask(MESSAGES, anthropic_request())
            let_in = front.ask(MESSAGES, anthropic_request(), x_toolgate_key=key)
            other = front.ask("/v1/models", method="GET")
    assert (missing.status, missing.json["type"]) == (401, "error")
    assert missing.headers["content-type"] == "application/json"
    assert (let_in.status, other.status) == (200, 200)
    chat, _other = provider.sent
    assert "x-toolgate-key" not in chat.headers


def test_chats_beyond_the_most_go_on_as_they_came(
    start_afresh: StartProxy, tmp_path: Path, modes: Json
) -> None:
    port = free_port()
    settings = f'{PATIENT}ext_proc_listen = "127.0.0.1:{port}"\nmax_requests = 1\n'
    hold = threading.Event()
    held = Answer([b"data: 1\n\n", b"data: 2\n\n"], kind="text/event-stream", hold=hold)
    provider = Provider(held, answer(DONE))
    with serving(provider):
        proxy = start_afresh(provider, settings)
        with envoy(tmp_path, port, provider.url, modes) as front:
            request = json.dumps(anthropic_request()).encode()
            first = front.connection()
            first.request("POST", MESSAGES, json.dumps(anthropic_request(stream=True)))
            wait_until(lambda: provider.sent)
            got = front.ask(MESSAGES, request)
            hold.set()
            assert first.getresponse().read() == b"data: 1\n\ndata: 2\n\n"
            first.close()

        def counted() -> list[str]:
            page = proxy.ask("/metrics", method="GET").body.decode()
            counts = ("toolgate_llm_refused_total{", "toolgate_llm_requests_total{")
            return [line for line in page.splitlines() if line.startswith(counts)]

        # A request is counted when its stream of Envoy has ended.
        wait_until(lambda: any('reason="busy"' in line for line in counted()))
        lines = counted()
    assert (got.status, got.json, got.note) == (200, DONE, "pass; reason=busy")
    assert 'toolgate_llm_refused_total{reason="requests"} 1' in lines
    [busy] = [line for line in lines if 'reason="busy"' in line]
    assert busy.startswith("toolgate_llm_requests_total{")
    assert busy.endswith(" 1")
    assert provider.sent[1].body == request


def test_a_key_is_asked_of_a_chat_that_envoy_does_not_hold(
    start_afresh: StartProxy, tmp_path: Path, binary: Path
) -> None:
    key = new_key(binary, tmp_path)
    port = free_port()
    settings = asking_for_keys(tmp_path, port)
    provider = Provider(answer(DONE))
    with serving(provider):
        start_afresh(provider, settings)
        with envoy(tmp_path, port, provider.url, {}, buffer=32 << 10) as front:
            said = {"role": "user", "content": "rain " * 9_999}
            missing = front.ask(MESSAGES, anthropic_request(said))
            let_in = front.ask(MESSAGES, anthropic_request(said), x_toolgate_key=key)
    assert (missing.status, missing.json["type"]) == (401, "error")
    assert (let_in.status, let_in.json) == (200, DONE)
    [chat] = provider.sent
    assert "x-toolgate-key" not in chat.headers


def socket_of(folder: Path, issuer: trustme.CA, trusted: Path) -> Json:
    """The example's TLS with a certificate of this authority's, whose files are in a folder."""
    socket = commented_socket()
    certificate, key = client_certificate(issuer, "spiffe://example.org/envoy", "envoy")
    files = {"envoy.crt": certificate, "envoy.key": key}
    for name, pem in files.items():
        (folder / name).write_bytes(pem)
    context = socket["typed_config"]["common_tls_context"]
    [pair] = context["tls_certificates"]
    for one in pair.values():
        one["filename"] = str(folder / one["filename"])
    context["validation_context"]["trusted_ca"]["filename"] = str(trusted)
    return socket


def test_envoy_comes_over_tls_with_a_certificate(start_afresh: StartProxy, tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    port = free_port()
    files = {"cert_file": "cert.pem", "key_file": "key.pem", "client_ca_file": "clients.pem"}
    settings = PATIENT + f'ext_proc_listen = "0.0.0.0:{port}"\n[llm.ext_proc_tls]\n'
    settings += "".join(f'{key} = "{tmp_path / name}"\n' for key, name in files.items())
    issuers = {"ours": certificates.clients, "others": trustme.CA(), "none": None}
    notes = {}
    provider = Provider(*[answer(DONE)] * len(issuers))
    with serving(provider):
        start_afresh(provider, settings)
        for name, issuer in issuers.items():
            folder = tmp_path / name
            folder.mkdir()
            socket = socket_of(folder, issuer, certificates.ca) if issuer else None
            with envoy(folder, port, provider.url, {}, tls=socket) as front:
                got = front.ask(MESSAGES, anthropic_request())
                notes[name] = (got.status, got.headers.get("x-toolgate", ""))
    # The filter lets requests through that Toolgate does not see.
    assert notes["others"] == notes["none"] == (200, "")
    assert notes["ours"][1].startswith("envelope; deferred=6"), notes


def test_web_pages_are_not_answered(start: StartProxy) -> None:
    path = "/envoy.service.ext_proc.v3.ExternalProcessor/Process"
    permission_denied = "7"
    provider = Provider()
    with serving(provider):
        start(provider, SETTINGS)
        got = ask(PORT, path, b"\0" * 5, {"Origin": "http://page.example"})
        own = ask(PORT, path, b"\0" * 5)
    assert got.headers["grpc-status"] == permission_denied
    assert own.headers.get("grpc-status") != permission_denied
