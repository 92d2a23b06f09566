"""Tools of MCP servers, listed and registered for conversations."""

import asyncio
import json
import logging
from collections.abc import Iterable, Mapping
from typing import Any, Self, cast

from agents import FunctionTool
from agents.mcp import MCPServer, MCPUtil
from mcp.types import CallToolResult, TextContent

from toolgate._requests import RegisterArguments
from toolgate._served import ServedTools, hear_changes, hearing, listing_deadline
from toolgate.aio import AsyncClient
from toolgate.client import Client
from toolgate.openai_agents._tools import mcp_definitions, renamed

_LOG = logging.getLogger("toolgate.openai_agents")


class McpTools:
    """The tools of MCP servers, in the catalog as the servers list them.

        tools = await McpTools.load(client, {"git": git, "time": time})
        conversation = Conversation(client, tools)

    One instance serves any number of conversations. If the service loses its catalog, the servers
    are registered again.
    """

    def __init__(
        self,
        client: Client | AsyncClient,
        servers: Mapping[str, MCPServer],
        register: Mapping[str, RegisterArguments] | None = None,
    ) -> None:
        """Lists nothing yet: see `load`."""
        self._mcp = dict(servers)
        self.served = ServedTools(client, self._mcp, register, _LOG)
        """The servers in the catalog."""
        self.tools: list[FunctionTool] = []
        """The tools, under the names that the model is to see; another list after each refresh."""
        self._changed: set[str] = set()
        for name, server in self._mcp.items():
            self._listen(name, server)

    @classmethod
    async def load(
        cls,
        client: Client | AsyncClient,
        servers: Mapping[str, MCPServer],
        register: Mapping[str, RegisterArguments] | None = None,
    ) -> Self:
        """Lists the tools of MCP servers and registers them as listed.

        A server that can't be listed within 30 s is left out with a warning. Tools that are
        rejected or wait for approval are left out with one each.

        Args:
            client: The client of Toolgate; see `Conversation`.
            servers: Connected servers, by their names in the catalog. Don't give them to the agent
                too. `tool_filter` must be a static one.
            register: Further arguments of `register_server` by the server's name, such as
                `{"git": {"required_scopes": ["repo"]}}`.

        Raises:
            ValueError: arguments for a server that is not among them.
            ToolgateError: a registration failed.
        """
        loaded = cls(client, servers, register)
        await loaded.refresh()
        return loaded

    async def refresh(self) -> None:
        """Lists the servers again: what changed is registered, and shown with the next request.

        For servers that don't say when their tools change. One that caches its tools
        (`cache_tools_list`) needs `invalidate_tools_cache()` before.

        Raises:
            ToolgateError: a registration failed.
        """
        self._changed.clear()
        listed = await asyncio.gather(*(self._listed(name) for name in self._mcp))
        self.tools = [tool for tools in listed for tool in tools]

    async def follow(self) -> None:
        """Lists the servers again if one said since that its tools changed.

        What can't be listed or registered just now is left as it is, with a warning.
        """
        if not self._changed:
            return
        names = ", ".join(sorted(self._changed))
        try:
            await self.refresh()
        except Exception as error:
            _LOG.warning("toolgate: changed tools of %s can't be followed: %s", names, error)

    def _listen(self, name: str, server: MCPServer) -> None:
        """Hears what a server says of its tools (`notifications/tools/list_changed`)."""

        def heard() -> None:
            self._changed.add(name)
            invalidate = getattr(server, "invalidate_tools_cache", None)
            if callable(invalidate):
                invalidate()

        if hasattr(server, "message_handler"):
            server.message_handler = hearing(server.message_handler, heard)
        # One that is connected hands its messages to the handler that it was connected with.
        hear_changes(getattr(server, "session", None), heard)

    async def _listed(self, name: str) -> list[FunctionTool]:
        server = self._mcp[name]
        try:
            async with listing_deadline(name):
                tools = await server.list_tools()
        except Exception as error:
            if self.served.is_registered(name):
                raise
            await self.served.leave_out(name, error)
            return []
        names = await self.served.register(name, tools)
        marked = cast(MCPServer, _Marked(server))
        return [
            MCPUtil.to_function_tool(
                tool, marked, convert_schemas_to_strict=False, tool_name_override=names[tool.name]
            )
            for tool in tools
            if tool.name in names
        ]


class GivenTools(McpTools):
    """Function tools of one's own, in the catalog under the names of servers."""

    def __init__(
        self,
        client: Client | AsyncClient,
        servers: Mapping[str, Iterable[FunctionTool]],
        register: Mapping[str, RegisterArguments] | None = None,
    ) -> None:
        """Registers nothing yet: see `load`."""
        super().__init__(client, {}, register=None)
        self.served = ServedTools(client, servers, register, _LOG)
        self._given = {name: list(tools) for name, tools in servers.items()}

    async def refresh(self) -> None:
        """Registers the tools, where they are not registered already.

        Raises:
            ToolgateError: a registration failed.
        """
        taken = await asyncio.gather(*(self._registered(name) for name in self._given))
        self.tools = [tool for tools in taken for tool in tools]

    async def _registered(self, server: str) -> list[FunctionTool]:
        tools = self._given[server]
        names = await self.served.register_definitions(server, mcp_definitions(tools))
        return [renamed(tool, names[tool.name]) for tool in tools if tool.name in names]


class _Marked:
    """An MCP server whose failed results say so: the SDK's items have no flag for them."""

    def __init__(self, server: MCPServer) -> None:
        self._server = server

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    async def call_tool(self, *asked: Any, **named: Any) -> CallToolResult:
        result = await self._server.call_tool(*asked, **named)
        is_error = getattr(result, "isError", None) or getattr(result, "is_error", None)
        if not is_error:
            return result
        said = "\n".join(part.text for part in result.content if isinstance(part, TextContent))
        text = json.dumps({"error": said or "the tool failed"}, ensure_ascii=False)
        return result.model_copy(update={"content": [TextContent(type="text", text=text)]})
