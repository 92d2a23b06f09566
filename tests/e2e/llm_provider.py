"""A provider's endpoint whose answers a script gives, and requests through a proxy."""

import http.client
import json
import signal
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from toolgate_command import PATIENT_PLANE, command_environment
from toolgate_process import free_port
from waiting import PATIENCE, wait_until

Json = dict[str, Any]


@dataclass
class Sent:
    """Request that came to the provider."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Json:
        """The body."""
        read: Json = json.loads(self.body)
        return read


@dataclass
class Answer:
    """Answer of the provider. Its pieces are sent one by one."""

    pieces: list[bytes]
    status: int = 200
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    """The connection breaks behind the pieces."""
    hold: threading.Event | None = None
    """Event to wait for before the last piece."""
    endless: bool = False
    """The last piece is sent again and again until the other side leaves."""


def answer(body: Json, status: int = 200, **headers: str) -> Answer:
    """An answer in one piece."""
    return Answer([json.dumps(body).encode()], status, headers=headers)


def events(*pieces: bytes, cut: bool = False) -> Answer:
    """An answer as a stream of events."""
    return Answer(list(pieces), kind="text/event-stream", cut=cut)


class Provider:
    """Answers by a script, in turn; keeps what was asked."""

    def __init__(self, *steps: Answer | Callable[[Sent], Answer]) -> None:
        self.sent: list[Sent] = []
        self.left = 0
        """Number of times that the other side left amid an answer."""
        self.url = ""
        self._steps = iter(steps)

    def next(self, sent: Sent) -> Answer:
        """The next answer."""
        self.sent.append(sent)
        step = next(self._steps)
        return step if isinstance(step, Answer) else step(sent)


@contextmanager
def serving(provider: Provider, tls: ssl.SSLContext | None = None) -> Iterator[Provider]:
    """Serves while the block runs, over TLS if there is a context for it."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self._body()
            headers = {name.lower(): value for name, value in self.headers.items()}
            given = provider.next(Sent(self.command, self.path, headers, body))
            self.send_response(given.status)
            self.send_header("Content-Type", given.kind)
            for name, value in given.headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            try:
                self._write(given)
            except OSError:
                provider.left += 1
                self.close_connection = True

        def do_GET(self) -> None:
            self.do_POST()

        def do_DELETE(self) -> None:
            self.do_POST()

        def _body(self) -> bytes:
            if "chunked" not in self.headers.get("Transfer-Encoding", ""):
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        def _write(self, given: Answer) -> None:
            for at, piece in enumerate(given.pieces):
                if given.hold is not None and at == len(given.pieces) - 1:
                    given.hold.wait(PATIENCE)
                self._chunk(piece)
            while given.endless:
                self._chunk(given.pieces[-1])
            if given.cut:
                self.close_connection = True
                return
            self.wfile.write(b"0\r\n\r\n")

        def _chunk(self, piece: bytes) -> None:
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            self.wfile.flush()

        def log_message(self, *_said: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    host = "http://127.0.0.1" if tls is None else "https://localhost"
    provider.url = f"{host}:{server.server_port}"
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class Got:
    """Answer that a host got."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Json:
        """The body."""
        read: Json = json.loads(self.body)
        return read

    @property
    def note(self) -> str:
        """The proxy's note of its work."""
        return self.headers.get("x-toolgate", "")


class Proxy:
    """A real `toolgate llm` before a provider."""

    def __init__(self, binary: Path, folder: Path, provider: str, settings: str = "") -> None:
        self.port = free_port()
        self.said: list[str] = []
        config = folder / "llm.toml"
        upstreams = "".join(
            f'{name} = "{provider}"\n' for name in ("anthropic", "openai", "gemini")
        )
        config.write_text(f"[llm]\n{settings}\n[upstream]\n{upstreams}")
        self._command = [str(binary), "llm", "--config", str(config)]
        self._command += ["--listen", f"127.0.0.1:{self.port}"]
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Starts it."""
        self.start()
        return self

    def start(self, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        """Starts it with further arguments and variables, and waits until it serves."""
        with (self._folder / "llm.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*self._command, *arguments],
                stdin=subprocess.DEVNULL,
                stderr=log,
                env={**command_environment(), **PATIENT_PLANE, **(environment or {})},
            )
        wait_until(self._is_ready, self.log)

    @contextmanager
    def started(
        self, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> Iterator[Self]:
        """Starts it with further arguments and variables, and ends it whatever happens."""
        self.start(*arguments, environment=environment)
        try:
            yield self
        finally:
            self.__exit__()

    def __exit__(self, *_: object) -> None:
        """Ends it as an operator does."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(PATIENCE) == 0, self.log()

    def hang_up(self) -> None:
        """Has the plane within the process read its configuration again."""
        assert self._process is not None
        self._process.send_signal(signal.SIGHUP)

    def log(self) -> str:
        """Text that it wrote."""
        return (self._folder / "llm.log").read_text(errors="replace")

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log()
        return "serving on" in self.log()

    def connection(self) -> http.client.HTTPConnection:
        """A connection to it."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def ask(
        self,
        path: str,
        body: Json | bytes = b"",
        headers: Mapping[str, str] | None = None,
        method: str = "POST",
    ) -> Got:
        """Sends a request as it is."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection = self.connection()
        try:
            sent = {"Content-Type": "application/json", **(headers or {})}
            connection.request(method, path, data, sent)
            response = connection.getresponse()
            named = {name.lower(): value for name, value in response.getheaders()}
            return Got(response.status, named, response.read())
        finally:
            connection.close()
