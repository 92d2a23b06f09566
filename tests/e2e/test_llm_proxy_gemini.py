"""`toolgate llm` before Gemini: what the provider is sent, and what the host gets."""

import json
from typing import Any

import pytest
from conftest import StartProxy
from google import genai
from google.genai import types
from llm_provider import Answer, Json, Provider, Sent, answer, events, serving
from llm_tools import CALL, MORE, RAIN, SCHEMA, SEARCH, TOOLS, enveloped, read_events

MODEL = "/gemini/v1beta/models/gemini-3-pro"
WHOLE = f"{MODEL}:generateContent"
STREAM = f"{MODEL}:streamGenerateContent?alt=sse"
FIND_MAIL = {"query": "select:mcp_mail_send"}
OPEN_API = {"type": "OBJECT", "properties": {"city": {"type": "STRING", "nullable": True}}}


def declarations() -> list[Json]:
    """The functions of a host, one of its own first; schemas of both kinds."""
    own = {"name": "read_file", "description": "Reads a file.", "parameters": OPEN_API}
    found = [own]
    for at, (name, said) in enumerate(TOOLS.items()):
        kind = {"parameters": OPEN_API} if at % 2 else {"parametersJsonSchema": SCHEMA}
        # As Gemini CLI names tools of MCP servers.
        found.append({"name": name.replace("__", "_"), "description": said, **kind})
    return found


def request(*contents: Json, **more: Any) -> Json:
    """A request."""
    return {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [{"functionDeclarations": declarations()}, {"googleSearch": {}}],
        "contents": list(contents) or [user({"text": RAIN})],
        "generationConfig": {"temperature": 1.0},
        **more,
    }


def user(*parts: Json) -> Json:
    """A message of the user's."""
    return {"role": "user", "parts": list(parts)}


def call(name: str, args: Json, **more: Any) -> Json:
    """A call of a function."""
    return {"functionCall": {"name": name, "args": args}, **more}


def response(*parts: Json, **more: Any) -> Json:
    """A whole answer."""
    content = {"role": "model", "parts": list(parts)}
    usage = {
        "promptTokenCount": 10,
        "candidatesTokenCount": 5,
        "totalTokenCount": 15,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 10}],
    }
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "responseId": "g1", **more}


def pieces(whole: Json) -> list[bytes]:
    """An answer as the events that Gemini sends."""
    [candidate] = whole["candidates"]
    shown: list[Json] = []
    for part in candidate["content"]["parts"]:
        texts = [part["text"][at : at + 5] for at in range(0, len(part.get("text", "")), 5)]
        for one in [{**part, "text": text} for text in texts] or [part]:
            content = {"role": "model", "parts": [one]}
            shown.append({**whole, "candidates": [{"content": content, "index": 0}]})
    shown[-1]["candidates"][0]["finishReason"] = candidate["finishReason"]
    return [f"data: {json.dumps(one)}\r\n\r\n".encode() for one in shown]


def step(whole: Json, streamed: bool) -> Answer:
    """An answer of the provider."""
    return events(*pieces(whole)) if streamed else answer(whole)


def read(body: bytes, streamed: bool) -> Json:
    """The answer that a host got; the texts of a stream are joined."""
    if not streamed:
        whole: Json = json.loads(body)
        return whole
    shown = read_events(body)
    parts: list[Json] = []
    ends = [one["candidates"][0].get("finishReason") for one in shown]
    assert [end for end in ends if end] == ["STOP"]
    assert ends[-1] == "STOP"
    for one in shown:
        for part in one["candidates"][0]["content"]["parts"]:
            if parts and "text" in part and "text" in parts[-1]:
                parts[-1] = {"text": parts[-1]["text"] + part["text"]}
            else:
                parts.append(part)
    last = shown[-1]
    last["candidates"][0]["content"]["parts"] = parts
    return last


def parts_of(whole: Json) -> list[Json]:
    """The parts of an answer."""
    parts: list[Json] = whole["candidates"][0]["content"]["parts"]
    return parts


def names(sent: Sent) -> list[str]:
    """Names of the functions that were sent."""
    return [one["name"] for one in sent.json["tools"][0]["functionDeclarations"]]


@pytest.mark.parametrize("streamed", [True, False])
def test_a_call_goes_there_and_back_in_its_envelope(start: StartProxy, streamed: bool) -> None:
    inner = {"city": "Bern", "days": 1.5}
    enveloped_call = call(CALL, enveloped("mcp_weather_forecast", inner), thoughtSignature="c2ln")
    called = response({"text": "I look."}, enveloped_call, call("read_file", {}))
    done = response({"text": "No."})
    path = STREAM if streamed else WHOLE
    with serving(Provider(step(called, streamed), answer(done))) as provider:
        proxy = start(provider)
        got = proxy.ask(path, request(), {"x-goog-api-key": "k"})
        assert got.note.startswith("envelope; deferred=6"), got.note
        plain = call("mcp_weather_forecast", inner, thoughtSignature="c2ln")
        shown = parts_of(read(got.body, streamed))
        assert shown == [{"text": "I look."}, plain, call("read_file", {})]
        [first] = provider.sent
        assert first.path == path.removeprefix("/gemini")
        assert first.headers["x-goog-api-key"] == "k"
        assert names(first) == ["read_file", SEARCH, CALL]
        assert first.json["tools"][1] == {"googleSearch": {}}
        described = first.json["contents"][0]["parts"][-1]["text"]
        assert described.startswith(MORE)
        assert '"mcp_weather_forecast"' in described
        assert "OBJECT" not in described

        results = [
            {"functionResponse": {"name": name, "response": {"output": "dry"}}}
            for name in ("mcp_weather_forecast", "read_file")
        ]
        history = [user({"text": RAIN}), {"role": "model", "parts": shown}, user(*results)]
        again = proxy.ask(WHOLE, request(*history), {"x-goog-api-key": "k"})
        assert again.json == done
        second = provider.sent[1].json
        usage = proxy.totals()["usage"]
    # The model sees its own call, and the cached prefix holds.
    assert second["contents"][1]["parts"] == parts_of(called)
    answers = [part["functionResponse"]["name"] for part in second["contents"][2]["parts"][:2]]
    assert answers == [CALL, "read_file"]
    assert second["contents"][0] == first.json["contents"][0]
    assert second["tools"] == first.json["tools"]
    assert usage == {"answers": 2, "input_tokens": 20, "cached_tokens": 0, "output_tokens": 10}


def test_what_is_not_edited_keeps_its_bytes(start: StartProxy) -> None:
    deferred = json.dumps(declarations()[1:])[1:-1]
    own = '{"name" :"read_file","parameters": {"n":1.50e3} }'
    body = (
        '{ "x":[1.0, 12345678901234567890123],"tools":[{"functionDeclarations" : ['
        + own
        + ","
        + deferred
        + ']}, {"googleSearch":{ }}],"contents":[{ "role":"user","parts":[{"text":"h\\u00e9"}] },'
        '{"role":"model","parts":[{"text":"o\\u00e9", "thoughtSignature":"\\u0041"}]},'
        '{"role":"user","parts":[{"text":"Will it rain in Bern?"}]}], "y" : {"a":1e2}}'
    )
    with serving(Provider(answer(response({"text": "No."})))) as provider:
        got = start(provider).ask(WHOLE, body.encode())
        [sent] = provider.sent
    assert got.note.startswith("envelope"), got.note
    text = sent.body.decode()
    head = '{ "x":[1.0, 12345678901234567890123],"tools":[{"functionDeclarations" : [' + own + ","
    assert text.startswith(head)
    kept = body[body.index('{"googleSearch"') : body.index('{"role":"user","parts":[{"text":"Will')]
    assert kept in text
    assert text.endswith(', "y" : {"a":1e2}}')


@pytest.mark.parametrize("streamed", [True, False])
def test_a_search_is_answered_and_gone_on_from(start: StartProxy, streamed: bool) -> None:
    searching = response({"text": "Let me see. "}, call(SEARCH, FIND_MAIL, thoughtSignature="czE="))
    enveloped_call = call(CALL, enveloped("mcp_mail_send", {"city": "x"}), thoughtSignature="czI=")
    called = response(enveloped_call, responseId="g2")
    with serving(Provider(step(searching, streamed), step(called, streamed))) as provider:
        proxy = start(provider)
        got = proxy.ask(STREAM if streamed else WHOLE, request())
        first, second = (sent.json["contents"] for sent in provider.sent)
        totals = proxy.totals()
    whole = read(got.body, streamed)
    plain = call("mcp_mail_send", {"city": "x"}, thoughtSignature="czI=")
    assert parts_of(whole) == [{"text": "Let me see. "}, plain]
    assert whole["responseId"] == "g1"
    assert whole["usageMetadata"] == {
        "promptTokenCount": 20,
        "candidatesTokenCount": 10,
        "totalTokenCount": 30,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 20}],
    }
    assert second[: len(first)] == first
    said, found = second[len(first) :]
    assert said == {"role": "model", "parts": parts_of(searching)}
    answered = found["parts"][0]["functionResponse"]
    assert answered["name"] == SEARCH
    assert "mcp_mail_send" in answered["response"]["output"]
    assert found["parts"][1]["text"].startswith(MORE)
    assert totals["searches"] == 1
    assert totals["usage"]["output_tokens"] == 10


@pytest.mark.parametrize("streamed", [True, False])
def test_a_model_that_only_searches_is_stopped(start: StartProxy, streamed: bool) -> None:
    searching = response(call(SEARCH, {"query": "git"}))
    with serving(Provider(*[step(searching, streamed)] * 9)) as provider:
        got = start(provider).ask(STREAM if streamed else WHOLE, request())
        asked = [sent.json for sent in provider.sent]
    assert len(asked) == 5
    assert "enough_searches" in json.dumps(asked[4]["contents"])
    whole = read(got.body, streamed)
    assert parts_of(whole) == []
    assert whole["usageMetadata"]["candidatesTokenCount"] == 25


def test_a_refused_request_is_sent_once_more_as_it_came(start: StartProxy) -> None:
    refusal = answer({"error": {"code": 400, "status": "INVALID_ARGUMENT"}}, 400)
    done = response({"text": "No."})
    with serving(Provider(refusal, answer(done), answer(done))) as provider:
        proxy = start(provider)
        path = f"/gemini/v1beta/models/{proxy.unique}:generateContent"
        asked = json.dumps(request(), indent=1).encode()
        got = proxy.ask(path, asked)
        assert (got.status, got.json, got.note) == (200, done, "pass; reason=refused")
        assert provider.sent[1].body == asked
        assert proxy.ask(path, asked).note == "pass; reason=refused-before"


def test_an_error_behind_a_search_is_told_amid_the_stream(start: StartProxy) -> None:
    searching = response(call(SEARCH, FIND_MAIL))
    error = {"error": {"code": 503, "message": "later", "status": "UNAVAILABLE"}}
    late = answer(error, 503, retry_after="60")
    with serving(Provider(step(searching, True), late)) as provider:
        got = start(provider).ask(STREAM, request())
    assert read_events(got.body)[-1] == error


@pytest.mark.parametrize(
    ("path", "more", "reason"),
    [
        (f"{MODEL}:streamGenerateContent", {}, "no-chat"),
        (f"{MODEL}:countTokens", {}, "no-chat"),
        (WHOLE, {"cachedContent": "cachedContents/x"}, "unknown-history"),
        (WHOLE, {"generationConfig": {"candidateCount": 2}}, "several-choices"),
        (WHOLE, {"tools": [{"googleSearch": {}}]}, "nothing-to-defer"),
        (WHOLE, {"contents": [{"role": "model", "parts": [{"text": "x"}]}]}, "no-request"),
        (WHOLE, {"tools": {}}, "shape"),
    ],
)
def test_in_doubt_the_original_goes_up(
    start: StartProxy, path: str, more: Json, reason: str
) -> None:
    asked = json.dumps(request(**more), indent=1).encode()
    with serving(Provider(answer(response({"text": "No."})))) as provider:
        got = start(provider).ask(path, asked)
        assert got.note == f"pass; reason={reason}"
        assert provider.sent[0].body == asked


def test_the_sdk_of_google_reads_a_turn_with_a_search(
    start: StartProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    searching = response({"text": "Let me see. "}, call(SEARCH, FIND_MAIL))
    called = response(
        call(CALL, enveloped("mcp_mail_send", {"city": "x"}), thoughtSignature="czI=")
    )
    done = response({"text": "Sent."})
    steps = [step(searching, True), step(called, True), step(done, True)]
    with serving(Provider(*steps)) as provider:
        proxy = start(provider)
        url = f"http://127.0.0.1:{proxy.port}/gemini"
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", url)
        client = genai.Client(api_key=proxy.unique)
        tools = [types.Tool(function_declarations=cast_all(declarations()))]
        chat = client.chats.create(
            model="gemini-3-pro", config=types.GenerateContentConfig(tools=list(tools))
        )
        chunks = list(chat.send_message_stream(RAIN))
        [made] = [made for chunk in chunks for made in chunk.function_calls or []]
        assert (made.name, made.args) == ("mcp_mail_send", {"city": "x"})
        assert chunks[-1].usage_metadata is not None
        assert chunks[-1].usage_metadata.total_token_count == 30
        sent = types.Part.from_function_response(name="mcp_mail_send", response={"output": "ok"})
        text = "".join(chunk.text or "" for chunk in chat.send_message_stream(sent))
        client.close()
        contents = provider.sent[2].json["contents"]
    assert text == "Sent."
    calls = [part for content in contents for part in content["parts"] if "functionCall" in part]
    assert [part["functionCall"]["name"] for part in calls] == [CALL]
    assert calls[0]["thoughtSignature"] == "czI="


def cast_all(found: list[Json]) -> list[types.FunctionDeclaration]:
    """Declarations as the SDK has them."""
    return [types.FunctionDeclaration.model_validate(one) for one in found]
