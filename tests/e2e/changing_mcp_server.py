"""An MCP server over stdio whose tools are those that a file names, one a line.

python changing_mcp_server.py NAMES.txt
"""

import sys
from pathlib import Path

from mcp.server.fastmcp import FastMCP


def main(names: Path) -> None:
    """Serves until its input ends."""
    server = FastMCP("changing")
    for name in names.read_text().split():

        def tool(text: str, of: str = name) -> str:
            return f"{of} has {text}"

        words = name.replace("_", " ")
        server.add_tool(tool, name=name, description=f"Use it to {words} in the garden shed.")
    server.run()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
