"""Tenants side by side on one server: whether any sees another's, or feels that it is there."""

import random
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any

import grpc
from google.protobuf.message import Message
from toolgate_process import ToolgateProcess

from toolgate._gen.v1 import error_pb2, router_pb2, router_pb2_grpc

from .ground import Ground
from .promise import Figure, Promise

# Words of one tenant's tools each, that no intent has.
TENANTS = ("zalderwort", "zbirchroot", "zcedarleaf", "zdogwood")
THINGS = (
    "ledger",
    "archive",
    "calendar",
    "warehouse",
    "garden",
    "workshop",
    "timetable",
    "mailbox",
)
VERBS = ("read", "list", "close", "rename")
CALLERS = 8
TURNS_AT_MOST = 400
APART = 1.1
"""The most that medians may differ by; those of one and the same thing do by some hundredths."""
SECONDS = 10.0


def measure(ground: Ground, calls: int) -> Promise:
    with ground.server() as server:
        for tenant in TENANTS:
            with server.client(tenant, timeout=60) as client:
                client.register_server("shelf", _tools(tenant))
        turns = _Turns(server)
        with ThreadPoolExecutor(CALLERS) as pool:
            list(pool.map(turns.one, range(calls)))
        nobodys, anothers, own = _times(server, min(calls, TURNS_AT_MOST))
    ratio = anothers / nobodys
    figures = [
        Figure(
            f"answers of {calls} that hold a word of another tenant",
            "0",
            f"{turns.foreign}",
            turns.foreign == 0,
        ),
        Figure(
            f"Gate calls with another tenant's handle, of {turns.shown}, answered otherwise than "
            "HANDLE_INVALID",
            "0",
            f"{turns.taken}",
            turns.taken == 0,
        ),
        Figure(
            "Route for an intent that another tenant had embedded just before",
            "as long as for one that nobody had",
            f"{ratio:.2f}x (p50 {anothers:.2f} and {nobodys:.2f} ms; one's own: {own:.2f} ms)",
            1 / APART <= ratio <= APART,
        ),
    ]
    how = (
        f"{len(TENANTS)} tenants with an MCP server of the same name, {len(THINGS) * len(VERBS)} "
        f"tools each, of which every text has a word of its tenant's. {CALLERS} callers at once "
        "make Route, SearchTools and Gate calls for all of them with the same intents, some with "
        "another tenant's handle; every answer is looked through whole. Then, in turn, Route calls "
        "for intents that were embedded before for another tenant, for nobody, or for the same."
    )
    return Promise("Tenants", how, figures)


def _tools(tenant: str) -> list[dict[str, Any]]:
    schema = {"type": "object", "properties": {"text": {"type": "string", "description": tenant}}}
    return [
        {
            "name": f"{verb}_{thing}_{tenant}",
            "description": f"{verb.capitalize()} the {thing} of {tenant}.",
            "inputSchema": schema,
        }
        for verb in VERBS
        for thing in THINGS
    ]


class _Turns:
    """Turns of all tenants at once."""

    def __init__(self, server: ToolgateProcess) -> None:
        self._stub = router_pb2_grpc.RouterServiceStub(grpc.insecure_channel(server.target))
        self._lock = threading.Lock()
        first = {one: self._stub.Route(_route(one, "read"), timeout=SECONDS) for one in TENANTS}
        self._handles = {tenant: turn.active_set_handle for tenant, turn in first.items()}
        self.foreign = self.shown = self.taken = 0

    def one(self, number: int) -> None:
        tenant, other = random.sample(TENANTS, 2)
        asked = f"{random.choice(VERBS)} the {random.choice(THINGS)}"
        answer: Message
        match number % 3:
            case 0:
                turn = self._stub.Route(_route(tenant, asked), timeout=SECONDS)
                self._handles[tenant], answer = turn.active_set_handle, turn
            case 1:
                search = router_pb2.SearchToolsRequest(tenant=tenant, query=asked)
                answer = self._stub.SearchTools(search, timeout=SECONDS)
            case _:
                answer = self._gate(tenant, other)
        with self._lock:
            self.foreign += any(word in str(answer) for word in TENANTS if word != tenant)

    def _gate(self, tenant: str, other: str) -> router_pb2.GateResponse:
        """With the other's handle, for a tool that the tenant itself has."""
        call = router_pb2.RequestedCall(
            tool=f"mcp__shelf__read_ledger_{tenant}", arguments_json="{}"
        )
        request = router_pb2.GateRequest(
            tenant=tenant, active_set_handle=self._handles[other], calls=[call]
        )
        answer = self._stub.Gate(request, timeout=SECONDS)
        with self._lock:
            self.shown += 1
            self.taken += answer.verdicts[0].code != error_pb2.REFUSAL_CODE_HANDLE_INVALID
        return answer


def _times(server: ToolgateProcess, turns: int) -> Sequence[float]:
    """p50 of Route in ms for what nobody, another tenant, and the same tenant had embedded."""
    stub = router_pb2_grpc.RouterServiceStub(grpc.insecure_channel(server.target))

    def timed(tenant: str, asked: str) -> float:
        began = time.perf_counter()
        stub.Route(_route(tenant, asked), timeout=SECONDS)
        return (time.perf_counter() - began) * 1_000

    tenant, other = TENANTS[:2]
    found: list[list[float]] = [[], [], []]
    for turn in range(turns):
        # Not numbers: what differs in those alone is embedded once.
        known, new = (f"what did {_name()} write in the ledger" for _ in range(2))
        timed(other, known)
        order = [(0, new), (1, known), (2, known)]
        for kind, asked in order if turn % 2 else order[1:] + order[:1]:
            found[kind].append(timed(tenant, asked))
    return [median(times) for times in found]


def _name() -> str:
    return "".join(random.choices("abcdefghijklmnoprstuvwyz", k=8))


def _route(tenant: str, asked: str) -> router_pb2.RouteRequest:
    return router_pb2.RouteRequest(
        tenant=tenant,
        intents=[router_pb2.Intent(text=asked)],
        options=router_pb2.RouteOptions(threshold=-1),
    )
