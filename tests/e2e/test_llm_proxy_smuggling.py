"""`toolgate llm` before hosts and providers whose messages could be read in two ways."""

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path

import pytest
from llm_provider import Proxy
from raw_provider import RawAnswer, RawProvider, RawRequest, head, serving_raw
from waiting import PATIENCE

FILES = "/openai/v1/files"
"""Path whose requests go on as they come."""
CHAT = "/openai/v1/chat/completions"
"""Path whose requests are read first."""
SMUGGLED = b"GET /openai/smuggled HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@dataclass
class Reply:
    """Answer that a host gets: a status, headers and a body, whose end may lack."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    is_whole: bool

    def values(self, name: bytes) -> list[bytes]:
        """The values of a header."""
        return [value for one, value in self.headers if one == name]


def read(stream: BufferedReader) -> Reply | None:
    """Reads a reply. None if the connection ends before it."""
    try:
        line = stream.readline()
    except ConnectionResetError:
        return None
    if not line:
        return None
    headers = []
    while named := stream.readline().rstrip(b"\r\n"):
        name, _, value = named.partition(b":")
        headers.append((name.lower(), value.strip()))
    reply = Reply(int(line.split()[1]), headers, b"", is_whole=True)
    if reply.values(b"transfer-encoding"):
        while (size := stream.readline()) != b"0\r\n":
            if not size:
                reply.is_whole = False
                return reply
            reply.body += stream.read(int(size, 16))
            stream.readline()
        stream.readline()
    elif lengths := reply.values(b"content-length"):
        reply.body = stream.read(int(lengths[0]))
        reply.is_whole = len(reply.body) == int(lengths[0])
    return reply


@dataclass
class Wire:
    """A proxy whose port is written to, and the provider behind it."""

    proxy: Proxy
    provider: RawProvider
    given: list[RawAnswer] = field(default_factory=list)
    """Answers of the provider, in their turn, before those that say what was asked."""

    def answer(self, request: RawRequest) -> RawAnswer:
        """An answer of the provider."""
        if self.given:
            return self.given.pop(0)
        length = (b"Content-Length", b"%d" % len(request.line))
        return RawAnswer(head(b"200 OK", [length]) + request.line)

    def talk(self, sent: bytes) -> list[Reply]:
        """Writes bytes, and behind the first reply a request of its own; returns both replies."""
        replies = []
        with socket.create_connection(("127.0.0.1", self.proxy.port), PATIENCE) as connection:
            connection.sendall(sent)
            with connection.makefile("rb") as stream:
                while (reply := read(stream)) is not None:
                    replies.append(reply)
                    if len(replies) > 1:
                        break
                    try:
                        connection.sendall(self.request(b"GET", "/openai/last"))
                    except OSError:
                        break
        return replies

    def request(self, method: bytes, path: str, *headers: bytes, body: bytes = b"") -> bytes:
        """A request with these lines in its head."""
        host = b"Host: 127.0.0.1:%d" % self.proxy.port
        lines = [method + b" " + path.encode("latin-1") + b" HTTP/1.1", host, *headers]
        return b"\r\n".join(lines) + b"\r\n\r\n" + body

    def post(self, path: str, *headers: bytes, body: bytes = b"") -> bytes:
        """The same with a body."""
        return self.request(b"POST", path, *headers, body=body)

    def asked(self) -> list[bytes]:
        """The first lines of what came to the provider, without that of the last request."""
        assert self.provider.problems == []
        lines = [request.line for request in self.provider.requests]
        return [line for line in lines if line != LAST_ANSWER]


LAST_ANSWER = b"GET /last HTTP/1.1"


@pytest.fixture(scope="module")
def running(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    wires: list[Wire] = []
    folder = tmp_path_factory.mktemp("wire")
    with (
        serving_raw(lambda request: wires[0].answer(request)) as provider,
        Proxy(binary, folder, provider.url) as proxy,
    ):
        wires.append(Wire(proxy, provider))
        yield wires[0]


@pytest.fixture
def wire(running: Wire) -> Wire:
    running.given.clear()
    running.provider.requests.clear()
    running.provider.problems.clear()
    running.provider.left = 0
    return running


LENGTH = b"Content-Length: %d" % len(SMUGGLED)
CHUNKED = b"Transfer-Encoding: chunked"
REFUSED: dict[str, tuple[list[bytes], bytes]] = {
    "two lengths": ([b"Content-Length: 0", LENGTH], SMUGGLED),
    "two lengths in one": ([b"Content-Length: 0, %d" % len(SMUGGLED)], SMUGGLED),
    "length with a sign": ([b"Content-Length: +%d" % len(SMUGGLED)], SMUGGLED),
    "length below nothing": ([b"Content-Length: -1"], SMUGGLED),
    "hexadecimal length": ([b"Content-Length: 0x%x" % len(SMUGGLED)], SMUGGLED),
    "length of parts": ([b"Content-Length: 3 1"], SMUGGLED),
    "empty length": ([b"Content-Length:"], SMUGGLED),
    "huge length": ([b"Content-Length: 18446744073709551616"], SMUGGLED),
    "space before the colon": ([b"Content-Length : %d" % len(SMUGGLED)], SMUGGLED),
    "coding that is not the last": ([b"Transfer-Encoding: chunked, gzip"], b"0\r\n\r\n" + SMUGGLED),
    "unknown coding": ([b"Transfer-Encoding: xchunked"], b"0\r\n\r\n" + SMUGGLED),
    "coding identity": ([b"Transfer-Encoding: identity", LENGTH], SMUGGLED),
    "coding with a tab in it": ([b"Transfer-Encoding: chun\tked"], b"0\r\n\r\n" + SMUGGLED),
    "folded header": ([b"X-Own: a", b" b: c", b"Content-Length: 0"], SMUGGLED),
    "folded coding": ([b"Transfer-Encoding:", b" chunked"], b"0\r\n\r\n" + SMUGGLED),
    "carriage return in a value": ([b"X-Own: a\rX-Smuggled: b", b"Content-Length: 0"], SMUGGLED),
    "NUL in a value": ([b"X-Own: a\0b", b"Content-Length: 0"], SMUGGLED),
    "NUL in a name": ([b"X-O\0wn: a", b"Content-Length: 0"], SMUGGLED),
    "no name": ([b": a", b"Content-Length: 0"], SMUGGLED),
    "no colon": ([b"X-Own", b"Content-Length: 0"], SMUGGLED),
    "large header": ([b"X-Own: " + b"a" * (1 << 20), b"Content-Length: 0"], SMUGGLED),
    "many headers": ([b"X-%d: a" % at for at in range(5_000)], SMUGGLED),
}
"""Lines of heads that can be read in two ways, and what stands behind them."""


@pytest.mark.parametrize("path", [FILES, CHAT])
@pytest.mark.parametrize("name", REFUSED)
def test_a_head_that_can_be_read_in_two_ways_is_refused(wire: Wire, name: str, path: str) -> None:
    headers, behind = REFUSED[name]
    replies = wire.talk(wire.post(path, *headers, body=behind))
    # The connection may end before the answer, if much of the request was not read.
    assert [reply.status // 100 for reply in replies] in ([4], []), replies
    assert wire.asked() == []
    assert wire.provider.requests == []


BAD_CHUNKS = {
    "no number": b"zz\r\nabc\r\n0\r\n\r\n",
    "sign": b"+3\r\nabc\r\n0\r\n\r\n",
    "prefix": b"0x3\r\nabc\r\n0\r\n\r\n",
    "below nothing": b"-1\r\nabc\r\n0\r\n\r\n",
    "empty": b"\r\nabc\r\n0\r\n\r\n",
    "huge": b"10000000000000003\r\nabc\r\n0\r\n\r\n",
    "longer than it says": b"3\r\nabcd\r\n0\r\n\r\n",
    "lone line feed": b"3\nabc\r\n0\r\n\r\n",
    "lone line feed in an extension": b"3;a\nabc\r\n0\r\n\r\n",
    "lone carriage return": b"3\rabc\r\n0\r\n\r\n",
    "bytes behind its end": b"3\r\nabcXX0\r\n\r\n",
}


@pytest.mark.parametrize("path", [FILES, CHAT])
@pytest.mark.parametrize("name", BAD_CHUNKS)
def test_a_body_whose_chunks_are_none_reaches_no_provider_whole(
    wire: Wire, name: str, path: str
) -> None:
    body = b"2\r\n{}\r\n" + BAD_CHUNKS[name] + SMUGGLED
    replies = wire.talk(wire.post(path, CHUNKED, body=body))
    assert [reply.status for reply in replies] == [400], replies
    assert wire.asked() == []


@pytest.mark.parametrize("path", [FILES, CHAT])
@pytest.mark.parametrize("is_first", [True, False], ids=["length first", "coding first"])
def test_a_request_with_a_length_and_chunks_is_the_last_of_its_connection(
    wire: Wire, path: str, is_first: bool
) -> None:
    behind = b"0\r\n\r\n" + SMUGGLED
    headers = [b"Content-Length: %d" % len(behind), CHUNKED]
    replies = wire.talk(wire.post(path, *(headers if is_first else headers[::-1]), body=behind))
    assert [reply.status for reply in replies] == [200]
    assert replies[0].values(b"connection") == [b"close"]
    assert wire.asked() == [f"POST {path.removeprefix('/openai')} HTTP/1.1".encode()]
    [sent] = wire.provider.requests
    assert sent.body == b""


@pytest.mark.parametrize(
    "headers",
    [[b"Connection: content-length"], [b"Connection: Transfer-Encoding, host, content-length"]],
)
@pytest.mark.parametrize("method", [b"GET", b"POST", b"DELETE", b"PURGE"])
def test_a_request_in_a_body_stays_in_it(wire: Wire, method: bytes, headers: list[bytes]) -> None:
    replies = wire.talk(wire.request(method, FILES, *headers, LENGTH, body=SMUGGLED))
    assert [reply.status for reply in replies] == [200, 200], replies
    assert wire.asked() == [method + b" /v1/files HTTP/1.1"]
    assert wire.provider.requests[0].body == SMUGGLED


@pytest.mark.parametrize("method", [b"GET", b"POST"])
def test_a_request_in_chunks_stays_in_them(wire: Wire, method: bytes) -> None:
    body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(SMUGGLED), SMUGGLED)
    replies = wire.talk(wire.request(method, FILES, CHUNKED, body=body))
    assert [reply.status for reply in replies] == [200, 200], replies
    assert wire.asked() == [method + b" /v1/files HTTP/1.1"]
    assert wire.provider.requests[0].body == SMUGGLED


def test_trailers_and_extensions_of_chunks_stay_behind(wire: Wire) -> None:
    body = b"3;a=b\r\nabc\r\n0\r\nContent-Length: 9\r\nX-Toolgate-Key: k\r\nX-Own: a\r\n\r\n"
    replies = wire.talk(wire.post(FILES, CHUNKED, b"Trailer: X-Own", body=body))
    assert [reply.status for reply in replies] == [200, 200], replies
    sent, _ = wire.provider.requests
    assert sent.body == b"abc"
    assert not {b"x-own", b"trailer", b"content-length"} & {name for name, _ in sent.headers}


TARGETS = {
    "another host": "http://evil.example/openai/v1/files",
    "another host behind ours": "http://127.0.0.1:1@evil.example/openai/v1/files",
    "another scheme": "ftp://evil.example/openai/v1/files",
    "authority": "evil.example:443",
    "asterisk": "*",
    "space": "/openai/v1/a b",
    "carriage return": "/openai/v1/a\rX: b",
    "NUL": "/openai/v1/a\0b",
    "nothing": "",
}


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_that_is_not_the_proxys_reaches_no_provider(wire: Wire, name: str) -> None:
    replies = wire.talk(wire.post(TARGETS[name], b"Content-Length: 0"))
    assert replies[0].status in {400, 403, 404}, replies
    assert wire.asked() == []


def test_a_target_with_the_proxys_own_host_is_a_path(wire: Wire) -> None:
    target = f"http://127.0.0.1:{wire.proxy.port}{FILES}"
    assert [reply.status for reply in wire.talk(wire.request(b"GET", target))] == [200, 200]
    assert wire.asked() == [b"GET /v1/files HTTP/1.1"]
    host = wire.provider.url.removeprefix("http://").encode()
    sent = wire.provider.requests[0].headers
    assert sorted(sent) == [(b"accept", b"*/*"), (b"host", host)]


@pytest.mark.parametrize(
    "hosts",
    [[b"evil.example"], [b"127.0.0.1", b"evil.example"], [b"evil.example", b"127.0.0.1"], []],
)
def test_a_request_names_one_host_which_is_the_proxy(wire: Wire, hosts: list[bytes]) -> None:
    lines = [b"GET /openai/v1/files HTTP/1.1", *(b"Host: " + host for host in hosts)]
    replies = wire.talk(b"\r\n".join(lines) + b"\r\n\r\n")
    assert replies[0].status in {400, 403}, replies
    assert wire.asked() == []


def test_what_is_encoded_in_a_path_stays_encoded(wire: Wire) -> None:
    path = "/openai/v1/a%0d%0aX-Smuggled:%20b%20HTTP/1.1%0d%0a%0d%0aGET%20/c?d=%0d%0a%00\xe9"
    replies = wire.talk(wire.request(b"GET", path))
    if replies[0].status == 200:
        [line] = wire.asked()
        assert line.startswith(b"GET /v1/a%0d%0aX-Smuggled:%20b%20HTTP/1.1%0d%0a%0d%0aGET%20/c?d=")
        [sent] = wire.provider.requests[:1]
        assert b"x-smuggled" not in {name for name, _ in sent.headers}
    else:
        assert (replies[0].status, wire.asked()) == (400, [])


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /openai/v1/files\r\n\r\n",
        b"GET /openai/v1/files HTTP/1.2\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET  /openai/v1/files HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GE\tT /openai/v1/files HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"POST /openai/v1/files HTTP/1.0\r\nHost: 127.0.0.1\r\n" + CHUNKED + b"\r\n\r\n0\r\n\r\n",
    ],
)
def test_a_line_that_is_no_request_is_refused(wire: Wire, sent: bytes) -> None:
    replies = wire.talk(sent + SMUGGLED)
    assert [reply.status for reply in replies] in ([400], [505]), replies
    assert wire.asked() == []


OK = b"HTTP/1.1 200 OK\r\n"
NO_ANSWERS = {
    "carriage return in a value": OK + b"X-A: b\rX-Injected: c\r\nContent-Length: 2\r\n\r\nok",
    "NUL in a value": OK + b"X-A: b\0c\r\nContent-Length: 2\r\n\r\nok",
    "folded header": OK + b"X-A: b\r\n X-Injected: c\r\nContent-Length: 2\r\n\r\nok",
    "space before the colon": OK + b"X-A : b\r\nContent-Length: 2\r\n\r\nok",
    "no colon": OK + b"X-Injected\r\nContent-Length: 2\r\n\r\nok",
    "two lengths": OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nok",
    "length with a sign": OK + b"Content-Length: +2\r\n\r\nok",
    "no status": b"HTTP/1.1 OK\r\nContent-Length: 2\r\n\r\nok",
    "no HTTP": b"ok",
    "nothing": b"",
    "large header": OK + b"X-A: " + b"b" * (1 << 20) + b"\r\n\r\n",
    "another protocol": b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nok",
}


@pytest.mark.parametrize("path", [FILES, CHAT])
@pytest.mark.parametrize("name", NO_ANSWERS)
def test_an_answer_that_is_none_is_an_error_of_the_proxys(wire: Wire, name: str, path: str) -> None:
    wire.given = [RawAnswer(NO_ANSWERS[name], closes=True)]
    reply, *_ = wire.talk(wire.post(path, b"Content-Length: 2", body=b"{}"))
    assert reply.status == 502, reply
    assert b"toolgate: " in reply.body
    assert reply.values(b"x-injected") == []


POISON = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
LONGER = {
    "than its length": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + POISON,
    "than its chunks": b"HTTP/1.1 200 OK\r\n" + CHUNKED + b"\r\n\r\n2\r\nok\r\n0\r\n\r\n" + POISON,
    "than nothing": b"HTTP/1.1 204 No Content\r\nContent-Length: %d\r\n\r\n" % len(POISON) + POISON,
    "than a length beside chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
    + CHUNKED
    + b"\r\n\r\n2\r\nok\r\n0\r\n\r\n"
    + POISON,
}


@pytest.mark.parametrize("path", [FILES, CHAT])
@pytest.mark.parametrize("name", LONGER)
def test_what_follows_an_answer_is_no_answer_to_the_next_request(
    wire: Wire, name: str, path: str
) -> None:
    wire.given = [RawAnswer(LONGER[name])]
    first, last = wire.talk(wire.post(path, b"Content-Length: 2", body=b"{}"))
    assert first.body == (b"" if name == "than nothing" else b"ok")
    assert last.body == LAST_ANSWER


SHORTER = {
    "than its length": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok",
    "than its chunks": b"HTTP/1.1 200 OK\r\n" + CHUNKED + b"\r\n\r\n2\r\nok\r\n9\r\nok",
    "by a chunk without a number": b"HTTP/1.1 200 OK\r\n"
    + CHUNKED
    + b"\r\n\r\n2\r\nok\r\nzz\r\nok",
    "by a chunk with a sign": b"HTTP/1.1 200 OK\r\n" + CHUNKED + b"\r\n\r\n2\r\nok\r\n+2\r\nok",
}


@pytest.mark.parametrize("path", [FILES, CHAT])
@pytest.mark.parametrize("name", SHORTER)
def test_an_answer_that_is_shorter_than_it_says_is_cut_for_the_host(
    wire: Wire, name: str, path: str
) -> None:
    wire.given = [RawAnswer(SHORTER[name], closes=True)]
    replies = wire.talk(wire.post(path, b"Content-Length: 2", body=b"{}"))
    assert len(replies) == 1, replies
    assert not replies[0].is_whole
    assert replies[0].body in (b"", b"ok", b"okok")


def test_an_answer_tells_no_note_and_no_connection_of_its_own(wire: Wire) -> None:
    told = (
        b"HTTP/1.1 200 OK\r\nx-toolgate: forged\r\nX-Toolgate: forged too\r\nConnection: x-hop\r\n"
        b"X-Hop: a\r\nTrailer: x\r\nProxy-Authenticate: Basic\r\nContent-Length: 2\r\n\r\nok"
    )
    wire.given = [RawAnswer(told)]
    reply, *_ = wire.talk(wire.request(b"GET", FILES))
    assert reply.values(b"x-toolgate") == [b"pass; reason=no-chat"]
    for name in (b"x-hop", b"trailer", b"proxy-authenticate", b"connection"):
        assert reply.values(name) == []


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """A frame of HTTP/2."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name: bytes, value: bytes) -> bytes:
    """A header that no table has."""

    def text(one: bytes) -> bytes:
        assert len(one) < 127
        return bytes([len(one)]) + one

    return b"\0" + text(name) + text(value)


OPENING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"")
BEGUN, WHOLE = 4, 5
"""Flags of a head that more follows, and of one that nothing does."""
ENDINGS = {1: "answered", 3: "reset", 7: "gone"}
"""Outcomes of a request, by the kind of its frame."""


def over_http2(wire: Wire, headers: list[tuple[bytes, bytes]], body: bytes | None) -> str:
    """Asks over HTTP/2. Returns what became of it, with the status if it is in the static table."""
    block = b"".join(literal(name, value) for name, value in headers)
    sent = OPENING + frame(1, WHOLE if body is None else BEGUN, 1, block)
    if body is not None:
        sent += frame(0, 1, 1, body)
    with socket.create_connection(("127.0.0.1", wire.proxy.port), PATIENCE) as connection:
        connection.sendall(sent)
        with connection.makefile("rb") as stream:
            while len(start := stream.read(9)) == 9:
                payload = stream.read(int.from_bytes(start[:3], "big"))
                if start[3] in ENDINGS:
                    is_taken = start[3] == 1 and b"\x88" in payload[:4]
                    return "taken" if is_taken else ENDINGS[start[3]]
    return "gone"


def named(path: bytes = FILES.encode(), method: bytes = b"POST") -> list[tuple[bytes, bytes]]:
    """The first headers of a request over HTTP/2."""
    return [
        (b":method", method),
        (b":scheme", b"http"),
        (b":authority", b"127.0.0.1"),
        (b":path", path),
    ]


ODD_HEADERS: dict[str, tuple[list[tuple[bytes, bytes]], bytes | None]] = {
    "line end in a value": ([*named(), (b"x-own", b"a\r\nx-smuggled: b")], None),
    "line feed in a value": ([*named(), (b"x-own", b"a\nx-smuggled: b")], None),
    "NUL in a value": ([*named(), (b"x-own", b"a\0b")], None),
    "line end in a name": ([*named(), (b"x-own: a\r\nx-smuggled", b"b")], None),
    "colon in a name": ([*named(), (b"x-own:", b"b")], None),
    "capital in a name": ([*named(), (b"X-Own", b"b")], None),
    "line end in the path": ([*named(FILES.encode() + b" HTTP/1.1\r\nx: y")], None),
    "space in the path": ([*named(FILES.encode() + b" b")], None),
    "line end in the method": ([*named(method=b"GET / HTTP/1.1\r\nx: y\r\n\r\nPOST")], None),
    "two paths": ([*named(), (b":path", b"/openai/smuggled")], None),
    "coding": ([*named(), (b"transfer-encoding", b"chunked")], b"0\r\n\r\n" + SMUGGLED),
    "header of the connection": ([*named(), (b"connection", b"close")], None),
    "shorter than its body": ([*named(), (b"content-length", b"0")], SMUGGLED),
    "longer than its body": ([*named(), (b"content-length", b"999")], SMUGGLED),
    "two lengths": ([*named(), (b"content-length", b"0"), (b"content-length", b"9")], SMUGGLED),
    "no length": ([*named(), (b"content-length", b"+1")], SMUGGLED),
    "another host": ([*named(), (b"host", b"evil.example")], None),
    "another authority": (
        [(name, b"evil.example" if name == b":authority" else value) for name, value in named()]
        + [(b"host", b"127.0.0.1")],
        None,
    ),
}
"""Heads of HTTP/2 that would be another request in HTTP/1.1, and bodies."""


@pytest.mark.parametrize("name", ODD_HEADERS)
def test_a_request_of_http2_that_is_two_in_http1_reaches_no_provider(wire: Wire, name: str) -> None:
    assert over_http2(wire, *ODD_HEADERS[name]) != "taken"
    assert wire.asked() == []


def test_a_request_of_http2_is_one_in_http1(wire: Wire) -> None:
    assert over_http2(wire, named(), SMUGGLED) == "taken"
    assert wire.asked() == [b"POST /v1/files HTTP/1.1"]
    assert wire.provider.requests[0].body == SMUGGLED
