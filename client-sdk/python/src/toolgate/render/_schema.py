"""What all renderers share: their result, the list of what was lost, and walking a JSON Schema."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from toolgate.routing import ActiveTool

MAX_NESTING = 64
"""Levels of a schema that are read; the service refuses deeper ones."""

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that a registered tool says and the rendered one can't."""

    tool: str
    """The tool's model-facing name."""
    pointer: str
    """Where, as a JSON Pointer into the registered `inputSchema`; "" is the whole."""
    keyword: str
    """The keyword at fault; "name" for the tool's own name, "tools" for one tool too many."""
    note: str
    """What became of it."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """Definitions in a provider's shape."""

    tools: list[dict[str, Any]]
    """The definitions, in the order of the active set."""
    losses: tuple[Loss, ...]
    """What could not be said. Gate still holds calls to the registered schema."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a schema stands within the registered one."""

    at: str = ""
    """As a JSON Pointer."""
    nesting: int = 0
    """How deep it is nested."""
    followed: tuple[str, ...] = ()
    """The references that led here."""

    def down(self, *parts: object) -> "Place":
        """The place of a schema within this one."""
        return Place(pointer(self.at, *parts), self.nesting + 1, self.followed)


class Losses:
    """Collects the losses of one tool."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.found: list[Loss] = []

    def add(self, pointer: str, keyword: str, note: str) -> None:
        """Notes one; the same one again, where a schema is used twice, is noted once."""
        loss = Loss(self.tool, pointer, keyword, note)
        if loss not in self.found:
            self.found.append(loss)


def render_each(
    tools: Iterable[ActiveTool],
    names: re.Pattern[str],
    define: Callable[[ActiveTool, Losses], dict[str, Any]],
    most: int | None = None,
) -> Rendered:
    """Renders tools one by one.

    One whose name is not among `names`, those that the provider takes, would fail the whole
    request, and is left out. So are those beyond `most`, the last ones of the active set. One that
    came as a signature has it for a description, and takes any object: Gate holds its calls to the
    registered schema.
    """
    rendered: list[dict[str, Any]] = []
    losses: list[Loss] = []
    for tool in tools:
        of_tool = Losses(tool.model_name)
        if not names.fullmatch(tool.model_name):
            of_tool.add("", "name", "the provider takes no such name: the tool is left out")
        elif len(rendered) == most:
            note = f"the provider takes {most} tools in a request: the tool is left out"
            of_tool.add("", "tools", note)
        else:
            rendered.append(define(_told_by_signature(tool), of_tool))
        losses.extend(of_tool.found)
    return Rendered(rendered, tuple(losses))


def _told_by_signature(tool: ActiveTool) -> ActiveTool:
    if tool.input_schema_json or not tool.signature:
        return tool
    return replace(tool, description=tool.signature, input_schema_json='{"type":"object"}')


def pointer(base: str, *parts: object) -> str:
    """A JSON Pointer (RFC 6901) further down."""
    escaped = (str(part).replace("~", "~0").replace("/", "~1") for part in parts)
    return "/".join([base, *escaped])


def object_of(value: Any) -> Schema:
    """A JSON object, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    """A JSON array, or an empty one for anything else."""
    return value if isinstance(value, list) else []


def resolve(root: Mapping[str, Any], reference: Any) -> Schema | None:
    """What a reference within the document names; None for any other reference."""
    if reference == "#":
        return dict(root)
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    found: Any = root
    for part in reference[2:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, Mapping) or key not in found:
            return None
        found = found[key]
    return found if isinstance(found, dict) else None
