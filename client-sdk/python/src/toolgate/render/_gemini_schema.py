"""Rewrites JSON Schema in the subset that Gemini's `Schema` message has.

References and `allOf` are merged in, `oneOf` and lists of types become `anyOf`, and what is left
gets exactly one type.
"""

from typing import Any

from toolgate.render._gemini_types import allows_null, convert_typed, is_null
from toolgate.render._schema import (
    MAX_NESTING,
    Losses,
    Place,
    Schema,
    list_of,
    object_of,
    pointer,
    resolve,
)

_MAX_SCHEMAS = 4096
_MAX_MERGES = 16
_ANNOTATIONS = ("title", "description", "default", "examples")


class Converter:
    """Converts the schemas of one tool."""

    def __init__(self, root: Schema, losses: Losses) -> None:
        self.losses = losses
        self._root = root
        self._left = _MAX_SCHEMAS

    def convert(self, schema: Any, place: Place) -> Schema:
        """The schema in Gemini's subset."""
        self._left -= 1
        if self._left < 0 or place.nesting > MAX_NESTING:
            self.losses.add(place.at, "", "too large a schema: any text")
            return {"type": "STRING"}
        merged = object_of(schema)
        for _ in range(_MAX_MERGES):
            if "$ref" in merged:
                merged, place = self._follow(merged, place)
            elif "allOf" in merged:
                merged, place = self._all_of(merged, place)
            else:
                break
        key, choices = self._choices(merged, place.at)
        if not choices:
            return convert_typed(self, merged, place)
        converted = [
            self.convert(choice, place.down(key, index) if key else place.down("type"))
            for index, choice in choices
        ]
        return self._any_of(merged, converted, place.at)

    def _follow(self, schema: Schema, place: Place) -> tuple[Schema, Place]:
        """The schema with what it refers to merged in, and where that stands."""
        reference = schema["$ref"]
        siblings = {key: value for key, value in schema.items() if key != "$ref"}
        target = resolve(self._root, reference)
        if target is None:
            self.losses.add(place.at, "$ref", "dropped: it names nothing in this schema")
            return siblings, place
        if reference in place.followed:
            self.losses.add(place.at, "$ref", "a schema within itself: any object")
            return {"type": "object"}, place
        followed = (*place.followed, reference)
        return {**target, **siblings}, Place(reference[1:], place.nesting, followed)

    def _all_of(self, schema: Schema, place: Place) -> tuple[Schema, Place]:
        """The schema with the branches of its `allOf` merged in."""
        merged = {key: value for key, value in schema.items() if key != "allOf"}
        followed = place.followed
        for index, branch in enumerate(list_of(schema["allOf"])):
            stands = Place(pointer(place.at, "allOf", index), place.nesting, followed)
            read = object_of(branch)
            if "$ref" in read:
                read, stands = self._follow(read, stands)
                followed = stands.followed
            self._merge(merged, read, stands.at)
        return merged, Place(place.at, place.nesting, followed)

    def _merge(self, merged: Schema, branch: Schema, at: str) -> None:
        for key, value in branch.items():
            if key == "properties":
                merged[key] = self._merged_properties(object_of(merged.get(key)), value, at)
            elif key in ("required", "allOf"):
                held = list_of(merged.get(key))
                merged[key] = held + [item for item in list_of(value) if item not in held]
            elif key not in merged:
                merged[key] = value
            elif merged[key] != value and key not in _ANNOTATIONS:
                self.losses.add(pointer(at, key), key, "dropped: another schema says it already")

    def _merged_properties(self, held: Schema, more: Any, at: str) -> Schema:
        merged = dict(held)
        for name, schema in object_of(more).items():
            if merged.setdefault(name, schema) != schema:
                place = pointer(at, "properties", name)
                self.losses.add(place, "properties", "dropped: another schema says it already")
        return merged

    def _choices(self, schema: Schema, at: str) -> tuple[str, list[tuple[int, Schema]]]:
        """The keyword of the alternatives, and those that are not null with their places in it."""
        for key in ("anyOf", "oneOf"):
            branches = [object_of(branch) for branch in list_of(schema.get(key))]
            if not branches:
                continue
            if all(set(branch) <= {"required"} for branch in branches):
                self.losses.add(pointer(at, key), key, "dropped")
                continue
            choices = _branches(schema, key, branches)
            if key == "oneOf" and len(choices) > 1:
                self.losses.add(pointer(at, key), key, "as anyOf: several may hold")
            return key, choices
        kinds = [kind for kind in list_of(schema.get("type")) if kind != "null"]
        if len(kinds) < 2:
            return "", []
        rest = {key: value for key, value in schema.items() if key not in _ANNOTATIONS}
        return "", [(index, {**rest, "type": kind}) for index, kind in enumerate(kinds)]

    def _any_of(self, schema: Schema, converted: list[Schema], at: str) -> Schema:
        """Gemini takes `anyOf` alone: what stands beside it goes into the branches."""
        converted = [inner for branch in converted for inner in branch.get("anyOf", [branch])]
        description = schema.get("description")
        if isinstance(description, str):
            for branch in converted:
                branch.setdefault("description", description)
        if allows_null(schema):
            converted[0]["nullable"] = True
        if len(converted) == 1:
            described = {"description": description} if isinstance(description, str) else {}
            return {**converted[0], **described, **_default(schema)}
        if schema.get("default") is not None:
            self.losses.add(pointer(at, "default"), "default", "dropped beside anyOf")
        return {"anyOf": converted}


def _branches(schema: Schema, key: str, branches: list[Schema]) -> list[tuple[int, Schema]]:
    """The branches that are not null, each with what stands beside them."""
    beside = {k: v for k, v in schema.items() if k not in (*_ANNOTATIONS, key, "nullable")}
    if isinstance(beside.get("type"), list):
        del beside["type"]
    return [
        (index, {"allOf": [branch, beside]} if beside else branch)
        for index, branch in enumerate(branches)
        if not is_null(branch)
    ]


def _default(schema: Schema) -> Schema:
    return {"default": schema["default"]} if schema.get("default") is not None else {}
