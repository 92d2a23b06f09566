"""A peer who takes places and leaves them unused: connections, calls, unread answers.

    python -m promises.holders KIND HOST:PORT SECONDS

Takes anew whatever the server takes back. Prints how many places it asked for, and how many were
taken back.
"""

import json
import os
import selectors
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hpack import Encoder
from hyperframe.frame import DataFrame, Frame, HeadersFrame, PingFrame, SettingsFrame

from toolgate._gen.v1 import router_pb2

from .attack import HEADERS, PREFACE

CONNECTIONS = 1_200
"""More than `server.max_connections` by default."""
CALLS = 256
"""Calls of one connection."""

PING = PingFrame(0).type


@dataclass
class Holder:
    """One connection, and what came on it that is no whole frame yet."""

    wire: socket.socket
    unread: bytes = b""


def silent(_: int) -> Iterator[bytes]:
    """Says nothing at all: on a port with TLS, a handshake that never begins."""
    return iter(())


def idle(_: int) -> Iterator[bytes]:
    """HTTP/2 without a call; pings are answered."""
    yield PREFACE + SettingsFrame(0).serialize()


def slow_headers(_: int) -> Iterator[bytes]:
    """HTTP/1.1 whose headers never end."""
    yield b"POST /toolgate.v1.RouterService/Route HTTP/1.1\r\nhost: x\r\nx-a: "


def no_bodies(calls: int) -> Iterator[bytes]:
    """Calls whose bodies never come."""
    yield PREFACE + SettingsFrame(0).serialize()
    for call in range(calls):
        yield _begun(2 * call + 1)


def unread_answers(calls: int) -> Iterator[bytes]:
    """Calls with large answers, for which the peer has no window."""
    window = SettingsFrame(0, settings={SettingsFrame.INITIAL_WINDOW_SIZE: 0})
    yield PREFACE + window.serialize()
    asked = router_pb2.GetSummaryPoolRequest(tenant="tenant-1", render=True).SerializeToString()
    body = b"\0" + len(asked).to_bytes(4, "big") + asked
    for call in range(calls):
        stream = 2 * call + 1
        path = "/toolgate.v1.RouterService/GetSummaryPool"
        yield _begun(stream, path) + DataFrame(stream, body, flags=["END_STREAM"]).serialize()


def _begun(stream: int, path: str = "/toolgate.v1.RouterService/Route") -> bytes:
    headers = [(name, path if name == ":path" else value) for name, value in HEADERS]
    # Nothing is indexed, so that frames don't depend on those before.
    data = Encoder().encode([(*header, True) for header in headers])
    return HeadersFrame(stream, data=data, flags=["END_HEADERS"]).serialize()


KINDS: dict[str, tuple[int, Callable[[int], Iterator[bytes]]]] = {
    "silent": (CONNECTIONS, silent),
    "idle": (CONNECTIONS, idle),
    "slow-headers": (CONNECTIONS, slow_headers),
    "no-bodies": (2, no_bodies),
    "unread-answers": (4, unread_answers),
}


def hold(kind: str, target: str, seconds: float) -> dict[str, int]:
    """Keeps so many connections for so long."""
    host, port = target.rsplit(":", 1)
    count, says = KINDS[kind]
    until, asked, lost = time.monotonic() + seconds, 0, 0
    with selectors.DefaultSelector() as waiting:
        while time.monotonic() < until:
            # Not all at a time: the backlog is honest callers' too.
            for _ in range(min(50, count - len(waiting.get_map()))):
                holder = _connect(host, int(port), says)
                asked += 1
                if holder is None:
                    lost += 1
                else:
                    waiting.register(holder.wire, selectors.EVENT_READ, holder)
            for key, _ in waiting.select(0.1):
                if not _answer(key.data):
                    waiting.unregister(key.fileobj)
                    key.data.wire.close()
                    lost += 1
    return {"asked": asked, "lost": lost}


def _connect(host: str, port: int, says: Callable[[int], Iterator[bytes]]) -> Holder | None:
    try:
        wire = socket.create_connection((host, port), timeout=1)
        wire.sendall(b"".join(says(CALLS)))
    except OSError:
        return None
    wire.setblocking(False)
    return Holder(wire)


def _answer(holder: Holder) -> bool:
    """Reads what came, and answers pings; `False` when the connection has ended."""
    try:
        came = holder.wire.recv(65_536)
    except BlockingIOError:
        return True
    except OSError:
        return False
    if not came:
        return False
    holder.unread += came
    while len(holder.unread) >= 9:
        frame, length = Frame.parse_frame_header(memoryview(holder.unread[:9]))
        if len(holder.unread) < 9 + length:
            break
        body, holder.unread = holder.unread[9 : 9 + length], holder.unread[9 + length :]
        if frame.type == PING and "ACK" not in frame.flags:
            try:
                holder.wire.send(PingFrame(0, opaque_data=body, flags=["ACK"]).serialize())
            except OSError:
                return False
    return True


if __name__ == "__main__":
    # Whoever measures must not wait for whoever holds.
    os.nice(10)
    print(json.dumps(hold(sys.argv[1], sys.argv[2], float(sys.argv[3]))))
