"""Toolsets of MCP servers, registered as the servers list their tools."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

from pydantic_ai import RunContext
from pydantic_ai.toolsets import (
    AbstractToolset,
    FunctionToolset,
    RenamedToolset,
    ToolsetTool,
    WrapperToolset,
)

from toolgate._served import ServedTools, listing_deadline
from toolgate.pydantic_ai._toolset import mcp_definitions


@dataclass
class McpToolset(WrapperToolset[Any]):
    """One MCP server's tools, under the names that the model is to see.

    They are registered when a run first lists them, and again when the list is another: the
    framework lists them anew when the server says that they changed.
    """

    name: str
    """The server's name in the catalog."""
    served: ServedTools
    """The servers in the catalog."""
    is_open: bool = False
    """True if the server can be reached in this run."""

    async def for_run(self, ctx: RunContext[Any]) -> "McpToolset":
        """Always a copy, which knows for one run whether the server can be reached."""
        return replace(self, wrapped=await self.wrapped.for_run(ctx), is_open=False)

    async def __aenter__(self) -> Self:
        try:
            await self.wrapped.__aenter__()
        except Exception as error:
            await self.served.leave_out(self.name, error)
        else:
            self.is_open = True
        return self

    async def __aexit__(self, *args: Any) -> bool | None:
        if not self.is_open:
            return None
        self.is_open = False
        return await self.wrapped.__aexit__(*args)

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """The tools that are in the catalog; none while the server can't be reached.

        Raises:
            ToolgateError: a registration failed.
            TimeoutError: the server has not listed its tools within 30 s.
        """
        if not self.is_open:
            return {}
        await self._register(ctx)
        renamed = self._renamed()
        # A toolset that caches no tools lists them once more.
        async with listing_deadline(self.name):
            tools = await renamed.get_tools(ctx)
        return {name: tools[name] for name in renamed.name_map if name in tools}

    async def _register(self, ctx: RunContext[Any]) -> None:
        async with listing_deadline(self.name):
            tools = await _source(self.wrapped).list_tools()
        await self.served.register(self.name, tools)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Calls a tool by the name that the model sees."""
        return await self._renamed().call_tool(name, tool_args, ctx, tool)

    def _renamed(self) -> RenamedToolset[Any]:
        names = self.served.model_names(self.name)
        return RenamedToolset(self.wrapped, {model: name for name, model in names.items()})


class GivenToolset(McpToolset):
    """Tools of one's own, registered under a server's name."""

    async def _register(self, ctx: RunContext[Any]) -> None:
        tools = await self.wrapped.get_tools(ctx)
        definitions = mcp_definitions(tool.tool_def for tool in tools.values())
        await self.served.register_definitions(self.name, definitions)


def given_toolset(tools: AbstractToolset[Any] | Iterable[Any]) -> AbstractToolset[Any]:
    """Returns a toolset, or the toolset of tools and functions."""
    return tools if isinstance(tools, AbstractToolset) else FunctionToolset(list(tools))


def refuse_other(servers: dict[str, AbstractToolset[Any]]) -> None:
    """Refuses toolsets that are not of one MCP server.

    Raises:
        ValueError: there are some.
    """
    for name, toolset in servers.items():
        try:
            _source(toolset)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None


def _source(toolset: AbstractToolset[Any]) -> Any:
    """Returns the `MCPToolset` in a toolset, which may filter it or ask for approval."""
    leaves: list[AbstractToolset[Any]] = []
    toolset.apply(leaves.append)
    # By what it does: the class needs packages that other agents don't have.
    sources = [leaf for leaf in leaves if callable(getattr(leaf, "list_tools", None))]
    if len(sources) != 1:
        raise ValueError(f"takes the toolset of one MCP server (MCPToolset), not {toolset.label}")
    return sources[0]
