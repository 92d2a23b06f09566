"""Replicas restarted one after another under the load of a shipped client."""

import secrets
import socket
import time
from base64 import b64encode
from contextlib import ExitStack

from toolgate_process import ToolgateProcess

from .ground import Ground, on, register
from .open_loop import calling
from .promise import Figure, Plot, Promise, Series

REPLICAS = 3
TENANT = "restarts"
DRAIN_SECONDS = 2
RATE = 40
TIMEOUT = 5.0
"""Seconds of a call, its retries included."""
SILENT_EACH = 10
"""Of so many restarts, one has a peer that says hello and then nothing, to the end."""
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""HTTP/2's preface, with empty SETTINGS (RFC 9113, 3.4)."""


def measure(ground: Ground, restarts: int) -> Promise:
    key = b64encode(secrets.token_bytes(32)).decode()
    settings = {"server.drain_timeout": f"{DRAIN_SECONDS}s", "handle.key": key}
    with ExitStack() as stack:
        replicas = [
            stack.enter_context(ground.server(settings, name=f"replica-{number}"))
            for number in range(REPLICAS)
        ]
        for replica in replicas:
            register(replica, TENANT, servers=4)
        targets = [replica.target for replica in replicas]
        with on(ground.generator_cores), calling(targets, TENANT, RATE, TIMEOUT) as calls:
            time.sleep(2)
            began, exits = time.monotonic(), []
            for number in range(restarts):
                exits.append(_restart(ground, replicas[number % REPLICAS], number))
            took = time.monotonic() - began
    failed = calls.unanswered()
    bound = DRAIN_SECONDS + 2
    figures = [
        Figure(
            f"failed calls of {calls.offered} over {len(exits)} restarts",
            "0",
            f"{failed}" + (f" ({dict(calls.errors)})" if failed else ""),
            failed == 0,
        ),
        Figure(
            "time to exit",
            f"<= drain + 2 s = {bound} s",
            f"{max(exits):.2f} s at most, {sorted(exits)[len(exits) // 2]:.2f} s in the middle",
            max(exits) <= bound,
        ),
    ]
    how = (
        f"{REPLICAS} replicas, {RATE} Route calls a second in an open loop, made by one Python "
        "client that has all their addresses and the service config that it is shipped with; one "
        "replica after another gets SIGTERM, exits, starts and becomes ready, "
        f"{len(exits)} times in {took:.0f} s. One time in {SILENT_EACH}, a peer is connected that "
        "never answers."
    )
    plot = Plot(
        "restarts.svg",
        "Answers' p99 while replicas restart",
        "ms",
        [Series("p99", calls.p99())],
    )
    return Promise("Rolling restart", how, figures, [plot])


def _restart(ground: Ground, replica: ToolgateProcess, number: int) -> float:
    """Seconds from the signal to the exit."""
    with socket.socket() as peer:
        if number % SILENT_EACH == 0:
            host, _, port = replica.target.partition(":")
            peer.connect((host, int(port)))
            peer.sendall(HELLO)
            peer.recv(1)
        began = time.monotonic()
        replica.stop()
        took = time.monotonic() - began
    with on(ground.server_cores):
        replica.start_again()
    return took
