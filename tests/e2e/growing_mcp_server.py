"""An MCP server over stdio with one tool, which adds another and says so.

python growing_mcp_server.py [MEMORY]

With a file to remember it by, another process has the tool that was added too.
"""

import sys
from pathlib import Path

from mcp.server.fastmcp import Context, FastMCP

server = FastMCP("growing")
memory = Path(sys.argv[1]) if len(sys.argv) > 1 else None


@server.tool()
async def build_greenhouse(context: Context) -> str:  # type: ignore[type-arg]
    """Builds a greenhouse in the garden, in which tomatoes can be watered."""
    add_watering()
    if memory is not None:
        memory.touch()
    await context.session.send_tool_list_changed()
    return "built"


def add_watering() -> None:
    """Adds the other tool."""
    server.add_tool(water_tomatoes, description="Waters the tomatoes in the garden's greenhouse.")


def water_tomatoes() -> str:
    """Waters them."""
    return "watered"


if __name__ == "__main__":
    if memory is not None and memory.exists():
        add_watering()
    server.run()
