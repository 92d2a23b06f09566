"""Definitions in the shape of an MCP server's `tools/list`."""

import json
import re
from collections.abc import Iterable
from typing import Any

from toolgate.render._schema import Losses, Rendered, render_each
from toolgate.routing import ActiveTool

_NAME = re.compile(r".+", re.DOTALL)


def mcp(tools: Iterable[ActiveTool]) -> Rendered:
    """The active set as `tools` of an answer to `tools/list`, under model-facing names.

    Schemas and annotations are as registered; MCP's `title`, `icons` and `_meta` are not part of
    an active set.

    Args:
        tools: Tools with full schemas.
    """
    return render_each(tools, _NAME, _define)


def _define(tool: ActiveTool, _losses: Losses) -> dict[str, Any]:
    definition: dict[str, Any] = {"name": tool.model_name}
    if tool.description:
        definition["description"] = tool.description
    definition["inputSchema"] = tool.input_schema
    if tool.output_schema_json:
        definition["outputSchema"] = json.loads(tool.output_schema_json)
    if tool.annotations_json:
        definition["annotations"] = json.loads(tool.annotations_json)
    return definition
