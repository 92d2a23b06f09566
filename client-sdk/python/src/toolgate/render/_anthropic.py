"""Definitions for Anthropic's Messages API."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from toolgate.render._root import plain_root
from toolgate.render._schema import (
    Losses,
    Rendered,
    Schema,
    list_of,
    object_of,
    pointer,
    render_each,
)
from toolgate.routing import ActiveTool

UNSUPPORTED_MODELS: tuple[str, ...] = ("haiku", "claude-2", "claude-3", "claude-instant")
"""Parts of the names of models that take no `defer_loading`. A model not named here takes it."""

SearchTool = Literal["bm25", "regex"]
_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def can_defer(model: str, unsupported: Iterable[str] = UNSUPPORTED_MODELS) -> bool:
    """Whether a model takes `defer_loading` and `tool_reference`, by a list of those that don't."""
    return not any(part.lower() in model.lower() for part in unsupported)


def anthropic(
    tools: Iterable[ActiveTool],
    *,
    deferred: Iterable[ActiveTool] = (),
    model: str = "",
    search_tool: SearchTool | None = "bm25",
    unsupported: Sequence[str] = UNSUPPORTED_MODELS,
    cache_breakpoint: bool = False,
) -> Rendered:
    """The active set as `tools` of the Messages API: the tool search, loaded tools, deferred ones.

    Where the model can't defer, deferred tools are sent as loaded ones and no tool search is sent:
    rather too much than a tool too few. A tool that is in both lists is loaded.

    Args:
        tools: Tools that the model sees from the start, with full schemas.
        deferred: Tools that it sees once a search or a `tool_reference` has loaded them.
        model: The model that will see them.
        search_tool: Which of Anthropic's own searches to send with deferred tools. None: the
            caller has one of its own.
        unsupported: Parts of the names of models that can't defer.
        cache_breakpoint: Whether the last loaded tool ends a cached prefix. Deferred tools are
            outside of the prefix.
    """
    loaded = render_each(tools, _NAME, _define)
    names = {tool["name"] for tool in loaded.tools}
    later = render_each((t for t in deferred if t.model_name not in names), _NAME, _define)
    defers = can_defer(model, unsupported)
    first: list[dict[str, Any]] = []
    if defers and later.tools and search_tool is not None:
        first = [_search(search_tool)]
    seen = [*first, *loaded.tools] if defers else [*loaded.tools, *later.tools]
    if cache_breakpoint and seen:
        seen[-1] = {**seen[-1], "cache_control": {"type": "ephemeral"}}
    hidden = [{**tool, "defer_loading": True} for tool in later.tools] if defers else []
    return Rendered([*seen, *hidden], loaded.losses + later.losses)


def _search(kind: SearchTool) -> dict[str, Any]:
    return {"type": f"tool_search_tool_{kind}_20251119", "name": f"tool_search_tool_{kind}"}


def _define(tool: ActiveTool, losses: Losses) -> dict[str, Any]:
    schema = _without_refused_properties(plain_root(tool.input_schema, (), losses), losses)
    definition = {"name": tool.model_name, "description": tool.description, "input_schema": schema}
    return definition if tool.description else {"name": tool.model_name, "input_schema": schema}


def _without_refused_properties(schema: Schema, losses: Losses) -> Schema:
    properties = object_of(schema.get("properties"))
    refused = [name for name in properties if _PROPERTY.fullmatch(name) is None]
    if not refused:
        return schema
    for name in refused:
        losses.add(pointer("", "properties", name), "properties", "dropped: not taken as a name")
    kept = {name: value for name, value in properties.items() if name not in refused}
    required = [name for name in list_of(schema.get("required")) if name not in refused]
    return {**schema, "properties": kept, "required": required}
