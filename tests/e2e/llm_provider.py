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
from itertools import count
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


class Endpoint:
    """Address whose requests go to one provider, and later to another."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.provider: Provider | None = None
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        host = "http://127.0.0.1" if tls is None else "https://localhost"
        self.url = f"{host}:{self._server.server_port}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        # A server is closed within an interval.
        self._server.serve_forever(poll_interval=0.01)

    def close(self) -> None:
        """Ends it: nobody answers there any more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(endpoint: Endpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self._body()
            provider = endpoint.provider
            assert provider is not None, "no test serves here now"
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

    return Handler


@contextmanager
def serving(provider: Provider, tls: ssl.SSLContext | None = None) -> Iterator[Provider]:
    """Serves while the block runs, over TLS if there is a context for it."""
    endpoint = Endpoint(tls)
    endpoint.provider = provider
    provider.url = endpoint.url
    try:
        yield provider
    finally:
        endpoint.close()


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
        self.unique = ""
        """Name that no other test has, if others have this proxy too. Requests bear it as a key for
        the provider, so that no conversation is another test's."""
        self._begun = 0
        self._before: Json | None = {}
        config = folder / "llm.toml"
        upstreams = "".join(
            f'{name} = "{provider}"\n' for name in ("anthropic", "openai", "gemini")
        )
        config.write_text(f"[llm]\n{settings}\n[upstream]\n{upstreams}")
        self._command = [str(binary), "llm", "--config", str(config)]
        self._command += ["--listen", f"127.0.0.1:{self.port}"]
        self._log = folder / "llm.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Starts it."""
        self.start()
        return self

    def start(self, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        """Starts it with further arguments and variables, and waits until it serves."""
        with self._log.open("wb") as log:
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

    def kill(self) -> None:
        """Ends the process at once, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE)

    def lend(self, unique: str) -> None:
        """Hands it to a further test, whose log and sums begin now."""
        self.unique = unique
        self._before = None
        # One whose hosts need keys tells its sums to those with a key alone.
        if self.ask("/toolgate/usage", method="GET").status == 200:
            wait_until(self._is_idle, "a request of an earlier test does not end")
            self._before = self._sums()
        self._begun = self._log.stat().st_size

    @property
    def has_ended(self) -> bool:
        """True if the process is gone."""
        return self._process is None or self._process.poll() is not None

    def hang_up(self) -> None:
        """Has the plane within the process read its configuration again."""
        assert self._process is not None
        self._process.send_signal(signal.SIGHUP)

    def log(self) -> str:
        """Text that it wrote, for this test."""
        return self._log.read_bytes()[self._begun :].decode(errors="replace")

    def totals(self) -> Json:
        """The sums of its accounts, of this test's requests."""
        assert self._before is not None, "a key is needed to ask for them"
        return _since(self._before, self._sums())

    def _sums(self) -> Json:
        sums: Json = self.ask("/toolgate/usage", method="GET").json["totals"]
        return sums

    def _is_idle(self) -> bool:
        page = self.ask("/metrics", method="GET").body.decode()
        return "\ntoolgate_llm_requests_open 0\n" in page

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log()
        return "serving on" in self.log()

    def connection(self) -> http.client.HTTPConnection:
        """A connection to it."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    @property
    def keys(self) -> dict[str, str]:
        """Headers that tell its requests from other tests'."""
        return {"api-key": self.unique} if self.unique else {}

    def ask(
        self,
        path: str,
        body: Json | bytes = b"",
        headers: Mapping[str, str] | None = None,
        method: str = "POST",
    ) -> Got:
        """Sends a request as it is."""
        return ask(self.port, path, body, {**self.keys, **(headers or {})}, method)


def ask(
    port: int,
    path: str,
    body: Json | bytes = b"",
    headers: Mapping[str, str] | None = None,
    method: str = "POST",
) -> Got:
    """Sends a request to a port of this machine as it is."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        sent = {"Content-Type": "application/json", **(headers or {})}
        connection.request(method, path, data, sent)
        response = connection.getresponse()
        named = {name.lower(): value for name, value in response.getheaders()}
        return Got(response.status, named, response.read())
    finally:
        connection.close()


def _since(before: Json, now: Json) -> Json:
    """Returns what was added to sums, without those by name that nothing was added to."""
    added: Json = {}
    for name, value in now.items():
        if isinstance(value, dict):
            added[name] = _since(before.get(name, {}), value)
        else:
            added[name] = value - before.get(name, 0)
    for name in {"calls", "passed"} & added.keys():
        added[name] = {one: count for one, count in added[name].items() if count}
    return added


class Proxies:
    """Proxies that tests share: to start one takes longer than most of them. Those that were used
    last keep running."""

    MOST = 3

    def __init__(self, binary: Path, folder: Path) -> None:
        self._binary = binary
        self._folder = folder
        self._running: dict[tuple[str, ...], tuple[Proxy, Endpoint]] = {}
        self._lent: list[tuple[str, ...]] = []
        self._numbers = count(1)

    def lend(self, provider: Provider, settings: str, *arguments: str) -> Proxy:
        """Returns a running proxy with these settings and arguments, now before this provider."""
        key = (settings, *arguments)
        assert key not in self._lent, "a test's own are to be started afresh"
        number = next(self._numbers)
        proxy, endpoint = self._found(key) or self._start(number, settings, arguments)
        self._running[key] = (proxy, endpoint)
        self._lent.append(key)
        endpoint.provider = provider
        provider.url = endpoint.url
        proxy.lend(f"test-{number}")
        return proxy

    def take_back(self) -> None:
        """Ends what a test had; fails if one of its proxies is gone."""
        ended = ""
        for key in self._lent:
            proxy, endpoint = self._running[key]
            endpoint.provider = None
            if proxy.has_ended:
                ended += proxy.log()
                self._running.pop(key)
                endpoint.close()
        self._lent.clear()
        while len(self._running) > self.MOST:
            self._stop(next(iter(self._running)))
        assert not ended, f"a proxy ended in this test:\n{ended}"

    def close(self) -> None:
        """Ends them all."""
        for key in list(self._running):
            self._stop(key)

    def _found(self, key: tuple[str, ...]) -> tuple[Proxy, Endpoint] | None:
        # A proxy that is put back stands last.
        return self._running.pop(key) if key in self._running else None

    def _start(
        self, number: int, settings: str, arguments: tuple[str, ...]
    ) -> tuple[Proxy, Endpoint]:
        folder = self._folder / str(number)
        folder.mkdir()
        endpoint = Endpoint()
        proxy = Proxy(self._binary, folder, endpoint.url, settings)
        try:
            proxy.start(*arguments)
        except BaseException:
            proxy.kill()
            endpoint.close()
            raise
        return proxy, endpoint

    def _stop(self, key: tuple[str, ...]) -> None:
        proxy, endpoint = self._running.pop(key)
        try:
            proxy.__exit__()
        finally:
            endpoint.close()
