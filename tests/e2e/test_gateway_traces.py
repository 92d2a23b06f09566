"""Spans of a gateway: one for each request of a host, one for each that a server is sent for it."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from gateway_process import GatewayProcess, Json, logged_server, message, messages
from otlp_receiver import CLIENT, ERROR, SERVER, Collector, Span, collecting

GATE = "toolgate.v1.RouterService/Gate"
STATE = "rojo=00f067aa0ba902b7"


@dataclass(frozen=True)
class Host:
    """A span of a host, and whether it is sampled."""

    trace: str
    id: str
    flags: str

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace}-{self.id}-{self.flags}"


def a_host(flags: str = "01") -> Host:
    return Host(secrets.token_hex(16), secrets.token_hex(8), flags)


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with collecting() as collector:
        yield collector


@dataclass(frozen=True)
class Traced:
    """A gateway whose spans are exported, before one server that logs what it is sent."""

    gateway: GatewayProcess
    collector: Collector
    log: Path

    def post(self, host: Host | None, path: str, method: str, params: Json) -> Json:
        """Returns the answer to a request of a host."""
        request = message(method, params)
        if host is not None:
            request["params"]["_meta"] |= {"traceparent": host.traceparent, "tracestate": STATE}
        _, answer = self.gateway.post(path, request)
        assert answer, "no answer of JSON-RPC"
        return answer

    def spans(self, host: Host, *kinds: int) -> list[Span]:
        """The spans of a host's trace, once there are some of these kinds."""

        def of_mcp() -> list[Span]:
            spans = self.collector.of_trace(host.trace)
            return [span for span in spans if "mcp.method.name" in span.attributes]

        self.collector.wait(lambda _: sorted(span.kind for span in of_mcp()) == sorted(kinds))
        return sorted(of_mcp(), key=lambda span: span.kind)

    def sent(self, method: str) -> Json:
        """The parameters of the last request of a method that the server was sent."""
        params: Json = messages(self.log, method)[-1]["params"]
        return params


@pytest.fixture(scope="module")
def traced(
    binary: Path, tmp_path_factory: pytest.TempPathFactory, collector: Collector
) -> Iterator[Traced]:
    folder = tmp_path_factory.mktemp("gateway")
    log = folder / "log"
    endpoint = f"telemetry.otlp_endpoint={collector.endpoint}"
    plane = ("--data-dir", str(folder / "data"), "--set", endpoint)
    process = GatewayProcess(binary, folder, logged_server("notes", log), plane=plane).start()
    yield Traced(process, collector, log)
    assert process.stop() == 0


def test_a_call_is_a_span_of_the_host_and_one_of_the_server(traced: Traced) -> None:
    host = a_host()
    arguments = {"name": "notes__keep_note", "arguments": {"text": "zanzibar"}}
    traced.post(host, "/mcp", "tools/call", {"name": "call_tool", "arguments": arguments})
    served, sent = traced.spans(host, SERVER, CLIENT)
    assert (served.name, served.parent) == ("tools/call call_tool", host.id)
    assert served.attributes == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2026-07-28",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "call_tool",
        "jsonrpc.request.id": "1",
        "network.transport": "tcp",
        "toolgate.tenant": "default",
    }
    assert (sent.name, sent.parent) == ("tools/call keep_note", served.id)
    assert sent.attributes.pop("jsonrpc.request.id")
    assert sent.attributes == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2025-06-18",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "keep_note",
        "network.transport": "pipe",
        "toolgate.server": "notes",
    }
    assert served.start <= sent.start
    assert sent.end <= served.end
    meta = traced.sent("tools/call")["_meta"]
    assert meta["traceparent"] == f"00-{host.trace}-{sent.id}-01"
    assert meta["tracestate"] == STATE
    # The plane's judgement is in the same trace.
    traced.collector.wait(
        lambda _: any(s.name == GATE for s in traced.collector.of_trace(host.trace))
    )
    [gate] = [span for span in traced.collector.of_trace(host.trace) if span.name == GATE]
    assert gate.parent == served.id
    exported = b"".join(traced.collector.raw)
    assert b"keep_note" in exported
    assert b"zanzibar" not in exported


def test_without_a_host_s_trace_a_request_begins_one(traced: Traced) -> None:
    traced.post(None, "/mcp/s/notes", "prompts/get", {"name": "greet"})
    spans = traced.collector.wait(
        lambda spans: any(s.name == "prompts/get greet" and not s.parent for s in spans)
    )
    [served] = [span for span in spans if span.name == "prompts/get greet"]
    assert served.attributes["gen_ai.prompt.name"] == "greet"
    traceparent = traced.sent("prompts/get")["_meta"]["traceparent"]
    assert traceparent.split("-")[1] == served.trace


def test_failures_are_told_and_names_that_nobody_has_are_not(traced: Traced) -> None:
    host = a_host()
    call = {"name": "zanzibar", "arguments": {}}
    result = traced.post(host, "/mcp/s/notes", "tools/call", call)["result"]
    assert result["isError"] is True
    served, sent = traced.spans(host, SERVER, CLIENT)
    for span in (served, sent):
        assert (span.name, span.status) == ("tools/call", ERROR)
        assert span.attributes["error.type"] == "tool_error"
    host = a_host()
    error = traced.post(host, "/mcp/s/notes", "completion/complete", {"ref": {}})["error"]
    served, sent = traced.spans(host, SERVER, CLIENT)
    for span in (served, sent):
        assert span.status == ERROR
        assert span.attributes["rpc.response.status_code"] == str(error["code"])
    assert b"zanzibar" not in b"".join(traced.collector.raw)


def test_what_the_host_decided_about_sampling_holds(traced: Traced) -> None:
    unsampled, sampled = a_host("00"), a_host()
    read = {"name": "read_note", "arguments": {}}
    traced.post(unsampled, "/mcp/s/notes", "tools/call", read)
    told = traced.sent("tools/call")["_meta"]["traceparent"].split("-")
    assert (told[1], told[3]) == (unsampled.trace, "00")
    traced.post(sampled, "/mcp/s/notes", "tools/call", read)
    traced.spans(sampled, SERVER, CLIENT)
    assert traced.collector.of_trace(unsampled.trace) == []


def test_nothing_but_the_trace_is_added_and_without_a_collector_nothing(
    traced: Traced, binary: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with GatewayProcess(binary, tmp_path, logged_server("notes", log)) as gateway:
        plain = Traced(gateway, traced.collector, log)
        for method, params in {
            "tools/call": {"name": "keep_note", "arguments": {"b": 1.0, "text": "a", "_": {}}},
            "prompts/get": {"name": "greet", "arguments": {"x": "y"}},
        }.items():
            host = a_host()
            with_trace = traced.post(host, "/mcp/s/notes", method, params)
            without = plain.post(host, "/mcp/s/notes", method, params)
            assert with_trace == without
            told, passed_on = traced.sent(method), plain.sent(method)
            assert passed_on["_meta"].pop("traceparent") == host.traceparent
            assert told["_meta"].pop("traceparent") != host.traceparent
            for params_sent in (told, passed_on):
                params_sent["_meta"].pop("progressToken", None)
            assert told == passed_on
            assert list(told) == list(passed_on)
