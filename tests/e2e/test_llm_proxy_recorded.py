"""`toolgate llm` with the strategy `pass`: recorded conversations go through byte for byte."""

import http.client
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from llm_provider import Proxy
from raw_provider import Headers, RawAnswer, RawProvider, RawRequest, chunked, head, serving_raw
from recorded_conversations import FORMS, Asked, definitions, recorded

BEGINNING = 6
"""Turns that are played of a conversation that another API plays whole."""
KEYS: dict[str, tuple[bytes, bytes]] = {
    "anthropic": (b"x-api-key", b"sk-secret"),
    "openai_chat": (b"authorization", b"Bearer sk-secret"),
    "openai_responses": (b"authorization", b"Bearer sk-secret"),
    "gemini": (b"x-goog-api-key", b"AIza-secret"),
}
SENT: Headers = [
    (b"accept", b"application/json"),
    (b"accept-encoding", b"gzip, deflate, br, zstd"),
    (b"accept-language", b"*"),
    (b"anthropic-beta", b"claude-code-20250219,  own"),
    (b"anthropic-beta", b"second"),
    (b"content-type", b"application/json; charset=utf-8"),
    (b"cookie", b"a=b; c=d"),
    (b"traceparent", b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    (b"user-agent", b"claude-cli/2.1.197 (external, cli)"),
    (b"x-empty", b""),
    (b"x-odd", b'\xe9 \xff;\t,"\\'),
    (b"x-stainless-retry-count", b"0"),
]
OF_CONNECTION: Headers = [
    (b"connection", b"keep-alive, x-hop"),
    (b"keep-alive", b"timeout=5"),
    (b"x-hop", b"1"),
    (b"te", b"trailers"),
    (b"x-toolgate-conversation", b"c1"),
]
GIVEN: Headers = [
    (b"cf-ray", b"9a1"),
    (b"date", b"Mon, 30 Nov 2026 08:00:00 GMT"),
    (b"openai-processing-ms", b"12"),
    (b"request-id", b"req_1"),
    (b"set-cookie", b"a=1; Path=/"),
    (b"set-cookie", b"b=2; Path=/"),
    (b"x-odd", b'\xe9 \xff;\t,"\\'),
    (b"x-ratelimit-remaining-tokens", b"1"),
]


def answered(asked: Asked) -> tuple[Headers, RawAnswer]:
    """The headers of an answer, without those of the connection, and all of its bytes."""
    headers = [*GIVEN, (b"content-type", asked.kind.encode())]
    if asked.is_compressed:
        headers.append((b"content-encoding", b"gzip"))
    if asked.kind == "application/json":
        headers.append((b"content-length", b"%d" % len(asked.answer)))
        return headers, RawAnswer(head(b"200 OK", headers) + asked.answer)
    pieces = [asked.answer[at : at + 331] for at in range(0, len(asked.answer), 331)]
    hop = [(b"Transfer-Encoding", b"chunked"), (b"Connection", b"keep-alive")]
    return headers, RawAnswer(head(b"200 OK", [*headers, *hop]) + chunked(pieces))


def send(
    connection: http.client.HTTPConnection, asked: Asked, headers: Headers, in_chunks: bool
) -> tuple[Headers, bytes]:
    """Sends a request as it is, and returns the headers and the bytes of the answer."""
    connection.putrequest("POST", asked.path, skip_accept_encoding=True)
    for name, value in [*OF_CONNECTION, *headers]:
        connection.putheader(name, value)
    if in_chunks:
        connection.putheader("transfer-encoding", "chunked")
        connection.endheaders([asked.body[:1000], asked.body[1000:]], encode_chunked=True)
    else:
        connection.putheader("content-length", str(len(asked.body)))
        connection.endheaders(asked.body)
    response = connection.getresponse()
    assert response.status == 200, response.read()
    found = [(one.lower().encode(), two.encode("latin-1")) for one, two in response.getheaders()]
    return found, response.read()


def without(headers: Sequence[tuple[bytes, bytes]], *names: bytes) -> Headers:
    """Headers without some, in an order of their own. Those of one name keep theirs."""
    return sorted((one for one in headers if one[0] not in names), key=lambda one: one[0])


class Script:
    """Answers requests one after another."""

    def __init__(self) -> None:
        self.next: RawAnswer | None = None

    def __call__(self, _request: RawRequest) -> RawAnswer:
        assert self.next is not None
        return self.next


@pytest.fixture(scope="module")
def passing(
    binary: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Proxy, RawProvider, Script]]:
    script = Script()
    with serving_raw(script) as provider:
        folder = tmp_path_factory.mktemp("passing")
        with Proxy(binary, folder, provider.url, 'strategy = "pass"\n') as proxy:
            yield proxy, provider, script


@pytest.mark.parametrize("api", FORMS)
def test_recorded_conversations_pass_byte_for_byte(
    passing: tuple[Proxy, RawProvider, Script], api: str
) -> None:
    proxy, provider, script = passing
    form = FORMS[api]
    catalog = definitions()
    headers = [KEYS[api], *SENT]
    connection = proxy.connection()
    played = recorded()
    assert len(played) >= 50
    for number, turns in enumerate(played):
        is_whole = number % len(FORMS) == list(FORMS).index(api)
        for asked in form.play(turns if is_whole else turns[:BEGINNING], catalog, number):
            given, script.next = answered(asked)
            got, body = send(connection, asked, headers, in_chunks=number % 5 == 2)
            assert provider.problems == []
            sent = provider.requests.pop()
            assert sent.line == f"POST {asked.path.removeprefix(form.place)} HTTP/1.1".encode()
            assert sent.body == asked.body
            length = (b"content-length", b"%d" % len(asked.body))
            assert without(sent.headers, b"host") == without([*headers, length])
            assert body == asked.answer
            [note] = [value for name, value in got if name == b"x-toolgate"]
            assert note == b"pass; reason=strategy"
            assert without(got, b"x-toolgate", b"transfer-encoding") == without(given)
    connection.close()
    assert provider.requests == []
