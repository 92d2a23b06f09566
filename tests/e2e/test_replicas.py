"""Replicas over one PostgreSQL: what one commits the others serve, also while it is down."""

import base64
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import grpc
import pytest
from catalogs import NOTES, WEATHER, refused
from conftest import StartServer
from postgres_server import PostgresServer
from test_watch import Watch
from toolgate_process import ToolgateProcess
from waiting import PATIENCE, wait_until

from toolgate import Call, Client, DegradedReason, ToolgateError
from toolgate._gen.v1 import router_pb2, router_pb2_grpc

RAIN = "will it rain in Oslo tomorrow?"
FORECAST = Call("mcp__weather__get_forecast")


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    server = PostgresServer().start()
    yield server
    server.remove()


class Replicas(NamedTuple):
    url: str
    one: ToolgateProcess
    other: ToolgateProcess


def settings(url: str, **more: str) -> dict[str, str]:
    key = base64.b64encode(bytes(32)).decode()
    return {"store.url": url, "handle.key": key, "usage.flush_interval": "100ms", **more}


@pytest.fixture
def replicas(postgres: PostgresServer, start_server: StartServer) -> Replicas:
    url = postgres.database()
    return Replicas(url, start_server(settings(url)), start_server(settings(url)))


def names(client: Client) -> set[str]:
    """The tools that Route shows, whatever fits."""
    return {tool.name for tool in client.route(RAIN, threshold=-1)}


def test_what_one_replica_commits_the_other_serves(replicas: Replicas) -> None:
    with replicas.one.client("acme") as one, replicas.other.client("acme") as other:
        one.register_server("notes", NOTES)
        assert "create_note" in names(other)
        one.register_server("weather", WEATHER)
        wait_until(lambda: "get_forecast" in names(other), "a registration")
        other.unregister_server("notes")
        wait_until(lambda: "create_note" not in names(one), "a removal")
        assert "get_forecast" in names(one)
        one.set_policy("rules: [{name: dry, match: {tools: [get_rain_alerts]}, denied: true}]")
        wait_until(lambda: "get_rain_alerts" not in names(other), "a policy")
    status, text = replicas.one.get("/metrics")
    assert status == 200
    assert "toolgate_store_failures_total 0" in text
    lag = next(line for line in text.splitlines() if line.startswith("toolgate_catalog_lag_sec"))
    assert 0 <= float(lag.split()[1]) < PATIENCE, lag


def test_polling_alone_is_enough(postgres: PostgresServer, start_server: StartServer) -> None:
    url = postgres.database()
    one = start_server(settings(url))
    other = start_server(settings(url, **{"store.notify": "false"}))
    with one.client("acme") as writer, other.client("acme") as reader:
        writer.register_server("notes", NOTES)
        assert "create_note" in names(reader)
        writer.register_server("weather", WEATHER)
        wait_until(lambda: "get_forecast" in names(reader), "a registration")


def test_min_revision_reads_what_was_written(replicas: Replicas) -> None:
    with replicas.one.client("acme") as one, replicas.other.client("acme") as other:
        one.register_server("notes", NOTES)
        names(other)
        for attempt in range(10):
            tools = WEATHER[: 1 + attempt % 2]
            revision = one.register_server("weather", tools).catalog_revision
            turn = other.route(RAIN, min_revision=revision, threshold=-1)
            assert turn.catalog_revision >= revision
            shown = {tool.name for tool in turn if tool.server == "weather"}
            assert shown == {tool["name"] for tool in tools}
    # Without the client's own retries.
    options = [("grpc.enable_retries", 0)]
    with grpc.insecure_channel(replicas.other.target, options=options) as channel:
        intents = [router_pb2.Intent(text=RAIN)]
        never = router_pb2.RouteRequest(tenant="acme", intents=intents, min_revision=10**9)
        begun = time.monotonic()
        with refused(grpc.StatusCode.UNAVAILABLE, "REVISION_NOT_REACHED"):
            router_pb2_grpc.RouterServiceStub(channel).Route(never, timeout=60)
    assert time.monotonic() - begun > 4, "it waited, and answered before the deadline"


def test_handles_of_one_are_the_others_too(replicas: Replicas) -> None:
    with replicas.one.client("acme") as one, replicas.other.client("acme") as other:
        one.register_server("weather", WEATHER)
        turn = one.route(RAIN, threshold=-1)
        verdict = other.gate(turn.handle, FORECAST)[0]
        assert verdict.allowed, verdict


def test_watchers_of_one_hear_what_the_other_commits(replicas: Replicas) -> None:
    with (
        replicas.one.client("acme") as one,
        grpc.insecure_channel(replicas.other.target) as channel,
    ):
        watch = Watch(channel, "acme")
        assert watch.next() == (0, [], False, False)
        one.register_server("notes", NOTES)
        assert watch.next() == (1, ["notes"], False, False)
        watch.call.cancel()


def test_usage_of_both_adds_up(replicas: Replicas) -> None:
    with replicas.one.client("acme") as one, replicas.other.client("acme") as other:
        one.register_server("weather", WEATHER)
        for _ in range(3):
            one.route(RAIN)
        for _ in range(4):
            other.route(RAIN)
        wait_until(lambda: one.get_usage().total.route_calls == 7, "usage")


def test_the_shared_store_is_no_secret_in_the_log(
    postgres: PostgresServer, start_server: StartServer
) -> None:
    url = postgres.database().replace("toolgate@", "toolgate:s3cret@")
    server = start_server(settings(url, **{"log.level": "trace"}))
    with server.client("acme") as client:
        client.register_server("weather", WEATHER)
    assert "s3cret" not in server.log_text()


# The store is down


def test_a_replica_serves_while_the_store_is_down(
    start_server: StartServer, tmp_path: Path
) -> None:
    postgres = PostgresServer().start()
    try:
        url = postgres.database()
        quick = {"store.connect_timeout": "500ms"}
        replica = start_server(settings(url, **quick))
        other = start_server(settings(url, **quick))
        with replica.client("acme") as client, other.client("acme") as writer:
            client.register_server("weather", WEATHER)
            client.register_server("notes", NOTES)
            handle = client.route(RAIN, threshold=-1).handle
            assert "get_forecast" in names(writer)
        copies = tmp_path / "server0" / "data" / "snapshots"
        wait_until(lambda: any(copies.glob("*.copy")), "a copy")
        postgres.stop()
        _answers_all(replica, handle)
        replica.kill()
        replica.start_again()
        _answers_all(replica, handle)
        assert "starting without it" in replica.log_text()
        wait_until(lambda: "the store can't be reached" in replica.get("/readyz")[1], "readiness")
        with replica.client("acme") as client:
            with pytest.raises(ToolgateError) as caught:
                client.register_server("more", NOTES)
            assert caught.value.code is grpc.StatusCode.UNAVAILABLE
        with replica.client("unknown") as client, pytest.raises(ToolgateError) as caught:
            client.route(RAIN)
        assert caught.value.code is grpc.StatusCode.UNAVAILABLE

        postgres.start()
        wait_until(lambda: replica.get("/readyz")[1] == "ok\n", "recovery")
        wait_until(lambda: other.get("/readyz")[1] == "ok\n", "recovery")
        with replica.client("acme") as client, other.client("acme") as writer:
            writer.unregister_server("notes")
            wait_until(lambda: "create_note" not in names(client), "what was changed since")
            client.register_server("notes", NOTES)
            wait_until(lambda: "create_note" in names(writer), "what was changed here")
    finally:
        postgres.remove()


def test_gate_refuses_what_a_replica_can_no_longer_vouch_for(start_server: StartServer) -> None:
    postgres = PostgresServer().start()
    try:
        settings_here = settings(
            postgres.database(),
            **{"store.connect_timeout": "500ms", "store.max_staleness": "2s"},
        )
        replica = start_server(settings_here)
        with replica.client("acme") as client:
            client.register_server("weather", WEATHER)
            turn = client.route(RAIN, threshold=-1)
            assert not turn.degraded
            assert client.gate(turn.handle, FORECAST)[0].allowed
            postgres.stop()

            def refusal() -> ToolgateError | None:
                try:
                    client.gate(turn.handle, FORECAST)
                except ToolgateError as error:
                    return error
                return None

            wait_until(lambda: refusal() is not None, "a refusal")
            error = refusal()
            assert error is not None
            assert error.code is grpc.StatusCode.UNAVAILABLE
            assert error.reason == "STORE_UNAVAILABLE"
            assert "store.max_staleness" in str(error)
            late = client.route(RAIN, threshold=-1)
            assert "get_forecast" in {tool.name for tool in late}
            assert late.degraded == (DegradedReason.STALE_CATALOG,)
            # It counts on over a restart, and ends with the store's return.
            replica.kill()
            replica.start_again()
            wait_until(lambda: refusal() is not None, "a refusal")
            postgres.start()
            wait_until(lambda: refusal() is None, "an allowed call")
            wait_until(lambda: not client.route(RAIN, threshold=-1).degraded, "a fresh answer")
    finally:
        postgres.remove()


def _answers_all(replica: ToolgateProcess, handle: str) -> None:
    with replica.client("acme") as client:
        for _ in range(50):
            turn = client.route(RAIN, threshold=-1)
            assert {"get_forecast", "create_note"} <= {tool.name for tool in turn}
            assert client.gate(turn.handle, FORECAST)[0].allowed
            assert client.gate(handle, FORECAST)[0].allowed
