"""The forty messages to an agent of LangChain.js.

    npm run build && npm run build:test  # In client-sdk/typescript.
    TOOLGATE_BIN=target/debug/toolgate PYTHONPATH=client-sdk/python/src:tests/e2e \
      python tests/e2e/langchain_js_talk.py

prints its rows of the table of docs/frameworks.md; counting tokens needs the package `tiktoken`.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from forty_messages import (
    ANSWER,
    CALLS_EVERY,
    STRATEGIES,
    Request,
    commands,
    cost,
    texts,
)
from toolgate_process import ToolgateProcess

SDK = Path(__file__).resolve().parents[2] / "client-sdk" / "typescript"


def play(target: str, tenant: str, folder: Path, options: dict[str, Any]) -> list[Request]:
    """Has the talk; the model's requests."""
    turns = [
        (name, {"text": "now"} if "house" in name else {"timezone": "Asia/Tokyo"}, text)
        for name, text in texts()
    ]
    asked = {
        "target": target,
        "tenant": tenant,
        "isOff": options.get("deferral") == "off",
        "servers": {name: [sys.executable, *args] for name, args in commands(folder).items()},
        "turns": [[*turn, at % CALLS_EVERY == 0] for at, turn in enumerate(turns)],
        "answer": ANSWER,
        **({"strategy": options["strategy"]} if "strategy" in options else {}),
    }
    script = SDK / "build" / "test" / "langchain-talk.js"
    done = subprocess.run(
        ["node", script], input=json.dumps(asked), capture_output=True, text=True, check=True
    )
    return [Request(**request) for request in json.loads(done.stdout)]


def main() -> None:
    """Prints the rows."""
    import tiktoken  # type: ignore[import-not-found, unused-ignore]

    encoding = tiktoken.get_encoding("cl100k_base")
    folder = Path(tempfile.mkdtemp())
    server = ToolgateProcess(Path(os.environ["TOOLGATE_BIN"]), folder / "server").start()
    try:
        for name, options in STRATEGIES.items():
            requests = play(server.target, name.replace(" ", "-"), folder, options)
            tokens = cost(requests, lambda text: len(encoding.encode(text, disallowed_special=())))
            print(tokens.row(name), len(requests), "requests", file=sys.stdout, flush=True)
    finally:
        server.stop()


if __name__ == "__main__":
    main()
