"""Pydantic AI's tools and the catalog: registering them, and their model-facing names."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from toolgate._agents import is_model_facing
from toolgate.catalog import Tool


def mcp_definitions(tools: Iterable[ToolDefinition]) -> list[dict[str, Any]]:
    """Tools as the body of a `tools/list`, for `register_server`.

    For tools that come from no MCP server; those that do are best registered as their server lists
    them.

    Args:
        tools: Their definitions, such as `[tool.tool_def for tool in toolset.tools.values()]` of a
            `FunctionToolset`.
    """
    return [
        {
            "name": tool.name,
            "description": tool.description or "",
            "inputSchema": tool.parameters_json_schema,
        }
        for tool in tools
    ]


def model_facing(toolset: AbstractToolset[Any], catalog: Iterable[Tool]) -> AbstractToolset[Any]:
    """The tools of one MCP server, under the names that the model is to see.

    Args:
        toolset: The tools, named as MCP names them.
        catalog: The MCP server's tools in the catalog: `client.list_tools(server)`.
    """
    return toolset.renamed({tool.model_name: tool.name for tool in catalog})


@dataclass
class ManagedToolset(WrapperToolset[Any]):
    """The tools that Toolgate manages; keeps their names."""

    names: set[str] = field(default_factory=set)

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """All of them: which the model sees is decided before each of its requests.

        Raises:
            ValueError: some are not under model-facing names, and Route never answers with those.
        """
        tools = await super().get_tools(ctx)
        bare = [name for name in tools if not is_model_facing(name)]
        if bare:
            raise ValueError(
                f"not under model-facing names: {', '.join(bare)}; prepare an MCP server's tools "
                "with model_facing(toolset, client.list_tools(server)), and give tools that "
                "Toolgate does not manage to the agent"
            )
        # The same set, since the framework copies the wrapper.
        self.names.clear()
        self.names.update(tools)
        return tools
