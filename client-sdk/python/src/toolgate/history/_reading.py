"""Reads foreign content as plain dicts, lists and texts. Nothing here raises on odd content."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

MAX_NAME = 128
"""Characters of a tool's name: the most that any provider takes."""
_MAX_RESULT_CHARACTERS = 64 * 1024
# An answer to a search may hold the schemas of 100 tools.
_MAX_ANSWER_CHARACTERS = 1024 * 1024


def fields(value: Any) -> dict[str, Any]:
    """The fields of a dict or of a vendor's typed object, under their names on the wire.

    Anything else has none.
    """
    try:
        if isinstance(value, Mapping):
            return dict(value)
        dump = getattr(value, "model_dump", None)
        if callable(dump) and not isinstance(value, type):
            return dict(dump(mode="json", by_alias=True, exclude_none=True, warnings=False))
    except Exception:  # Foreign code ran: whatever it raised, there is nothing to read.
        return {}
    return {}


def items(value: Any) -> list[Any]:
    """The items of a list or tuple. A generator is left alone: reading it would use it up."""
    return list(value) if isinstance(value, list | tuple) else []


def blocks(content: Any) -> list[Any]:
    """The blocks of a message's content: a list of them, or a single one. A text has none."""
    if isinstance(content, list | tuple):
        return list(content)
    return [content] if fields(content) else []


def text(value: Any) -> str:
    """A text, or "" for anything else."""
    return value if isinstance(value, str) else ""


def name(value: Any) -> str:
    """A tool's name, or "" for what can't be one."""
    if not isinstance(value, str) or len(value) > MAX_NAME:
        return ""
    try:
        value.encode()
    except UnicodeEncodeError:  # A lone surrogate, which JSON can carry and the wire can't.
        return ""
    return value


def first(values: Mapping[str, Any], *keys: str) -> Any:
    """The first of these fields that is there: vendors write some in snake and in camel case."""
    return next((values[key] for key in keys if values.get(key) is not None), None)


def says_error(content: Any) -> bool:
    """Whether a result says that it is an error, for APIs that have no flag for it.

    It does when it is a JSON object with a non-empty `error` or a true `isError`. A doubtful result
    so counts as failed, which unlocks nothing.
    """
    result = _json_object(content, _MAX_RESULT_CHARACTERS)
    return bool(result.get("error")) or first(result, "isError", "is_error") is True


def found_tools(content: Any) -> list[str]:
    """The tools that an answer to a search names: a JSON object with the list `tools`.

    Anything else names none.
    """
    found = items(_json_object(content, _MAX_ANSWER_CHARACTERS).get("tools"))
    named = (name(fields(tool).get("name")) for tool in found)
    return [tool for tool in named if tool]


def _json_object(content: Any, limit: int) -> dict[str, Any]:
    """The JSON object that a result is, or none of its fields."""
    written = content if isinstance(content, str) else _joined(content)
    if len(written) > limit or not written.lstrip().startswith("{"):
        return {}
    try:
        result = json.loads(written)
    except (ValueError, RecursionError):
        return {}
    return result if isinstance(result, dict) else {}


def _joined(content: Any) -> str:
    return "".join(text(fields(block).get("text")) for block in items(content))


def bounded(sizes: Iterable[tuple[Any, int]], budget: int) -> list[Any]:
    """The items that fit the budget of bytes, taken in order until one does not fit."""
    taken = []
    for item, size in sizes:
        budget -= size
        if budget < 0:
            break
        taken.append(item)
    return taken
