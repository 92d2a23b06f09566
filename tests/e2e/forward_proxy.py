"""An HTTP proxy as networks have them: it takes requests for whole URLs, and hands them on."""

import socket
import threading
from urllib.parse import urlsplit


class ForwardProxy:
    """One that notes the URLs that it was asked for in `asked`."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._sockets: list[socket.socket] = [self._listener]

    def __enter__(self) -> "ForwardProxy":
        """Serves."""
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """Ends it, with all that is open."""
        for one in self._sockets:
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            self._sockets.append(near)
            threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        """Hands one request on, and what is said after it in both directions."""
        head = b""
        while b"\r\n\r\n" not in head:
            read = near.recv(65_536)
            if not read:
                return
            head += read
        line, rest = head.split(b"\r\n", 1)
        method, target, version = line.decode().split(" ")
        self.asked.append(target)
        url = urlsplit(target)
        path = url.path + (f"?{url.query}" if url.query else "")
        # One request a connection: the next one may be for another server.
        sent = f"{method} {path} {version}\r\nConnection: close\r\n".encode() + rest
        far = socket.create_connection((url.hostname, url.port or 80))
        self._sockets.append(far)
        far.sendall(sent)
        threading.Thread(target=carry, args=(near, far), daemon=True).start()
        carry(far, near)
        near.close()


def carry(source: socket.socket, sink: socket.socket) -> None:
    """Hands on what comes until nothing does."""
    try:
        while data := source.recv(65_536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass
