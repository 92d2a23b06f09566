"""A small language model that speaks chat completions, and misbehaves for some tools."""

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-never-to-be-seen"


def requests_for(tool: dict[str, Any]) -> str:
    """As many requests of each voice as are wanted, which differ by tool, voice and number."""
    begin = len(tool["already"])
    said = {
        voice: [f"{voice} {begin + n} wants {tool['name'][::-1]}" for n in range(count)]
        for voice, count in tool["wanted"].items()
    }
    return json.dumps(said)


class ChatModel:
    """Answers by the name of the tool that it is asked about; with requests where it is to."""

    def __init__(self, answers: dict[str, str]) -> None:
        self.answers = answers
        self.asked: Counter[str] = Counter()
        self.requests: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        self.url = ""

    def reply(self, tool: dict[str, Any], times: int) -> tuple[int, dict[str, str], str]:
        """Status, headers and body of the answer to the `times`th call about a tool."""
        name = tool["name"]
        answer = self.answers.get(name, "")
        if answer == "BUSY" and times == 1:
            return 429, {"Retry-After": "1"}, "{}"
        if answer == "SHAKY" and times == 1:
            return 500, {}, "oops"
        if answer == "MALFORMED":
            return 200, {}, '{"choices": [{"mess'
        if answer == "DENIED":
            return 401, {}, json.dumps({"error": {"message": f"incorrect key {KEY}"}})
        if answer == "HUNG":
            time.sleep(8)
        if "wanted" in tool and answer in ("", "BUSY", "SHAKY"):
            answer = requests_for(tool)
        if answer in ("BUSY", "SHAKY"):
            answer = f"Come back to {name.replace('_', ' ')} later"
        content = {"choices": [{"index": 0, "message": {"role": "assistant", "content": answer}}]}
        return 200, {}, json.dumps(content)


@contextmanager
def chat_model(answers: dict[str, str]) -> Iterator[ChatModel]:
    model = ChatModel(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            model.requests.append({"path": self.path, **body})
            model.keys.add(self.headers.get("Authorization", ""))
            tool = json.loads(body["messages"][-1]["content"])
            model.asked[tool["name"]] += 1
            status, headers, text = model.reply(tool, model.asked[tool["name"]])
            try:
                self.send_response(status)
                for header, value in headers.items():
                    self.send_header(header, value)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())
            except OSError:
                pass  # The caller did not wait.

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    model.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        thread.join()
