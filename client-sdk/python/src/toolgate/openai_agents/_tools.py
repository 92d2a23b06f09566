"""The Agents SDK's tools and the catalog: registering them, and their model-facing names."""

import copy
from collections.abc import Iterable
from typing import Any

from agents import FunctionTool

from toolgate._agents import is_model_facing
from toolgate.catalog import Tool


def mcp_definitions(tools: Iterable[FunctionTool]) -> list[dict[str, Any]]:
    """Tools as the body of a `tools/list`, for `register_server`.

    For tools that come from no MCP server; those that do are best registered as their server lists
    them.

    Args:
        tools: Function tools, such as `@function_tool` makes.
    """
    return [
        {"name": tool.name, "description": tool.description, "inputSchema": tool.params_json_schema}
        for tool in tools
    ]


def model_facing(tools: Iterable[FunctionTool], catalog: Iterable[Tool]) -> list[FunctionTool]:
    """Copies of the tools of one MCP server, under the names that the model is to see.

    Args:
        tools: Function tools, named as MCP names them; `MCPUtil.get_function_tools` makes them of
            an MCP server.
        catalog: The MCP server's tools in the catalog: `client.list_tools(server)`.

    Raises:
        ValueError: a tool that the catalog does not have.
    """
    names = {tool.name: tool.model_name for tool in catalog}
    listed = list(tools)
    missing = [tool.name for tool in listed if tool.name not in names]
    if missing:
        raise ValueError(f"not registered: {', '.join(missing)}; register the MCP server first")
    return [renamed(tool, names[tool.name]) for tool in listed]


def renamed(tool: FunctionTool, name: str) -> FunctionTool:
    """A copy of the tool under another name."""
    copied = copy.copy(tool)
    copied.name = name
    return copied


def refuse_unprepared(tools: Iterable[FunctionTool]) -> None:
    """Refuses tools that still have the names that MCP gives them: Route never answers with those.

    Raises:
        ValueError: some are not under model-facing names.
    """
    bare = [tool.name for tool in tools if not is_model_facing(tool.name)]
    if bare:
        raise ValueError(
            f"not under model-facing names: {', '.join(bare)}; prepare an MCP server's tools with "
            "model_facing(tools, client.list_tools(server)), and give tools that Toolgate does not "
            "manage to the agent"
        )
