"""Tools of MCP servers, listed and registered by the middleware itself."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langchain_core.tools import BaseTool

from toolgate._listed import ListedServer, asked, model_names, registration, tell_withheld
from toolgate._requests import RegisterArguments
from toolgate.aio import AsyncClient
from toolgate.client import Client

if TYPE_CHECKING:
    from langchain_mcp_adapters.client import MultiServerMCPClient

_LOG = logging.getLogger("toolgate.langchain")


class McpTools:
    """The tools of a `MultiServerMCPClient`'s servers, under the names that the model is to see."""

    def __init__(
        self,
        client: Client | AsyncClient,
        mcp: "MultiServerMCPClient",
        servers: Iterable[str] | None,
        register: Mapping[str, RegisterArguments],
    ) -> None:
        """Takes the servers of `mcp`, or those that are named.

        Raises:
            ValueError: a name that `mcp` has no connection for.
        """
        self._client = client
        self._mcp = mcp
        self.names = list(mcp.connections if servers is None else servers)
        """The names of the servers."""
        self._register = register
        unknown = sorted({*self.names, *register} - mcp.connections.keys())
        if unknown:
            known = ", ".join(sorted(mcp.connections)) or "none"
            raise ValueError(f"no MCP server {', '.join(unknown)}: the client has {known}")
        self.servers: dict[str, ListedServer] = {}
        """What is registered, by the server's name."""

    async def load(self) -> list[BaseTool]:
        """Lists and registers all servers, side by side, and returns their tools.

        A server that can't be reached is left out with a warning, and announced to the service, so
        that an empty search names it.
        """
        loaded = await asyncio.gather(*map(self._load, self.names), return_exceptions=True)
        tools: list[BaseTool] = []
        for name, one in zip(self.names, loaded, strict=True):
            if not isinstance(one, BaseException):
                tools += one
            elif name in self.servers or not isinstance(one, Exception):
                raise one
            else:
                _LOG.warning("toolgate: MCP server %s can't be listed: %s", name, _causes(one))
                await asked(self._client, _announcement(name))
        return tools

    async def _load(self, name: str) -> list[BaseTool]:
        from langchain_mcp_adapters.tools import convert_mcp_tool_to_langchain_tool

        mcp = self._mcp
        listed: list[Any] = []
        async with mcp.session(name) as session:
            page = await session.list_tools()
            listed += page.tools
            while page.nextCursor:
                page = await session.list_tools(page.nextCursor)
                listed += page.tools
        # What the server did not write is not registered as if it had.
        definitions = tuple(
            tool.model_dump(mode="json", by_alias=True, exclude_unset=True) for tool in listed
        )
        server = ListedServer(name, definitions, self._register.get(name, {}))
        self.servers[name] = server
        done = await asked(self._client, registration(server))
        tell_withheld(_LOG, name, done)
        self.servers[name] = replace(server, revision=done.catalog_revision)
        names = await model_names(self._client, name)
        tools = []
        for tool in listed:
            if tool.name not in names:
                continue
            made = convert_mcp_tool_to_langchain_tool(
                None,
                tool,
                connection=mcp.connections[name],
                callbacks=mcp.callbacks,
                tool_interceptors=mcp.tool_interceptors,
                server_name=name,
                handle_tool_errors=mcp.handle_tool_errors,
            )
            tools.append(made.model_copy(update={"name": names[tool.name]}))
        return tools


def _announcement(name: str) -> Callable[[Any], Awaitable[Any] | Any]:
    return lambda client: client.announce_server(name)


def _causes(error: BaseException) -> str:
    """The messages of an error, and of those that it groups."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_causes(one) for one in error.exceptions)
    return f"{type(error).__name__}: {error}"
