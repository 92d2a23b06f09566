"""Places that drivers call: real servers, also behind TLS, a scripted service, other listeners."""

import contextlib
import signal
import socket
import ssl
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import trustme
from toolgate_process import ToolgateProcess

from runner.scripted import ScriptedService

CHUNK = 1 << 16


class Places:
    """Opens each place when a case first names it."""

    def __init__(self, binary: Path) -> None:
        self._binary = binary
        self._temporary = tempfile.TemporaryDirectory(prefix="toolgate-conformance-")
        self._folder = Path(self._temporary.name)
        self._servers: dict[str, ToolgateProcess] = {}
        self._closing: list[Callable[[], object]] = []
        self._opened: dict[str, str] = {}
        self.scripted = ScriptedService()
        self.authority = trustme.CA()

    def target(self, name: str) -> str:
        """The address of a place."""
        if name in ("server", "small", "restarted", "configured"):
            return self.server(name).target
        if name not in self._opened:
            self._opened[name] = getattr(self, f"_open_{name}")()
        return self._opened[name]

    def server(self, name: str) -> ToolgateProcess:
        """A real server; `small` takes one call at a time."""
        if name not in self._servers:
            # A busy machine is no reason to refuse calls here: the cases are about clients.
            settings = {"server.max_wait": "0s"}
            if name == "small":
                settings["server.max_concurrent_calls"] = "1"
            self._servers[name] = ToolgateProcess(self._binary, self._folder / name, settings)
            self._servers[name].start()
        return self._servers[name]

    def restart(self) -> None:
        """Stops the server `restarted` in good order and starts it again on the same port."""
        server = self.server("restarted")
        if server.stop() != 0:
            raise AssertionError(server.log_text()[-2000:])
        server.start_again()

    def configure(self, text: str) -> None:
        """Has the server `configured` read another configuration file, as an operator would."""
        server = self.server("configured")
        file = server.folder / "config" / "toolgate" / "toolgate.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        server.process.send_signal(signal.SIGHUP)

    def tls(self, client_certificate: bool) -> dict[str, str]:
        """The files of a client's TLS settings."""
        folder = self._folder / "tls"
        folder.mkdir(exist_ok=True)
        files = {"ca": folder / "ca.pem"}
        self.authority.cert_pem.write_to_path(str(files["ca"]))
        if client_certificate:
            issued = self.authority.issue_cert("agent@example.com")
            files |= {"cert": folder / "cert.pem", "key": folder / "key.pem"}
            issued.cert_chain_pems[0].write_to_path(str(files["cert"]))
            issued.private_key_pem.write_to_path(str(files["key"]))
        return {name: str(path) for name, path in files.items()}

    def close(self) -> None:
        """Stops everything, and removes what it wrote."""
        for close in reversed(self._closing):
            close()
        self.scripted.close()
        for server in self._servers.values():
            server.stop()
        self._temporary.cleanup()

    def _open_scripted(self) -> str:
        return self.scripted.start()

    def _open_nobody(self) -> str:
        # Bound and not listening: it refuses, and no other process gets the port.
        probe = socket.socket()
        self._closing.append(probe.close)
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"

    def _open_garbage(self) -> str:
        return self._listen(lambda peer: peer.sendall(b"\xff\x00 what is this?\r\n" * 64))

    def _open_website(self) -> str:
        page = b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnope"

        def answer(peer: socket.socket) -> None:
            peer.recv(CHUNK)
            peer.sendall(page)

        return self._listen(answer)

    def _open_silence(self) -> str:
        return self._listen(lambda peer: peer.recv(CHUNK) and threading.Event().wait(30))

    def _open_tls(self) -> str:
        return self._terminate(mutual=False)

    def _open_mtls(self) -> str:
        return self._terminate(mutual=True)

    def _terminate(self, mutual: bool) -> str:
        """TLS in front of the real server, as a proxy would do it."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert("localhost", "127.0.0.1").configure_cert(context)
        context.set_alpn_protocols(["h2"])
        if mutual:
            self.authority.configure_trust(context)
            context.verify_mode = ssl.CERT_REQUIRED
        host, port = self.target("server").split(":")

        def carry(peer: socket.socket) -> None:
            with (
                context.wrap_socket(peer, server_side=True) as inside,
                socket.create_connection((host, int(port))) as behind,
            ):
                threading.Thread(target=_pump, args=(behind, inside), daemon=True).start()
                _pump(inside, behind)

        address = self._listen(carry)
        return f"https://localhost:{address.split(':')[1]}"

    def _listen(self, serve: Callable[[socket.socket], Any]) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        self._closing.append(listener.close)

        def one(peer: socket.socket) -> None:
            with peer, contextlib.suppress(OSError):
                serve(peer)

        def accept() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=one, args=(peer,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return f"127.0.0.1:{listener.getsockname()[1]}"


def _pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while chunk := source.recv(CHUNK):
            sink.sendall(chunk)
    except OSError:
        pass
    finally:
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
