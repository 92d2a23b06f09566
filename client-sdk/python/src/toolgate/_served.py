"""MCP servers that an integration registers as they list their tools, and registers again."""

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from toolgate._listed import ListedServer, asked, model_names, registration, tell_withheld
from toolgate._requests import RegisterArguments
from toolgate.aio import AsyncClient
from toolgate.client import Client
from toolgate.routing import RouteResult

LISTING_SECONDS = 30.0
"""The time in which a server must list its tools, all pages together."""
MOST_PAGES = 100
"""The most pages of one list: a server that repeats a cursor would have no last one."""


class ServedTools:
    """MCP servers in the catalog, and the names that a model is to see of their tools."""

    def __init__(
        self,
        client: Client | AsyncClient,
        servers: Iterable[str],
        register: Mapping[str, RegisterArguments] | None,
        log: logging.Logger,
    ) -> None:
        """Registers nothing yet.

        Args:
            client: The client of Toolgate.
            servers: The servers' names in the catalog.
            register: Further arguments of `register_server`, by the server's name.
            log: Where warnings go.

        Raises:
            ValueError: arguments for a server that is not among them.
        """
        self.names = list(servers)
        """The servers' names in the catalog."""
        self._client = client
        self._arguments = register or {}
        self._log = log
        self._servers: dict[str, ListedServer] = {}
        self._model_names: dict[str, dict[str, str]] = {}
        unknown = sorted(self._arguments.keys() - set(self.names))
        if unknown:
            known = ", ".join(self.names) or "none"
            raise ValueError(f"no MCP server {', '.join(unknown)}: there is {known}")

    async def register(self, name: str, tools: Iterable[Any]) -> Mapping[str, str]:
        """Registers a server as it lists its tools, unless it does so already.

        Args:
            name: The server's name in the catalog.
            tools: The tools of its `tools/list`, as the MCP package reads them.

        Returns:
            The names that the model is to see, by the tools' own. Tools that were rejected or wait
            for approval have none; each is warned of.
        """
        # Defaults that the server did not write are not registered.
        definitions = (
            tool.model_dump(mode="json", by_alias=True, exclude_unset=True) for tool in tools
        )
        return await self.register_definitions(name, definitions)

    async def register_definitions(
        self, name: str, definitions: Iterable[Mapping[str, Any]]
    ) -> Mapping[str, str]:
        """Registers the tools of a `tools/list`, unless they are registered already.

        Args:
            name: The server's name in the catalog.
            definitions: The tools.

        Returns:
            As `register`.
        """
        definitions = tuple(definitions)
        known = self._servers.get(name)
        if known is not None and known.definitions == definitions:
            return self._model_names[name]
        server = ListedServer(name, definitions, self._arguments.get(name, {}))
        done = await asked(self._client, registration(server))
        tell_withheld(self._log, name, done)
        self._model_names[name] = await model_names(self._client, name)
        self._servers[name] = replace(server, revision=done.catalog_revision)
        return self._model_names[name]

    async def leave_out(self, name: str, error: Exception) -> None:
        """Warns of a server that can't be listed.

        One that was never registered is announced, so that searches name it.
        """
        self._log.warning("toolgate: MCP server %s can't be listed: %s", name, causes(error))
        if name not in self._servers:
            await asked(self._client, lambda client: client.announce_server(name))

    def is_registered(self, name: str) -> bool:
        """Returns true if a server was registered before."""
        return name in self._servers

    def model_names(self, name: str) -> Mapping[str, str]:
        """The names that the model is to see of a server's tools, by the tools' own."""
        return self._model_names.get(name, {})

    def has_lost(self, turn: RouteResult) -> bool:
        """Returns true if the catalog is older than what was registered: it began anew."""
        return any(turn.catalog_revision < one.revision for one in self._servers.values())

    async def register_again(self) -> None:
        """Registers what the service has lost."""
        self._log.warning(
            "toolgate: the service has lost the catalog: MCP servers are registered again"
        )
        for name, server in list(self._servers.items()):
            done = await asked(self._client, registration(server))
            self._servers[name] = replace(server, revision=done.catalog_revision)


@asynccontextmanager
async def listing_deadline(name: str) -> AsyncIterator[None]:
    """Gives an MCP server 30 s to list its tools.

    Args:
        name: The server's name, for the error.

    Raises:
        TimeoutError: the block took longer.
    """
    try:
        async with asyncio.timeout(LISTING_SECONDS) as limit:
            yield
    except TimeoutError as error:
        if not limit.expired():
            raise
        late = f"{name} has not listed its tools within {LISTING_SECONDS:g} s"
        raise TimeoutError(late) from error


async def listed_tools(name: str, session: Any) -> list[Any]:
    """Lists all tools of an MCP server, page by page.

    Args:
        name: The server's name, for errors.
        session: A session of the package `mcp`.

    Raises:
        TimeoutError: they were not listed within 30 s.
        RuntimeError: there are more than 100 pages.
    """
    tools: list[Any] = []
    cursor = ""
    async with listing_deadline(name):
        for _ in range(MOST_PAGES):
            page = await _page(session, cursor)
            tools += page.tools
            cursor = attribute(page, "next_cursor", "nextCursor")
            if not cursor:
                return tools
    raise RuntimeError(f"{name} has more than {MOST_PAGES} pages of tools")


async def _page(session: Any, cursor: str) -> Any:
    """Lists the tools from a cursor on, "" for the first, with any version of the package `mcp`."""
    if not cursor:
        return await session.list_tools()
    if "cursor" in inspect.signature(session.list_tools).parameters:
        return await session.list_tools(cursor)
    # From version 2 on.
    from mcp.types import PaginatedRequestParams

    return await session.list_tools(params=PaginatedRequestParams(cursor=cursor))


def attribute(value: Any, *names: str) -> Any:
    """The first of these attributes that there is: version 2 of the package `mcp` renamed them."""
    return next((getattr(value, name) for name in names if hasattr(value, name)), None)


def hear_changes(session: Any, heard: Callable[[], None]) -> None:
    """Calls `heard` when an MCP session is told that the tools changed; other handlers stay."""
    if hasattr(session, "_message_handler"):
        session._message_handler = hearing(session._message_handler, heard)


def hearing(
    handle: Callable[[Any], Awaitable[None]] | None, heard: Callable[[], None]
) -> Callable[[Any], Awaitable[None]]:
    """Returns a handler of a session's messages that calls `heard` when tools changed."""

    async def hear(message: Any) -> None:
        said = getattr(message, "root", message)
        if getattr(said, "method", "") == "notifications/tools/list_changed":
            heard()
        if handle is not None:
            await handle(message)

    return hear


def causes(error: BaseException) -> str:
    """The messages of an error, and of those that it groups."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(causes(one) for one in error.exceptions)
    return f"{type(error).__name__}: {error}"
