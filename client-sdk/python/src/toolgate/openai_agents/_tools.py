"""The Agents SDK's tools and the catalog: registering them, and their model-facing names."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from agents import FunctionTool, Handoff, Tool

from toolgate import catalog as catalogs
from toolgate._agents import CALL_TOOL, REFUSED_CALL, SEARCH, is_model_facing, no_such_tool


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


def model_facing(
    tools: Iterable[FunctionTool], catalog: Iterable[catalogs.Tool]
) -> list[FunctionTool]:
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


def own_definitions(tools: Iterable[Tool], handoffs: Iterable[Handoff]) -> list[dict[str, Any]]:
    """The definitions that stand before Toolgate's: of the agent's functions and its handoffs."""
    functions = [
        _definition(tool.name, tool.description, tool.params_json_schema)
        for tool in tools
        if isinstance(tool, FunctionTool)
    ]
    transfers = [
        _definition(one.tool_name, one.tool_description, one.input_json_schema) for one in handoffs
    ]
    # Its calls in the conversation are none of a tool that is described there.
    return [*functions, *transfers, _definition(REFUSED_CALL, "", {"type": "object"})]


def sent_tools(definitions: Iterable[Mapping[str, Any]], managed: Mapping[str, Tool]) -> list[Tool]:
    """The tools of a strategy's request but the agent's own.

    Args:
        definitions: The request's `tools`.
        managed: The tools that Toolgate manages, and its search, by their names.
    """
    sent: list[Tool] = []
    for definition in definitions:
        name = str(definition.get("name", ""))
        if definition.get("type") == "tool_search":
            # The runner makes no client-side searches of the provider's, but those of a function.
            name = SEARCH
        if name == CALL_TOOL:
            sent.append(_envelope(definition))
        elif name in managed:
            tool = managed[name]
            if name == SEARCH and isinstance(tool, FunctionTool):
                tool = copy.copy(tool)
                tool.description = str(definition["description"])
            sent.append(tool)
    return sent


def _definition(name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "function",
        "name": name,
        "description": description,
        "parameters": dict(parameters),
    }


def _envelope(definition: Mapping[str, Any]) -> FunctionTool:
    async def answer(_context: Any, _arguments: str) -> str:
        # Never called: by then each call is of the tool that it names, or refused.
        return no_such_tool(CALL_TOOL)

    return FunctionTool(
        name=CALL_TOOL,
        description=str(definition["description"]),
        params_json_schema=dict(definition["parameters"]),
        on_invoke_tool=answer,
        strict_json_schema=False,
    )
