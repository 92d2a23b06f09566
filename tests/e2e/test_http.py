"""The same services over plain HTTP: the Connect protocol, gRPC-Web, web pages."""

import base64
import http.client
import json
import re
import socket
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from catalogs import NOTES
from conftest import StartServer
from toolgate_process import ToolgateProcess
from waiting import PATIENCE

from toolgate import Client
from toolgate._gen.v1 import catalog_pb2, router_pb2

ROOT = Path(__file__).resolve().parents[2]
ROUTE = "/toolgate.v1.RouterService/Route"
WATCH = "/toolgate.v1.CatalogService/WatchCatalog"
JSON = {"Content-Type": "application/json"}


class Answer:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    def json(self) -> Any:
        assert self.headers["Content-Type"] == "application/json", self.headers
        return json.loads(self.body)

    def error(self) -> tuple[int, str, str]:
        """HTTP status, code and reason."""
        told = self.json()
        reasons = [d["debug"]["reason"] for d in told["details"] if d["type"].endswith("ErrorInfo")]
        return self.status, told["code"], reasons[0]


def post(
    server: ToolgateProcess,
    path: str,
    body: bytes | str | dict[str, Any],
    headers: dict[str, str] | None = None,
    method: str = "POST",
) -> Answer:
    connection = http.client.HTTPConnection(server.target, timeout=PATIENCE)
    try:
        sent = json.dumps(body) if isinstance(body, dict) else body
        sent = sent.encode() if isinstance(sent, str) else sent
        connection.request(method, path, sent, JSON if headers is None else headers)
        return Answer(connection.getresponse())
    finally:
        connection.close()


def connect(server: ToolgateProcess) -> socket.socket:
    host, port = server.target.split(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE)


def framed(message: bytes) -> bytes:
    return struct.pack(">BI", 0, len(message)) + message


def unframed(body: bytes) -> list[tuple[int, bytes]]:
    frames = []
    while body:
        flag, length = struct.unpack(">BI", body[:5])
        frames.append((flag, body[5 : 5 + length]))
        body = body[5 + length :]
    return frames


def test_a_catalog_is_registered_routed_and_gated_in_json(
    server: ToolgateProcess, tenant: str
) -> None:
    listed = base64.b64encode(json.dumps({"tools": NOTES}).encode()).decode()
    done = post(
        server,
        "/toolgate.v1.CatalogService/RegisterServer",
        {"tenant": tenant, "server": "notes", "toolsListJson": listed},
    )
    assert (done.status, done.json()["catalogRevision"]) == (200, "1")
    routed = post(
        server, ROUTE, {"tenant": tenant, "intents": [{"text": "write down a note"}]}
    ).json()
    name = routed["activeTools"][0]["modelName"]
    gated = post(
        server,
        "/toolgate.v1.RouterService/Gate",
        {
            "tenant": tenant,
            "active_set_handle": routed["activeSetHandle"],
            "calls": [{"tool": name, "argumentsJson": "{}"}, {"tool": "no_such_tool"}],
        },
    ).json()
    codes = [verdict.get("code") for verdict in gated["verdicts"]]
    assert codes[1] == "REFUSAL_CODE_UNKNOWN_TOOL"


def test_json_protobuf_grpc_web_and_grpc_answer_alike(
    server: ToolgateProcess, notes: Client, tenant: str
) -> None:
    expected = [tool.model_name for tool in notes.route("will it rain tomorrow?")]
    request = router_pb2.RouteRequest(tenant=tenant)
    request.intents.add(text="will it rain tomorrow?")
    said = {"tenant": tenant, "intents": [{"text": "will it rain tomorrow?"}]}
    in_json = post(server, ROUTE, said).json()
    assert [tool["modelName"] for tool in in_json["activeTools"]] == expected
    proto = {"Content-Type": "application/proto"}
    plain = post(server, ROUTE, request.SerializeToString(), proto)
    assert plain.headers["Content-Type"] == "application/proto"
    answer = router_pb2.RouteResponse.FromString(plain.body)
    assert [tool.model_name for tool in answer.active_tools] == expected
    web = {"Content-Type": "application/grpc-web+proto", "X-Grpc-Web": "1"}
    frames = unframed(post(server, ROUTE, framed(request.SerializeToString()), web).body)
    answer = router_pb2.RouteResponse.FromString(frames[0][1])
    assert [tool.model_name for tool in answer.active_tools] == expected
    assert frames[1][0] == 0x80
    assert b"grpc-status:0" in frames[1][1].replace(b" ", b"")


def test_a_watch_over_grpc_web_tells_what_was_missed(
    server: ToolgateProcess, notes: Client, tenant: str
) -> None:
    assert notes
    request = catalog_pb2.WatchCatalogRequest(tenant=tenant, since_revision=1)
    connection = http.client.HTTPConnection(server.target, timeout=PATIENCE)
    connection.request(
        "POST",
        WATCH,
        framed(request.SerializeToString()),
        {"Content-Type": "application/grpc-web+proto"},
    )
    response = connection.getresponse()
    flag, length = struct.unpack(">BI", response.read(5))
    told = catalog_pb2.WatchCatalogResponse.FromString(response.read(length))
    connection.close()
    assert (flag, told.catalog_revision, list(told.servers)) == (0, 2, ["weather"])


def test_every_mistake_says_what_would_be_right(server: ToolgateProcess) -> None:
    def refused(body: Any, expected: tuple[int, str, str], *words: str) -> None:
        answer = post(server, ROUTE, body)
        assert answer.error() == expected, answer.body
        for word in words:
            assert word in answer.json()["message"], answer.body

    wrong = (400, "invalid_argument", "INVALID_FIELD")
    refused({"intent": "x"}, wrong, "intent", "column 9")
    refused("{", wrong, "line 1")
    refused("", wrong)
    refused("{} {}", wrong, "trailing")
    refused('{"intents": "x"}', wrong)
    refused("[" * 100_000, wrong)
    refused({"intents": []}, wrong, "intents")
    refused(
        {"tenant": "never-was", "intents": [{"text": "x"}]}, (404, "not_found", "TENANT_NOT_FOUND")
    )
    violations = post(server, ROUTE, {"intents": []}).json()["details"][1]["debug"]
    assert violations["fieldViolations"][0]["field"] == "intents"


def test_what_is_no_call_says_what_one_is(server: ToolgateProcess) -> None:
    got = post(server, ROUTE, b"", {}, "GET")
    assert (got.error()[:2], got.headers["Allow"]) == ((405, "unimplemented"), "POST")
    assert "POST /toolgate.v1.RouterService/Route" in got.json()["message"]
    assert post(server, "/toolgate.v1.RouterService/Rout", {}).error()[0] == 404
    assert post(server, WATCH, {}).error()[0] == 415
    text = post(server, ROUTE, "{}", {"Content-Type": "text/plain"})
    assert (text.status, text.headers["Accept-Post"]) == (
        415,
        "application/json, application/proto",
    )
    assert post(server, ROUTE, "{}", {**JSON, "Content-Encoding": "gzip"}).status == 415
    assert post(server, ROUTE, "{}", {**JSON, "Connect-Protocol-Version": "2"}).status == 400
    assert post(server, ROUTE, "{}", {**JSON, "Connect-Timeout-Ms": "soon"}).status == 400


def test_who_tries_the_address_with_a_browser_is_told_what_this_is(
    start_server: StartServer, server: ToolgateProcess
) -> None:
    about = post(server, "/", b"", {}, "GET").json()
    assert about["name"] == "toolgate"
    assert about["version"] == json.loads(server.get("/version")[1])["version"]
    assert f":{about['admin_port']}" in server.admin
    assert post(server, "/", b"", {}, "HEAD").status == 200
    assert post(server, "/", {}).status == 404
    guarded = start_server({"server.cors_origins": PAGE})
    stranger = {"Origin": "https://elsewhere.example.com"}
    assert post(guarded, "/", b"", stranger, "GET").status == 403


def test_deadlines_are_kept(server: ToolgateProcess) -> None:
    late = post(server, ROUTE, {"intents": [{"text": "x"}]}, {**JSON, "Connect-Timeout-Ms": "0"})
    assert late.error() == (504, "deadline_exceeded", "DEADLINE_EXCEEDED")
    ample = {**JSON, "Connect-Timeout-Ms": "9999999999"}
    assert post(server, "/grpc.health.v1.Health/Check", {}, ample).json() == {"status": "SERVING"}


def test_bodies_are_bounded_in_size_and_time(start_server: StartServer) -> None:
    server = start_server({"limits.max_message_size": "512KiB"})
    hurried = start_server({"server.max_deadline": "500ms"})
    most = 2 * 512 * 1024
    too_large = post(server, ROUTE, "x" * (most + 1))
    assert too_large.error() == (413, "invalid_argument", "LIMIT_EXCEEDED")
    with connect(hurried) as peer:
        head = f"POST {ROUTE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        peer.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
        assert peer.recv(4096).startswith(b"HTTP/1.1 504"), "a body that does not come"
    with connect(server) as peer:
        peer.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        try:
            for _ in range(40):
                peer.sendall(b"8000\r\n" + b"x" * 0x8000 + b"\r\n")
        except OSError:
            pass
        assert peer.recv(4096).startswith(b"HTTP/1.1 413"), "a body without an end"


def test_bodies_at_a_time_are_bounded(start_server: StartServer) -> None:
    server = start_server({"server.max_concurrent_calls": "2"})
    head = f"POST {ROUTE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    peers = []
    for _ in range(100):
        # One that comes while a call below has a place is shed itself, so there are more than two.
        peers.append(connect(server))
        peers[-1].sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
        shed = post(server, ROUTE, {"intents": [{"text": "x"}]})
        if shed.status == 429:
            break
    assert shed.error() == (429, "resource_exhausted", "OVERLOADED")
    assert shed.headers["Retry-After"] == "1"
    for peer in peers:
        peer.close()


PAGE = "https://app.example.com"


@pytest.fixture
def with_page(start_server: StartServer) -> ToolgateProcess:
    return start_server({"server.cors_origins": PAGE})


def test_named_pages_may_call_and_read(with_page: ToolgateProcess) -> None:
    preflight = post(
        with_page,
        ROUTE,
        b"",
        {
            "Origin": PAGE,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "content-type,connect-timeout-ms,authorization",
        },
        "OPTIONS",
    )
    assert preflight.status == 200
    assert preflight.headers["Access-Control-Allow-Origin"] == PAGE
    assert "authorization" in preflight.headers["Access-Control-Allow-Headers"]
    health = "/grpc.health.v1.Health/Check"
    answer = post(with_page, health, {}, {**JSON, "Origin": PAGE})
    assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (200, PAGE)
    web = {"Content-Type": "application/grpc-web+proto", "Origin": PAGE}
    answer = post(with_page, health, framed(b""), web)
    assert "grpc-status-details-bin" in answer.headers["Access-Control-Expose-Headers"]


@pytest.mark.parametrize(
    "content", ["application/json", "application/grpc-web", "application/grpc"]
)
def test_other_pages_get_nothing(
    server: ToolgateProcess, with_page: ToolgateProcess, content: str
) -> None:
    for asked in (server, with_page):
        for page in ("https://evil.example", f"http://{asked.target}", "null"):
            headers = {"Content-Type": content, "Origin": page}
            answer = post(asked, "/grpc.health.v1.Health/Check", framed(b""), headers)
            assert answer.error() == (403, "permission_denied", "PERMISSION_DENIED")
            assert answer.headers["Access-Control-Allow-Origin"] is None


def test_the_documents_examples_run_as_written(server: ToolgateProcess) -> None:
    text = (ROOT / "docs" / "http.md").read_text()
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 6
    script = "set -euo pipefail\n" + "echo; echo ==\n".join(blocks)
    script = script.replace("127.0.0.1:7070", server.target)
    run = subprocess.run(
        ["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    answers = run.stdout.split("==\n")
    assert "slack_post_message" in answers[2]
    assert json.loads(answers[3])[0]["function"]["name"] == "mcp__slack__slack_post_message"
    (message,) = json.loads(answers[4])
    assert "mcp__slack__slack_post_message" in message["content"]
    assert json.loads(answers[5])["verdicts"][0]["allowed"] is True
    assert json.loads(answers[6]) == {"status": "SERVING"}
    assert json.loads(answers[7])["code"] == "invalid_argument"


def test_bodies_of_grpc_web_end_in_time_too(start_server: StartServer) -> None:
    server = start_server({"server.max_deadline": "500ms"})
    with connect(server) as peer:
        head = f"POST {ROUTE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/grpc-web\r\n"
        peer.sendall(f"{head}Content-Length: 100\r\n\r\n\0".encode())
        assert peer.recv(4096).startswith(b"HTTP/1.1 504"), "a body that does not come"


def test_slow_long_bodies_take_no_room_before_they_come(start_server: StartServer) -> None:
    server = start_server({"server.max_concurrent_calls": "8"})
    head = f"POST {ROUTE} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    peers = [connect(server) for _ in range(4)]
    for peer in peers:
        peer.sendall(f"{head}Content-Length: 8000000\r\n\r\n{{".encode())
    for _ in range(20):
        assert post(server, "/grpc.health.v1.Health/Check", {}).status == 200
    for peer in peers:
        peer.close()


def test_what_says_how_another_protocol_is_written_is_no_part_of_a_call(
    server: ToolgateProcess,
) -> None:
    health = "/grpc.health.v1.Health/Check"
    odd = {"Grpc-Encoding": "gzip", "Grpc-Accept-Encoding": "gzip", "Accept-Encoding": "gzip"}
    assert post(server, health, {}, {**JSON, **odd}).json() == {"status": "SERVING"}
    timed = post(server, health, {}, {**JSON, "Grpc-Timeout": "1n"})
    assert timed.error() == (400, "invalid_argument", "INVALID_FIELD")
    assert "Connect-Timeout-Ms" in timed.json()["message"]


def test_types_of_content_are_read_as_they_are_written(server: ToolgateProcess) -> None:
    health = "/grpc.health.v1.Health/Check"
    web = {"Content-Type": "Application/gRPC-Web+Proto; charset=utf-8"}
    answer = post(server, health, framed(b""), web)
    assert (answer.status, unframed(answer.body)[0]) == (200, (0, b"\x08\x01"))
    for other in ("application/grpc", "application/grpc+proto", "application/grpcfoo"):
        refused = post(server, health, framed(b""), {"Content-Type": other})
        assert refused.status == 415, "gRPC needs HTTP/2, which its status comes with"
