"""WatchCatalog: what is told, to whom, and how it ends."""

from collections.abc import Iterator

import grpc
import pytest
from catalogs import NOTES, WEATHER, refused
from conftest import StartServer
from toolgate_process import ToolgateProcess
from waiting import PATIENCE, wait_until

from toolgate import Client
from toolgate._gen.v1 import catalog_pb2, catalog_pb2_grpc

Told = tuple[int, list[str], bool, bool]


class Watch:
    """A stream whose answers are plain values."""

    def __init__(self, channel: grpc.Channel, tenant: str, since: int | None = None) -> None:
        stub = catalog_pb2_grpc.CatalogServiceStub(channel)
        request = catalog_pb2.WatchCatalogRequest(tenant=tenant, since_revision=since)
        self.call = stub.WatchCatalog(request, timeout=PATIENCE)
        self._answers: Iterator[catalog_pb2.WatchCatalogResponse] = iter(self.call)

    def next(self) -> Told:
        answer = next(self._answers)
        return (
            answer.catalog_revision,
            list(answer.servers),
            answer.policy_changed,
            answer.reset,
        )

    def is_open(self) -> None:
        """Waits until the server has taken the call."""
        self.call.initial_metadata()


@pytest.fixture
def watch(channel: grpc.Channel, tenant: str) -> Iterator[Watch]:
    watch = Watch(channel, tenant)
    yield watch
    watch.call.cancel()


def test_changes_are_told_as_they_are_committed(client: Client, watch: Watch) -> None:
    assert watch.next() == (0, [], False, False), "a tenant without a catalog may be watched"
    client.register_server("notes", NOTES)
    assert watch.next() == (1, ["notes"], False, False)
    client.set_policy({"rules": []})
    assert watch.next() == (2, [], True, False)
    client.unregister_server("notes")
    assert watch.next() == (3, ["notes"], False, False)


def test_what_was_missed_comes_first_and_at_once(
    client: Client, channel: grpc.Channel, tenant: str
) -> None:
    client.register_server("notes", NOTES)
    client.register_server("weather", WEATHER)
    client.unregister_server("notes")
    assert Watch(channel, tenant, since=1).next() == (3, ["notes", "weather"], False, False)
    assert Watch(channel, tenant, since=0).next() == (3, ["weather"], False, False)
    assert Watch(channel, tenant).next() == (3, [], False, False)
    assert Watch(channel, tenant, since=99).next() == (3, [], False, True), "never reached"


def test_who_is_up_to_date_waits(client: Client, channel: grpc.Channel, tenant: str) -> None:
    client.register_server("notes", NOTES)
    watch = Watch(channel, tenant, since=1)
    watch.is_open()
    client.register_server("weather", WEATHER)
    assert watch.next() == (2, ["weather"], False, False)


def test_other_tenants_are_not_told(
    client: Client, server: ToolgateProcess, channel: grpc.Channel, tenant: str
) -> None:
    watch = Watch(channel, f"{tenant}-other")
    assert watch.next() == (0, [], False, False)
    client.register_server("notes", NOTES)
    with server.client(f"{tenant}-other") as other:
        other.register_server("weather", WEATHER)
    assert watch.next() == (1, ["weather"], False, False)


def test_a_mistaken_tenant_is_named(channel: grpc.Channel) -> None:
    with refused(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD"):
        Watch(channel, "Not a tenant").next()


def test_watches_are_bounded_and_their_places_come_back(start_server: StartServer) -> None:
    server = start_server({"server.max_watches": "2"})
    with grpc.insecure_channel(server.target) as channel:
        held = [Watch(channel, "a"), Watch(channel, "b")]
        assert [watch.next()[0] for watch in held] == [0, 0]
        with refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED"):
            Watch(channel, "c").next()
        held[0].call.cancel()

        def is_served() -> bool:
            try:
                return Watch(channel, "c").next() == (0, [], False, False)
            except grpc.RpcError:
                return False

        wait_until(is_served, "the place did not come back")


def test_a_drain_ends_watches_so_that_clients_go_elsewhere(start_server: StartServer) -> None:
    server = start_server({"server.drain_timeout": "10m"})
    with grpc.insecure_channel(server.target, options=[("grpc.enable_retries", 0)]) as channel:
        watch = Watch(channel, "a")
        watch.next()
        server.terminate()
        with refused(grpc.StatusCode.UNAVAILABLE, "DRAINING"):
            watch.next()
        assert server.process.wait(timeout=PATIENCE) == 0, "it did not hold the server up"
