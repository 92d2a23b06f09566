"""The operations that call the service, one function for each."""

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import wire
from wire import Json

from toolgate import Call, CatalogChange, CatalogWatch, Client, Intent, RouteResult, ToolgateError
from toolgate._gen.v1 import (
    catalog_pb2,
    memory_pb2,
    policy_pb2,
    router_pb2,
    router_pb2_grpc,
    usage_pb2,
)

Operation = Callable[[Client, Json], Json]


def _timeout(args: Json) -> dict[str, Any]:
    return {"timeout": args["timeout"]} if "timeout" in args else {}


def _routing(args: Json) -> Callable[[Client], RouteResult]:
    """The call that a RouteRequest asks for, to make once or many times."""
    request = wire.read(args["request"], router_pb2.RouteRequest())
    intents = [
        Intent(intent.text, intent.weight if intent.HasField("weight") else None)
        for intent in request.intents
    ]
    named = wire.arguments(request, "tenant", "intents", "options")
    named |= wire.arguments(request.options) | _timeout(args)
    return lambda client: client.route(intents, **named)


def _route(client: Client, args: Json) -> Json:
    return wire.written(_routing(args)(client), router_pb2.RouteResponse.DESCRIPTOR)


def _rendered(client: Client, args: Json) -> Json:
    rendered = _routing(args)(client).rendered
    if rendered is None:
        raise AssertionError("the answer has no rendered tools")
    names = ("tool", "pointer", "keyword", "note")
    losses = [{name: getattr(loss, name) for name in names} for loss in rendered.losses]
    return {"tools": rendered.tools, "losses": losses}


def _model_request(client: Client, args: Json) -> Json:
    turn = _routing(args)(client)
    request = turn.request
    return {
        "tools": request.tools,
        "messages": request.messages,
        "betas": list(request.betas),
        "ledger": request.ledger,
        "strategy": request.strategy.value,
        "reason": request.reason.value,
        "reason_message": request.reason_message,
        "handle": turn.handle,
    }


def _gate(client: Client, args: Json) -> Json:
    request = wire.read(args["request"], router_pb2.GateRequest())
    calls = [Call(call.tool, call.arguments_json, call.call_id) for call in request.calls]
    named = wire.arguments(request, "tenant", "active_set_handle", "calls")
    result = client.gate(request.active_set_handle, calls, **named, **_timeout(args))
    return wire.written(result, router_pb2.GateResponse.DESCRIPTOR)


def _search_tools(client: Client, args: Json) -> Json:
    request = wire.read(args["request"], router_pb2.SearchToolsRequest())
    named = wire.arguments(request, "tenant", "query")
    found = client.search_tools(request.query, **named, **_timeout(args))
    return wire.written(found, router_pb2.SearchToolsResponse.DESCRIPTOR)


def _get_summary_pool(client: Client, args: Json) -> Json:
    request = wire.read(args["request"], router_pb2.GetSummaryPoolRequest())
    named = wire.arguments(request, "tenant")
    pool = client.get_summary_pool(**named, **_timeout(args))
    return {"pool": wire.written(pool, router_pb2.SummaryPoolDelta.DESCRIPTOR)}


def _batch_get_tool_schemas(client: Client, args: Json) -> Json:
    request = wire.read(args["request"], router_pb2.BatchGetToolSchemasRequest())
    named = wire.arguments(request, "tenant", "names")
    schemas = client.batch_get_tool_schemas(request.names, **named, **_timeout(args))
    return wire.written(schemas, router_pb2.BatchGetToolSchemasResponse.DESCRIPTOR)


def _register_server(client: Client, args: Json) -> Json:
    request = wire.read(args["request"], catalog_pb2.RegisterServerRequest())
    named = wire.arguments(request, "tenant", "server", "tools_list_json", "pending")
    if request.pending:
        answer = client.announce_server(request.server, **named, **_timeout(args))
    else:
        body = request.tools_list_json
        answer = client.register_server(request.server, body, **named, **_timeout(args))
    return wire.written(answer, catalog_pb2.RegisterServerResponse.DESCRIPTOR)


def _unregister_server(client: Client, args: Json) -> Json:
    request = wire.read(args["request"], catalog_pb2.UnregisterServerRequest())
    removal = client.unregister_server(request.server, etag=request.etag, **_timeout(args))
    return wire.written(removal, catalog_pb2.UnregisterServerResponse.DESCRIPTOR)


def _approve_tools(client: Client, args: Json) -> Json:
    request = wire.read(args["request"], catalog_pb2.ApproveToolsRequest())
    hashes = {approval.name: approval.hash for approval in request.approvals}
    approval = client.approve_tools(request.server, hashes, **_timeout(args))
    return wire.written(approval, catalog_pb2.ApproveToolsResponse.DESCRIPTOR)


def _get_server(client: Client, args: Json) -> Json:
    request = wire.read(args["request"], catalog_pb2.GetServerRequest())
    server = client.get_server(request.server, **_timeout(args))
    return {"server": wire.written(server, catalog_pb2.McpServer.DESCRIPTOR)}


def _list_servers(client: Client, args: Json) -> Json:
    request = wire.read(args["request"], catalog_pb2.ListServersRequest())
    listed = client.list_servers(**wire.arguments(request, "tenant"), **_timeout(args))
    return {"items": [wire.written(one, catalog_pb2.McpServer.DESCRIPTOR) for one in listed]}


def _list_tools(client: Client, args: Json) -> Json:
    request = wire.read(args["request"], catalog_pb2.ListToolsRequest())
    listed = client.list_tools(**wire.arguments(request, "tenant"), **_timeout(args))
    return {"items": [wire.written(one, catalog_pb2.Tool.DESCRIPTOR) for one in listed]}


def _set_policy(client: Client, args: Json) -> Json:
    request = wire.read(args["request"], policy_pb2.SetPolicyRequest())
    policy = client.set_policy(request.document, etag=request.etag, **_timeout(args))
    rules = [wire.written(rule, policy_pb2.RuleCoverage.DESCRIPTOR) for rule in policy.rules]
    return {"policy": wire.written(policy, policy_pb2.Policy.DESCRIPTOR), "rules": rules}


def _get_policy(client: Client, args: Json) -> Json:
    policy = client.get_policy(**_timeout(args))
    return {"policy": wire.written(policy, policy_pb2.Policy.DESCRIPTOR)}


def _check_policy(client: Client, args: Json) -> Json:
    request = wire.read(args["request"], policy_pb2.CheckPolicyRequest())
    checked = client.check_policy(**wire.arguments(request, "tenant"), **_timeout(args))
    return {"items": [wire.written(one, policy_pb2.PolicyVerdict.DESCRIPTOR) for one in checked]}


def _get_usage(client: Client, args: Json) -> Json:
    request = wire.read(args["request"], usage_pb2.GetUsageRequest())
    usage = client.get_usage(**wire.arguments(request, "tenant"), **_timeout(args))
    document = wire.written(wire.flat(usage, "total"), usage_pb2.GetUsageResponse.DESCRIPTOR)
    bucket = usage_pb2.UsageBucket.DESCRIPTOR
    buckets = [wire.written(wire.flat(one, "amounts"), bucket) for one in usage.buckets]
    return {**document, "buckets": buckets}


def _get_memory_stats(client: Client, args: Json) -> Json:
    request = wire.read(args["request"], memory_pb2.GetMemoryStatsRequest())
    stats = client.memory_stats(server=request.server, **_timeout(args))
    return wire.written(stats, memory_pb2.GetMemoryStatsResponse.DESCRIPTOR)


def _clear_memory(client: Client, args: Json) -> Json:
    request = wire.read(args["request"], memory_pb2.ClearMemoryRequest())
    cleared = client.clear_memory(server=request.server, name=request.name, **_timeout(args))
    return {"cleared": cleared}


def _answer_search(client: Client, args: Json) -> Json:
    asked = args["call"]
    call = Call(asked["tool"], asked["arguments"], asked.get("call_id", ""))
    named = {"detail": args["detail"].removeprefix("DETAIL_")} if "detail" in args else {}
    if "state" in args:
        request = wire.read({"state": args["state"]}, router_pb2.RouteRequest())
        named |= wire.arguments(request)
    answer = client.answer_search(call, handle=args["handle"], **named)
    tools = [tool.model_name for tool in answer.tools]
    return {"text": answer.text, "failed": answer.failed, "handle": answer.handle, "tools": tools}


def _soak(client: Client, args: Json) -> Json:
    route = _routing(args)
    left = iter(range(args["calls"]))
    failed: dict[str, int] = {}
    lock = threading.Lock()

    def work(_worker: int) -> None:
        while True:
            with lock:
                if next(left, None) is None:
                    return
            try:
                route(client)
            except ToolgateError as error:
                with lock:
                    failed[error.code.name] = failed.get(error.code.name, 0) + 1

    began = time.monotonic()
    with ThreadPoolExecutor(args["concurrency"]) as pool:
        list(pool.map(work, range(args["concurrency"])))
    return {"calls": args["calls"], "failed": failed, "seconds": time.monotonic() - began}


OPERATIONS: dict[str, Operation] = {
    "Route": _route,
    "rendered": _rendered,
    "model_request": _model_request,
    "Gate": _gate,
    "SearchTools": _search_tools,
    "GetSummaryPool": _get_summary_pool,
    "BatchGetToolSchemas": _batch_get_tool_schemas,
    "RegisterServer": _register_server,
    "UnregisterServer": _unregister_server,
    "ApproveTools": _approve_tools,
    "GetServer": _get_server,
    "SetPolicy": _set_policy,
    "GetPolicy": _get_policy,
    "GetUsage": _get_usage,
    "GetMemoryStats": _get_memory_stats,
    "ClearMemory": _clear_memory,
    "list_servers": _list_servers,
    "list_tools": _list_tools,
    "check_policy": _check_policy,
    "answer_search": _answer_search,
    "soak": _soak,
}


def bench(client: Client, settings: Json, args: Json) -> Json:
    """The time of each of some Route calls, made one after another."""
    if not args["raw"]:
        route = _routing(args)
        return {"micros": _times(args["calls"], lambda: route(client))}
    request = wire.read(args["request"], router_pb2.RouteRequest())
    request.tenant = settings.get("tenant", "")
    with grpc.insecure_channel(settings["target"].removeprefix("http://")) as channel:
        stub = router_pb2_grpc.RouterServiceStub(channel)
        return {"micros": _times(args["calls"], lambda: stub.Route(request, timeout=5))}


def _times(calls: int, call: Callable[[], object]) -> list[int]:
    micros = []
    for _ in range(calls):
        began = time.perf_counter_ns()
        call()
        micros.append((time.perf_counter_ns() - began) // 1000)
    return micros


class Watch:
    """A watch whose changes are collected in the background."""

    def __init__(self, client: Client, request: catalog_pb2.WatchCatalogRequest) -> None:
        since = request.since_revision if request.HasField("since_revision") else None
        self._watch: CatalogWatch = client.watch_catalog(since_revision=since)
        self._arrived = threading.Condition()
        self._events: list[Json] = []
        self._failure: Exception | None = None
        threading.Thread(target=self._collect, args=[self._watch], daemon=True).start()

    def take(self, count: int, timeout: float) -> tuple[list[Json], Exception | None]:
        """Up to so many changes, and why there will be no more, if so."""
        with self._arrived:
            self._arrived.wait_for(
                lambda: len(self._events) >= count or self._failure is not None, timeout
            )
            taken, self._events = self._events[:count], self._events[count:]
            return taken, None if self._events else self._failure

    def stop(self) -> None:
        """Ends the watch; what came is kept."""
        self._watch.close()

    def _collect(self, changes: Iterable[CatalogChange]) -> None:
        kind = catalog_pb2.WatchCatalogResponse.DESCRIPTOR
        failure: Exception | None = None
        try:
            for change in changes:
                self._add(wire.written(change, kind))
        except Exception as error:  # The driver says what it is.
            failure = error
        with self._arrived:
            self._failure = failure
            self._arrived.notify_all()

    def _add(self, event: Json) -> None:
        with self._arrived:
            self._events.append(event)
            self._arrived.notify_all()
