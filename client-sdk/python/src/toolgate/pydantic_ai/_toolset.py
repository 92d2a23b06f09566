"""Pydantic AI's tools and the catalog: registering them, and their model-facing names."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from toolgate._agents import CALL_TOOL, REFUSED_CALL, SEARCH, is_model_facing
from toolgate._forms import chat_definition
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


def own_definitions(tools: Iterable[ToolDefinition]) -> list[dict[str, Any]]:
    """The definitions that stand before Toolgate's, as Chat Completions have them."""
    own = [(tool.name, tool.description or "", tool.parameters_json_schema) for tool in tools]
    # Its calls in the conversation are none of a tool that is described there.
    return [
        {
            "type": "function",
            "function": {"name": name, "description": description, "parameters": parameters},
        }
        for name, description, parameters in [*own, (REFUSED_CALL, "", {"type": "object"})]
    ]


def defined_name(definition: Mapping[str, Any]) -> str:
    """The name in a definition of whichever API."""
    return str(chat_definition(definition)["function"]["name"])


def sent_tools(
    definitions: Iterable[Mapping[str, Any]], managed: Mapping[str, ToolDefinition]
) -> list[ToolDefinition]:
    """The tools of a strategy's request but the agent's own.

    Args:
        definitions: The request's `tools`.
        managed: The tools that Toolgate manages, and its search, by their names.
    """
    sent: list[ToolDefinition] = []
    for definition in definitions:
        function = chat_definition(definition)["function"]
        name = function["name"]
        if name == CALL_TOOL:
            sent.append(
                ToolDefinition(
                    name=name,
                    parameters_json_schema=dict(function["parameters"]),
                    description=function["description"],
                )
            )
        elif name == SEARCH and name in managed:
            sent.append(replace(managed[name], description=function["description"]))
        elif name in managed:
            sent.append(managed[name])
    return sent


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
