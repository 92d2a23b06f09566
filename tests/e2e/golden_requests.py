"""Requests to a provider as files hold them: the line, headers that count, and the body's bytes.

A file has the requests of one conversation, one behind another.
"""

import json
from collections.abc import Iterable
from difflib import unified_diff
from pathlib import Path

from llm_provider import Sent

FOLDER = Path(__file__).with_name("golden")
BETWEEN = b"\n\n###\n"
"""What stands between two requests. No body of JSON that a provider's package writes has it."""
HEADERS = ("content-type", "anthropic-version", "anthropic-beta")
"""The headers that say how a body is to be read; others tell of the package and of the machine."""


def written(requests: Iterable[Sent]) -> bytes:
    """Returns the content of a file with these requests."""
    return BETWEEN.join(map(_written, requests)) + b"\n"


def _written(sent: Sent) -> bytes:
    named = [name for name in HEADERS if name in sent.headers]
    headers = [f"{name}: {sent.headers[name]}".rstrip() for name in named]
    head = "\n".join([f"{sent.method} {sent.path}", *headers])
    return head.encode() + b"\n\n" + sent.body


def difference(before: bytes, after: bytes) -> str:
    """Returns the difference between two contents for a reader, with bodies over several lines;
    empty if they are the same."""
    if before == after:
        return ""
    lines = unified_diff(_lines(before), _lines(after), "the file", "what is sent", lineterm="")
    return "\n".join(lines) or "the bodies are the same JSON in other bytes"


def _lines(content: bytes) -> list[str]:
    lines: list[str] = []
    for line in content.decode().splitlines():
        is_body = line.startswith("{")
        text = json.dumps(json.loads(line), indent=1, ensure_ascii=False) if is_body else line
        lines += text.splitlines()
    return lines
