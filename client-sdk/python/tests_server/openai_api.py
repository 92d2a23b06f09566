"""OpenAI's two APIs on a port of this machine, whose answers a script gives."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Step = str | tuple[str, dict[str, Any]]


class OpenAIApi:
    """Answers with texts and calls in turn; keeps the bodies of the requests."""

    def __init__(self, *steps: Step) -> None:
        self.requests: list[dict[str, Any]] = []
        self.url = ""
        self._steps = iter(steps)

    def answer(self, path: str, request: dict[str, Any]) -> dict[str, Any]:
        """The body of the next answer."""
        self.requests.append(request)
        step = next(self._steps)
        number = len(self.requests)
        return _chat(step, number) if path.endswith("/completions") else _response(step, number)


@contextmanager
def serving(api: OpenAIApi) -> Iterator[OpenAIApi]:
    """Serves while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            body = json.dumps(api.answer(self.path, json.loads(self.rfile.read(length)))).encode()
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
    api.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _chat(step: Step, number: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if isinstance(step, str):
        message["content"] = step
    else:
        function = {"name": step[0], "arguments": json.dumps(step[1])}
        message["tool_calls"] = [{"id": f"call_{number}", "type": "function", "function": function}]
    reason = "stop" if isinstance(step, str) else "tool_calls"
    return {
        "id": f"chat_{number}",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
    }


def _response(step: Step, number: int) -> dict[str, Any]:
    item: dict[str, Any]
    if isinstance(step, str):
        text = {"type": "output_text", "text": step, "annotations": []}
        item = {"type": "message", "role": "assistant", "content": [text]}
    else:
        item = {
            "type": "function_call",
            "call_id": f"call_{number}",
            "name": step[0],
            "arguments": json.dumps(step[1]),
        }
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1,
        "model": "gpt",
        "output": [{"id": f"item_{number}", "status": "completed", **item}],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "status": "completed",
    }
