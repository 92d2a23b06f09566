"""LangChain's tools and the catalog: registering them, and giving them their model-facing names."""

from collections.abc import Iterable
from typing import Any

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from toolgate.catalog import Tool


def mcp_definitions(tools: Iterable[BaseTool]) -> list[dict[str, Any]]:
    """Tools as the body of a `tools/list`, for `register_server`.

    For tools that come from no MCP server; those that do are best registered as their server lists
    them.

    Args:
        tools: LangChain's tools. Arguments that LangChain injects are not part of the definition.
    """
    functions = [convert_to_openai_tool(tool)["function"] for tool in tools]
    return [
        {
            "name": function["name"],
            "description": function["description"],
            "inputSchema": function["parameters"],
        }
        for function in functions
    ]


def model_facing(tools: Iterable[BaseTool], catalog: Iterable[Tool]) -> list[BaseTool]:
    """Copies of the tools of one MCP server, under the names that the model is to see.

    Args:
        tools: LangChain's tools, named as MCP names them.
        catalog: The MCP server's tools in the catalog: `client.list_tools(server)`.

    Raises:
        ValueError: a tool that the catalog does not have.
    """
    names = {tool.name: tool.model_name for tool in catalog}
    listed = list(tools)
    missing = [tool.name for tool in listed if tool.name not in names]
    if missing:
        raise ValueError(f"not registered: {', '.join(missing)}; register the MCP server first")
    return [tool.model_copy(update={"name": names[tool.name]}) for tool in listed]
