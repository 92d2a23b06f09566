"""Route on bad input: limits, ranges, wrong types, and bytes that are no message."""

import math
from typing import Any

import grpc
import pytest
from catalogs import invalid, over_limit, raw_call, refused
from waiting import PATIENCE

from toolgate import Client, Intent
from toolgate._gen.v1 import router_pb2, router_pb2_grpc

KIB = 1024


def test_no_intent(notes: Client) -> None:
    with invalid("INVALID_FIELD", field="intents"):
        notes.route([])


@pytest.mark.parametrize("text", ["", " ", "\n\t \u00a0", "\u3000"])
def test_an_empty_intent(notes: Client, text: str) -> None:
    with invalid("INVALID_FIELD", field="intents[1]"):
        notes.route(["hello", text])


def test_too_many_intents(notes: Client) -> None:
    assert notes.route(["hello"] * 16, threshold=-1)
    with over_limit(16, 17):
        notes.route(["hello"] * 17)


def test_an_oversize_intent(notes: Client) -> None:
    notes.route("x" * (32 * KIB))
    with over_limit(32 * KIB, 32 * KIB + 1):
        notes.route("x" * (32 * KIB + 1))


def test_sizes_are_bytes_not_characters(notes: Client) -> None:
    with over_limit(32 * KIB, 32 * KIB + 2):
        notes.route("é" * (16 * KIB + 1))


@pytest.mark.parametrize("weight", [0.0, -1.0, 100.5, math.nan, math.inf])
def test_weights(notes: Client, weight: float) -> None:
    with invalid("INVALID_FIELD", field="weight"):
        notes.route(Intent("hello", weight))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("top_k", 0),
        ("top_k", 101),
        ("threshold", 1.01),
        ("threshold", -1.01),
        ("threshold", math.nan),
    ],
)
def test_ranges(notes: Client, name: str, value: Any) -> None:
    with invalid("INVALID_FIELD", field=name):
        notes.route("hello", **{name: value})


@pytest.mark.parametrize(
    ("name", "maximum"), [("pinned_tools", 100), ("excluded_tools", 1000), ("servers", 100)]
)
def test_too_long_lists(notes: Client, name: str, maximum: int) -> None:
    with invalid("LIMIT_EXCEEDED", "INVALID_FIELD"):
        notes.route("hello", **{name: [f"s/t{i}" for i in range(maximum + 1)]})  # type: ignore[arg-type]


def test_a_server_filter_that_would_match_nothing(notes: Client) -> None:
    with refused(grpc.StatusCode.NOT_FOUND, "SERVER_NOT_FOUND"):
        notes.route("hello", servers=["absent"])


def test_a_long_turn_id(notes: Client) -> None:
    notes.route("hello", turn_id="x" * 128)
    with invalid("LIMIT_EXCEEDED", "INVALID_FIELD"):
        notes.route("hello", turn_id="x" * 129)


def test_a_detail_that_nobody_defined(
    notes: Client, router: router_pb2_grpc.RouterServiceStub, tenant: str
) -> None:
    request = router_pb2.RouteRequest(tenant=tenant, intents=[router_pb2.Intent(text="x")])
    request.options.detail = 99  # type: ignore[assignment]
    with invalid("INVALID_FIELD", field="detail"):
        router.Route(request)


def test_a_selection_rule_that_nobody_defined(
    notes: Client, router: router_pb2_grpc.RouterServiceStub, tenant: str
) -> None:
    request = router_pb2.RouteRequest(tenant=tenant, intents=[router_pb2.Intent(text="x")])
    request.options.selection_rule = 99  # type: ignore[assignment]
    with invalid("INVALID_FIELD", field="options.selection_rule"):
        router.Route(request)


def test_an_oversize_state(notes: Client) -> None:
    with invalid("LIMIT_EXCEEDED") as caught:
        notes.route("hello", state={"milestones": ["m" * 1000] * 70})
    assert caught.metadata["maximum"] == str(64 * KIB)


def test_a_deeply_nested_state_is_no_stack_overflow(notes: Client, channel: grpc.Channel) -> None:
    # Value { list_value { values: [ ... ] } } by hand: Python's protobuf refuses to nest so deep.
    value = b"\x08\x00"
    for _ in range(5_000):
        inner = b"\x0a" + _varint(len(value)) + value
        value = b"\x32" + _varint(len(inner)) + inner
    entry = b"\x0a\x01k\x12" + _varint(len(value)) + value
    attributes = b"\x0a" + _varint(len(entry)) + entry
    state = b"\x22" + _varint(len(attributes)) + attributes
    request = b"\x12\x07\x0a\x05hello" + b"\x1a" + _varint(len(state)) + state
    with refused(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD", "LIMIT_EXCEEDED"):
        raw_call(channel, "RouterService/Route")(request, timeout=PATIENCE)
    notes.route("hello")


@pytest.mark.parametrize(
    "message",
    [
        b"\x0a\x02\xff\xfe",
        b"\x12\x04\x0a\x02\xc3\x28",
        b"\xff\xff\xff\xff",
        b"\x12\x7f\x0a",
        b"\x12\x02\x08\x01",
    ],
    ids=["tenant not UTF-8", "intent not UTF-8", "no message", "cut off", "a number for a text"],
)
def test_bytes_that_are_no_request(channel: grpc.Channel, message: bytes) -> None:
    with refused(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD"):
        raw_call(channel, "RouterService/Route")(message, timeout=PATIENCE)


def test_a_message_over_four_mebibytes(notes: Client, channel: grpc.Channel) -> None:
    text = b"x" * (4 * KIB * KIB + 1)
    intent = b"\x0a" + _varint(len(text)) + text
    with over_limit(4 * KIB * KIB):
        raw_call(channel, "RouterService/Route")(
            b"\x12" + _varint(len(intent)) + intent, timeout=PATIENCE
        )
    notes.route("hello")


def test_a_revision_that_does_not_come(
    notes: Client, router: router_pb2_grpc.RouterServiceStub, tenant: str
) -> None:
    request = router_pb2.RouteRequest(
        tenant=tenant, intents=[router_pb2.Intent(text="x")], min_revision=10**9
    )
    with pytest.raises(grpc.RpcError) as caught:
        router.Route(request, timeout=1)
    # The client's own clock may be the quicker one.
    assert caught.value.code() in (
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
    )


def test_no_deadline_is_cut_to_the_servers_own(
    notes: Client, router: router_pb2_grpc.RouterServiceStub, tenant: str
) -> None:
    request = router_pb2.RouteRequest(tenant=tenant, intents=[router_pb2.Intent(text="x")])
    assert router.Route(request).active_set_handle


def test_an_unknown_method_is_unimplemented(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        raw_call(channel, "RouterService/Nothing")(b"", timeout=PATIENCE)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
