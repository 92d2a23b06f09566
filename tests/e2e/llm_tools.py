"""Tools of a host behind the LLM proxy, and what the tests of all faces share."""

import json
from typing import Any

from llm_provider import Json

CALL = "toolgate_call_tool"
SEARCH = "toolgate_search_tools"
MORE = "[Toolgate] More tools."
DEFERRAL = (
    "defer_loading",
    "tool_search",
    "tool_reference",
    "tool_addition",
    "additional_tools",
)
"""Words of requests in which something is deferred, of all APIs."""
PATIENT = 'strategy = "envelope"\ndecision_timeout = "2m"\nfirst_decision_timeout = "2m"\n'
PRICED = PATIENT + "prices = { m = { input = 5.0, output = 25.0 } }\n"
TOOLS = {
    "mcp__weather__forecast": "Weather forecast for a city: rain, wind and temperature.",
    "mcp__git__log": "Shows the commit history of a repository.",
    "mcp__git__diff": "Shows changes between two commits.",
    "mcp__calendar__create_event": "Puts an appointment into the calendar.",
    "mcp__mail__send": "Sends an e-mail to somebody.",
    "mcp__files__convert_currency": "Converts an amount of money between two currencies.",
}
RAIN = "Will it rain in Bern tomorrow?"
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}}


def enveloped(name: str, arguments: Json) -> Json:
    """The arguments of an envelope."""
    return {"name": name, "arguments": arguments}


def read_events(body: bytes) -> list[Json]:
    """The JSON of the events in a body."""
    lines = body.decode().splitlines()
    datas = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    return [json.loads(data) for data in datas if data != "[DONE]"]
