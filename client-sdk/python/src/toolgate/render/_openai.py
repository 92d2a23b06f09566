"""Function tools for OpenAI's Chat Completions and Responses APIs."""

import re
from collections.abc import Iterable
from typing import Any

from toolgate.render._root import plain_root
from toolgate.render._schema import MAX_NESTING, Losses, Rendered, Schema, render_each
from toolgate.routing import ActiveTool

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MOST = 128
_REFUSED_AT_ROOT = ("enum", "not")
_SCHEMAS = ("items", "additionalProperties", "contains", "not", "if", "then", "else")
_LISTS_OF_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SCHEMAS_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")


def openai_chat(tools: Iterable[ActiveTool]) -> Rendered:
    """The active set as `tools` of the Chat Completions API. Not strict: schemas stay as they are.

    A request takes 128 tools: later ones are left out, and among the losses.

    Args:
        tools: Tools with full schemas.
    """
    return render_each(tools, _NAME, _chat, _MOST)


def openai_responses(tools: Iterable[ActiveTool]) -> Rendered:
    """The active set as `tools` of the Responses API. Not strict: schemas stay as they are.

    A request takes 128 tools: later ones are left out, and among the losses.

    Args:
        tools: Tools with full schemas.
    """
    return render_each(tools, _NAME, _responses, _MOST)


def _chat(tool: ActiveTool, losses: Losses) -> dict[str, Any]:
    return {"type": "function", "function": _function(tool, losses)}


def _responses(tool: ActiveTool, losses: Losses) -> dict[str, Any]:
    return {"type": "function", **_function(tool, losses), "strict": False}


def _function(tool: ActiveTool, losses: Losses) -> dict[str, Any]:
    described = {"description": tool.description} if tool.description else {}
    schema = complete(plain_root(tool.input_schema, _REFUSED_AT_ROOT, losses))
    return {"name": tool.model_name, **described, "parameters": schema}


def complete(schema: Any, nesting: int = 0) -> Any:
    """The schema with `items` in every array and `properties` in every object.

    OpenAI refuses those without; `{}` says the same.
    """
    if not isinstance(schema, dict) or nesting > MAX_NESTING:
        return schema
    changed: Schema = {key: _within(key, value, nesting) for key, value in schema.items()}
    kinds = changed.get("type")
    for kind, key in (("array", "items"), ("object", "properties")):
        if kinds == kind or (isinstance(kinds, list) and kind in kinds):
            changed.setdefault(key, {})
    return changed


def _within(key: str, value: Any, nesting: int) -> Any:
    if key in _SCHEMAS:
        return complete(value, nesting + 1)
    if key in _LISTS_OF_SCHEMAS and isinstance(value, list):
        return [complete(item, nesting + 1) for item in value]
    if key in _SCHEMAS_BY_NAME and isinstance(value, dict):
        return {name: complete(item, nesting + 1) for name, item in value.items()}
    return value
