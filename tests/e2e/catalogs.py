"""Small catalogs and what is asserted of errors, shared by the end-to-end tests."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest

from toolgate import ToolgateError
from toolgate.errors import from_rpc_error

_DATA = Path(__file__).resolve().parent.parent / "data"
SHIPPED = _DATA / "servers"
SHIPPED_TENANT = "shipped"
"""Tenant that has all of them (fixture `shipped`)."""
OTHER_LANGUAGES = _DATA / "other-languages"


def tool(name: str, description: Any = "", **more: Any) -> dict[str, Any]:
    """One MCP tool; `more` adds or replaces fields."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    described = {"name": name, "description": description or f"Does {name}.", "inputSchema": schema}
    return {**described, **more}


NOTES = [
    tool(
        "create_note",
        "Write down a new note so that it can be found again later.",
        inputSchema={
            "type": "object",
            "properties": {
                "title": {"type": "string", "minLength": 1},
                "pages": {"type": "integer", "minimum": 1},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["title"],
            "additionalProperties": False,
        },
        annotations={"readOnlyHint": False},
    ),
    tool("find_notes", "Search through the notes that were written earlier."),
    tool("delete_note", "Delete a note forever."),
]
WEATHER = [
    tool("get_forecast", "Get the weather forecast for a city for the coming days."),
    tool("get_rain_alerts", "Get warnings about heavy rain and storms near a place."),
]


def nested(levels: int) -> dict[str, Any]:
    """A JSON Schema with this many objects inside each other."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels // 2):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def body(tools: list[dict[str, Any]]) -> bytes:
    return json.dumps({"tools": tools}).encode()


@dataclass
class Caught:
    """The error that a block raised; set when the block is left."""

    error: ToolgateError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.error, name)


@contextmanager
def refused(code: grpc.StatusCode, *reasons: str, field: str = "") -> Iterator[Caught]:
    """Asserts that the block fails with this status, one of these reasons, this field at fault."""
    caught = Caught()
    with pytest.raises((ToolgateError, grpc.RpcError)) as raised:
        yield caught
    caught.error = _parsed(raised.value)
    assert (caught.error.code, caught.error.reason) in [(code, r) for r in reasons], caught.error
    if field:
        fields = [violation.field for violation in caught.error.field_violations]
        assert any(field in named for named in fields), caught.error


def _parsed(error: Exception) -> ToolgateError:
    if isinstance(error, ToolgateError):
        return error
    assert isinstance(error, grpc.RpcError)
    return from_rpc_error(error)


def invalid(*reasons: str, field: str = "") -> Any:
    """INVALID_ARGUMENT, by default with INVALID_FIELD."""
    return refused(grpc.StatusCode.INVALID_ARGUMENT, *(reasons or ("INVALID_FIELD",)), field=field)


def too_many(field: str) -> Any:
    """INVALID_ARGUMENT for a count or size that the contract fixes, with either reason for it."""
    return invalid("INVALID_FIELD", "LIMIT_EXCEEDED", field=field)


def over_limit(maximum: int, actual: int | None = None) -> Any:
    """INVALID_ARGUMENT with LIMIT_EXCEEDED, and the figures in the metadata."""
    return _over_limit(grpc.StatusCode.INVALID_ARGUMENT, maximum, actual)


@contextmanager
def _over_limit(code: grpc.StatusCode, maximum: int, actual: int | None) -> Iterator[Caught]:
    with refused(code, "LIMIT_EXCEEDED") as caught:
        yield caught
    assert caught.metadata.get("limit"), caught.error
    assert caught.metadata.get("maximum") == str(maximum), caught.metadata
    if actual is not None:
        assert caught.metadata.get("actual") == str(actual), caught.metadata


def raw_call(channel: grpc.Channel, method: str) -> Callable[..., bytes]:
    """A method that takes and gives bytes, for what a generated message cannot say."""
    call: Callable[..., bytes] = channel.unary_unary(
        f"/toolgate.v1.{method}",
        request_serializer=lambda message: message,
        response_deserializer=lambda message: message,
    )
    return call
