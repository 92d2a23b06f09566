"""Anthropic's Messages API on a port of this machine, whose answers a script gives."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Call = tuple[str, dict[str, Any]]
Step = str | list[Call]


class AnthropicApi:
    """Answers with texts and calls in turn; keeps the bodies of the requests and their betas."""

    def __init__(self, *steps: Step) -> None:
        self.requests: list[dict[str, Any]] = []
        self.betas: list[list[str]] = []
        self.url = ""
        self._steps = iter(steps)

    def answer(self, request: dict[str, Any], betas: str) -> dict[str, Any]:
        """The body of the next answer."""
        self.requests.append(request)
        self.betas.append(betas.split(",") if betas else [])
        step = next(self._steps)
        number = len(self.requests)
        content: list[dict[str, Any]] = [
            {"type": "tool_use", "id": f"toolu_{number}_{at}", "name": name, "input": arguments}
            for at, (name, arguments) in enumerate([] if isinstance(step, str) else step)
        ]
        if isinstance(step, str):
            content = [{"type": "text", "text": step}]
        return {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": request["model"],
            "content": content,
            "stop_reason": "end_turn" if isinstance(step, str) else "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }


@contextmanager
def serving(api: AnthropicApi) -> Iterator[AnthropicApi]:
    """Serves while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            request = json.loads(self.rfile.read(length))
            body = json.dumps(api.answer(request, self.headers.get("anthropic-beta", ""))).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_said: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    api.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
