"""The recorded conversations as a host of each API has them with its model, request by request."""

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, groupby
from typing import Any

import test_llm_proxy_envelope as envelope
import test_llm_proxy_gemini as gemini
import test_llm_proxy_responses as responses
from catalogs import SHIPPED
from llm_provider import Json

RECORDED = ("dev", "held-out")
"""Files of the conversations that may be read at any time."""

Call = tuple[str, str, Json]
"""ID, name and arguments."""


@dataclass(frozen=True)
class Asked:
    """Request of a host, and the provider's answer, byte for byte."""

    path: str
    body: bytes
    answer: bytes
    kind: str
    is_compressed: bool


def recorded() -> list[list[Json]]:
    """The conversations, each with its turns."""
    turns = [
        json.loads(line)
        for name in RECORDED
        for line in (SHIPPED.parent / f"conversations/{name}.jsonl").read_text().splitlines()
    ]
    return [list(one) for _, one in groupby(turns, lambda turn: turn["conversation"])]


def definitions() -> dict[str, Json]:
    """The MCP tools of all servers, by `server/tool`."""
    return {
        f"{file.stem}/{tool['name']}": tool
        for file in SHIPPED.glob("*.json")
        for tool in json.loads(file.read_text())["tools"]
    }


@dataclass(frozen=True)
class Form:
    """An API: how a host writes its side, and the provider its own."""

    path: str
    streamed_path: str
    request: Callable[[list[Json], list[Json], bool], Json]
    tool: Callable[[str, Json], Json]
    asked: Callable[[str], Json]
    answered: Callable[[str, list[Call]], Json]
    said: Callable[[Json], list[Json]]
    results: Callable[[list[tuple[Call, str]]], list[Json]]
    stream: Callable[[Json], list[bytes]]

    @property
    def place(self) -> str:
        """The part of its paths that names the provider to the proxy."""
        return self.path[: self.path.index("/", 1)]

    def play(self, turns: list[Json], catalog: dict[str, Json], number: int) -> Iterator[Asked]:
        """Plays a conversation. Its number says how both sides write."""
        named = dict.fromkeys(one["tool"] for turn in turns for one in turn["calls"])
        tools = [self.tool(_name(name), catalog[name]) for name in named]
        history: list[Json] = []
        ids = count(1)
        for turn in turns:
            history.append(self.asked(turn["query"]))
            made = [
                (f"call_{next(ids)}", _name(one["tool"]), one["arguments"]) for one in turn["calls"]
            ]
            if made:
                answer = self.answered("", made)
                yield self._asked(tools, history, answer, number)
                history += self.said(answer)
                told = [one["result"] for one in turn["calls"]]
                history += self.results(list(zip(made, told, strict=True)))
            answer = self.answered(turn["answer"], [])
            yield self._asked(tools, history, answer, number)
            history += self.said(answer)

    def _asked(self, tools: list[Json], history: list[Json], answer: Json, number: int) -> Asked:
        streamed = number % 2 == 1
        body = _written(self.request(tools, history, streamed), number)
        given = b"".join(self.stream(answer)) if streamed else _written(answer, number + 1)
        is_compressed = number % 3 == 2
        return Asked(
            path=self.streamed_path if streamed else self.path,
            body=body,
            answer=gzip.compress(given, 1, mtime=0) if is_compressed else given,
            kind="text/event-stream; charset=utf-8" if streamed else "application/json",
            is_compressed=is_compressed,
        )


def _written(value: Json, number: int) -> bytes:
    """JSON as one of several hosts writes it, with what no reader of JSON here would write."""
    odd = b'"x_odd" : {"n":1.50e3, "big":12345678901234567890123, "e":"\\u00e9\\/"}'
    match number % 4:
        case 0:
            text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        case 1:
            text = json.dumps(value)
        case 2:
            text = json.dumps(value, separators=(" ,\n", "\t: "), ensure_ascii=False)
        case _:
            return b"{" + odd + b" ," + json.dumps(value).encode()[1:] + b"\r\n"
    return text.encode()


def _name(tool: str) -> str:
    return "mcp__" + tool.replace("/", "__")


def _settings(streamed: bool) -> Json:
    return {"stream": True} if streamed else {}


def _anthropic_results(told: list[tuple[Call, str]]) -> list[Json]:
    blocks = [
        {"type": "tool_result", "tool_use_id": call[0], "content": text} for call, text in told
    ]
    return [{"role": "user", "content": blocks}]


def _anthropic_answer(text: str, calls: list[Call]) -> Json:
    blocks = [{"type": "text", "text": text}] if text else []
    uses = [envelope.use(name, given, identifier) for identifier, name, given in calls]
    return envelope.anthropic_answer(*blocks, *uses)


ANTHROPIC = Form(
    path="/anthropic/v1/messages?beta=true",
    streamed_path="/anthropic/v1/messages?beta=true",
    request=lambda tools, history, streamed: {
        "model": "claude-opus-5",
        "max_tokens": 32000,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        **_settings(streamed),
        "tools": tools,
        "messages": history,
    },
    tool=lambda name, tool: {
        "name": name,
        "description": tool.get("description", ""),
        "input_schema": tool["inputSchema"],
    },
    asked=lambda text: {"role": "user", "content": [{"type": "text", "text": text}]},
    answered=_anthropic_answer,
    said=lambda answer: [{"role": "assistant", "content": answer["content"]}],
    results=_anthropic_results,
    stream=envelope.anthropic_events,
)


def _chat_answer(text: str, calls: list[Call]) -> Json:
    message: Json = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [
            {"id": one, "type": "function", "function": {"name": name, "arguments": _text(given)}}
            for one, name, given in calls
        ]
    reason = "tool_calls" if calls else "stop"
    choice: Json = {"index": 0, "message": message, "finish_reason": reason}
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    return {"id": "c1", "object": "chat.completion", "choices": [choice], "usage": usage}


def _chat_stream(answer: Json) -> list[bytes]:
    [choice] = answer["choices"]
    message = choice["message"]
    numbered = [{**one, "index": index} for index, one in enumerate(message.get("tool_calls", []))]
    deltas: list[Json] = [{"role": "assistant", "content": message["content"]}]
    deltas += [{"tool_calls": [one]} for one in numbered]
    parts: list[Json] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    parts.append({"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]})
    lines = [f"data: {json.dumps({'id': 'c1', 'choices': [part]})}\n\n".encode() for part in parts]
    return [b": OPENROUTER PROCESSING\n\n", *lines, b"data: [DONE]\n\n"]


def _text(arguments: Json) -> str:
    """Arguments as a text, with a space that no writer of JSON here has."""
    return json.dumps(arguments, ensure_ascii=False) + " "


CHAT = Form(
    path="/openai/v1/chat/completions",
    streamed_path="/openai/v1/chat/completions",
    request=lambda tools, history, streamed: {
        "model": "gpt-6",
        "messages": [{"role": "system", "content": "Be brief."}, *history],
        "tools": tools,
        **_settings(streamed),
    },
    tool=lambda name, tool: {
        "type": "function",
        "function": {
            "name": name,
            "description": tool.get("description", ""),
            "parameters": tool["inputSchema"],
        },
    },
    asked=lambda text: {"role": "user", "content": text},
    answered=_chat_answer,
    said=lambda answer: [answer["choices"][0]["message"]],
    results=lambda told: [
        {"role": "tool", "tool_call_id": call[0], "content": text} for call, text in told
    ],
    stream=_chat_stream,
)


def _responses_answer(text: str, calls: list[Call]) -> Json:
    said = [responses.said(text)] if text else []
    made = [responses.call(name, given, identifier) for identifier, name, given in calls]
    return responses.response(*said, *made)


RESPONSES = Form(
    path="/openai/v1/responses",
    streamed_path="/openai/v1/responses",
    request=lambda tools, history, streamed: {
        "model": "gpt-6",
        "instructions": "Be brief.",
        "input": history,
        "tools": tools,
        "store": False,
        **_settings(streamed),
    },
    tool=lambda name, tool: {
        "type": "function",
        "name": name,
        "description": tool.get("description", ""),
        "parameters": tool["inputSchema"],
        "strict": False,
    },
    asked=responses.user,
    answered=_responses_answer,
    said=lambda answer: answer["output"],
    results=lambda told: [
        {"type": "function_call_output", "call_id": call[0], "output": text} for call, text in told
    ],
    stream=responses.pieces,
)


def _gemini_answer(text: str, calls: list[Call]) -> Json:
    said = [{"text": text}] if text else []
    made: list[Any] = [
        {"functionCall": {"id": identifier, "name": name, "args": given}}
        for identifier, name, given in calls
    ]
    if made:
        made[0]["thoughtSignature"] = "c2lnbmVk"
    return gemini.response(*said, *made)


GEMINI = Form(
    path=gemini.WHOLE,
    streamed_path=gemini.STREAM,
    request=lambda tools, history, _streamed: {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": history,
        "tools": [{"functionDeclarations": tools}],
        "generationConfig": {"temperature": 1.0},
    },
    tool=lambda name, tool: {
        "name": name,
        "description": tool.get("description", ""),
        "parametersJsonSchema": tool["inputSchema"],
    },
    asked=lambda text: gemini.user({"text": text}),
    answered=_gemini_answer,
    said=lambda answer: [answer["candidates"][0]["content"]],
    results=lambda told: [
        gemini.user(
            *(
                {
                    "functionResponse": {
                        "id": call[0],
                        "name": call[1],
                        "response": {"output": text},
                    }
                }
                for call, text in told
            )
        )
    ],
    stream=gemini.pieces,
)

FORMS = {
    "anthropic": ANTHROPIC,
    "openai_chat": CHAT,
    "openai_responses": RESPONSES,
    "gemini": GEMINI,
}
