"""Replicas over one PostgreSQL: how soon each serves what another did, and without it."""

import secrets
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from catalogs import NOTES, WEATHER
from postgres_server import PostgresServer
from toolgate_process import ToolgateProcess

from toolgate import Call, ToolgateError

from .ground import Ground, register
from .promise import Figure, Plot, Promise, Series

TENANT = "replicas"
RATE = 40
RAIN = "will it rain in Oslo tomorrow?"
FORECAST = Call("mcp__weather__get_forecast")
SERVED_WITHIN = 2.0
AROUND = 10
"""Seconds of load before the store is killed, and after it is back."""
HANDLE_KEPT = 60.0
"""Seconds; a turn's handle expires."""
GIVE_UP = 30.0


def measure_following(ground: Ground, changes: int) -> Promise:
    with _replicas(ground, listen=True) as (_, pair):
        hinted = _served_after(*pair, changes)
        waited = _waits(*pair, changes)
    with _replicas(ground, listen=False) as (_, pair):
        polled = _served_after(*pair, changes)
    figures = [
        _soon("served by the other, told by LISTEN/NOTIFY", hinted),
        _soon("served by the other, by polling alone", polled),
        Figure(
            f"Route with `min_revision` at the other, right after each of {changes} changes",
            "never an older catalog",
            f"0 older; {_spread(waited)}",
            True,
        ),
    ]
    how = (
        f"Two servers over one PostgreSQL. {changes} registrations at one, each of which changes "
        "what Route shows; the other is asked every 5 ms until it shows it. Times count from the "
        "acknowledgement."
    )
    return Promise("Replicas", how, figures)


def measure_outage(ground: Ground, seconds: int) -> Promise:
    """The store is killed for so long; a replica is restarted meanwhile."""
    with _replicas(ground, listen=True) as (postgres, (one, other)):
        register(one, TENANT, servers=4)
        with one.client(TENANT) as client:
            client.register_server("weather", WEATHER)
        for replica in (one, other):
            _wait_for_copy(replica)
        load = ground.begin_load(
            [one.target, other.target],
            *("--stream", f"{TENANT}={RATE}", "--seconds", str(seconds + 2 * AROUND)),
            *("--deadline", "5", "--retry", "--warmup", "1"),
        )
        time.sleep(1 + AROUND)
        postgres.stop()
        down = time.monotonic()
        with _gates(one) as gates:
            time.sleep(seconds / 4)
            other.stop()
            other.start_again()
            time.sleep(max(0.0, seconds - (time.monotonic() - down)))
        away = time.monotonic() - down
        postgres.start()
        recovered = _until_writable(one)
        report = ground.end_load(load)
    found = report["all"]
    failed = sum(found["failed"].values()) + found["refused"] + found["unsent"]
    figures = [
        Figure(
            f"failed Route calls of {found['offered']}",
            "0",
            f"{failed}" + (f" ({found['failed']})" if failed else ""),
            failed == 0,
        ),
        Figure(f"failed Gate calls of {gates.made}", "0", f"{gates.failed}", gates.failed == 0),
        Figure(
            "a registration after the store is back",
            "accepted",
            f"after {recovered:.1f} s",
            recovered < GIVE_UP,
        ),
    ]
    how = (
        f"Two servers over one PostgreSQL, {RATE} Route calls a second over both, tried again on "
        "UNAVAILABLE, and Gate calls one after another at one. PostgreSQL is killed for "
        f"{away:.0f} s; the other server is stopped and started in that time, and serves from its "
        "copies. `store.max_staleness` is 2 h: with its default Gate refuses calls after 15 min."
    )
    plot = Plot(
        "outage.svg",
        "Answers' p99 while the store is down",
        "ms",
        [Series("p99", [second["answer_p99_ms"] for second in report["seconds"]])],
        {"store killed": AROUND, "replica restarted": AROUND + seconds / 4},
    )
    return Promise("Store down", how, figures, [plot])


@contextmanager
def _replicas(
    ground: Ground, listen: bool
) -> Iterator[tuple[PostgresServer, tuple[ToolgateProcess, ToolgateProcess]]]:
    postgres = PostgresServer().start()
    try:
        settings = {
            "store.url": postgres.database(),
            "store.connect_timeout": "500ms",
            "store.max_staleness": "2h",
            "store.notify": str(listen).lower(),
            "handle.key": b64encode(secrets.token_bytes(32)).decode(),
        }
        how = "told" if listen else "polling"
        with (
            ground.server(settings, name=f"{how}-one") as one,
            ground.server(settings, name=f"{how}-other") as other,
        ):
            yield postgres, (one, other)
    finally:
        postgres.remove()


def _served_after(one: ToolgateProcess, other: ToolgateProcess, changes: int) -> list[float]:
    """Seconds from each acknowledgement until the other shows the change."""
    found = []
    with one.client(TENANT) as writer, other.client(TENANT) as reader:
        writer.register_server("notes", NOTES)
        for change in range(changes):
            wanted = {tool["name"] for tool in WEATHER[: 1 + change % 2]}
            writer.register_server("weather", WEATHER[: 1 + change % 2])
            began = time.monotonic()
            while True:
                turn = reader.route(RAIN, threshold=-1)
                if {tool.name for tool in turn if tool.server == "weather"} == wanted:
                    break
                if time.monotonic() - began > GIVE_UP:
                    break
                time.sleep(0.005)
            found.append(time.monotonic() - began)
    return found


def _waits(one: ToolgateProcess, other: ToolgateProcess, changes: int) -> list[float]:
    """Seconds that Route with `min_revision` takes at the other."""
    found = []
    with one.client(TENANT) as writer, other.client(TENANT) as reader:
        for change in range(changes):
            tools = WEATHER[: 1 + change % 2]
            revision = writer.register_server("weather", tools).catalog_revision
            began = time.monotonic()
            turn = reader.route(RAIN, min_revision=revision, threshold=-1)
            found.append(time.monotonic() - began)
            shown = {tool.name for tool in turn if tool.server == "weather"}
            if shown != {tool["name"] for tool in tools}:
                raise SystemExit(f"revision {revision} was asked for, and an older one was shown")
    return found


@dataclass
class Gates:
    """Gate calls that were made, and those that failed or refused what is allowed."""

    made: int = 0
    failed: int = 0
    over: threading.Event = field(default_factory=threading.Event)


@contextmanager
def _gates(server: ToolgateProcess) -> Iterator[Gates]:
    """Gates calls one after another until the block ends."""
    gates = Gates()

    def go_on() -> None:
        with server.client(TENANT) as client:
            until = 0.0
            while not gates.over.is_set():
                gates.made += 1
                try:
                    if time.monotonic() > until:
                        handle = client.route(RAIN, threshold=-1).handle
                        until = time.monotonic() + HANDLE_KEPT
                    gates.failed += not client.gate(handle, FORECAST, timeout=5)[0].allowed
                except ToolgateError:
                    gates.failed += 1
                time.sleep(0.02)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield gates
    finally:
        gates.over.set()
        thread.join(timeout=GIVE_UP)


def _until_writable(server: ToolgateProcess) -> float:
    """Seconds until a registration is accepted."""
    began = time.monotonic()
    with server.client(TENANT) as client:
        while time.monotonic() - began < GIVE_UP:
            try:
                client.register_server("notes", NOTES, timeout=2)
            except ToolgateError:
                time.sleep(0.1)
            else:
                break
    return time.monotonic() - began


def _wait_for_copy(server: ToolgateProcess) -> None:
    """Has the server load the tenant, and waits until it keeps a copy of its own."""
    with server.client(TENANT) as client:
        client.route(RAIN)
    give_up = time.monotonic() + GIVE_UP
    while not any((server.folder / "data" / "snapshots").glob("*.copy")):
        if time.monotonic() > give_up:
            raise SystemExit("no copy of the catalog was kept")
        time.sleep(0.05)


def _soon(what: str, found: list[float]) -> Figure:
    return Figure(what, f"<= {SERVED_WITHIN:g} s", _spread(found), max(found) <= SERVED_WITHIN)


def _spread(found: list[float]) -> str:
    middle = sorted(found)[len(found) // 2]
    return f"{max(found) * 1000:.0f} ms at most, {middle * 1000:.0f} ms in the middle"
