"""`toolgate llm` with tools whose texts attack the model: none that is quarantined is sent."""

import json
from collections.abc import Callable

import pytest
from conftest import StartProxy
from llm_provider import Answer, Json, Provider, Sent, answer, serving
from llm_tools import MORE, PATIENT
from test_llm_proxy_envelope import anthropic_answer, anthropic_request, anthropic_tools
from test_quarantine import HARMLESS, POISON

PATH = "/anthropic/v1/messages"
POISONED = "mcp__sea__tides"
NOW = PATIENT.removeprefix('strategy = "envelope"\n')


def request(said: str = POISON) -> Json:
    """A request with a tool that says this, which fits best what the user asks for."""
    tide = {"name": POISONED, "description": said, "input_schema": {"type": "object"}}
    asked = {"role": "user", "content": HARMLESS}
    return {**anthropic_request(asked), "tools": [*anthropic_tools(), tide]}


def done() -> Answer:
    """An answer that ends the turn."""
    return answer(anthropic_answer({"type": "text", "text": "Done."}))


@pytest.mark.parametrize("strategy", ["envelope", "cut", "native"])
def test_a_poisoned_tool_reaches_no_model(start: StartProxy, strategy: str) -> None:
    with serving(Provider(done(), done())) as provider:
        proxy = start(provider, f'strategy = "{strategy}"\n{NOW}')
        got = proxy.ask(PATH, request())
        harmless = proxy.ask(PATH, request(HARMLESS))
        poisoned, clean = (sent.body.decode() for sent in provider.sent)
        log = proxy.log()
    assert "pass" not in got.note, got.note
    assert got.note.endswith("; withheld=1"), got.note
    assert POISONED not in poisoned
    assert "id_rsa" not in poisoned
    assert "a tool is quarantined" in log, log
    assert POISONED in log, log
    assert "withheld" not in harmless.note, harmless.note
    assert POISONED in clean, "it fits best"


def test_the_original_of_a_refused_request_has_no_poisoned_tool(start_afresh: StartProxy) -> None:
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}
    body = json.dumps(request())
    clean = json.dumps({**request(), "tools": anthropic_tools()})
    with serving(Provider(answer(error, 400), done(), done())) as provider:
        proxy = start_afresh(provider)
        refused = proxy.ask(PATH, body.encode())
        later = proxy.ask(PATH, body.encode())
        sent = [one.json for one in provider.sent]
    assert refused.note == "pass; reason=refused; withheld=1"
    assert later.note == "pass; reason=refused-before; withheld=1"
    assert MORE in json.dumps(sent[0])
    assert sent[1:] == [json.loads(clean)] * 2


@pytest.mark.parametrize(
    "settings",
    [f'strategy = "pass"\n{NOW}', f'{PATIENT}keep = ["{POISONED}"]\n'],
    ids=["pass", "keep"],
)
def test_the_operator_may_have_it_sent(start: StartProxy, settings: str) -> None:
    def taken(sent: Sent) -> Answer:
        assert request()["tools"][-1] in sent.json["tools"]
        return done()

    with serving(Provider(taken, taken)) as provider:
        proxy = start(provider, settings)
        for _ in range(2):
            assert proxy.ask(PATH, request()).status == 200


TIDES = {"name": POISONED, "description": POISON}
SCHEMA = {"type": "object"}
CHATS = [
    pytest.param(
        PATH,
        {
            "model": "claude-sonnet-5",
            "max_tokens": 100,
            "tools": [{**TIDES, "input_schema": SCHEMA}],
            "tool_choice": {"type": "auto"},
            "messages": [{"role": "user", "content": HARMLESS}],
        },
        {"tool_choice": {"type": "any"}},
        id="anthropic",
    ),
    pytest.param(
        "/openai/v1/chat/completions",
        {
            "model": "gpt-5.5",
            "tools": [{"type": "function", "function": {**TIDES, "parameters": SCHEMA}}],
            "tool_choice": "auto",
            "parallel_tool_calls": False,
            "messages": [{"role": "user", "content": HARMLESS}],
        },
        {"tool_choice": "required"},
        id="chat",
    ),
    pytest.param(
        "/openai/v1/responses",
        {
            "model": "gpt-5.5",
            "store": False,
            "tools": [{"type": "function", **TIDES, "parameters": SCHEMA}],
            "tool_choice": "auto",
            "parallel_tool_calls": False,
            "input": [{"role": "user", "content": HARMLESS}],
        },
        {"tool_choice": "required"},
        id="responses",
    ),
    pytest.param(
        "/gemini/v1beta/models/gemini-3-pro:generateContent",
        {
            "tools": [{"functionDeclarations": [{**TIDES, "parametersJsonSchema": SCHEMA}]}],
            "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
            "contents": [{"role": "user", "parts": [{"text": HARMLESS}]}],
        },
        {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}},
        id="gemini",
    ),
]
OF_CALLS = {"tools", "tool_choice", "parallel_tool_calls", "toolConfig"}


@pytest.mark.parametrize(("path", "asked", "forcing"), CHATS)
def test_a_request_whose_tools_are_all_poisoned_has_none(
    start: StartProxy, path: str, asked: Json, forcing: Json
) -> None:
    with serving(Provider(done())) as provider:
        proxy = start(provider)
        got = proxy.ask(path, asked)
        forced = proxy.ask(path, {**asked, **forcing})
        [sent] = [one.json for one in provider.sent]
    assert got.note == "pass; reason=nothing-to-defer; withheld=1"
    left = {name: value for name, value in asked.items() if name not in OF_CALLS}
    assert sent == {**left, **({"toolConfig": {}} if "toolConfig" in asked else {})}
    assert forced.status == 400
    assert "toolgate: all tools of this request are quarantined" in forced.body.decode()
    assert "id_rsa" not in forced.body.decode()


def test_a_compaction_has_no_poisoned_tool(start: StartProxy) -> None:
    path = "/openai/v1/responses"
    poisoned = {"type": "function", **TIDES, "parameters": SCHEMA}
    own = {"type": "function", "name": "exec", "parameters": SCHEMA}
    asked = {"model": "gpt-5.5", "tools": [own, poisoned], "input": HARMLESS}
    with serving(Provider(done(), answer({"output": []}))) as provider:
        proxy = start(provider)
        assert proxy.ask(path, asked).note.endswith("; withheld=1")
        got = proxy.ask(f"{path}/compact", asked)
        forced = proxy.ask(
            f"{path}/compact", {**asked, "tools": [poisoned], "tool_choice": "required"}
        )
        sent = provider.sent[-1]
    assert got.note == "pass; reason=no-chat; withheld=1"
    assert sent.path == "/v1/responses/compact"
    assert sent.json == {**asked, "tools": [own]}
    assert forced.status == 400


OWN = {"name": "exec"}
GEMINI = "/gemini/v1beta/models/gemini-3-pro"


def anthropic(*tools: Json) -> Json:
    listed = [{**tool, "input_schema": SCHEMA} for tool in tools]
    asked = {"role": "user", "content": HARMLESS}
    return {"model": "claude-sonnet-5", "max_tokens": 9, "tools": listed, "messages": [asked]}


def responses(*tools: Json) -> Json:
    listed = [{"type": "function", **tool, "parameters": SCHEMA} for tool in tools]
    return {"model": "gpt-5.5", "store": False, "tools": listed, "input": HARMLESS}


def gemini(*tools: Json) -> Json:
    listed = [{**tool, "parametersJsonSchema": SCHEMA} for tool in tools]
    asked = {"role": "user", "parts": [{"text": HARMLESS}]}
    return {"tools": [{"functionDeclarations": listed}], "contents": [asked]}


def itself(chat: Json) -> Json:
    return chat


def batched(chat: Json) -> Json:
    named = {"a": anthropic(OWN), "b": chat, "c": {**chat, "max_tokens": 7}}
    return {"requests": [{"custom_id": name, "params": chat} for name, chat in named.items()]}


def within(chat: Json) -> Json:
    return {"generateContentRequest": {"model": "models/gemini-3-pro", **chat}}


def batched_by_gemini(chat: Json) -> Json:
    return {"batch": {"inputConfig": {"requests": {"requests": [{"request": chat}]}}}}


Tools = Callable[..., Json]
Wrap = Callable[[Json], Json]


@pytest.mark.parametrize(
    ("chat", "of", "path", "wrap"),
    [
        (PATH, anthropic, f"{PATH}/count_tokens?beta=true", itself),
        (PATH, anthropic, f"{PATH}/batches", batched),
        ("/openai/v1/responses", responses, "/openai/v1/responses/input_tokens", itself),
        (f"{GEMINI}:generateContent", gemini, f"{GEMINI}:countTokens", within),
        (f"{GEMINI}:generateContent", gemini, f"{GEMINI}:batchGenerateContent", batched_by_gemini),
        (f"{GEMINI}:generateContent", gemini, f"{GEMINI}:streamGenerateContent", itself),
        (f"{GEMINI}:generateContent", gemini, "/gemini/v1beta/cachedContents", itself),
    ],
)
def test_a_request_that_holds_chats_has_no_poisoned_tool(
    start: StartProxy, chat: str, of: Tools, path: str, wrap: Wrap
) -> None:
    with serving(Provider(done(), answer({}), answer({}))) as provider:
        proxy = start(provider)
        assert proxy.ask(chat, of(OWN, TIDES)).note.endswith("; withheld=1")
        clean = json.dumps(wrap(of(OWN)), indent=1).encode()
        untouched = proxy.ask(path, clean)
        got = proxy.ask(path, wrap(of(OWN, TIDES)))
        of_clean, of_poisoned = provider.sent[1:]
    assert untouched.note == "pass; reason=no-chat"
    assert of_clean.body == clean
    assert got.note == "pass; reason=no-chat; withheld=1"
    assert of_poisoned.path == path[path.index("/", 1) :]
    assert of_poisoned.json == wrap(of(OWN))


def test_a_batch_with_a_request_that_has_no_tool_left_is_not_sent(start: StartProxy) -> None:
    with serving(Provider(done())) as provider:
        proxy = start(provider)
        assert proxy.ask(PATH, anthropic(TIDES)).note.endswith("; withheld=1")
        got = proxy.ask(
            f"{PATH}/batches", batched({**anthropic(TIDES), "tool_choice": {"type": "any"}})
        )
    assert len(provider.sent) == 1
    assert got.status == 400
    assert "toolgate: all tools of this request are quarantined" in got.body.decode()


def test_batches_of_openai_are_files_and_go_up_as_they_came(start: StartProxy) -> None:
    path = "/openai/v1/chat/completions"
    tide = {"type": "function", "function": {**TIDES, "parameters": SCHEMA}}
    asked_now = {"role": "user", "content": HARMLESS}
    chat = {"model": "gpt-5.5", "tools": [tide], "messages": [asked_now]}
    line = {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": chat}
    upload = (
        b'--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--b\r\n'
        b'Content-Disposition: form-data; name="file"; filename="batch.jsonl"\r\n\r\n'
        + json.dumps(line).encode()
        + b"\n\r\n--b--\r\n"
    )
    form = {"Content-Type": "multipart/form-data; boundary=b", "Authorization": "Bearer k"}
    batch = b'{ "input_file_id":"file-1","endpoint":"/v1/chat/completions","x":1.50e3}'
    asked: list[tuple[str, str, bytes, dict[str, str]]] = [
        ("POST", "/v1/files", upload, form),
        ("POST", "/v1/batches", batch, {}),
        ("GET", "/v1/batches/batch_1", b"", {}),
        ("GET", "/v1/batches?limit=2&after=batch_0", b"", {}),
        ("GET", "/v1/files/file-2/content", b"", {}),
        ("POST", "/v1/batches/batch_1/cancel", b"", {}),
    ]
    given = [Answer([b'{ "id":"%d" ,' % at, b'"n":1.50e3}\n']) for at in range(len(asked))]
    with serving(Provider(done(), *given)) as provider:
        proxy = start(provider)
        # From now on the tenant has a tool that is withheld.
        assert proxy.ask(path, chat).note.endswith("; withheld=1")
        for (method, place, body, headers), answered in zip(asked, given, strict=True):
            got = proxy.ask(f"/openai{place}", body, headers, method)
            sent = provider.sent[-1]
            assert (sent.method, sent.path, sent.body) == (method, place, body)
            assert (
                headers.items()
                <= {name.title(): value for name, value in sent.headers.items()}.items()
            )
            assert (got.note, got.body) == ("pass; reason=no-chat", b"".join(answered.pieces))
