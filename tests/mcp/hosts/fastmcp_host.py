"""FastMCP's client follows a script: fastmcp_host.py MCP_URL MODEL_URL SCRIPT PLANT."""

import asyncio
import sys

from fastmcp import Client
from fastmcp.client.messages import MessageHandler
from scripted_model import Step, Turn, script_of


class Lists(MessageHandler):
    """Keeps in mind whether the list of tools has changed."""

    def __init__(self) -> None:
        super().__init__()
        self.is_old = True

    async def on_tool_list_changed(self, message: object) -> None:
        """The server says that its tools are others now."""
        self.is_old = True


async def main() -> None:
    """Lists the tools, and again once they changed, and calls what the script says."""
    lists = Lists()
    script = script_of(*sys.argv[3:5])
    # In the newer era this client subscribes to no changes by itself.
    mode = "legacy" if sys.argv[3] == "grow-in-list" else "auto"
    async with Client(sys.argv[1], message_handler=lists, mode=mode) as client:
        tools: list[str] = []
        results: list[str] = []
        while True:
            if lists.is_old:
                lists.is_old = False
                tools = [tool.name for tool in await client.list_tools()]
                print(tools)
            step = script(Turn(tools, results))
            if step is None:
                break
            results.append(await call(client, step))
            # The model of a host would think now; what the server says meanwhile is read.
            await asyncio.sleep(0.2)
        print(*results, sep="\n")


async def call(client: "Client[object]", step: Step) -> str:
    """The text of a tool's answer, which may be a refusal."""
    answer = await client.call_tool(step.tool, step.arguments, raise_on_error=False)
    return "\n".join(getattr(block, "text", "") for block in answer.content)


asyncio.run(main())
