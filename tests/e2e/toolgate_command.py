"""The command line as a person runs it: one process a command."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_PASSED_ON = ("TOOLGATE_MODEL_DIR", "TOOLGATE_MODEL_HUB")

PATIENT_PLANE = {"TOOLGATE_SERVER_MAX_WAIT": "0s"}
"""Variables with which the routing plane of a command answers calls that waited long, as they do
on a busy machine, instead of refusing them."""


ONE_THREAD = {"TOOLGATE_ENCODER_THREADS": "1"}
"""Tests run side by side, one a core. Two threads of one encoder wait for each other on a busy
machine, which takes a third more of its time."""


def command_environment() -> dict[str, str]:
    """Returns the environment of commands, without what the developer's shell says of Toolgate."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("TOOLGATE_") or name in _PASSED_ON
    }
    return {**inherited, **ONE_THREAD, "NO_COLOR": "1"}


def run(
    binary: Path,
    *arguments: str | Path,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
    folder: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs a command, which reads `stdin`, without what the developer's shell says of Toolgate.

    `folder` is where it runs; None: where the test does.
    """
    return subprocess.run(
        [binary, *arguments],
        cwd=folder,
        env={**command_environment(), **(env or {})},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def write_tools(path: Path, tools: list[dict[str, Any]]) -> Path:
    """A file with the answer of a tools/list."""
    path.write_text(json.dumps({"tools": tools}))
    return path
