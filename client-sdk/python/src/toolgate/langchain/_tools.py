"""LangChain's tools and the catalog: registering them, and giving them their model-facing names."""

from collections.abc import Iterable
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from toolgate._agents import is_model_facing
from toolgate.catalog import Tool
from toolgate.offering import SEARCH_TOOL


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


def refuse_unprepared(tools: Iterable[BaseTool]) -> None:
    """Refuses tools that still have the names that MCP gives them: Route never answers with those.

    Raises:
        ValueError: some are not under model-facing names.
    """
    bare = [tool.name for tool in tools if not is_model_facing(tool.name)]
    if bare:
        raise ValueError(
            f"not under model-facing names: {', '.join(bare)}; prepare an MCP server's tools with "
            "model_facing(tools, client.list_tools(server)), and give tools that Toolgate does not "
            "manage to create_agent"
        )


def search_tool() -> BaseTool:
    """The search as LangChain's tool, for the model to see; the middleware answers its calls."""
    return StructuredTool(
        name=SEARCH_TOOL.model_name,
        description=SEARCH_TOOL.description,
        args_schema=SEARCH_TOOL.input_schema,
        func=_answered_elsewhere,
    )


def _answered_elsewhere(**_arguments: Any) -> str:
    raise RuntimeError("the search is answered by ToolgateMiddleware, within an agent")
