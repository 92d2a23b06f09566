"""MCP servers whose tools an integration registers itself, and registers again after a loss."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from toolgate._requests import RegisterArguments
from toolgate.aio import AsyncClient
from toolgate.catalog import Registration
from toolgate.client import Client
from toolgate.enums import ErrorReason, OutcomeKind
from toolgate.errors import ToolgateError

REGISTER_SECONDS = 120.0
"""The most seconds of a registration: hundreds of new tools are embedded meanwhile."""

_LOST = frozenset({ErrorReason.TENANT_NOT_FOUND, ErrorReason.SERVER_NOT_FOUND})
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class ListedServer:
    """An MCP server as it is registered."""

    name: str
    """Its name in the catalog."""
    definitions: tuple[Mapping[str, Any], ...]
    """The tools of its `tools/list`."""
    arguments: RegisterArguments
    """Further arguments of `register_server`."""
    revision: int = 0
    """The catalog revision that holds it; 0 until it is registered."""


def is_lost(error: ToolgateError) -> bool:
    """Returns True if an error says that the service no longer has what was registered."""
    return error.reason in _LOST


async def asked(
    client: Client | AsyncClient, call: Callable[[Any], Answer | Awaitable[Answer]]
) -> Answer:
    """Calls the client, whichever it is: the blocking one in a thread."""
    if isinstance(client, AsyncClient):
        return await cast(Awaitable[Answer], call(client))
    return cast(Answer, await asyncio.to_thread(call, client))


def registration(server: ListedServer) -> Callable[[Any], Any]:
    """Returns the call that registers a server."""
    return lambda client: client.register_server(
        server.name, server.definitions, timeout=REGISTER_SECONDS, **server.arguments
    )


async def model_names(client: Client | AsyncClient, server: str) -> dict[str, str]:
    """Returns the model-facing names of a server's tools, by their MCP names."""
    if isinstance(client, AsyncClient):
        return {tool.name: tool.model_name async for tool in client.list_tools(server)}
    listed = await asyncio.to_thread(lambda: list(client.list_tools(server)))
    return {tool.name: tool.model_name for tool in listed}


def tell_withheld(log: logging.Logger, server: str, done: Registration) -> None:
    """Warns of tools that were rejected or wait for approval, which no model is shown."""
    withheld = {OutcomeKind.REJECTED: "rejected", OutcomeKind.QUARANTINED: "waits for approval"}
    for outcome in done.outcomes:
        if outcome.kind in withheld:
            log.warning("toolgate: %s of %s %s", outcome.name, server, withheld[outcome.kind])


def refuse_repeated(servers: Sequence[ListedServer]) -> None:
    """Refuses two servers of one name, whose tools would replace each other.

    Raises:
        ValueError: two servers have the same name.
    """
    names = [server.name for server in servers]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"MCP servers of the same name: {', '.join(repeated)}")
