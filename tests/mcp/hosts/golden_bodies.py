"""Bodies of requests that hosts send to their model, kept as files without what varies.

Of the gateway and of the LLM proxy all is kept: their tools as the host hands them on, their
instructions, their answers. Of the host's own tools only the names are, and of its long texts only
lines that speak of the gateway.
"""

import difflib
import json
import re
from pathlib import Path
from typing import Any

Json = dict[str, Any]

FOLDER = Path(__file__).with_name("golden")
OWN_TOOLS = re.compile(
    r"(^|[_.])(discover_tools|call_read_tool|call_tool|read_result)$|^toolgate_(search|call)_tools?$"
)
SCHEMAS = ("input_schema", "inputSchema", "parameters", "parametersJsonSchema")
OF_GATEWAY = re.compile(r"discover_tools|fixture__|garden__|MCP servers are behind")

OF_PROXY = re.compile(r"(\[Toolgate\]|Finds tools that are not defined here).*", re.DOTALL)
"""Matches what the LLM proxy says, which is kept, also behind a text of the host."""

LONG = 300
"""Characters from which a text of the host is left out."""

# Names of what differs from run to run.
VARIES = re.compile(
    r"(^|_)(id|ids|key|user|session|created_at|create_time|metadata|installation)$|Id$|^usage"
)
MASKS = [
    (r"#\w{6}\b", "#TAG"),
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID"),
    (r"\b[0-9a-f]{16,}\b", "HEX"),
    (r"\d{4}-\d\d-\d\d(T[\d:.]+Z?)?|[A-Z][a-z]+day, [A-Z][a-z]+ \d+, \d{4}", "DATE"),
    (r"/(?:tmp|home|root|var|private)/[\w./-]*", "PATH"),
    (r"127\.0\.0\.1:\d+", "ADDRESS"),
    (r"\d+\.\d+ seconds", "TIME"),
    (r"\b\d+\.\d+\.\d+(?:\.\w+)?\b", "VERSION"),
]


def normalised(body: Json) -> str:
    """The text of a body without what varies."""
    return json.dumps(_value(body), indent=1, ensure_ascii=False) + "\n"


def difference(host: str, body: Json, *, is_update: bool) -> str | None:
    """Returns the difference from a host's file; None without one, or if the file is written."""
    file = FOLDER / f"{host}.json"
    text = normalised(body)
    if is_update:
        FOLDER.mkdir(exist_ok=True)
        file.write_text(text)
        return None
    if not file.exists():
        return f"{file.name} is missing: --update-golden writes it"
    lines = difflib.unified_diff(
        file.read_text().splitlines(), text.splitlines(), file.name, "as it is", lineterm=""
    )
    return "\n".join(lines) or None


def _value(value: object, key: str = "") -> object:
    if VARIES.search(key):
        return "VARIES"
    if isinstance(value, dict):
        return _tool(value) or {name: _value(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_value(inner, key) for inner in value]
    return _text(value) if isinstance(value, str) else value


def _tool(value: Json) -> Json | None:
    """The name of a host's own tool; none for anything else."""
    name = value.get("name")
    is_tool = isinstance(name, str) and any(key in value for key in SCHEMAS)
    return {"name": name} if is_tool and not OWN_TOOLS.search(str(name)) else None


def _text(text: str) -> str:
    if len(text) > LONG:
        of_proxy = OF_PROXY.search(text)
        own = text[: of_proxy.start()] if of_proxy else text
        lines = [line for line in re.split(r"\n|\\n", own) if OF_GATEWAY.search(line)]
        kept = "\n".join(lines) or ("LONG TEXT" if own else "")
        text = kept + (of_proxy.group() if of_proxy else "")
    for pattern, mask in MASKS:
        text = re.sub(pattern, mask, text)
    return text
