"""Replicas restarted one after another under load, with clients that try again as they do."""

import secrets
import signal
import socket
import time
from base64 import b64encode
from contextlib import ExitStack

from toolgate_process import ToolgateProcess

from .ground import Ground, register
from .promise import Figure, Plot, Promise, Series

REPLICAS = 3
TENANT = "restarts"
DRAIN_SECONDS = 2
RATE = 40
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
        load = ground.begin_load(
            [replica.target for replica in replicas],
            *("--stream", f"{TENANT}={RATE}", "--seconds", str(restarts * 60)),
            *("--deadline", "5", "--retry", "--warmup", "1"),
        )
        time.sleep(2)
        began, exits = time.monotonic(), []
        for number in range(restarts):
            exits.append(_restart(replicas[number % REPLICAS], number % SILENT_EACH == 0))
        took = time.monotonic() - began
        load.send_signal(signal.SIGINT)
        report = ground.end_load(load)
    found = report["all"]
    failed = sum(found["failed"].values()) + found["refused"] + found["unsent"]
    bound = DRAIN_SECONDS + 2
    figures = [
        Figure(
            f"failed calls of {found['offered']} over {len(exits)} restarts",
            "0",
            f"{failed}" + (f" ({found['failed']})" if failed else ""),
            failed == 0,
            "the load generator finds out by a call whether a replica is back, of three that each "
            "call has; gRPC's clients connect beforehand",
        ),
        Figure(
            "time to exit",
            f"<= drain + 2 s = {bound} s",
            f"{max(exits):.2f} s at most, {sorted(exits)[len(exits) // 2]:.2f} s in the middle",
            max(exits) <= bound,
        ),
    ]
    how = (
        f"{REPLICAS} replicas, {RATE} Route calls a second in an open loop over all of them, each "
        "tried again on UNAVAILABLE as "
        "the clients' service config says; one replica after another gets SIGTERM, exits, starts "
        "and becomes ready, "
        f"{len(exits)} times in {took:.0f} s. One time in {SILENT_EACH}, a peer is connected that "
        "never answers."
    )
    plot = Plot(
        "restarts.svg",
        "Answers' p99 while replicas restart",
        "ms",
        [Series("p99", [second["answer_p99_ms"] for second in report["seconds"]])],
    )
    return Promise("Rolling restart", how, figures, [plot])


def _restart(replica: ToolgateProcess, beside_silence: bool) -> float:
    """Seconds from the signal to the exit."""
    with socket.socket() as peer:
        if beside_silence:
            host, _, port = replica.target.partition(":")
            peer.connect((host, int(port)))
            peer.sendall(HELLO)
            peer.recv(1)
        began = time.monotonic()
        replica.stop()
        took = time.monotonic() - began
    replica.start_again()
    return took
