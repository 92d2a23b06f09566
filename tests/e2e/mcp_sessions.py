"""Connected sessions of MCP servers."""

import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


@asynccontextmanager
async def sessions(servers: Mapping[str, Sequence[str]]) -> AsyncIterator[dict[str, ClientSession]]:
    """Connected sessions of MCP servers, which this Python runs with these arguments."""
    async with AsyncExitStack() as stack:
        connected = {}
        for name, arguments in servers.items():
            process = StdioServerParameters(command=sys.executable, args=list(arguments))
            streams = await stack.enter_async_context(stdio_client(process))
            connected[name] = await stack.enter_async_context(ClientSession(*streams))
            await connected[name].initialize()
        yield connected
