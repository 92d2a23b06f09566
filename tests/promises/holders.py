"""A peer who takes places and leaves them unused: connections, calls, unread answers.

    python -m promises.holders KIND HOST:PORT SECONDS

Takes anew whatever the server takes back. Prints how many places it asked for (connections, and
calls on them), and how many were taken back.
"""

import json
import os
import resource
import selectors
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from hpack import Encoder
from hyperframe.frame import (
    DataFrame,
    Frame,
    HeadersFrame,
    PingFrame,
    RstStreamFrame,
    SettingsFrame,
)

from toolgate._gen.v1 import router_pb2

from .attack import HEADERS, PREFACE

TENANT = "tenant-1"
"""The tenant whose summary pool is asked for."""
CONNECTIONS = 1_200
"""More than `server.max_connections` by default."""
CALLS = 256
"""Calls that a connection has under way at most."""
ROUND = 0.1
"""Seconds between two rounds, in each of which so many places are taken anew at most:"""
CONNECTIONS_A_ROUND = 50
CALLS_A_ROUND = 32

PING = PingFrame(0).type
HEADERS_TYPE = HeadersFrame(1).type
RESET = RstStreamFrame(1).type
END_STREAM = 1


@dataclass(frozen=True)
class Kind:
    """Kinds of peers: connections, and the calls on each."""

    connections: int
    opening: bytes
    call: Callable[[int], bytes] | None = None
    """The frames of one call on the stream of this number."""


@dataclass
class Holder:
    """One connection."""

    wire: socket.socket
    unread: bytes = b""
    """Bytes that came and are no whole frame yet."""
    unsent: bytes = b""
    next_stream: int = 1
    open_streams: set[int] = field(default_factory=set)


@dataclass
class Count:
    """Places that were asked for, and those that the server took back."""

    asked: int = 0
    lost: int = 0


def _without_body(stream: int) -> bytes:
    return _begun(stream, "/toolgate.v1.RouterService/Route")


def _with_large_answer(stream: int) -> bytes:
    asked = router_pb2.GetSummaryPoolRequest(tenant=TENANT, render=True).SerializeToString()
    body = b"\0" + len(asked).to_bytes(4, "big") + asked
    begun = _begun(stream, "/toolgate.v1.RouterService/GetSummaryPool")
    return begun + bytes(DataFrame(stream, body, flags=["END_STREAM"]).serialize())


def _begun(stream: int, path: str) -> bytes:
    headers = [(name, path if name == ":path" else value) for name, value in HEADERS]
    # Nothing is indexed, so that frames don't depend on those before.
    data = Encoder().encode([(*header, True) for header in headers])
    return bytes(HeadersFrame(stream, data=data, flags=["END_HEADERS"]).serialize())


_HTTP2 = PREFACE + SettingsFrame(0).serialize()
_HTTP2_WITHOUT_WINDOW = (
    PREFACE + SettingsFrame(0, settings={SettingsFrame.INITIAL_WINDOW_SIZE: 0}).serialize()
)
_HTTP1_WITHOUT_END = b"POST /toolgate.v1.RouterService/Route HTTP/1.1\r\nhost: x\r\nx-a: "

KINDS = {
    # On a port with TLS, a handshake that never begins.
    "silent": Kind(CONNECTIONS, b""),
    # Pings are answered.
    "idle": Kind(CONNECTIONS, _HTTP2),
    "slow-headers": Kind(CONNECTIONS, _HTTP1_WITHOUT_END),
    "no-bodies": Kind(2, _HTTP2, _without_body),
    "unread-answers": Kind(4, _HTTP2_WITHOUT_WINDOW, _with_large_answer),
}


def hold(kind: Kind, target: tuple[str, int], seconds: float) -> Count:
    """Keeps as many connections and calls as the kind has, for so long."""
    count = Count()
    until = time.monotonic() + seconds
    next_round = time.monotonic()
    with selectors.DefaultSelector() as waiting:
        while time.monotonic() < until:
            if time.monotonic() >= next_round:
                next_round = time.monotonic() + ROUND
                _take_connections(kind, target, waiting, count)
                for key in list(waiting.get_map().values()):
                    if not _take_calls(kind, key.data, count):
                        _give_up(key.data, waiting, count)
            for key, _ in waiting.select(max(0.0, next_round - time.monotonic())):
                if not _read(key.data, count):
                    _give_up(key.data, waiting, count)
    return count


def _take_connections(
    kind: Kind, target: tuple[str, int], waiting: selectors.BaseSelector, count: Count
) -> None:
    for _ in range(min(CONNECTIONS_A_ROUND, kind.connections - len(waiting.get_map()))):
        count.asked += 1
        try:
            wire = socket.create_connection(target, timeout=1)
            wire.sendall(kind.opening)
        except OSError:
            count.lost += 1
            continue
        wire.setblocking(False)
        waiting.register(wire, selectors.EVENT_READ, Holder(wire))


def _take_calls(kind: Kind, holder: Holder, count: Count) -> bool:
    """Opens calls where some have ended; `False` when the connection has."""
    if kind.call is not None:
        for _ in range(min(CALLS_A_ROUND, CALLS - len(holder.open_streams))):
            holder.unsent += kind.call(holder.next_stream)
            holder.open_streams.add(holder.next_stream)
            holder.next_stream += 2
            count.asked += 1
    return _send(holder)


def _send(holder: Holder) -> bool:
    try:
        while holder.unsent:
            holder.unsent = holder.unsent[holder.wire.send(holder.unsent) :]
    except BlockingIOError:
        return True
    except OSError:
        return False
    return True


def _give_up(holder: Holder, waiting: selectors.BaseSelector, count: Count) -> None:
    waiting.unregister(holder.wire)
    holder.wire.close()
    count.lost += 1 + len(holder.open_streams)


def _read(holder: Holder, count: Count) -> bool:
    """Reads what came, answers pings and takes note of calls that ended; `False` at the end."""
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
        # Of the header, the fifth byte has the flags.
        is_last = bool(holder.unread[4] & END_STREAM)
        ends = frame.type == RESET or (frame.type == HEADERS_TYPE and is_last)
        body, holder.unread = holder.unread[9 : 9 + length], holder.unread[9 + length :]
        if frame.type == PING and "ACK" not in frame.flags:
            holder.unsent += PingFrame(0, opaque_data=body, flags=["ACK"]).serialize()
        elif ends and frame.stream_id in holder.open_streams:
            holder.open_streams.remove(frame.stream_id)
            count.lost += 1
    return _send(holder)


if __name__ == "__main__":
    # Whoever measures must not wait for whoever holds.
    os.nice(10)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    host, port = sys.argv[2].rsplit(":", 1)
    held = hold(KINDS[sys.argv[1]], (host, int(port)), float(sys.argv[3]))
    print(json.dumps({"asked": held.asked, "lost": held.lost}))
