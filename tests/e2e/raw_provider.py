"""A provider's endpoint that keeps requests as they came, and answers with bytes as they are."""

import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader

Headers = list[tuple[bytes, bytes]]
"""Names in lower case, and values."""


@dataclass(frozen=True)
class RawRequest:
    """Request as it came: its first line, its headers and its body."""

    line: bytes
    headers: Headers
    body: bytes


@dataclass(frozen=True)
class RawAnswer:
    """Answer as it is written."""

    bytes: bytes
    closes: bool = False
    """The connection ends behind it."""


Answering = Callable[[RawRequest], RawAnswer]


@dataclass
class RawProvider:
    """Endpoint that reads requests as strictly as a server can."""

    answering: Answering
    requests: list[RawRequest] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Bytes that came and are no request, or could be read as two."""
    left: int = 0
    """Number of times that the other side left amid a request."""
    url: str = ""

    def serve(self, connection: socket.socket) -> None:
        """Answers the requests of a connection until the other side leaves."""
        with connection, connection.makefile("rb") as stream:
            try:
                while (request := _read(stream)) is not None:
                    self.requests.append(request)
                    given = self.answering(request)
                    connection.sendall(given.bytes)
                    if given.closes:
                        return
            except _BrokenOffError:
                self.left += 1
            except ValueError as problem:
                self.problems.append(str(problem))
            except OSError:
                # A proxy that does not trust an answer closes its connection.
                pass


@contextmanager
def serving_raw(answering: Answering) -> Iterator[RawProvider]:
    """Serves while the block runs."""
    provider = RawProvider(answering)
    listener = socket.create_server(("127.0.0.1", 0))
    provider.url = f"http://127.0.0.1:{listener.getsockname()[1]}"

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=provider.serve, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def head(status: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The head of an answer."""
    lines = [b"HTTP/1.1 " + status, *(name + b": " + value for name, value in headers)]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def chunked(pieces: Iterable[bytes]) -> bytes:
    """A body in these pieces."""
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


class _BrokenOffError(Exception):
    """The other side left amid a request."""


def _read(stream: BufferedReader) -> RawRequest | None:
    line = _line(stream, is_first=True)
    if line is None:
        return None
    if line.count(b" ") != 2 or not line.endswith(b" HTTP/1.1"):
        raise ValueError(f"no request: {line!r}")
    headers: Headers = []
    while field_line := _line(stream):
        name, colon, value = field_line.partition(b":")
        if not colon or not name.strip(b" \t") or name != name.strip(b" \t"):
            raise ValueError(f"no header: {field_line!r}")
        headers.append((name.lower(), value.strip(b" \t")))
    return RawRequest(line, headers, _body(stream, headers))


def _body(stream: BufferedReader, headers: Headers) -> bytes:
    lengths = [value for name, value in headers if name == b"content-length"]
    codings = [value for name, value in headers if name == b"transfer-encoding"]
    if len(lengths) + len(codings) > 1:
        raise ValueError(f"two lengths: {headers}")
    if lengths:
        if not lengths[0].isdigit():
            raise ValueError(f"no length: {lengths}")
        return _exactly(stream, int(lengths[0]))
    if not codings:
        return b""
    if codings != [b"chunked"]:
        raise ValueError(f"unknown coding: {codings}")
    body = b""
    while size := int(_line(stream) or b"", 16):
        body += _exactly(stream, size)
        if _line(stream) != b"":
            raise ValueError("a chunk is longer than it says")
    if _line(stream) != b"":
        raise ValueError("trailers, which nobody announced")
    return body


def _line(stream: BufferedReader, *, is_first: bool = False) -> bytes | None:
    """Reads a line. None if the connection has ended before the first of a request."""
    line = stream.readline(1 << 20)
    if not line and is_first:
        return None
    if not line.endswith(b"\n"):
        raise _BrokenOffError
    if not line.endswith(b"\r\n") or b"\0" in line or b"\r" in line[:-2]:
        raise ValueError(f"a line ends in two ways: {line!r}")
    return line[:-2]


def _exactly(stream: BufferedReader, size: int) -> bytes:
    read = stream.read(size)
    if len(read) < size:
        raise _BrokenOffError
    return read
