"""Tools of MCP servers, listed and registered by the middleware itself."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_core.tools import BaseTool
from langchain_core.tools import tool as made_tool

from toolgate._listed import ListedServer, asked, model_names, registration, tell_withheld
from toolgate._requests import RegisterArguments
from toolgate._served import causes, hear_changes, hearing, listed_tools, listing_deadline
from toolgate.aio import AsyncClient
from toolgate.client import Client
from toolgate.langchain._tools import mcp_definitions

if TYPE_CHECKING:
    from langchain_mcp_adapters.client import MultiServerMCPClient
    from mcp import ClientSession

_LOG = logging.getLogger("toolgate.langchain")


class Registered:
    """Tools that are registered under servers' names, and the names that the model is to see."""

    def __init__(
        self,
        client: Client | AsyncClient,
        known: Iterable[str],
        servers: Iterable[str] | None,
        register: Mapping[str, RegisterArguments],
    ) -> None:
        """Takes the servers that are known, or those that are named.

        Raises:
            ValueError: a name that is not known.
        """
        known = list(known)
        self._client = client
        self.names = known if servers is None else list(servers)
        """The names of the servers."""
        self._register = register
        unknown = sorted({*self.names, *register} - {*known})
        if unknown:
            has = ", ".join(sorted(known)) or "none"
            raise ValueError(f"no MCP server {', '.join(unknown)}: the client has {has}")
        self.servers: dict[str, ListedServer] = {}
        """The registrations, by the server's name."""
        self.changed: set[str] = set()
        """The servers that said since that their tools changed."""

    async def load(self) -> list[BaseTool]:
        """Registers all servers, and returns their tools."""
        raise NotImplementedError

    async def _registered(
        self, name: str, definitions: Iterable[Mapping[str, Any]]
    ) -> Mapping[str, str]:
        """Registers a server; the names that the model is to see, by the tools' own."""
        server = ListedServer(name, tuple(definitions), self._register.get(name, {}))
        self.servers[name] = server
        done = await asked(self._client, registration(server))
        tell_withheld(_LOG, name, done)
        self.servers[name] = replace(server, revision=done.catalog_revision)
        return await model_names(self._client, name)


class GivenTools(Registered):
    """Tools of one's own."""

    def __init__(
        self,
        client: Client | AsyncClient,
        servers: Mapping[str, Iterable[BaseTool | Callable[..., Any]]],
        register: Mapping[str, RegisterArguments],
    ) -> None:
        """Takes tools, or functions to make tools of, by the names of servers."""
        super().__init__(client, servers, None, register)
        self._given = {
            name: [one if isinstance(one, BaseTool) else made_tool(one) for one in tools]
            for name, tools in servers.items()
        }

    async def load(self) -> list[BaseTool]:
        """Registers the tools, and returns copies under the names that the model is to see."""
        loaded = await asyncio.gather(*map(self._load, self.names))
        return [tool for tools in loaded for tool in tools]

    async def _load(self, name: str) -> list[BaseTool]:
        tools = self._given[name]
        names = await self._registered(name, mcp_definitions(tools))
        return [
            tool.model_copy(update={"name": names[tool.name]})
            for tool in tools
            if tool.name in names
        ]


class McpTools(Registered):
    """The tools of MCP servers: of a `MultiServerMCPClient`, or of connected sessions."""

    def __init__(
        self,
        client: Client | AsyncClient,
        mcp: "MultiServerMCPClient | Mapping[str, ClientSession]",
        servers: Iterable[str] | None,
        register: Mapping[str, RegisterArguments],
    ) -> None:
        """Takes the servers of `mcp`, or those that are named.

        Raises:
            ValueError: a name that `mcp` has no connection for.
        """
        self._sessions: Mapping[str, Any] = mcp if isinstance(mcp, Mapping) else {}
        self._mcp: Any = None if isinstance(mcp, Mapping) else mcp
        known = self._sessions if self._mcp is None else self._mcp.connections
        super().__init__(client, known, servers, register)
        for name, session in self._sessions.items():
            hear_changes(session, partial(self.changed.add, name))

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
                _LOG.warning("toolgate: MCP server %s can't be listed: %s", name, causes(one))
                await asked(self._client, _announcement(name))
        return tools

    async def _load(self, name: str) -> list[BaseTool]:
        self.changed.discard(name)
        if name in self._sessions:
            session = self._sessions[name]
            return await self._taken(name, await listed_tools(name, session), session, {})
        connection = {**self._mcp.connections[name]}
        kwargs = dict(connection.get("session_kwargs") or {})
        # Each call has a session of its own, which may hear that the tools changed.
        heard = partial(self.changed.add, name)
        kwargs["message_handler"] = hearing(kwargs.get("message_handler"), heard)
        options = {
            "connection": {**connection, "session_kwargs": kwargs},
            "callbacks": self._mcp.callbacks,
            "tool_interceptors": self._mcp.tool_interceptors,
            "handle_tool_errors": self._mcp.handle_tool_errors,
        }
        async with listing_deadline(name), self._mcp.session(name) as session:
            listed = await listed_tools(name, session)
        return await self._taken(name, listed, None, options)

    async def _taken(
        self, name: str, listed: list[Any], session: Any, options: dict[str, Any]
    ) -> list[BaseTool]:
        """Registers what a server lists; its tools, under the names that the model is to see."""
        from langchain_mcp_adapters.tools import convert_mcp_tool_to_langchain_tool

        # Defaults that the server did not write are not registered.
        definitions = [
            tool.model_dump(mode="json", by_alias=True, exclude_unset=True) for tool in listed
        ]
        names = await self._registered(name, definitions)
        tools = []
        for tool in listed:
            if tool.name not in names:
                continue
            made = convert_mcp_tool_to_langchain_tool(session, tool, server_name=name, **options)
            tools.append(made.model_copy(update={"name": names[tool.name]}))
        return tools


def _announcement(name: str) -> Callable[[Any], Awaitable[Any] | Any]:
    return lambda client: client.announce_server(name)
