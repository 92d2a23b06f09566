"""A schema whose root is a plain object, for providers that take no combinators there."""

from toolgate.render._schema import Losses, Schema, list_of, object_of, pointer, resolve

_MAX_BRANCHES = 256
_COMBINATORS = ("$ref", "allOf", "anyOf", "oneOf")


def plain_root(schema: Schema, also_refused: tuple[str, ...], losses: Losses) -> Schema:
    """The schema with `type: object` at its root and no combinator there.

    The properties of all branches become properties of the root; what every branch requires is
    required. Nested schemas stay as they are. A schema that is fine already is returned unchanged.

    Args:
        schema: The registered schema.
        also_refused: Further keywords that the provider refuses at the root; they are dropped.
        losses: Where to note what was lost.
    """
    refused = [key for key in (*_COMBINATORS, *also_refused) if key in schema]
    if not refused and schema.get("type") == "object":
        return schema
    merged = _Branches(schema).read(schema)
    plain = {"type": "object", **{k: v for k, v in schema.items() if k not in refused}}
    plain["type"] = "object"
    if merged.properties:
        plain["properties"] = merged.properties
    if merged.required:
        plain["required"] = merged.required
    for key in refused:
        note = "dropped" if key in also_refused else "its properties were merged into the root's"
        losses.add(pointer("", key), key, f"not taken at the root: {note}")
    return plain


class _Object:
    """Properties, and which of them are required, in the order of the schema."""

    def __init__(self, schema: Schema) -> None:
        self.properties = dict(object_of(schema.get("properties")))
        self.required = [key for key in list_of(schema.get("required")) if isinstance(key, str)]

    def require(self, names: list[str]) -> None:
        self.required += [name for name in names if name not in self.required]

    def both(self, other: "_Object") -> None:
        for name, schema in other.properties.items():
            self.properties.setdefault(name, schema)
        self.require(other.required)


class _Branches:
    """Reads a schema's branches, as many as there may reasonably be."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._left = _MAX_BRANCHES

    def read(self, schema: Schema) -> _Object:
        found = _Object(schema)
        if self._left <= 0:
            return found
        self._left -= 1
        if "$ref" in schema:
            found.both(self.read(resolve(self._root, schema["$ref"]) or {}))
        for branch in list_of(schema.get("allOf")):
            found.both(self.read(object_of(branch)))
        for key in ("anyOf", "oneOf"):
            if branches := [self.read(object_of(b)) for b in list_of(schema.get(key))]:
                found.both(_either(branches))
        return found


def _either(branches: list[_Object]) -> _Object:
    """One of several objects: a property that they define differently may be as any of them."""
    found = _Object({})
    definitions: dict[str, list[object]] = {}
    for branch in branches:
        for name, schema in branch.properties.items():
            known = definitions.setdefault(name, [])
            if schema not in known:
                known.append(schema)
    for name, known in definitions.items():
        found.properties[name] = known[0] if len(known) == 1 else {"anyOf": known}
    first, *others = branches
    found.require([n for n in first.required if all(n in other.required for other in others)])
    return found
