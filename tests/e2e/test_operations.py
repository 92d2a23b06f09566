"""Running the server: health, reflection, metrics, logs, deadlines, limits, drain, crash."""

import json
import re
import resource
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from catalogs import NOTES, WEATHER, over_limit, refused, tool
from conftest import StartServer
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2
from toolgate_process import ToolgateProcess
from waiting import PATIENCE, wait_until

from toolgate import Call, Client, ToolgateError
from toolgate._gen.v1 import router_pb2, router_pb2_grpc

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
SERVICES = [
    "toolgate.v1.RouterService",
    "toolgate.v1.CatalogService",
    "toolgate.v1.UsageService",
]


# Health and reflection


@pytest.mark.parametrize("service", ["", *SERVICES])
def test_health(channel: grpc.Channel, service: str) -> None:
    health = health_pb2_grpc.HealthStub(channel)
    request = health_pb2.HealthCheckRequest(service=service)
    assert health.Check(request, timeout=PATIENCE).status == health_pb2.HealthCheckResponse.SERVING
    watch = health.Watch(request, timeout=PATIENCE)
    assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
    watch.cancel()


def test_health_of_a_service_that_does_not_exist(channel: grpc.Channel) -> None:
    health = health_pb2_grpc.HealthStub(channel)
    with pytest.raises(grpc.RpcError) as caught:
        health.Check(health_pb2.HealthCheckRequest(service="nothing"), timeout=PATIENCE)
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_reflection(channel: grpc.Channel, version: str) -> None:
    # The two versions differ in their package only.
    call = channel.stream_stream(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    requests = [
        reflection_pb2.ServerReflectionRequest(list_services=""),
        reflection_pb2.ServerReflectionRequest(
            file_containing_symbol="toolgate.v1.RouterService.Route"
        ),
    ]
    services, files = call(iter(requests), timeout=PATIENCE)
    listed = {service.name for service in services.list_services_response.service}
    assert {*SERVICES, "grpc.health.v1.Health"} <= listed
    assert files.file_descriptor_response.file_descriptor_proto


# Metrics and logs


def test_the_admin_port(server: ToolgateProcess, notes: Client) -> None:
    notes.route("hello")
    assert server.get("/livez")[0] == 200
    assert server.get("/readyz")[0] == 200
    assert server.get("/healthz")[0] == 200
    assert server.get("/nothing")[0] == 404
    version = json.loads(server.get("/version")[1])
    assert version["name"] == "toolgate"
    status, pages = server.get("/")
    assert (status, version["version"] in pages) == (200, True)
    for page in re.findall(r"^(/\S+)", pages, re.MULTILINE):
        assert server.get(page)[0] == 200, page
    status, metrics = server.get("/metrics")
    assert status == 200
    assert "# EOF" in metrics or "# TYPE" in metrics
    for stage in ("embed", "search", "promote"):
        assert re.search(rf'_bucket{{[^}}]*stage="{stage}"', metrics), stage


def test_metrics_name_no_tenant_and_no_words(server: ToolgateProcess, notes: Client) -> None:
    notes.route("quetzalcoatlus")
    metrics = server.get("/metrics")[1]
    assert "quetzalcoatlus" not in metrics


def test_the_log_holds_no_words_of_users(server: ToolgateProcess, notes: Client) -> None:
    turn = notes.route(
        "zanzibarintent",
        threshold=-1,
        state={"scopes": ["zanzibarscope"], "attributes": {"k": "zanzibarattribute"}},
        explain=True,
    )
    notes.gate(turn.handle, Call("mcp__notes__create_note", {"title": "zanzibarargument"}))
    notes.gate(turn.handle, Call("mcp__notes__create_note", {"oops": "zanzibarbad"}))
    with pytest.raises(ToolgateError):
        notes.route(["zanzibarrefused", ""])
    # Refused before it is decided, it logs nothing: the calls before it have, twice.
    log = server.await_log("ARGUMENTS_INVALID:1")
    assert "route scores" in log, "the server logs at debug in these tests"
    assert "zanzibar" not in log
    assert turn.handle not in log


def test_each_call_can_be_logged_as_json(start_server: StartServer) -> None:
    process = start_server({"log.format": "json", "log.level": "debug"})
    with process.client() as client:
        client.register_server("notes", NOTES)
    lines = process.log_text().splitlines()
    assert lines
    assert all(isinstance(json.loads(line), dict) for line in lines)


# Deadlines, overload and limits


def test_a_deadline_is_honoured(server: ToolgateProcess, notes: Client, tenant: str) -> None:
    long = ["the quick brown fox jumps over the lazy dog. " * 40] * 16
    with pytest.raises(ToolgateError) as caught:
        notes.route(long, timeout=0.002)
    assert caught.value.code is grpc.StatusCode.DEADLINE_EXCEEDED
    # A call whose caller has left does not hold up the next one.
    assert notes.route("hello", threshold=-1)


def test_the_servers_own_deadline(start_server: StartServer) -> None:
    process = start_server({"server.max_deadline": "10ms"})
    with grpc.insecure_channel(process.target) as channel:
        router = router_pb2_grpc.RouterServiceStub(channel)
        request = router_pb2.RouteRequest(intents=[router_pb2.Intent(text="x")], min_revision=10**9)
        with pytest.raises(grpc.RpcError) as caught:
            router.Route(request, timeout=PATIENCE)
    assert caught.value.code() in (
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.NOT_FOUND,
    )


def test_capacity_is_refused_with_a_delay(start_server: StartServer) -> None:
    process = start_server({"server.max_concurrent_calls": "1"})
    long = ["a rather long text about nothing in particular, told slowly. " * 20] * 16
    with process.client() as client:
        client.register_server("notes", NOTES)

        def once(_: int) -> ToolgateError | None:
            try:
                client.route(long)
            except ToolgateError as error:
                return error
            return None

        with ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(once, range(32)))
        refusals = [error for error in answers if error]
        assert None in answers
        assert refusals
        for error in refusals:
            assert error.code is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert error.reason == "OVERLOADED"
            assert error.retry_after is not None
            assert error.retry_after > 0
        assert client.route("hello", threshold=-1)


def test_a_full_tenant(start_server: StartServer) -> None:
    with start_server({"limits.max_tools_per_tenant": "5"}).client() as client:
        client.register_server("a", [tool(f"t{i}") for i in range(5)])
        with refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED") as caught:
            client.register_server("b", [tool("one_more")])
        assert caught.metadata["maximum"] == "5"
        assert caught.metadata["actual"] == "6"
        assert len(list(client.list_tools())) == 5
        client.register_server("a", [tool(f"t{i}") for i in range(4)])
        assert client.register_server("b", [tool("one_more")]).server.tool_count == 1


def test_as_many_connections_as_the_system_allows_can_be_open(start_server: StartServer) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, hard), hard))
    try:
        server = start_server({})
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    found = re.search(r"^process_max_fds (\S+)$", server.get("/metrics")[1], re.MULTILINE)
    assert found is not None
    assert float(found[1]) == hard


def test_one_client_calls_several_servers(start_server: StartServer) -> None:
    servers = [start_server({}) for _ in range(2)]
    for name, server in zip(("first", "second"), servers, strict=True):
        with server.client("both") as client:
            client.register_server(name, NOTES)
    with Client(f"ipv4:{','.join(server.target for server in servers)}", tenant="both") as client:
        found: set[str] = set()

        def both_are_found() -> bool:
            found.update(one.name for one in client.list_servers())
            return found == {"first", "second"}

        # One may be connected before the other.
        wait_until(both_are_found)


def test_limits_are_settings(start_server: StartServer) -> None:
    settings = {"limits.max_intents": "2", "limits.max_tools_per_registration": "3"}
    with start_server(settings).client() as client:
        client.register_server("a", [tool(f"t{i}") for i in range(3)])
        with over_limit(3, 4):
            client.register_server("a", [tool(f"t{i}") for i in range(4)])
        with over_limit(2, 3):
            client.route(["x", "y", "z"])


# Start, drain and crash


def test_drain_finishes_calls_in_flight_and_exits(binary: Path, tmp_path: Path) -> None:
    process = ToolgateProcess(binary, tmp_path, {"server.drain_timeout": "90s"}).start()
    many = [tool(f"tool_{i}", f"Does thing number {i} " + "at length " * 40) for i in range(100)]
    with process.client() as client, grpc.insecure_channel(process.target) as idle:
        grpc.channel_ready_future(idle).result(timeout=PATIENCE)
        health_pb2_grpc.HealthStub(idle).Watch(health_pb2.HealthCheckRequest())
        with ThreadPoolExecutor(1) as pool:
            registration = pool.submit(client.register_server, "many", many)
            wait_until(lambda: registration.done() or process.calls_in_progress() == 1)
            assert not registration.done(), "too quick to be in flight: make `many` longer"
            process.terminate()
            # The signal takes its moment to arrive.
            while process.get("/readyz")[0] == 200:
                time.sleep(0.02)
            with Client(process.target) as late, refused(UNAVAILABLE, "", "DRAINING"):
                late.route("hello")
            assert registration.result(timeout=PATIENCE).server.tool_count == 100
        # It does not wait for the idle client until the drain's end.
        assert process.process.wait(timeout=PATIENCE) == 0
    again = ToolgateProcess(binary, tmp_path).start()
    with again.client() as client:
        assert client.get_server("many").tool_count == 100
    assert again.stop() == 0


def test_an_idle_server_stops_at_once_though_clients_stay(binary: Path, tmp_path: Path) -> None:
    process = ToolgateProcess(binary, tmp_path, {"server.drain_timeout": "90s"}).start()
    host, _, port = process.target.partition(":")
    with process.client() as client, socket.create_connection((host, int(port))) as silent:
        client.register_server("notes", NOTES)
        assert silent.fileno() >= 0
        process.terminate()
        assert process.process.wait(timeout=PATIENCE) == 0


def test_what_was_acknowledged_survives_a_kill(binary: Path, tmp_path: Path) -> None:
    process = ToolgateProcess(binary, tmp_path).start()
    acknowledged: list[str] = []
    stop = threading.Event()

    def register() -> None:
        with process.client() as client:
            for number in range(10_000):
                if stop.is_set():
                    return
                try:
                    client.register_server(f"s{number}", WEATHER)
                except ToolgateError:
                    return
                acknowledged.append(f"s{number}")

    writer = threading.Thread(target=register)
    writer.start()
    wait_until(lambda: len(acknowledged) >= 5, "nothing is acknowledged")
    process.kill()
    stop.set()
    writer.join(timeout=PATIENCE)
    process.start()
    with process.client() as client:
        stored = {s.name: s.tool_count for s in client.list_servers()}
        assert set(acknowledged) <= set(stored)
        assert set(stored.values()) == {len(WEATHER)}
        assert client.route("rain", threshold=-1, top_k=1)
    assert process.stop() == 0


def test_one_server_per_data_directory(binary: Path, tmp_path: Path) -> None:
    first = ToolgateProcess(binary, tmp_path).start()
    second = ToolgateProcess(binary, tmp_path / "second", {"store.path": str(tmp_path / "data")})
    process = second.launch()
    try:
        assert process.wait(timeout=PATIENCE) not in (0, None)
        assert str(tmp_path / "data") in second.log_text()
    finally:
        assert first.stop() == 0


def test_a_taken_port_is_said(binary: Path, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        process = ToolgateProcess(binary, tmp_path, {"server.listen": address})
        assert process.launch().wait(timeout=PATIENCE) != 0
    assert address in process.log_text()
    assert "panicked" not in process.log_text()


def test_every_mistake_of_a_configuration_is_said_at_once(binary: Path, tmp_path: Path) -> None:
    settings = {"server.listen": "nowhere", "handle.ttl": "soon", "router.top_k": "0"}
    process = ToolgateProcess(binary, tmp_path, settings)
    assert process.launch().wait(timeout=PATIENCE) != 0
    log = process.log_text()
    for key in settings:
        assert key in log or f"TOOLGATE_{key.replace('.', '_').upper()}" in log


def test_a_missing_model_says_how_to_get_it(binary: Path, tmp_path: Path) -> None:
    # The variable of `encoder.model_dir` is TOOLGATE_MODEL_DIR.
    process = ToolgateProcess(binary, tmp_path, {"model.dir": str(tmp_path / "none")})
    assert process.launch().wait(timeout=PATIENCE) != 0
    assert "toolgate model fetch" in process.log_text()


def test_no_panic_was_logged(server: ToolgateProcess) -> None:
    assert "panicked" not in server.log_text()


def test_the_binary_says_its_version(binary: Path) -> None:
    said = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True)
    assert re.search(r"\d+\.\d+\.\d+", said.stdout)
