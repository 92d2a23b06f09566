"""Errors of failed calls: the status and its details, parsed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import grpc
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2, status_pb2

_DETAILS_KEY = "grpc-status-details-bin"
_DOMAIN = "toolgate"


@dataclass(frozen=True, slots=True)
class FieldViolation:
    """One field at fault."""

    field: str
    """The field's path, such as `intents[0].text`."""
    description: str
    """The mistake and what would be right."""


class ToolgateError(Exception):
    """A call failed. Switch on `reason`; the message's text may change at any time.

    Attributes:
        code: The gRPC status code.
        reason: One of `ErrorReason`, such as "ETAG_MISMATCH"; "" when the failure did not come from
            Toolgate itself (nobody listens, a proxy answered, the deadline passed on this side).
        message: For a reader.
        metadata: The service's details of the reason, such as `limit`, `maximum`, `actual`.
        field_violations: The fields at fault, with INVALID_ARGUMENT.
        retry_after: Seconds to wait before another try; None when no retry helps or none was asked.
    """

    def __init__(
        self,
        code: grpc.StatusCode,
        message: str,
        *,
        reason: str = "",
        metadata: Mapping[str, str] | None = None,
        field_violations: Iterable[FieldViolation] = (),
        retry_after: float | None = None,
    ) -> None:
        self.code = code
        self.reason = reason
        self.message = message
        self.metadata = dict(metadata or {})
        self.field_violations = tuple(field_violations)
        self.retry_after = retry_after
        super().__init__(str(self))

    def __str__(self) -> str:
        said = self.message
        # The service's message says its violations already, unless they are many.
        more = [v for v in self.field_violations if not (v.field in said and v.description in said)]
        fields = "".join(f"; {v.field}: {v.description}" for v in more)
        return f"{self.reason or self.code.name}: {self.message}{fields}"

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions cross process pools; the default would call the class with the text alone.
        return (_rebuild, (self.code, self.message, self.__dict__.copy()))


def _rebuild(code: grpc.StatusCode, message: str, state: dict[str, object]) -> ToolgateError:
    error = ToolgateError(code, message)
    error.__dict__.update(state)
    return error


def from_rpc_error(error: grpc.RpcError, target: str = "") -> ToolgateError:
    """Parses what grpcio raised, from its blocking or its asyncio face.

    Args:
        error: The exception of the call.
        target: Where the call went, to say so when nobody answered there. "": not known.
    """
    # Both faces raise an object that is the finished call too; the base class alone says nothing.
    code = getattr(error, "code", lambda: grpc.StatusCode.UNKNOWN)()
    message = getattr(error, "details", lambda: None)() or code.name
    trailers = getattr(error, "trailing_metadata", lambda: None)() or ()
    status = _status_of(trailers)
    if status is None:
        if code is grpc.StatusCode.UNAVAILABLE and target:
            message = f"{message}; is `toolgate serve` running at {target}?"
        return ToolgateError(code, message)
    return _with_details(code, status)


def _status_of(trailers: Iterable[tuple[str, str | bytes]]) -> status_pb2.Status | None:
    for key, value in trailers:
        if key == _DETAILS_KEY and isinstance(value, bytes):
            try:
                return status_pb2.Status.FromString(value)
            except DecodeError:
                return None
    return None


def _with_details(code: grpc.StatusCode, status: status_pb2.Status) -> ToolgateError:
    info = error_details_pb2.ErrorInfo()
    request = error_details_pb2.BadRequest()
    retry = error_details_pb2.RetryInfo()
    _unpack(status, info)
    if info.domain != _DOMAIN:  # A proxy's reasons are not ours.
        info.Clear()
    _unpack(status, request)
    retried = _unpack(status, retry)
    return ToolgateError(
        code,
        status.message,
        reason=info.reason,
        metadata=info.metadata,
        field_violations=[FieldViolation(v.field, v.description) for v in request.field_violations],
        retry_after=retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9 if retried else None,
    )


def _unpack(status: status_pb2.Status, detail: Message) -> bool:
    """Reads the first detail of this kind; whether there is one that can be read."""
    for packed in status.details:
        if packed.Is(detail.DESCRIPTOR):
            try:
                return bool(packed.Unpack(detail))
            except DecodeError:
                detail.Clear()
                return False
    return False
