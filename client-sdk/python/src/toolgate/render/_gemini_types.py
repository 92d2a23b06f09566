"""Rewrites a JSON Schema of one type, without references and combinators, for Gemini."""

import json
import math
import re
from typing import TYPE_CHECKING, Any

from toolgate.render._schema import Place, Schema, list_of, object_of, pointer

if TYPE_CHECKING:
    from toolgate.render._gemini_schema import Converter

_PROPERTY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_ANNOTATIONS = ("title", "description", "pattern")
_COUNTS = {
    "STRING": ("minLength", "maxLength"),
    "ARRAY": ("minItems", "maxItems"),
    "OBJECT": ("minProperties", "maxProperties"),
}
_FORMATS = {"STRING": ("date-time",), "NUMBER": ("float", "double"), "INTEGER": ("int32", "int64")}
_TYPES = ("string", "number", "integer", "boolean", "array", "object")
# By which keywords a schema that does not name its type shows it.
_SIGNS = (
    ("object", ("properties", "required", "additionalProperties", "patternProperties")),
    ("array", ("items", "prefixItems", "minItems", "maxItems")),
    ("string", ("minLength", "maxLength", "pattern", "format")),
    ("number", ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")),
)
_SEEN_TO = frozenset(
    (
        *("type", "format", "enum", "const", "nullable", "default", "properties", "required"),
        *("items", "prefixItems", "anyOf", "oneOf", "additionalProperties"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
        *("title", "description", "pattern"),
        *("$schema", "$id", "$comment", "$anchor", "$defs", "definitions"),
    )
)


def convert_typed(converter: "Converter", schema: Schema, place: Place) -> Schema:
    """A schema of one type in Gemini's subset."""
    at = place.at
    kind = _kind(converter, schema, at)
    converted: Schema = {"type": kind}
    for key in _ANNOTATIONS:
        if isinstance(schema.get(key), str) and (key != "pattern" or kind == "STRING"):
            converted[key] = schema[key]
    if schema.get("default") is not None:
        converted["default"] = schema["default"]
    if allows_null(schema):
        converted["nullable"] = True
    for key in _COUNTS.get(kind, ()):
        if _is_number(schema.get(key)):
            converted[key] = int(schema[key])
    _format(converter, schema, at, converted)
    _values(converter, schema, at, converted)
    if kind in ("NUMBER", "INTEGER"):
        _bounds(converter, schema, at, converted)
    if kind == "ARRAY":
        converted["items"] = _items(converter, schema, place)
    if kind == "OBJECT":
        _properties(converter, schema, place, converted)
    for key in schema:
        if key not in _SEEN_TO:
            converter.losses.add(pointer(at, key), key, "dropped: Gemini has no such keyword")
    return converted


def is_null(schema: Schema) -> bool:
    """Whether a schema takes null alone."""
    return schema.get("type") == "null" or ("const" in schema and schema["const"] is None)


def allows_null(schema: Schema) -> bool:
    """Whether a schema takes null beside other values."""
    branches = [*list_of(schema.get("anyOf")), *list_of(schema.get("oneOf"))]
    return (
        schema.get("nullable") is True
        or is_null(schema)
        or "null" in list_of(schema.get("type"))
        or None in list_of(schema.get("enum"))
        or any(is_null(object_of(branch)) for branch in branches)
    )


def _kind(converter: "Converter", schema: Schema, at: str) -> str:
    named = [kind for kind in list_of(schema.get("type")) or [schema.get("type")] if kind in _TYPES]
    if named:
        return str(named[0]).upper()
    for kind, keys in _SIGNS:
        if any(key in schema for key in keys):
            return kind.upper()
    values = _listed_values(schema)
    if values and all(_is_number(value) for value in values):
        return "INTEGER" if all(isinstance(value, int) for value in values) else "NUMBER"
    if values and all(isinstance(value, bool) for value in values):
        return "BOOLEAN"
    if not values or not all(isinstance(value, str) for value in values):
        converter.losses.add(at, "type", "any value: only texts are asked for")
    return "STRING"


def _listed_values(schema: Schema) -> list[Any]:
    values = [schema["const"]] if "const" in schema else list_of(schema.get("enum"))
    return [value for value in values if value is not None]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _format(converter: "Converter", schema: Schema, at: str, converted: Schema) -> None:
    named = schema.get("format")
    if named in _FORMATS.get(converted["type"], ()):
        converted["format"] = named
    elif named is not None:
        converter.losses.add(pointer(at, "format"), "format", f"dropped: {_json(named)}")


def _values(converter: "Converter", schema: Schema, at: str, converted: Schema) -> None:
    """Gemini lists texts only; other values are named in the description."""
    values = _listed_values(schema)
    if not values:
        return
    keyword = "const" if "const" in schema else "enum"
    if converted["type"] == "STRING" and all(isinstance(v, str) and v for v in values):
        converted["enum"] = values
        return
    listed = ", ".join(map(_json, values))
    told = f"One of: {listed}."
    described = converted.get("description")
    converted["description"] = f"{described} {told}" if described else told
    converter.losses.add(pointer(at, keyword), keyword, "named in the description only")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _bounds(converter: "Converter", schema: Schema, at: str, converted: Schema) -> None:
    for inclusive, exclusive, step in (
        ("minimum", "exclusiveMinimum", 1),
        ("maximum", "exclusiveMaximum", -1),
    ):
        bound = schema.get(inclusive)
        if _is_number(bound):
            converted[inclusive] = bound
        limit = schema.get(exclusive)
        if limit is True:  # As JSON Schema had it until draft 4.
            limit = bound
        if limit is None or not _is_number(limit):
            continue
        nearest = _beyond(converter, converted["type"], limit, step, pointer(at, exclusive))
        held = converted.get(inclusive, nearest)
        converted[inclusive] = max(held, nearest) if step > 0 else min(held, nearest)


def _beyond(converter: "Converter", kind: str, limit: float, step: int, at: str) -> float:
    """The nearest value that an exclusive bound lets in, as far as the type has one."""
    if kind == "INTEGER" and math.isfinite(limit):
        return math.floor(limit) + 1 if step > 0 else math.ceil(limit) - 1
    converter.losses.add(at, at.rsplit("/", 1)[-1], "the bound itself is let in")
    return limit


def _items(converter: "Converter", schema: Schema, place: Place) -> Schema:
    items = schema.get("items")
    places = list_of(schema.get("prefixItems")) or list_of(items)
    if places:
        keyword = "prefixItems" if "prefixItems" in schema else "items"
        at = pointer(place.at, keyword)
        converter.losses.add(at, keyword, "which place takes which is lost")
        unique = [place for index, place in enumerate(places) if place not in places[:index]]
        items = unique[0] if len(unique) == 1 else {"anyOf": unique}
    return converter.convert(items, place.down("items"))


def _properties(converter: "Converter", schema: Schema, place: Place, converted: Schema) -> None:
    properties: Schema = {}
    for name, value in object_of(schema.get("properties")).items():
        stands = place.down("properties", name)
        if _PROPERTY.fullmatch(name) is None:
            converter.losses.add(stands.at, "properties", "dropped: not taken as a name")
            continue
        properties[name] = converter.convert(value, stands)
    if properties:
        converted["properties"] = properties
    required = [key for key in list_of(schema.get("required")) if key in list(properties)]
    if required:
        converted["required"] = required
    if schema.get("additionalProperties") not in (None, True, {}):
        at = pointer(place.at, "additionalProperties")
        converter.losses.add(at, "additionalProperties", "dropped: not taken")
