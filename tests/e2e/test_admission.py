"""Tests who may begin a call, and how long a request may take to come."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
from catalogs import NOTES, refused
from conftest import StartServer
from hpack import Decoder, Encoder
from hyperframe.frame import DataFrame, Frame, HeadersFrame, SettingsFrame
from toolgate_process import ToolgateProcess
from waiting import PATIENCE, wait_until

from toolgate import Client, ToolgateError


def rejected(server: ToolgateProcess, reason: str) -> float:
    name = f'toolgate_admission_rejected_total{{reason="{reason}"}}'
    lines = [line for line in server.get("/metrics")[1].splitlines() if line.startswith(name)]
    return float(lines[0].rsplit(" ", 1)[1]) if lines else 0.0


def test_a_tenant_is_held_to_its_rate_and_others_are_not(start_server: StartServer) -> None:
    server = start_server({"limits.calls_per_second_per_tenant": "5"})
    with server.client("busy") as busy, server.client("quiet") as quiet:
        for client in (busy, quiet):
            client.register_server("notes", NOTES)
        with refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "TENANT_LIMITED") as caught:
            for _ in range(50):
                list(busy.list_servers())
        assert caught.metadata["limit"] == "limits.calls_per_second_per_tenant"
        assert 0 < caught.retry_after <= 0.25
        list(quiet.list_servers())
        time.sleep(caught.retry_after + 0.05)
        list(busy.list_servers())
    assert rejected(server, "tenant_rate") >= 1


def test_one_tenants_calls_leave_places_for_others(start_server: StartServer) -> None:
    """Registrations that take a while are calls in progress."""
    settings = {"server.max_concurrent_calls_per_tenant": "1", "encoder.threads": "1"}
    server = start_server(settings)
    limited = None
    with server.client("busy") as busy, server.client("quiet") as quiet:
        for client in (busy, quiet):
            client.register_server("notes", NOTES)
        # A busy machine may end a registration before the next call comes; new texts take as long.
        for attempt in range(10):
            limited = limited_beside_a_registration(server, busy, quiet, attempt)
            if limited is not None:
                break
    assert limited is not None
    assert limited.reason == "TENANT_LIMITED"


def limited_beside_a_registration(
    server: ToolgateProcess, busy: Client, quiet: Client, attempt: int
) -> ToolgateError | None:
    """Calls for two tenants while one of them registers tools; returns how its call was refused."""
    many = [{**tool, "name": f"{tool['name']}_{n}",
             "description": f"{tool['description']} {attempt} {n}."}
            for n in range(100) for tool in NOTES]  # fmt: skip
    limited = None
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(busy.register_server, "many", many)
        # Calls of ours must not be in progress when it comes: they would have the one place.
        wait_until(lambda: running.done() or server.calls_in_progress() == 1)
        while not running.done() and limited is None:
            try:
                list(busy.list_servers())
            except ToolgateError as error:
                limited = error
        list(quiet.list_servers())
        assert running.result().server.tool_count == len(many)
    return limited


def test_a_request_whose_body_never_ends_is_given_up(start_server: StartServer) -> None:
    server = start_server({"server.max_deadline": "1s"})
    host, port = server.target.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as wire:
        wire.sendall(_unfinished_call())
        status = _status_of(wire)
    assert status == "4", "DEADLINE_EXCEEDED"


def _unfinished_call() -> bytes:
    headers = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/toolgate.v1.RouterService/Route"),
        (":authority", "test"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ]
    begun = HeadersFrame(1, data=Encoder().encode(headers), flags=["END_HEADERS"])
    # A message of 100 bytes of which one comes.
    part = DataFrame(1, data=b"\0\0\0\0\x64x")
    frames = [SettingsFrame(0), begun, part]
    return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"".join(frame.serialize() for frame in frames)


def _status_of(wire: socket.socket) -> str:
    """The `grpc-status` of the one call."""
    decoder, read = Decoder(), b""
    while True:
        while len(read) < 9:
            read += _more(wire)
        frame, length = Frame.parse_frame_header(memoryview(read[:9]))
        while len(read) < 9 + length:
            read += _more(wire)
        frame.parse_body(memoryview(read[9 : 9 + length]))
        read = read[9 + length :]
        if isinstance(frame, HeadersFrame):
            found = {str(name): str(value) for name, value in decoder.decode(frame.data)}
            if "grpc-status" in found:
                return found["grpc-status"]


def _more(wire: socket.socket) -> bytes:
    got = wire.recv(65_536)
    assert got, "the server closed the connection"
    return got
