"""A service that does as a case says, attempt by attempt, and remembers what it was asked."""

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from toolgate._gen.v1 import catalog_pb2, catalog_pb2_grpc, router_pb2, router_pb2_grpc

Script = list[dict[str, Any]]


class ScriptedService:
    """Answers by the script of the request's tenant; the last step of a script repeats.

    A step may `sleep` (seconds, at most until the call is over), then `fail` ({code, reason,
    domain, message, retry_after, details}), answer ({tools, size, future}), or, of WatchCatalog,
    send `revisions` and `fail`. With `authorization` the call must carry that header.
    """

    def __init__(self) -> None:
        self._scripts: dict[str, Script] = {}
        self._seen: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self._lock = threading.Lock()
        self._server: grpc.Server | None = None

    def start(self) -> str:
        """Serves on a free port."""
        options = [("grpc.max_send_message_length", 1 << 26)]
        server = grpc.server(futures.ThreadPoolExecutor(16), options=options)
        router_pb2_grpc.add_RouterServiceServicer_to_server(_Router(self), server)  # type: ignore[abstract]
        catalog_pb2_grpc.add_CatalogServiceServicer_to_server(_Catalog(self), server)  # type: ignore[abstract]
        serving = health.HealthServicer()
        serving.set("", health_pb2.HealthCheckResponse.SERVING)
        health_pb2_grpc.add_HealthServicer_to_server(serving, server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        self._server = server
        return f"127.0.0.1:{port}"

    def close(self) -> None:
        """Stops serving."""
        if self._server is not None:
            self._server.stop(0)

    def follow(self, tenant: str, script: Script) -> None:
        """Sets what calls of the tenant get from now on."""
        with self._lock:
            self._scripts[tenant] = script
            self._seen.pop(tenant, None)

    def seen(self, tenant: str) -> list[dict[str, Any]]:
        """The tenant's attempts so far."""
        with self._lock:
            return list(self._seen[tenant])

    def step(self, request: Any, context: grpc.ServicerContext) -> dict[str, Any]:
        """The step for this attempt; raises where the script says that it fails."""
        headers = dict(context.invocation_metadata())
        with self._lock:
            seen = self._seen[request.tenant]
            script = self._scripts.get(request.tenant, [{}])
            step = script[min(len(seen), len(script) - 1)]
            seen.append(
                {
                    "at": time.monotonic(),
                    "request_id": getattr(request, "request_id", ""),
                    "since_revision": getattr(request, "since_revision", None),
                    "authorization": headers.get("authorization", ""),
                    "deadline": context.time_remaining(),
                }
            )
        if (wanted := step.get("authorization")) and headers.get("authorization") != wanted:
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "another authorization was expected")
        # It wakes when the call is over, so that no thread of a run sleeps beyond it.
        over = threading.Event()
        if context.add_callback(over.set):
            over.wait(step.get("sleep", 0))
        if "fail" in step and "revisions" not in step:
            fail(context, step["fail"])
        return step


class _Router(router_pb2_grpc.RouterServiceServicer):
    def __init__(self, service: ScriptedService) -> None:
        self._service = service

    def Route(  # noqa: N802
        self, request: router_pb2.RouteRequest, context: grpc.ServicerContext
    ) -> router_pb2.RouteResponse:
        step = self._service.step(request, context)
        answer = router_pb2.RouteResponse(active_set_handle=step.get("handle", "h"))
        if size := step.get("size"):
            answer.active_tools.add(model_name="large", description="x" * size)
        if step.get("future"):
            # An enum's value, and a field, of a newer version.
            answer.active_tools.add(model_name="new", found_by=99)
            answer.MergeFromString(b"\xfa\x3e\x03new")
        return answer


class _Catalog(catalog_pb2_grpc.CatalogServiceServicer):
    def __init__(self, service: ScriptedService) -> None:
        self._service = service

    def RegisterServer(  # noqa: N802
        self, request: catalog_pb2.RegisterServerRequest, context: grpc.ServicerContext
    ) -> catalog_pb2.RegisterServerResponse:
        self._service.step(request, context)
        return catalog_pb2.RegisterServerResponse(catalog_revision=1)

    def ApproveTools(  # noqa: N802
        self, request: catalog_pb2.ApproveToolsRequest, context: grpc.ServicerContext
    ) -> catalog_pb2.ApproveToolsResponse:
        step = self._service.step(request, context)
        answer = catalog_pb2.ApproveToolsResponse(catalog_revision=1)
        if step.get("future"):
            # A code of a newer version.
            answer.refusals.add(name="new", code=99)
        return answer

    def WatchCatalog(  # noqa: N802
        self, request: catalog_pb2.WatchCatalogRequest, context: grpc.ServicerContext
    ) -> Iterator[catalog_pb2.WatchCatalogResponse]:
        step = self._service.step(request, context)
        for revision in step.get("revisions", ()):
            yield catalog_pb2.WatchCatalogResponse(catalog_revision=revision)
        if "fail" in step:
            fail(context, step["fail"])
        while context.is_active():
            time.sleep(0.05)


def fail(context: grpc.ServicerContext, failure: dict[str, Any]) -> None:
    """Ends the call as the script says."""
    code = grpc.StatusCode[failure["code"]]
    message = failure.get("message", "scripted")
    if "details" in failure:
        trailers = (("grpc-status-details-bin", bytes.fromhex(failure["details"])),)
        context.set_trailing_metadata(trailers)
    elif "reason" in failure or "retry_after" in failure:
        status = status_pb2.Status(code=code.value[0], message=message)
        status.details.extend(_details(failure))
        trailers = (("grpc-status-details-bin", status.SerializeToString()),)
        context.set_trailing_metadata(trailers)
    context.abort(code, message)


def _details(failure: dict[str, Any]) -> Iterator[any_pb2.Any]:
    messages: list[Any] = []
    if "reason" in failure:
        domain = failure.get("domain", "toolgate")
        info = error_details_pb2.ErrorInfo(
            reason=failure["reason"], domain=domain, metadata=failure.get("metadata", {})
        )
        messages.append(info)
    if wait := failure.get("retry_after"):
        delay = duration_pb2.Duration(nanos=int(wait * 1e9))
        messages.append(error_details_pb2.RetryInfo(retry_delay=delay))
    for message in messages:
        packed = any_pb2.Any()
        packed.Pack(message)
        yield packed
