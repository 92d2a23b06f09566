"""`toolgate llm`: what holds for each of the four APIs, for rewritten requests and others."""

import http.client
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import test_llm_proxy_envelope as envelope
import test_llm_proxy_gemini as gemini
import test_llm_proxy_responses as responses
from conftest import StartProxy
from credentials import Keys
from llm_provider import Answer, Got, Json, Provider, Sent, answer, events, serving
from llm_tools import CALL, PATIENT, enveloped, read_events
from waiting import PATIENCE

KEY = "sk-secret-0123456789"
NEW = b'"x_new" : {"n":1.50e3, "big":12345678901234567890123, "e":"\\u00e9"}'
"""A field that nobody knows, in a form that no writer of JSON here has."""

Called = tuple[str, str, Json]
"""ID, name and arguments of a call."""


@dataclass(frozen=True)
class Face:
    """An API: where it is asked, its requests and answers, and how a host reads them."""

    name: str
    path: str
    # Header of the provider's key, and what stands before the key.
    key: tuple[str, str]
    request: Callable[[bool], Json]
    # Names of a host's own tool, and of three that are deferred.
    tools: Sequence[str]
    # An answer with these calls behind a text, as JSON and as a stream.
    whole: Callable[[list[Called]], Json]
    pieces: Callable[[list[Called]], list[bytes]]
    read: Callable[[bytes, bool], list[Called]]
    # A text that is said in parts nobody knows, as JSON and as a stream.
    odd: bytes
    odd_stream: bytes

    def at(self, streamed: bool) -> str:
        """The path of a request."""
        return gemini.STREAM if streamed and self.name == "gemini" else self.path

    def headers(self) -> dict[str, str]:
        """The provider's key as a host sends it."""
        name, before = self.key
        return {name: before + KEY}

    def body(self, streamed: bool = False) -> bytes:
        """A request as a host that writes JSON in lines sends it."""
        return json.dumps(self.request(streamed), indent=1).encode()

    def step(self, calls: list[Called], streamed: bool) -> Answer:
        """An answer of the provider; a stream comes in parts that end anywhere."""
        if not streamed:
            return answer(self.whole(calls))
        text = b"".join(self.pieces(calls))
        return events(*(text[at : at + 61] for at in range(0, len(text), 61)))

    def problem(self, got: Got) -> str:
        """The message of an error of the proxy's own; fails if it has not the provider's shape."""
        error: Json = got.json["error"]
        if self.name == "anthropic":
            assert got.json["type"] == "error"
            assert error.keys() == {"type", "message"}
        elif self.name == "gemini":
            assert error.keys() == {"code", "message", "status"}
            assert error["code"] == got.status
        else:
            assert error.keys() == {"message", "type", "param", "code"}
        assert got.headers["content-type"] == "application/json"
        message: str = error["message"]
        assert message.startswith("toolgate: ")
        return message


def anthropic_whole(calls: list[Called]) -> Json:
    """An answer of Anthropic's with calls."""
    uses = [envelope.use(name, given, identifier) for identifier, name, given in calls]
    return envelope.anthropic_answer({"type": "text", "text": "I look."}, *uses)


def read_anthropic(body: bytes, streamed: bool) -> list[Called]:
    """The calls of an answer of Anthropic's."""
    whole = envelope.read_anthropic(body) if streamed else json.loads(body)
    assert whole["content"][0] == {"type": "text", "text": "I look."}
    assert whole["stop_reason"] == "tool_use"
    return [(use["id"], use["name"], use["input"]) for use in whole["content"][1:]]


def chat_calls(calls: list[Called]) -> list[Json]:
    """Calls of Chat Completions."""
    return [
        {"id": one, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for one, name, given in calls
    ]


def chat_whole(calls: list[Called]) -> Json:
    """An answer of Chat Completions with calls."""
    message: Json = {"role": "assistant", "content": "I look.", "tool_calls": chat_calls(calls)}
    choice: Json = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    return {"id": "c1", "object": "chat.completion", "choices": [choice], "usage": usage}


def chat_pieces(calls: list[Called]) -> list[bytes]:
    """The same as a stream."""
    deltas: list[Json] = [{"role": "assistant", "content": "I look."}]
    for index, made in enumerate(chat_calls(calls)):
        function = made["function"]
        begun = {**made, "index": index, "function": {**function, "arguments": ""}}
        deltas.append({"tool_calls": [begun]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            for piece in responses.cut(function["arguments"])
        ]
    choices: list[Json] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
    chunks: list[Json] = [{"id": "c1", "choices": [choice]} for choice in choices]
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    chunks.append({"id": "c1", "choices": [], "usage": usage})
    return [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks] + [b"data: [DONE]\n\n"]


def read_chat(body: bytes, streamed: bool) -> list[Called]:
    """The calls of an answer of Chat Completions."""
    made: list[Json] = []
    if streamed:
        for chunk in read_events(body):
            for choice in chunk["choices"]:
                for piece in choice["delta"].get("tool_calls", []):
                    if piece["index"] == len(made):
                        made.append({"id": piece["id"], "function": {**piece["function"]}})
                    else:
                        written = piece["function"]["arguments"]
                        made[piece["index"]]["function"]["arguments"] += written
    else:
        made = json.loads(body)["choices"][0]["message"]["tool_calls"]
    return [
        (one["id"], one["function"]["name"], json.loads(one["function"]["arguments"]))
        for one in made
    ]


def responses_whole(calls: list[Called]) -> Json:
    """An answer of the Responses with calls."""
    items = [responses.call(name, given, identifier) for identifier, name, given in calls]
    return responses.response(responses.said("I look."), *items)


def read_responses(body: bytes, streamed: bool) -> list[Called]:
    """The calls of an answer of the Responses."""
    text, *items = responses.got_response(body, streamed)["output"]
    assert text == responses.said("I look.")
    return [(one["call_id"], one["name"], json.loads(one["arguments"])) for one in items]


def gemini_whole(calls: list[Called]) -> Json:
    """An answer of Gemini's with calls."""
    made = [
        {"functionCall": {"id": identifier, "name": name, "args": given}}
        for identifier, name, given in calls
    ]
    return gemini.response({"text": "I look."}, *made)


def read_gemini(body: bytes, streamed: bool) -> list[Called]:
    """The calls of an answer of Gemini's."""
    text, *parts = gemini.parts_of(gemini.read(body, streamed))
    assert text == {"text": "I look."}
    made = [part["functionCall"] for part in parts]
    return [(one["id"], one["name"], one["args"]) for one in made]


MCP = ("mcp__git__log", "mcp__mail__send", "mcp__weather__forecast")
FACES = [
    Face(
        name="anthropic",
        path="/anthropic/v1/messages",
        key=("x-api-key", ""),
        request=lambda streamed: envelope.anthropic_request(stream=streamed),
        tools=("Bash", *MCP),
        whole=anthropic_whole,
        pieces=lambda calls: envelope.anthropic_events(anthropic_whole(calls)),
        read=read_anthropic,
        odd=b'{ "id":"m1","type":"message","content":[{"type":"x_part", "n":1.0},{"type":"text",'
        b'"text":"\\u00e9"}],"usage":{ "input_tokens":10,"output_tokens":5}, ' + NEW + b"}\n",
        odd_stream=b": odd\r\n\r\nevent: x_new\ndata: {" + NEW + b"}\n\nretry: 9\n\n"
        b'event:message_stop\ndata:{"type" : "message_stop"}\n\n',
    ),
    Face(
        name="openai_chat",
        path="/openai/v1/chat/completions",
        key=("authorization", "Bearer "),
        request=lambda streamed: envelope.chat_request(stream=streamed),
        tools=("Bash", *MCP),
        whole=chat_whole,
        pieces=chat_pieces,
        read=read_chat,
        odd=b'{ "id":"c1","choices":[{"index":0, "message":{"role":"assistant","content":"\\u00e9",'
        b'"x_part":[1.0]},"finish_reason":"stop"}], ' + NEW + b"}\n",
        odd_stream=b": odd\r\n\r\nevent: x_new\ndata: {" + NEW + b"}\n\nretry: 9\n\n"
        b'data:{"choices" : [{"index":0,"delta":{"x_part":[1.0]}}]}\n\ndata: [DONE]\n\n',
    ),
    Face(
        name="openai_responses",
        path="/openai/v1/responses",
        key=("authorization", "Bearer "),
        request=lambda streamed: responses.request(stream=streamed),
        tools=("exec", *MCP),
        whole=responses_whole,
        pieces=lambda calls: responses.pieces(responses_whole(calls)),
        read=read_responses,
        odd=b'{ "id":"r1","status":"completed","output":[{"type":"x_item", "n":1.0},'
        b'{"type":"web_search_call"}], ' + NEW + b"}\n",
        odd_stream=b': odd\r\n\r\nevent: response.x_new\ndata: {"type":"response.x_new", '
        + NEW
        + b"}\n\nretry: 9\n\n"
        b'data:{"type" : "response.completed","response":{"id":"r1", "output":[]}}\n\n',
    ),
    Face(
        name="gemini",
        path=gemini.WHOLE,
        key=("x-goog-api-key", ""),
        request=lambda _streamed: gemini.request(),
        tools=("read_file", *(name.replace("__", "_") for name in MCP)),
        whole=gemini_whole,
        pieces=lambda calls: gemini.pieces(gemini_whole(calls)),
        read=read_gemini,
        odd=b'{ "candidates":[{"content":{"parts":[{"x_part":1.0},{"text":"\\u00e9"}]},'
        b'"finishReason":"STOP"}], ' + NEW + b"}\n",
        odd_stream=b": odd\r\n\r\ndata: {" + NEW + b"}\r\n\r\nretry: 9\n\n"
        b'data:{"candidates" : [{"content":{"parts":[{"x_part":1.0}]},"finishReason":"STOP"}]}\n\n',
    ),
]
each_face = pytest.mark.parametrize("face", FACES, ids=lambda face: face.name)
WAYS = (True, False)
"""Streamed, and whole."""
BODY_MAX = 10_000
"""More bytes than requests have here."""


@each_face
def test_several_calls_of_an_answer_reach_the_host(start: StartProxy, face: Face) -> None:
    own, log, send, forecast = face.tools
    plain: list[Called] = [
        ("k1", log, {"city": "Bern", "n": 1.5}),
        ("k2", own, {"command": "ls"}),
        ("k3", send, {}),
        ("k4", forecast, {"city": '"}\\é'}),
    ]
    # The last is called by its own name, as a model may that has read it.
    said = [
        (one, CALL, enveloped(name, given)) if one in ("k1", "k3") else (one, name, given)
        for one, name, given in plain
    ]
    with serving(Provider(*(face.step(said, streamed) for streamed in WAYS))) as provider:
        proxy = start(provider)
        for streamed in WAYS:
            got = proxy.ask(face.at(streamed), face.body(streamed), face.headers())
            assert got.note.startswith("envelope; deferred=6"), got.note
            assert face.read(got.body, streamed) == plain
        usage = proxy.totals()["usage"]
    counted = (usage["answers"], usage["input_tokens"], usage["output_tokens"])
    assert counted == (2, 20, 10)


@each_face
def test_what_nobody_knows_passes_byte_for_byte(start: StartProxy, face: Face) -> None:
    stream = events(face.odd_stream[:37], face.odd_stream[37:])
    with serving(Provider(stream, Answer([face.odd]))) as provider:
        proxy = start(provider)
        for streamed, given in zip(WAYS, (face.odd_stream, face.odd), strict=True):
            asked = face.body(streamed)[:-1] + b" , " + NEW + b"}"
            got = proxy.ask(face.at(streamed), asked, face.headers())
            assert got.note.startswith("envelope"), got.note
            assert got.body == given
            assert provider.sent[-1].body.endswith(b" , " + NEW + b"}")


@each_face
def test_errors_of_the_provider_keep_their_bytes(start: StartProxy, face: Face) -> None:
    error = b'{ "error":{"code":7.0, "message":"\\u00e9"}, ' + NEW + b"}\n"
    about = {"retry_after": "7", "x_request_id": "r1"}
    others = [401, 429, 500]
    steps = [Answer([error], status, headers=about) for status in others]
    # A request that may be refused for its tools is asked again with the original.
    steps += [Answer([b"{}"], 400), Answer([error], 400, headers=about)]
    with serving(Provider(*steps * 2)) as provider:
        proxy = start(provider)
        for streamed in WAYS:
            asked = face.body(streamed)
            for status in [*others, 400]:
                got = proxy.ask(face.at(streamed), asked)
                assert (got.status, got.body) == (status, error)
                told = (got.headers["retry-after"], got.headers["x-request-id"])
                assert told == ("7", "r1")
            assert provider.sent[-1].body == asked
        assert len(provider.sent) == 2 * len(steps)


@each_face
def test_without_a_plane_the_original_goes_up(start: StartProxy, face: Face) -> None:
    steps = [face.step([("k1", face.tools[0], {})], streamed) for streamed in WAYS]
    with serving(Provider(*steps)) as provider:
        proxy = start(provider, PATIENT, "--server", "http://127.0.0.1:1")
        for streamed, given in zip(WAYS, steps, strict=True):
            asked = face.body(streamed)
            got = proxy.ask(face.at(streamed), asked)
            assert (got.status, got.note) == (200, "pass; reason=plane-failed")
            assert got.body == b"".join(given.pieces)
            assert provider.sent[-1].body == asked


@each_face
def test_a_body_beyond_the_limit_goes_up_as_it_came(start: StartProxy, face: Face) -> None:
    done = face.step([("k1", face.tools[0], {})], streamed=False)
    with serving(Provider(done)) as provider:
        asked = face.body().ljust(BODY_MAX + 1)
        got = start(provider, PATIENT + f'max_body = "{BODY_MAX}B"\n').ask(face.path, asked)
        assert provider.sent[0].body == asked
    assert (got.note, got.body) == ("pass; reason=large", b"".join(done.pieces))


@each_face
def test_keys_are_in_no_log_and_no_error(start_afresh: StartProxy, face: Face) -> None:
    refusal = Answer([b"{}"], 400)
    broken = events(*face.pieces([("k1", CALL, {})])[:2], cut=True)
    path = f"{face.path}?key={KEY}-query"
    with serving(Provider(refusal, refusal, broken)) as provider:
        proxy = start_afresh(provider, PATIENT + 'gate = "enforce"\n', "--set", "log.level=trace")
        assert proxy.ask(path, face.body(), face.headers()).status == 400
        with pytest.raises(http.client.IncompleteRead):
            proxy.ask(path, face.body(), face.headers())
        assert len(provider.sent) == 3
    # Nobody answers there any more.
    got = proxy.ask(path, face.body(), face.headers())
    assert got.status == 502
    assert KEY not in face.problem(got)
    assert f"{provider.url} " in proxy.log()
    assert KEY not in proxy.log()


@each_face
def test_late_answers_are_refused_in_the_providers_shape(start: StartProxy, face: Face) -> None:
    hold = threading.Event()

    def late(_sent: Sent) -> Answer:
        hold.wait(PATIENCE)
        return answer({})

    with serving(Provider(late)) as provider:
        proxy = start(provider, PATIENT + 'first_byte_timeout = "200ms"\n')
        try:
            got = proxy.ask(face.path, face.body())
        finally:
            hold.set()
    assert got.status == 504
    assert "llm.first_byte_timeout" in face.problem(got)


@each_face
def test_a_silent_stream_is_cut(start: StartProxy, face: Face) -> None:
    hold = threading.Event()
    pieces = face.pieces([("k1", face.tools[0], {})])
    given = Answer(pieces, kind="text/event-stream", hold=hold)
    with serving(Provider(given)) as provider:
        proxy = start(provider, PATIENT + 'idle_timeout = "2s"\n')
        try:
            with pytest.raises(http.client.IncompleteRead):
                proxy.ask(face.at(streamed=True), face.body(streamed=True))
        finally:
            hold.set()


@dataclass(frozen=True)
class KeysOfFaces:
    """A store of keys, and the key of each API's host, whose tenant bears the API's name."""

    store: Path
    of: dict[str, str]


@pytest.fixture(scope="module")
def keys_of_faces(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> KeysOfFaces:
    folder = tmp_path_factory.mktemp("keys")
    keys = Keys(binary, folder)
    made = {face.name: keys.create("agent", tenant=face.name)["key"] for face in FACES}
    return KeysOfFaces(folder / "data", made)


@each_face
def test_a_host_needs_a_key_of_its_tenants(
    start: StartProxy, keys_of_faces: KeysOfFaces, face: Face
) -> None:
    key = keys_of_faces.of[face.name]
    settings = f'{PATIENT}key_store = "{keys_of_faces.store}"\n'
    done = face.step([("k1", face.tools[0], {})], streamed=False)
    with serving(Provider(done)) as provider:
        proxy = start(provider, settings)
        missing = proxy.ask(face.path, face.body(), face.headers())
        assert provider.sent == []
        named = {**face.headers(), "x-toolgate-key": key}
        got = proxy.ask(face.path, face.body(), named)
        [sent] = provider.sent
        accounts = proxy.ask("/toolgate/usage", method="GET", headers={"x-toolgate-key": key}).json[
            "accounts"
        ]
    assert missing.status == 401
    assert "x-toolgate-key" in face.problem(missing)
    assert got.note.startswith("envelope"), got.note
    name, before = face.key
    assert sent.headers[name] == before + KEY
    assert "x-toolgate-key" not in sent.headers
    assert [(one["tenant"], one["rewritten"]) for one in accounts] == [(face.name, 1)]
