"""An MCP server over stdio with one tool, which adds another and says so.

python growing_mcp_server.py
"""

from mcp.server.fastmcp import Context, FastMCP

server = FastMCP("growing")


@server.tool()
async def build_greenhouse(context: Context) -> str:  # type: ignore[type-arg]
    """Builds a greenhouse in the garden, in which tomatoes can be watered."""
    server.add_tool(water_tomatoes, description="Waters the tomatoes in the garden's greenhouse.")
    await context.session.send_tool_list_changed()
    return "built"


def water_tomatoes() -> str:
    """Waters them."""
    return "watered"


if __name__ == "__main__":
    server.run()
