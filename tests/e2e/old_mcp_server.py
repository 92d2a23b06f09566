"""An MCP server of FastMCP over HTTP+SSE, the transport of 2024-11-05. It prints its URL."""

import os
import socket

import uvicorn
from mcp.server.fastmcp import FastMCP

server = FastMCP("old", log_level="ERROR")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def leave() -> str:
    """Ends the server amid the call."""
    os._exit(0)


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", int(os.environ.get("PORT", "0"))))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/sse", flush=True)
    config = uvicorn.Config(server.sse_app(), log_level="error")
    uvicorn.Server(config).run(sockets=[listener])
