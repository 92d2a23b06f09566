"""An MCP server over stdio of 2025-06-18 that has one tool more for each plant that was found.

python garden_server.py
"""

import json
import sys

from scripted_model import Json, found_text, read_text

ONLY_READS = {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": False}
FIND: Json = {
    "name": "find_plant",
    "description": "Looks for a plant in the garden by its name.",
    "inputSchema": {
        "type": "object",
        "properties": {"plant": {"type": "string"}},
        "required": ["plant"],
    },
    "annotations": ONLY_READS,
}
PREFIX = "read_about_"


def read_tool(plant: str) -> Json:
    """The definition of the tool for one plant."""
    return {
        "name": PREFIX + plant,
        "description": f"Reads about the {plant} of the garden.",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": ONLY_READS,
    }


class Garden:
    """The plants that were found."""

    def __init__(self) -> None:
        self.plants: list[str] = []

    def answer(self, method: str, params: Json) -> Json | None:
        """The result of a request; none for a method that is not known."""
        match method:
            case "initialize":
                return {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {"listChanged": True}},
                    "serverInfo": {"name": "garden", "version": "1"},
                }
            case "ping":
                return {}
            case "tools/list":
                return {"tools": [FIND, *map(read_tool, self.plants)]}
            case "tools/call":
                return self.call(params["name"], params.get("arguments") or {})
            case _:
                return None

    def call(self, tool: str, arguments: Json) -> Json:
        """The result of a call. The first search for a plant changes the list of tools."""
        plant = tool.removeprefix(PREFIX)
        if tool == "find_plant":
            plant = arguments["plant"]
            if plant not in self.plants:
                self.plants.append(plant)
                say({"method": "notifications/tools/list_changed"})
            return {"content": [{"type": "text", "text": found_text(plant)}]}
        text = read_text(plant) if plant in self.plants else f"there is no tool {tool}"
        return {"content": [{"type": "text", "text": text}], "isError": plant not in self.plants}


def say(message: Json) -> None:
    """Writes a message."""
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def main() -> None:
    """Serves until its input ends."""
    garden = Garden()
    for line in sys.stdin:
        request: Json = json.loads(line)
        if "id" not in request:
            continue
        result = garden.answer(request["method"], request.get("params") or {})
        if result is None:
            say({"id": request["id"], "error": {"code": -32601, "message": "no such method"}})
        else:
            say({"id": request["id"], "result": result})


if __name__ == "__main__":
    main()
