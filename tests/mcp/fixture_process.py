"""The fixture as a process that serves HTTP on a free port of loopback."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BINARY = os.environ.get(
    "TOOLGATE_MCP_FIXTURE",
    str(Path(__file__).resolve().parents[2] / "target" / "debug" / "toolgate-mcp-fixture"),
)


@contextmanager
def fixture_url(*arguments: str) -> Iterator[str]:
    """Runs the fixture with more arguments of its own; gives its URL."""
    process = subprocess.Popen(
        [BINARY, "--http", "0", *arguments], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url, "the fixture ended before it listened"
        yield url
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
