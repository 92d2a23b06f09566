"""Function declarations for Gemini, whose schemas are a subset of OpenAPI 3.0's."""

import re
from collections.abc import Iterable
from typing import Any

from toolgate.render._gemini_schema import Converter
from toolgate.render._root import plain_root
from toolgate.render._schema import Losses, Place, Rendered, render_each
from toolgate.routing import ActiveTool

# The API takes longer names and more characters; older models do not.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_MOST = 512


def gemini(tools: Iterable[ActiveTool]) -> Rendered:
    """The active set as `functionDeclarations`, to be sent as `[{"functionDeclarations": [...]}]`.

    Schemas are rewritten in Gemini's subset; every keyword that it can't say is among the losses.
    Models that take full JSON Schema (`parametersJsonSchema`) don't need this. A request takes 512
    declarations: later ones are left out, and among the losses.

    Args:
        tools: Tools with full schemas.
    """
    return render_each(tools, _NAME, _declare, _MOST)


def _declare(tool: ActiveTool, losses: Losses) -> dict[str, Any]:
    declaration: dict[str, Any] = {"name": tool.model_name}
    if tool.description:
        declaration["description"] = tool.description
    schema = plain_root(tool.input_schema, (), losses)
    parameters = Converter(schema, losses).convert(schema, Place())
    if parameters.get("properties"):
        declaration["parameters"] = parameters
    return declaration
