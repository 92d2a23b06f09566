"""The forty messages to an agent of a framework in TypeScript.

`npm run build && npm run build:test` in client-sdk/typescript makes the scripts that have the talk.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from forty_messages import CALLS_EVERY, Request, arguments_of, commands, texts
from scripted_answers import ANSWER

SDK = Path(__file__).resolve().parents[2] / "client-sdk" / "typescript"


def play(script: str, target: str, tenant: str, folder: Path, **options: Any) -> list[Request]:
    """Has the talk; the model's requests.

    Args:
        script: "langchain-talk", "ai-talk", "ai-search-talk", "openai-agents-talk" or "loop-talk".
        target: The service's address.
        tenant: Its tenant.
        folder: What `commands` takes.
        options: Those of the Python integrations: `deferral` and `strategy`; also `api`, as the
            client names it, and `model`, the name of the provider's.
    """
    turns = [
        (name, arguments_of(name), text, at % CALLS_EVERY == 0)
        for at, (name, text) in enumerate(texts())
    ]
    asked: dict[str, Any] = {
        "target": target,
        "tenant": tenant,
        "isOff": options.get("deferral") == "off",
        "servers": {name: [sys.executable, *args] for name, args in commands(folder).items()},
        "turns": turns,
        "answer": ANSWER,
        **{key: options[key] for key in ("strategy", "api", "model") if key in options},
    }
    done = subprocess.run(
        ["node", SDK / "build" / "test" / f"{script}.js"],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    return [Request(**request) for request in json.loads(done.stdout)]
