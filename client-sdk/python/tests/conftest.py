"""A small service in this process that answers what a test tells it to, over real gRPC."""

from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import grpc
import pytest
from google.protobuf import any_pb2
from google.protobuf.message import Message
from google.rpc import status_pb2

from toolgate._gen.v1 import (
    catalog_pb2_grpc,
    policy_pb2_grpc,
    router_pb2_grpc,
    usage_pb2_grpc,
)

Handler = Callable[[Any, grpc.ServicerContext], Any]


class FakeService:
    """Answers by method name with the handlers set by the test; keeps the requests that came."""

    def __init__(self) -> None:
        self.handlers: dict[str, Handler] = {}
        self.requests: list[Any] = []
        self.seconds_left: list[float] = []
        self.target = ""

    def answer(self, method: str, answer: Message | Handler) -> None:
        self.handlers[method] = answer if callable(answer) else lambda _request, _context: answer

    def __getattr__(self, method: str) -> Handler:
        if method.startswith("_"):
            raise AttributeError(method)

        def serve(request: Any, context: grpc.ServicerContext) -> Any:
            self.requests.append(request)
            self.seconds_left.append(context.time_remaining() or 0.0)
            return self.handlers[method](request, context)

        return serve


@pytest.fixture
def service() -> Iterator[FakeService]:
    fake = FakeService()
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
    router_pb2_grpc.add_RouterServiceServicer_to_server(fake, server)  # type: ignore[arg-type]
    catalog_pb2_grpc.add_CatalogServiceServicer_to_server(fake, server)  # type: ignore[arg-type]
    usage_pb2_grpc.add_UsageServiceServicer_to_server(fake, server)  # type: ignore[arg-type]
    policy_pb2_grpc.add_PolicyServiceServicer_to_server(fake, server)  # type: ignore[arg-type]
    fake.target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield fake
    server.stop(None).wait()


def fail(code: grpc.StatusCode, message: str, *details: Message) -> Handler:
    """A handler that fails as the real service does: with the details in the trailers."""
    status = status_pb2.Status(code=code.value[0], message=message)
    for detail in details:
        packed = any_pb2.Any()
        packed.Pack(detail)
        status.details.append(packed)

    def handler(_request: Any, context: grpc.ServicerContext) -> Any:
        context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
        context.abort(code, message)

    return handler
