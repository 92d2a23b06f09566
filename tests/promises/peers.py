"""Peers who hold places and leave them unused, beside honest callers: what those notice."""

import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import trustme
from catalogs import SHIPPED
from toolgate_process import ToolgateProcess

from . import holders
from .ground import PEOPLE, Ground, on, register
from .overload import TENANTS, _ceiling
from .promise import Figure, Promise

HOLDERS = [sys.executable, "-m", "promises.holders"]
KINDS = {
    "idle": "1,200 idle HTTP/2 connections that answer pings",
    "slow-headers": "1,200 HTTP/1.1 connections whose headers never end",
    "no-bodies": "512 calls over two connections whose bodies never come",
    "unread-answers": "1,024 calls over four connections whose answers are not read",
}
HONEST = TENANTS[0]
MOVED = 2.0
OF_CEILING = 0.5
HANDSHAKE_MS = 250.0


def measure(ground: Ground, seconds: int) -> Promise:
    with ground.server({"encoder.cache_memory": "0B"}) as server:
        register(server, *TENANTS, servers=6)
        # Its summary pool is the large answer that a peer does not read.
        register(server, holders.TENANT)
        ceiling = _ceiling(ground, server, seconds)
        honest = (
            "--stream",
            f"{HONEST}={ceiling * OF_CEILING:.2f}",
            "--seconds",
            str(seconds),
            *PEOPLE,
        )
        calm = ground.load([server.target], *honest)["all"]
        figures = [
            _beside(ground, server, kind, honest, calm["answer_ms"]["p99"], seconds)
            for kind in KINDS
        ]
        figures.append(_beside_registrations(ground, server, honest, calm["answer_ms"]["p99"]))
    figures.append(_handshakes(ground, seconds))
    how = (
        f"Honest callers at half of the ceiling ({ceiling * OF_CEILING:.0f}/s) with intents of "
        "`people.jsonl`, each embedded at every call, "
        f"whose p99 is {calm['answer_ms']['p99']:.1f} ms alone; beside them one peer without "
        "credentials, from the same address, that takes its places again whenever they are taken "
        "from it. Authentication is off, limits are the defaults. Registrations: another tenant "
        "registers the largest shipped catalog again and again, each description begun with "
        "another word."
    )
    return Promise("Peers who hold places", how, figures)


def _beside(
    ground: Ground,
    server: ToolgateProcess,
    kind: str,
    honest: tuple[str, ...],
    calm: float,
    seconds: int,
) -> Figure:
    with _holding(ground, server.target, kind, seconds + 4) as held:
        # The peer has its places when the honest callers come.
        time.sleep(2)
        found = ground.load([server.target], *honest)["all"]
    moved = found["answer_ms"]["p99"] / calm
    failed = found["refused"] + found["unsent"] + sum(found["failed"].values())
    return Figure(
        f"honest p99 beside {KINDS[kind]}",
        f"<= {MOVED:g}x, none failed",
        f"{moved:.2f}x ({found['answer_ms']['p99']:.1f} ms; {failed} of {found['offered']} failed; "
        f"{held['lost']} of {held['asked']} places taken back)",
        moved <= MOVED and failed == 0,
    )


@contextmanager
def _holding(ground: Ground, target: str, kind: str, seconds: float) -> Iterator[dict[str, int]]:
    """The peer is there within the block; what it had is in the mapping after it."""
    with on(ground.generator_cores):
        asked = [*HOLDERS, kind, target, str(seconds)]
        running = subprocess.Popen(asked, stdout=subprocess.PIPE)
    had: dict[str, int] = {}
    try:
        yield had
    finally:
        had |= json.loads(running.communicate()[0] or "{}")


def _beside_registrations(
    ground: Ground, server: ToolgateProcess, honest: tuple[str, ...], calm: float
) -> Figure:
    over = threading.Event()
    registered = 0

    def register_again() -> None:
        nonlocal registered
        largest = max(SHIPPED.glob("*.json"), key=lambda file: file.stat().st_size)
        tools = json.loads(largest.read_text())["tools"]
        texts = [tool.get("description", "") for tool in tools]
        chance = Random(7)
        # Beside the load generator, and behind it: the server has its core to itself.
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
        with on(ground.generator_cores), server.client("tenant-2", timeout=300) as client:
            while not over.is_set():
                # Before the others, so that each summary changes and is embedded.
                word = "".join(chance.choices("aeiklmnorst", k=7))
                for tool, text in zip(tools, texts, strict=True):
                    tool["description"] = f"{word} {text}"
                client.register_server("large", tools)
                registered += 1

    registering = threading.Thread(target=register_again)
    registering.start()
    try:
        found = ground.load([server.target], *honest)["all"]
    finally:
        over.set()
        registering.join()
    moved = found["answer_ms"]["p99"] / calm
    failed = found["refused"] + found["unsent"] + sum(found["failed"].values())
    return Figure(
        "honest p99 beside another tenant's registrations",
        f"<= {MOVED:g}x, none failed",
        f"{moved:.2f}x ({found['answer_ms']['p99']:.1f} ms; {failed} of {found['offered']} failed; "
        f"{registered} registrations)",
        moved <= MOVED and failed == 0 and registered > 0,
        "its texts are embedded on the one core that serves",
    )


class _TlsServer(ToolgateProcess):
    """Ready as soon as its admin port says so: a channel without TLS would not be."""

    def _await_channel(self) -> None:
        pass


def _handshakes(ground: Ground, seconds: int) -> Figure:
    authority = trustme.CA()
    folder = ground.folder / "tls"
    folder.mkdir()
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(str(folder / "key.pem"))
    issued.cert_chain_pems[0].write_to_path(str(folder / "cert.pem"))
    settings = {
        "tls.cert_file": str(folder / "cert.pem"),
        "tls.key_file": str(folder / "key.pem"),
        "encoder.threads": "1",
        "log.level": "warn",
    }
    server = _TlsServer(ground.toolgate, folder / "server", settings)
    with on(ground.server_cores):
        server.start()
    try:
        context = ssl.create_default_context()
        authority.configure_trust(context)
        context.set_alpn_protocols(["h2"])
        calm = _shake(server.target, context, seconds)
        with _holding(ground, server.target, "silent", seconds + 4) as held:
            time.sleep(2)
            beside = _shake(server.target, context, seconds)
    finally:
        server.stop()
    failed = sum(one == float("inf") for one in beside)
    p99 = _p99(beside)
    return Figure(
        "TLS handshakes beside 1,200 connections that say nothing",
        f"p99 <= {HANDSHAKE_MS:g} ms, none failed",
        f"p99 {p99:.1f} ms, {failed} of {len(beside)} failed ({_p99(calm):.1f} ms alone; "
        f"{held['lost']} of {held['asked']} connections taken back)",
        failed == 0 and p99 <= HANDSHAKE_MS,
    )


def _shake(target: str, context: ssl.SSLContext, seconds: int) -> list[float]:
    """Milliseconds of each handshake, some twenty a second; infinite where it failed."""
    host, port = target.rsplit(":", 1)
    until, took = time.monotonic() + seconds, []
    while time.monotonic() < until:
        began = time.monotonic()
        try:
            with (
                socket.create_connection((host, int(port)), timeout=5) as wire,
                context.wrap_socket(wire, server_hostname=host),
            ):
                took.append((time.monotonic() - began) * 1_000)
        except OSError:
            took.append(float("inf"))
        time.sleep(0.05)
    return took


def _p99(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]
