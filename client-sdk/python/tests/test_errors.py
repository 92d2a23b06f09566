"""Errors: what the status details become, and that only UNAVAILABLE is retried."""

import pickle
import socket
import time

import grpc
import pytest
from conftest import FakeService, fail
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2

from toolgate import Client, ErrorReason, FieldViolation, ToolgateError
from toolgate._gen.v1 import error_pb2, router_pb2


def test_every_detail_is_parsed(service: FakeService) -> None:
    service.answer(
        "Route",
        fail(
            grpc.StatusCode.INVALID_ARGUMENT,
            "an intent is empty",
            error_details_pb2.ErrorInfo(
                reason="INVALID_FIELD", domain="toolgate", metadata={"limit": "intents"}
            ),
            error_details_pb2.BadRequest(
                field_violations=[
                    error_details_pb2.BadRequest.FieldViolation(
                        field="intents[0].text", description="must not be empty"
                    )
                ]
            ),
            error_details_pb2.RetryInfo(retry_delay=Duration(seconds=1, nanos=500_000_000)),
        ),
    )
    with Client(service.target) as client, pytest.raises(ToolgateError) as caught:
        client.route("")
    error = caught.value
    assert error.code is grpc.StatusCode.INVALID_ARGUMENT
    assert error.reason == ErrorReason.INVALID_FIELD
    assert error.metadata == {"limit": "intents"}
    assert error.field_violations == (FieldViolation("intents[0].text", "must not be empty"),)
    assert error.retry_after == 1.5
    assert str(error) == ("INVALID_FIELD: an intent is empty; intents[0].text: must not be empty")


def test_an_error_survives_pickling() -> None:
    error = ToolgateError(
        grpc.StatusCode.ABORTED, "changed", reason="ETAG_MISMATCH", retry_after=0.5
    )
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.code, copy.reason, copy.retry_after) == (error.code, "ETAG_MISMATCH", 0.5)
    assert str(copy) == str(error)


def test_undecodable_details_do_not_hide_the_status(service: FakeService) -> None:
    def handler(_request: object, context: grpc.ServicerContext) -> None:
        context.set_trailing_metadata((("grpc-status-details-bin", b"\xff\xff"),))
        context.abort(grpc.StatusCode.INTERNAL, "broken")

    service.answer("Route", handler)
    with Client(service.target) as client, pytest.raises(ToolgateError) as caught:
        client.route("x")
    assert (caught.value.code, caught.value.reason) == (grpc.StatusCode.INTERNAL, "")


def test_a_detail_that_cannot_be_read_does_not_hide_the_others(service: FakeService) -> None:
    status = status_pb2.Status(code=8, message="too many")
    for kind in ("RetryInfo", "BadRequest", "Unknown"):
        status.details.add(type_url=f"type.googleapis.com/google.rpc.{kind}", value=b"\xff")
    info = error_details_pb2.ErrorInfo(reason="OVERLOADED", domain="toolgate")
    status.details.add().Pack(info)

    def handler(_request: object, context: grpc.ServicerContext) -> None:
        context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many")

    service.answer("Route", handler)
    with Client(service.target) as client, pytest.raises(ToolgateError) as caught:
        client.route("x")
    assert (caught.value.reason, caught.value.retry_after) == ("OVERLOADED", None)
    assert caught.value.field_violations == ()


def test_another_services_reasons_are_not_toolgates(service: FakeService) -> None:
    info = error_details_pb2.ErrorInfo(reason="PROXY", domain="proxy.example", metadata={"a": "b"})
    service.answer("Route", fail(grpc.StatusCode.INTERNAL, "broken", info))
    with Client(service.target) as client, pytest.raises(ToolgateError) as caught:
        client.route("x")
    assert (caught.value.reason, caught.value.metadata) == ("", {})


def test_nobody_listening_is_unavailable_soon() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        started = time.monotonic()
        with (
            Client(f"127.0.0.1:{port}", timeout=60) as client,
            pytest.raises(ToolgateError) as caught,
        ):
            client.route("x")
    assert caught.value.code is grpc.StatusCode.UNAVAILABLE
    assert f"is `toolgate serve` running at 127.0.0.1:{port}?" in str(caught.value)
    assert time.monotonic() - started < 30


def test_a_service_that_says_why_it_is_unavailable_is_running(service: FakeService) -> None:
    service.answer(
        "Route",
        fail(
            grpc.StatusCode.UNAVAILABLE,
            "stopping",
            error_details_pb2.ErrorInfo(reason="DRAINING", domain="toolgate"),
        ),
    )
    with Client(service.target) as client, pytest.raises(ToolgateError) as caught:
        client.route("x")
    assert str(caught.value) == "DRAINING: stopping"


@pytest.mark.parametrize(
    ("code", "attempts"),
    [
        (grpc.StatusCode.UNAVAILABLE, 3),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, 1),
        (grpc.StatusCode.ABORTED, 1),
        (grpc.StatusCode.INTERNAL, 1),
    ],
)
def test_only_unavailable_is_retried(
    service: FakeService, code: grpc.StatusCode, attempts: int
) -> None:
    service.answer("Route", fail(code, "no"))
    with Client(service.target) as client, pytest.raises(ToolgateError):
        client.route("x")
    assert len(service.requests) == attempts


def test_a_retry_that_succeeds_is_not_seen(service: FakeService) -> None:
    refuse = fail(grpc.StatusCode.UNAVAILABLE, "draining")

    def handler(request: object, context: grpc.ServicerContext) -> router_pb2.RouteResponse:
        if len(service.requests) == 1:
            refuse(request, context)
        return router_pb2.RouteResponse(catalog_revision=7)

    service.answer("Route", handler)
    with Client(service.target) as client:
        assert client.route("x").catalog_revision == 7


def test_reasons_are_those_of_the_contract() -> None:
    contract = {
        name.removeprefix("ERROR_REASON_")
        for name in error_pb2.ErrorReason.keys()  # noqa: SIM118
    }
    assert {reason.value for reason in ErrorReason} == contract


def test_a_violation_is_not_said_twice(service: FakeService) -> None:
    broken = error_details_pb2.BadRequest.FieldViolation(
        field="top_k", description="must be 1 to 100"
    )
    service.answer(
        "Route",
        fail(
            grpc.StatusCode.INVALID_ARGUMENT,
            "top_k: must be 1 to 100",
            error_details_pb2.ErrorInfo(reason="INVALID_FIELD", domain="toolgate"),
            error_details_pb2.BadRequest(field_violations=[broken]),
        ),
    )
    with Client(service.target) as client, pytest.raises(ToolgateError) as caught:
        client.route("x", top_k=1000)
    assert str(caught.value) == "INVALID_FIELD: top_k: must be 1 to 100"
    assert caught.value.field_violations == (FieldViolation("top_k", "must be 1 to 100"),)
