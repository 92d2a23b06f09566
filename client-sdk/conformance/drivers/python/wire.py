"""Messages as proto JSON, with the contract's names, and the SDK's arguments and values."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from toolgate import AgentState, PriorCall, RenderOptions, ToolSettings
from toolgate.enums import WireEnum
from toolgate.preconditions import Precondition
from toolgate.preconditions import from_proto as precondition

Json = dict[str, Any]
Msg = TypeVar("Msg", bound=Message)

# The SDK's short names; everything else is called as in the contract.
_SHORT = {
    "active_set_handle": "handle",
    "active_tools": "tools",
    "catalog_revision": "revision",
    "start_time": "start",
    "end_time": "end",
}


def read(document: Json, message: Msg) -> Msg:
    """A message of its JSON."""
    return json_format.ParseDict(document, message)


def plain(message: Message) -> Json:
    """A message's JSON."""
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


def arguments(message: Message, *leave_out: str) -> dict[str, Any]:
    """Returns a request's fields as the SDK's keyword arguments."""
    return {
        _SHORT.get(field.name, field.name): _argument(field, value)
        for field, value in message.ListFields()
        if field.name not in leave_out
    }


def _argument(field: FieldDescriptor, value: Any) -> Any:
    if isinstance(value, str | bytes):
        return value
    if field.enum_type is not None and isinstance(value, int):
        return _enum_name(field.enum_type, value)
    if isinstance(value, Sequence):
        return [_argument(field, one) for one in value]
    return _value_of(value)


def _value_of(value: Any) -> Any:
    if not isinstance(value, Message):
        return value
    if isinstance(value, Timestamp):
        return value.ToDatetime(UTC)
    match value.DESCRIPTOR.name:
        case "AgentState":
            return AgentState(**_state(value))
        case "Precondition":
            return precondition(value)  # type: ignore[arg-type]
        case "ToolSettings":
            return ToolSettings(**arguments(value))
        case "PriorCall":
            return PriorCall(**arguments(value))
        case "RenderOptions":
            marks = arguments(value.anthropic)  # type: ignore[attr-defined]
            named = arguments(value, "anthropic", "own_tools_json")
            own = value.own_tools_json  # type: ignore[attr-defined]
            return RenderOptions(**named, **marks, own_tools=json.loads(own or "[]"))
    raise AssertionError(f"{value.DESCRIPTOR.name} is no argument")


def _state(message: Message) -> dict[str, Any]:
    named = arguments(message, "attributes", "messages_json")
    if text := plain(message).get("messages_json"):
        named["messages"] = json.loads(text)
    return {**named, "attributes": plain(message).get("attributes", {})}


def written(value: Any, kind: Descriptor) -> Json:
    """One of the SDK's values as the JSON of a message of this kind."""
    document: Json = {}
    for field in kind.fields:
        for name in (field.name, _SHORT.get(field.name, "")):
            if name and hasattr(value, name):
                document[field.name] = _written(getattr(value, name), field)
                break
    return {name: one for name, one in document.items() if one is not None}


def _written(value: Any, field: FieldDescriptor) -> Any:
    if isinstance(value, WireEnum) and field.enum_type is not None:
        return _enum_prefix(field.enum_type) + value.value
    if isinstance(value, Precondition):
        return plain(value.to_proto())
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, tuple):
        return [_written(one, field) for one in value]
    if is_dataclass(value) and field.message_type is not None:
        return written(value, field.message_type)
    if isinstance(value, Mapping) and field.type == FieldDescriptor.TYPE_STRING:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if isinstance(value, Mapping) and field.message_type is not None:
        return [_pair(key, one, field.message_type) for key, one in value.items()]
    return value


def _pair(key: Any, value: Any, kind: Descriptor) -> Json:
    """An entry that the SDK keeps in a dict, such as a stage's microseconds or a tool's refusal."""
    named, held = kind.fields
    return {named.name: _written(key, named), held.name: _written(value, held)}


def flat(value: Any, inner: str) -> Any:
    """The value with the fields of one of its own beside them, as the contract has them."""
    own = {field.name: getattr(value, field.name) for field in fields(value)}
    beside = own.pop(inner)
    return _Fields({**{field.name: getattr(beside, field.name) for field in fields(beside)}, **own})


class _Fields:
    def __init__(self, named: dict[str, Any]) -> None:
        self.__dict__.update(named)


def _enum_prefix(kind: EnumDescriptor) -> str:
    return str(kind.values_by_number[0].name).removesuffix("UNSPECIFIED")


def _enum_name(kind: EnumDescriptor, number: int) -> str:
    known = kind.values_by_number.get(number)
    if known is None:
        raise ValueError(f"{kind.name} has no {number}")
    return str(known.name).removeprefix(_enum_prefix(kind))
