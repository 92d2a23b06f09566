"""Exported spans: their tree, whose calls have some, what they never hold, what they cost."""

import json
import re
import secrets
import time
import urllib.request
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import grpc
import pytest
import trustme
from catalogs import NOTES
from conftest import StartServer
from otlp_receiver import CLIENT, ERROR, SERVER, Collector, Span, collecting
from toolgate_process import ToolgateProcess, free_port
from waiting import PATIENCE, wait_until

from toolgate import Call
from toolgate._gen.v1 import router_pb2, router_pb2_grpc

ROUTE = "toolgate.v1.RouterService/Route"
EMBED = "toolgate.v1.EncoderService/Embed"
STAGES = ["authenticate", "admit", "embed", "gate", "search", "promote"]


@dataclass(frozen=True)
class Caller:
    """A span of whoever calls."""

    trace: str
    id: str
    sampled: bool = True

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace}-{self.id}-{'01' if self.sampled else '00'}"


def a_caller(sampled: bool = True) -> Caller:
    return Caller(secrets.token_hex(16), secrets.token_hex(8), sampled)


def route(
    server: ToolgateProcess,
    caller: Caller | None,
    *intents: str,
    tenant: str = "",
    min_revision: int = 0,
) -> None:
    metadata = (("traceparent", caller.traceparent),) if caller else ()
    request = router_pb2.RouteRequest(
        tenant=tenant,
        intents=[router_pb2.Intent(text=text) for text in intents],
        min_revision=min_revision,
    )
    with grpc.insecure_channel(server.target) as channel:
        router_pb2_grpc.RouterServiceStub(channel).Route(request, timeout=30, metadata=metadata)


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with collecting() as collector:
        yield collector


@pytest.fixture
def traced(start_server: StartServer, collector: Collector) -> ToolgateProcess:
    return traced_server(start_server, collector)


def traced_server(
    start_server: StartServer, collector: Collector, settings: Mapping[str, str] | None = None
) -> ToolgateProcess:
    server = start_server({"telemetry.otlp_endpoint": collector.endpoint, **(settings or {})})
    if "auth.methods" in (settings or {}):
        return server
    with server.client() as client:
        client.register_server("notes", NOTES)
    return server


def whole(collector: Collector, caller: Caller) -> dict[str, Span]:
    """The spans of a caller's Route, by name, once its own span has come, which ends last."""
    collector.wait(lambda _: any(s.name == ROUTE for s in collector.of_trace(caller.trace)))
    return {span.name: span for span in collector.of_trace(caller.trace)}


# The tree


def test_a_route_is_a_span_below_its_caller_with_its_stages(
    traced: ToolgateProcess, collector: Collector
) -> None:
    caller = a_caller()
    route(traced, caller, "write something down")
    spans = whole(collector, caller)
    call = spans[ROUTE]
    assert (call.service, call.kind, call.parent) == ("toolgate", SERVER, caller.id)
    assert call.attributes["rpc.system.name"] == "grpc"
    assert call.attributes["rpc.method"] == ROUTE
    assert call.attributes["rpc.response.status_code"] == "OK"
    assert call.attributes["toolgate.tenant"] == "default"
    assert "error.type" not in call.attributes
    stages = [spans[name] for name in STAGES]
    assert {stage.parent for stage in stages} == {call.id}
    for earlier, later in pairwise(stages):
        assert earlier.end <= later.end, "one stage after the other"
    assert call.start <= stages[0].start
    assert stages[-1].end <= call.end
    # The encoder of this process shows what it did, too.
    assert spans["queue"].parent == spans["embed"].id
    assert spans["batch"].attributes["toolgate.batch.texts"] >= 1
    [(_, decision)] = [event for event in call.events if event[0] == "route"]
    assert decision["target"] == "toolgate::decision"
    assert "mcp__notes__" in decision["active"]


def test_a_workers_spans_are_below_embed(start_server: StartServer, collector: Collector) -> None:
    server = traced_server(start_server, collector, {"encoder.local_workers": "cpu"})
    serving = re.compile(r'^toolgate_encoder_worker_state\{.*state="serving"\} 1$', re.MULTILINE)
    wait_until(lambda: serving.search(server.get("/metrics")[1]), lambda: server.log_text()[-4000:])
    caller = a_caller()
    route(server, caller, "an intent for the worker")
    worker = "toolgate-encoder-worker"

    def all_there(_: list[Span]) -> bool:
        names = {(span.service, span.name) for span in collector.of_trace(caller.trace)}
        return {("toolgate", ROUTE), (worker, EMBED), (worker, "queue"), (worker, "batch")} <= names

    collector.wait(all_there)
    spans = collector.of_trace(caller.trace)
    [embed] = [span for span in spans if span.name == "embed"]
    [asked] = [span for span in spans if span.name == EMBED and span.kind == CLIENT]
    [served] = [span for span in spans if span.name == EMBED and span.kind == SERVER]
    assert (asked.service, asked.parent) == ("toolgate", embed.id)
    assert asked.attributes["server.address"] == "127.0.0.1"
    assert (served.service, served.parent) == (worker, asked.id)
    for name in ("queue", "batch"):
        # Where the worker is late, the encoder of this process is asked as well.
        [part] = [span for span in spans if (span.service, span.name) == (worker, name)]
        assert part.parent == served.id
    # Each worker embeds the canary all the time, which nobody wants to see.
    canaries = [s for s in collector.spans() if s.service == worker and not s.parent]
    assert canaries == []


def test_calls_that_share_a_batch_are_linked(traced: ToolgateProcess, collector: Collector) -> None:
    pool = ThreadPoolExecutor(8)
    for attempt in range(20):
        callers = [a_caller() for _ in range(8)]
        calls = [
            pool.submit(route, traced, caller, *(f"{attempt} {caller.id} {i}" for i in range(4)))
            for caller in callers
        ]
        for call in calls:
            call.result()
        for caller in callers:
            whole(collector, caller)
        batches = [s for c in callers for s in collector.of_trace(c.trace) if s.name == "batch"]
        linked = [batch for batch in batches if batch.links]
        if linked:
            ids = {span.id for caller in callers for span in collector.of_trace(caller.trace)}
            assert {link for batch in linked for link in batch.links} <= ids
            assert all(batch.parent not in batch.links for batch in linked)
            return
    raise AssertionError("no two of 160 calls shared a batch")


def test_calls_without_grpc_bring_their_trace_too(
    traced: ToolgateProcess, collector: Collector
) -> None:
    caller = a_caller()
    request = urllib.request.Request(
        f"http://{traced.target}/{ROUTE}",
        data=json.dumps({"intents": [{"text": "hello"}]}).encode(),
        headers={"Content-Type": "application/json", "traceparent": caller.traceparent},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        assert answer.status == 200
    assert whole(collector, caller)[ROUTE].parent == caller.id


def test_how_a_call_failed_is_in_its_span(start_server: StartServer, collector: Collector) -> None:
    server = traced_server(start_server, collector)
    unknown, early = a_caller(), a_caller()
    with pytest.raises(grpc.RpcError):
        route(server, unknown, "hello", tenant="nobody")
    call = whole(collector, unknown)[ROUTE]
    assert call.attributes["error.type"] == "TENANT_NOT_FOUND"
    assert call.attributes["rpc.response.status_code"] == "NOT_FOUND"
    assert call.status != ERROR, "the caller's mistake is no fault of the service"
    with pytest.raises(grpc.RpcError):
        route(server, early, "hello", min_revision=10**9)
    call = whole(collector, early)[ROUTE]
    assert call.attributes["error.type"] in {"REVISION_NOT_REACHED", "DEADLINE_EXCEEDED"}
    assert call.status == ERROR


def test_who_is_not_let_in_is_in_its_span(
    start_server: StartServer, collector: Collector, tmp_path: Path
) -> None:
    key = tmp_path / "admin.key"
    key.write_text(f"tgk_{secrets.token_hex(6)}_{secrets.token_hex(32)}")
    key.chmod(0o600)
    settings = {"auth.methods": "api-key", "auth.admin_key_file": str(key)}
    server = traced_server(start_server, collector, settings)
    caller = a_caller()
    with pytest.raises(grpc.RpcError):
        route(server, caller, "hello")
    spans = whole(collector, caller)
    assert spans[ROUTE].attributes["rpc.response.status_code"] == "UNAUTHENTICATED"
    assert spans[ROUTE].attributes["error.type"] == "UNAUTHENTICATED"
    assert "toolgate.tenant" not in spans[ROUTE].attributes
    assert spans["authenticate"].parent == spans[ROUTE].id
    assert "admit" not in spans


# Calls with spans


def test_the_callers_decision_is_honoured(start_server: StartServer, collector: Collector) -> None:
    server = traced_server(start_server, collector, {"telemetry.sample_ratio": "0"})
    before = len(collector.spans())
    unsampled, sampled = a_caller(sampled=False), a_caller()
    route(server, unsampled, "hello")
    route(server, None, "hello")
    route(server, sampled, "hello")
    whole(collector, sampled)
    new = collector.spans()[before:]
    assert {span.trace for span in new} == {sampled.trace}
    always = traced_server(start_server, collector)
    before = len(collector.spans())
    route(always, a_caller(sampled=False), "hello")
    route(always, None, "hello")
    collector.wait(lambda spans: any(s.name == ROUTE and not s.parent for s in spans[before:]))
    assert unsampled.trace not in {span.trace for span in collector.spans()}


def test_what_makes_no_sense_as_a_parent_begins_a_trace(
    traced: ToolgateProcess, collector: Collector
) -> None:
    before = len(collector.spans())
    with grpc.insecure_channel(traced.target) as channel:
        request = router_pb2.RouteRequest(intents=[router_pb2.Intent(text="x")])
        odd = (("traceparent", "00-nonsense"), ("tracestate", "a=" + "b" * 600))
        router_pb2_grpc.RouterServiceStub(channel).Route(request, timeout=PATIENCE, metadata=odd)
    collector.wait(lambda spans: any(s.name == ROUTE and not s.parent for s in spans[before:]))


# Their contents


def test_no_span_holds_a_word_of_users(start_server: StartServer, collector: Collector) -> None:
    server = traced_server(
        start_server, collector, {"encoder.local_workers": "cpu", "log.level": "debug"}
    )
    with server.client() as client:
        turn = client.route(
            "zanzibarintent",
            threshold=-1,
            state={"scopes": ["zanzibarscope"], "attributes": {"k": "zanzibarattribute"}},
            explain=True,
        )
        client.gate(turn.handle, Call("mcp__notes__create_note", {"title": "zanzibarargument"}))
        client.gate(turn.handle, Call("mcp__notes__create_note", {"oops": "zanzibarbad"}))
        client.search_tools("zanzibarquery")
    caller = a_caller()
    route(server, caller, "zanzibarlast")
    whole(collector, caller)
    assert server.stop() == 0
    exported = b"".join(collector.raw)
    assert b"mcp__notes__create_note" in exported, "decisions are there"
    assert b"zanzibar" not in exported
    assert turn.handle.encode() not in exported


def test_log_lines_and_exemplars_name_the_trace(
    start_server: StartServer, collector: Collector
) -> None:
    server = traced_server(start_server, collector, {"log.format": "json"})
    sampled, unsampled = a_caller(), a_caller(sampled=False)
    route(server, sampled, "hello")
    route(server, unsampled, "hello")
    for family in ("rpc_server_call_duration", "toolgate_route_stage_duration"):
        pattern = rf'^{family}_seconds_bucket\{{.*# \{{trace_id="{sampled.trace}"\}}'
        shown = partial(_is_in_metrics, server, re.compile(pattern, re.MULTILINE))
        # A call is measured after its answer.
        wait_until(shown, family)
    assert unsampled.trace not in server.get("/metrics")[1]
    log = server.await_log('"message":"route"', times=2)
    lines = [json.loads(line) for line in log.splitlines()]
    decisions = [line for line in lines if line["message"] == "route"]
    call = whole(collector, sampled)[ROUTE]
    assert [line.get("trace_id") for line in decisions] == [sampled.trace, None]
    assert decisions[0]["span_id"] == call.id
    assert decisions[0]["span"] == {"name": "call", "rpc": "RouterService/Route"}


def _is_in_metrics(server: ToolgateProcess, pattern: re.Pattern[str]) -> bool:
    return pattern.search(server.get("/metrics")[1]) is not None


def test_the_last_spans_are_sent_before_the_end(
    traced: ToolgateProcess, collector: Collector
) -> None:
    caller = a_caller()
    route(traced, caller, "goodbye")
    assert traced.stop() == 0
    assert ROUTE in {span.name for span in collector.of_trace(caller.trace)}


def test_resource_attributes_come_from_the_environment(
    start_server: StartServer, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    attributes = "deployment.environment.name=cellar,service.name=ignored"
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", attributes)
    before = len(collector.raw)
    server = traced_server(start_server, collector, {"telemetry.service_name": "cellar-router"})
    route(server, None, "hello")
    collector.wait(lambda spans: any(span.service == "cellar-router" for span in spans))
    assert any(b"cellar" in message for message in collector.raw[before:])


def test_spans_go_over_tls_with_credentials(
    start_server: StartServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20zanzibarsecret")
    tls = grpc.ssl_server_credentials([(issued.private_key_pem.bytes(), chain)])
    with collecting(tls) as collector:
        server = traced_server(start_server, collector)
        caller = a_caller()
        route(server, caller, "hello")
        whole(collector, caller)
        assert collector.credentials == {"Bearer zanzibarsecret"}
        assert "zanzibarsecret" not in server.log_text()


# Their costs


def test_a_collector_that_hangs_or_is_away_fails_no_call(
    start_server: StartServer, collector: Collector
) -> None:
    with collecting() as hanging:
        hanging.hangs.set()
        away = f"http://127.0.0.1:{free_port()}"
        servers = {
            "off": start_server({}),
            "taken": traced_server(start_server, collector),
            "hangs": traced_server(start_server, hanging),
            "away": start_server({"telemetry.otlp_endpoint": away}),
        }
        for server in servers.values():
            with server.client() as client:
                client.register_server("notes", NOTES)
                for _ in range(300):
                    client.route("write something down", threshold=-1)
        for name in ("hangs", "away"):
            failed = 'toolgate_trace_spans_dropped_total{reason="export_failed"} '
            metrics = _metrics_until(servers[name], failed)
            assert f"{failed}0\n" not in metrics, name
        for server in servers.values():
            assert server.stop() == 0


def _metrics_until(server: ToolgateProcess, sample: str) -> str:
    """The metrics, once the sample is above 0."""
    give_up = time.monotonic() + PATIENCE
    while True:
        metrics = server.get("/metrics")[1]
        if f"{sample}0\n" not in metrics or time.monotonic() > give_up:
            return metrics
        time.sleep(0.1)
