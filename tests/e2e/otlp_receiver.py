"""A collector of spans: takes what is exported by OTLP over gRPC, and can hang or be away."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from waiting import wait_until

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

SERVER, CLIENT = 2, 3
ERROR = 2


@dataclass(frozen=True)
class Span:
    """One span, with what the tests look at."""

    service: str
    name: str
    trace: str
    id: str
    parent: str
    kind: int
    status: int
    attributes: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]]
    links: list[str]
    start: int
    end: int


@dataclass
class Collector:
    """Exports, parsed and as they came."""

    endpoint: str
    hangs: threading.Event
    credentials: set[str] = field(default_factory=set)
    raw: list[bytes] = field(default_factory=list)

    def spans(self) -> list[Span]:
        return [span for message in list(self.raw) for span in _parse(message)]

    def of_trace(self, trace: str) -> list[Span]:
        return [span for span in self.spans() if span.trace == trace]

    def wait(self, enough: Callable[[list[Span]], bool]) -> list[Span]:
        """The spans, once they are enough."""
        spans: list[Span] = []

        def have_come() -> bool:
            nonlocal spans
            spans = self.spans()
            return enough(spans)

        wait_until(have_come, lambda: "no more came than:\n" + "\n".join(map(_shown, spans)))
        return spans


def _shown(span: Span) -> str:
    return f"{span.service} {span.name} {span.trace} {span.id} < {span.parent}"


@contextmanager
def collecting(tls: grpc.ServerCredentials | None = None) -> Iterator[Collector]:
    """A collector on a free port."""
    pool = ThreadPoolExecutor(8)
    server = grpc.server(pool)
    if tls is None:
        endpoint = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    else:
        endpoint = f"https://localhost:{server.add_secure_port('127.0.0.1:0', tls)}"
    collector = Collector(endpoint, threading.Event())
    over = threading.Event()

    def export(message: bytes, context: grpc.ServicerContext) -> bytes:
        sent = dict(context.invocation_metadata())
        collector.credentials.add(str(sent.get("authorization", "")))
        if collector.hangs.is_set():
            over.wait(60)
        else:
            collector.raw.append(message)
        return b""

    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(export)
    service, method = EXPORT.strip("/").split("/")
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(service, {method: handler}),)
    )
    server.start()
    try:
        yield collector
    finally:
        over.set()
        server.stop(0).wait(10)
        pool.shutdown()


def _parse(message: bytes) -> Iterator[Span]:
    request = trace_service_pb2.ExportTraceServiceRequest.FromString(message)
    for resource_spans in request.resource_spans:
        resource = _attributes(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                yield Span(
                    service=resource["service.name"],
                    name=span.name,
                    trace=span.trace_id.hex(),
                    id=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    kind=span.kind,
                    status=span.status.code,
                    attributes=_attributes(span.attributes),
                    events=[(event.name, _attributes(event.attributes)) for event in span.events],
                    links=[link.span_id.hex() for link in span.links],
                    start=span.start_time_unix_nano,
                    end=span.end_time_unix_nano,
                )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}
