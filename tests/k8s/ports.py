"""Ports of this machine for the tests' own processes."""

import socket
import sys

LOCAL = "127.0.0.1"

_held: list[socket.socket] = []


def free_port() -> int:
    """A port that no other process is given; it is held as in tests/e2e/toolgate_process.py."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind((LOCAL, 0))
    _held.append(holder)
    port: int = holder.getsockname()[1]
    if sys.platform != "linux":
        holder.close()
    return port
