"""`toolgate llm` with deferred tools: what the provider is sent, and what the host gets."""

import gzip
import hashlib
import http.client
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import anthropic
import openai
import pytest
from conftest import StartProxy
from llm_provider import Answer, Got, Json, Provider, Proxy, Sent, answer, events, serving
from llm_tools import (
    CALL,
    MORE,
    PATIENT,
    PRICED,
    RAIN,
    SCHEMA,
    SEARCH,
    TOOLS,
    enveloped,
    read_events,
)
from toolgate_command import command_environment
from toolgate_process import ToolgateProcess, free_port
from waiting import PATIENCE, wait_until


def anthropic_tools() -> list[Json]:
    """The tools of a host, one of its own first."""
    own = {"name": "Bash", "description": "Runs a command.", "input_schema": SCHEMA}
    mcp = [
        {"name": name, "description": said, "input_schema": SCHEMA} for name, said in TOOLS.items()
    ]
    return [own, *mcp]


def anthropic_request(*messages: Json, **more: Any) -> Json:
    """A request of Anthropic's Messages."""
    asked = messages or ({"role": "user", "content": RAIN},)
    return {
        "model": "m",
        "max_tokens": 9,
        "tools": anthropic_tools(),
        "messages": asked,
        **more,
    }


def anthropic_answer(*content: Json, **more: Any) -> Json:
    """An answer with these blocks."""
    is_call = any(block["type"] == "tool_use" for block in content)
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(content),
        "stop_reason": "tool_use" if is_call else "end_turn",
        "usage": {"input_tokens": 10, "output_tokens": 5},
        **more,
    }


def use(name: str, given: Json, identifier: str = "toolu_1") -> Json:
    """A call of Anthropic's."""
    return {"type": "tool_use", "id": identifier, "name": name, "input": given}


def anthropic_events(message: Json) -> list[bytes]:
    """An answer as the events that Anthropic sends."""
    begun = {**message, "content": [], "stop_reason": None}
    shown: list[Json] = [{"type": "message_start", "message": begun}]
    for index, block in enumerate(message["content"]):
        empty = {
            **block,
            **({"input": {}} if block["type"] == "tool_use" else {"text": ""}),
        }
        shown.append({"type": "content_block_start", "index": index, "content_block": empty})
        text = json.dumps(block["input"]) if block["type"] == "tool_use" else block["text"]
        for at in range(0, len(text), 7):
            delta = {"type": "text_delta", "text": text[at : at + 7]}
            if block["type"] == "tool_use":
                delta = {"type": "input_json_delta", "partial_json": text[at : at + 7]}
            shown.append({"type": "content_block_delta", "index": index, "delta": delta})
        shown.append({"type": "content_block_stop", "index": index})
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    shown.append({"type": "message_delta", "delta": ended, "usage": {"output_tokens": 5}})
    shown.append({"type": "message_stop"})
    return [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in shown]


def read_anthropic(body: bytes) -> Json:
    """The message that a host reads from a stream; fails where it breaks Anthropic's rules."""
    shown = read_events(body)
    assert [one["type"] for one in shown].count("message_start") == 1
    assert [one["type"] for one in shown].count("message_stop") == 1
    content: list[Json] = []
    texts: list[str] = []
    for one in shown:
        if one["type"] == "content_block_start":
            assert one["index"] == len(content), shown
            content.append(dict(one["content_block"]))
            texts.append("")
        elif one["type"] == "content_block_delta":
            assert one["index"] == len(content) - 1, shown
            delta = one["delta"]
            texts[-1] += delta.get("text", "") + delta.get("partial_json", "")
    for block, text in zip(content, texts, strict=True):
        if block["type"] == "tool_use":
            block["input"] = json.loads(text)
        else:
            block["text"] = text
    [ended] = [one for one in shown if one["type"] == "message_delta"]
    return {"content": content, **ended["delta"], "usage": ended["usage"]}


def names(sent: Sent) -> list[str]:
    """Names of the tools that were sent."""
    return [tool.get("name") or tool["function"]["name"] for tool in sent.json["tools"]]


def test_a_call_goes_there_and_back_in_its_envelope(
    start: StartProxy,
) -> None:
    called = anthropic_answer(
        {"type": "text", "text": "I look."},
        use(CALL, enveloped("mcp__weather__forecast", {"city": "Bern", "days": 1.0})),
        use("Bash", {"command": "ls"}, "toolu_2"),
    )
    done = anthropic_answer({"type": "text", "text": "No."})
    with serving(Provider(answer(called), answer(done))) as provider:
        proxy = start(provider)
        user = {"role": "user", "content": RAIN}
        got = proxy.ask("/anthropic/v1/messages", anthropic_request(user), {"x-api-key": "k"})
        assert got.note.startswith("envelope; deferred=6"), got.note
        plain = use("mcp__weather__forecast", {"city": "Bern", "days": 1.0})
        assert got.json["content"][1] == plain
        assert got.json == {
            **called,
            "content": [called["content"][0], plain, called["content"][2]],
        }
        [first] = provider.sent
        assert names(first) == ["Bash", SEARCH, CALL]
        assert first.headers["x-api-key"] == "k"
        assert MORE in first.json["messages"][0]["content"]
        assert '"mcp__weather__forecast"' in first.json["messages"][0]["content"]

        results = [
            {"type": "tool_result", "tool_use_id": one, "content": "dry"}
            for one in ("toolu_1", "toolu_2")
        ]
        said = {"role": "assistant", "content": got.json["content"]}
        answered = {"role": "user", "content": results}
        again = proxy.ask(
            "/anthropic/v1/messages",
            anthropic_request(user, said, answered),
            {"x-api-key": "k"},
        )
        assert again.json == done
        second = provider.sent[1].json
    # The model sees its own call, and the cached prefix holds.
    assert second["messages"][1]["content"] == called["content"]
    assert second["messages"][0] == first.json["messages"][0]
    assert second["tools"] == first.json["tools"]


def test_a_history_that_its_host_summarized_is_decided_anew(start: StartProxy) -> None:
    called = anthropic_answer(use(CALL, enveloped("mcp__weather__forecast", {"city": "Bern"})))
    said = anthropic_answer({"type": "text", "text": "It stays dry."})
    steps = [answer(step) for step in (called, said, said, said)]
    with serving(Provider(*steps)) as provider:
        proxy = start(provider)
        user = {"role": "user", "content": RAIN}
        got = ask_anthropic(proxy, user)
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "dry"}
        told = {"role": "user", "content": [result]}
        ask_anthropic(proxy, user, {"role": "assistant", "content": got.json["content"]}, told)
        # What was described stood in messages that are gone.
        summary = {"role": "user", "content": f"So far: it stays dry in Bern. Again: {RAIN}"}
        assert ask_anthropic(proxy, summary).note.startswith("envelope")
        ended = {"role": "assistant", "content": said["content"]}
        more = {"role": "user", "content": "And now send an e-mail to Ann that it stays dry."}
        ask_anthropic(proxy, summary, ended, more)
    afresh, later = (sent.json["messages"] for sent in provider.sent[2:])
    assert json.dumps(afresh).count("mcp__weather__forecast") == 1
    assert later[: len(afresh)] == afresh, "from there on the prefix stays"
    added = json.dumps(later[len(afresh) :])
    assert "mcp__mail__send" in added
    assert "mcp__weather__forecast" not in added


def ask_anthropic(proxy: Proxy, *messages: Json) -> Got:
    """The answer to a request of a host with these messages."""
    return proxy.ask("/anthropic/v1/messages", anthropic_request(*messages), {"x-api-key": "k"})


def test_what_is_not_edited_keeps_its_bytes(start: StartProxy) -> None:
    tools = json.dumps(anthropic_tools()[1:])[1:-1]
    own = '{"name" :"Bash","input_schema": {"n":1.50e3} }'
    body = (
        '{ "x":[1.0, 12345678901234567890123], "model":"m" ,"tools":[' + own + "," + tools + "],"
        '"messages":[{ "role":"user","content":"h\\u00e9" },'
        '{"role":"assistant","content":"o\\u00e9"},'
        '{"role":"user","content":"Will it rain in Bern?"}], "y" : {"a":1e2}}'
    )
    with serving(Provider(answer(anthropic_answer({"type": "text", "text": "No."})))) as provider:
        got = start(provider).ask("/anthropic/v1/messages", body.encode())
        [sent] = provider.sent
    assert got.note.startswith("envelope"), got.note
    text = sent.body.decode()
    assert text.startswith('{ "x":[1.0, 12345678901234567890123], "model":"m" ,"tools":[' + own)
    assert text.endswith(', "y" : {"a":1e2}}')
    assert (
        '{ "role":"user","content":"h\\u00e9" },{"role":"assistant","content":"o\\u00e9"}' in text
    )


def test_a_stream_is_opened_as_it_comes(start: StartProxy) -> None:
    called = anthropic_answer(
        {"type": "text", "text": "I look."},
        use(CALL, enveloped("mcp__weather__forecast", {"city": "Bern"})),
        use("Bash", {"command": "ls"}, "toolu_2"),
    )
    with serving(Provider(events(*anthropic_events(called)))) as provider:
        got = start(provider).ask("/anthropic/v1/messages", anthropic_request(stream=True))
    message = read_anthropic(got.body)
    assert message["content"] == [
        called["content"][0],
        use("mcp__weather__forecast", {"city": "Bern"}),
        called["content"][2],
    ]
    assert message["stop_reason"] == "tool_use"


@pytest.mark.parametrize("streamed", [True, False])
def test_a_search_is_answered_and_gone_on_from(start: StartProxy, streamed: bool) -> None:
    searching = anthropic_answer(
        {"type": "text", "text": "Let me see. "},
        use(SEARCH, {"query": "select:mcp__mail__send"}, "toolu_s"),
    )
    called = anthropic_answer(use(CALL, enveloped("mcp__mail__send", {"city": "x"}), "toolu_c"))

    def step(message: Json) -> Answer:
        return events(*anthropic_events(message)) if streamed else answer(message)

    with serving(Provider(step(searching), step(called))) as provider:
        proxy = start(provider)
        got = proxy.ask("/anthropic/v1/messages", anthropic_request(stream=streamed))
        first, second = (sent.json for sent in provider.sent)
        totals = proxy.totals()
    message = read_anthropic(got.body) if streamed else got.json
    assert message["content"] == [
        searching["content"][0],
        use("mcp__mail__send", {"city": "x"}, "toolu_c"),
    ]
    assert message["stop_reason"] == "tool_use"
    assert (message["usage"]["input_tokens"], message["usage"]["output_tokens"]) == (
        20,
        10,
    )
    assert second["messages"][: len(first["messages"])] == first["messages"]
    said, found = second["messages"][len(first["messages"]) :]
    assert said == {"role": "assistant", "content": searching["content"]}
    assert found["content"][0]["tool_use_id"] == "toolu_s"
    assert "mcp__mail__send" in json.dumps(found["content"][0])
    assert MORE in json.dumps(found), found
    assert totals["searches"] == 1
    assert totals["usage"]["output_tokens"] == 10


@pytest.mark.parametrize("form", ["mcp__git__{}", "mcp_git_{}", "git_{}"])
def test_shipped_packs_know_tools_by_each_hosts_names(start: StartProxy, form: str) -> None:
    """Claude Code's, Gemini CLI's and opencode's. The definitions say nothing, so that a pack alone
    knows what people want of these tools."""
    others = [f"mcp__other__tool_{number}" for number in range(24)]
    git = ["git_status", "git_add", "git_commit", "git_log", "git_diff_unstaged"]
    tools = [
        {"name": name, "description": "A tool.", "input_schema": SCHEMA}
        for name in [*others, *map(form.format, git)]
    ]
    query = {"query": "what have I edited but not added yet"}
    steps = [answer(anthropic_answer(use(SEARCH, query, "toolu_s"))), answer(anthropic_answer())]
    with serving(Provider(*steps)) as provider:
        proxy = start(provider, f'{PATIENT}defer = ["mcp_*", "git_*"]\n')
        proxy.ask("/anthropic/v1/messages", anthropic_request(tools=tools))
        second = provider.sent[1].json
    assert form.format("git_diff_unstaged") in json.dumps(second["messages"][-1])


def test_a_model_that_only_searches_is_stopped(start: StartProxy) -> None:
    def search(_sent: Sent) -> Answer:
        return answer(anthropic_answer(use(SEARCH, {"query": "git"}, "toolu_s")))

    with serving(Provider(*[search] * 9)) as provider:
        got = start(provider).ask("/anthropic/v1/messages", anthropic_request())
        asked = [sent.json for sent in provider.sent]
    # Three searches are answered; the fourth is told that it was enough.
    assert len(asked) == 5
    assert "enough_searches" in json.dumps(asked[4]["messages"])
    assert "enough_searches" not in json.dumps(asked[3]["messages"])
    assert (got.json["content"], got.json["stop_reason"]) == ([], "end_turn")


def chat_request(**more: Any) -> Json:
    """A request of Chat Completions."""
    functions = [
        {"name": tool["name"], "description": tool["description"], "parameters": SCHEMA}
        for tool in anthropic_tools()
    ]
    tools = [{"type": "function", "function": function} for function in functions]
    system = {"role": "system", "content": "Be brief."}
    return {
        "model": "m",
        "tools": tools,
        "messages": [system, {"role": "user", "content": RAIN}],
        **more,
    }


def chat_call(name: str, arguments: Json, identifier: str) -> Json:
    """A call of Chat Completions."""
    written = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": identifier, "type": "function", "function": written}


def chat_answer(call: Json) -> Json:
    """An answer with a call."""
    message: Json = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice: Json = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    return {
        "id": "c1",
        "object": "chat.completion",
        "choices": [choice],
        "usage": usage,
    }


def chat_events(call: Json) -> list[bytes]:
    """The same as a stream."""
    written = call["function"]["arguments"]
    begun = {**call, "index": 0, "function": {**call["function"], "arguments": ""}}
    deltas: list[Json] = [
        {"role": "assistant", "content": None},
        {"tool_calls": [begun]},
    ]
    deltas += [
        {"tool_calls": [{"index": 0, "function": {"arguments": written[at : at + 5]}}]}
        for at in range(0, len(written), 5)
    ]
    choices: list[Json] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
    chunks: list[Json] = [{"id": "c1", "choices": [choice]} for choice in choices]
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    chunks.append({"id": "c1", "choices": [], "usage": usage})
    return [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks] + [b"data: [DONE]\n\n"]


@pytest.mark.parametrize("streamed", [True, False])
def test_chat_completions_search_and_call(start: StartProxy, streamed: bool) -> None:
    searching = chat_call(SEARCH, {"query": "select:mcp__mail__send"}, "s1")
    called = chat_call(CALL, enveloped("mcp__mail__send", {"city": "x"}), "k1")

    def step(call: Json) -> Answer:
        return events(*chat_events(call)) if streamed else answer(chat_answer(call))

    with serving(Provider(step(searching), step(called))) as provider:
        got = start(provider).ask("/openai/v1/chat/completions", chat_request(stream=streamed))
        first, second = provider.sent
    assert names(first) == ["Bash", SEARCH, CALL]
    assert second.json["messages"][2]["tool_calls"] == [searching]
    assert second.json["messages"][3]["tool_call_id"] == "s1"
    if streamed:
        assert got.body.endswith(b"data: [DONE]\n\n")
        chunks = read_events(got.body)
        pieces = [
            piece
            for chunk in chunks
            for choice in chunk["choices"]
            for piece in choice["delta"].get("tool_calls", [])
        ]
        assert [piece["index"] for piece in pieces] == [0] * len(pieces)
        text = "".join(piece["function"]["arguments"] for piece in pieces)
        shown = (pieces[0]["id"], pieces[0]["function"]["name"], text)
        usage = chunks[-1]["usage"]
    else:
        [call] = got.json["choices"][0]["message"]["tool_calls"]
        shown = (call["id"], call["function"]["name"], call["function"]["arguments"])
        usage = got.json["usage"]
    assert (shown[0], shown[1], json.loads(shown[2])) == (
        "k1",
        "mcp__mail__send",
        {"city": "x"},
    )
    assert usage == {"prompt_tokens": 20, "completion_tokens": 10}


@pytest.mark.parametrize("status", [400, 422])
def test_a_refused_request_is_sent_once_more_as_it_came(start: StartProxy, status: int) -> None:
    refusal = answer({"type": "error", "error": {"message": "tools"}}, status)
    done = anthropic_answer({"type": "text", "text": "No."})
    with serving(Provider(refusal, answer(done), answer(done))) as provider:
        proxy = start(provider)
        request = json.dumps(anthropic_request(model=proxy.unique)).encode()
        got = proxy.ask("/anthropic/v1/messages", request)
        assert (got.status, got.json, got.note) == (200, done, "pass; reason=refused")
        assert provider.sent[1].body == request
        later = proxy.ask("/anthropic/v1/messages", request)
        assert later.note == "pass; reason=refused-before"
        assert provider.sent[2].body == request
        totals = proxy.totals()
    assert (totals["rewritten"], totals["deferred_tokens"]) == (0, 0)


@pytest.mark.parametrize("streamed", [True, False])
def test_a_refusal_behind_a_search_is_answered_with_the_original(
    start: StartProxy, streamed: bool
) -> None:
    searching = anthropic_answer(
        {"type": "text", "text": "Let me see. "}, use(SEARCH, {"query": "mail"}, "toolu_s")
    )
    refusal = answer({"type": "error", "error": {"message": "thoughts"}}, 400)
    done = anthropic_answer({"type": "text", "text": "No."})

    def step(message: Json) -> Answer:
        return events(*anthropic_events(message)) if streamed else answer(message)

    with serving(Provider(step(searching), refusal, step(done), step(done))) as provider:
        proxy = start(provider)
        request = json.dumps(anthropic_request(stream=streamed, model=proxy.unique)).encode()
        headers = {"Accept-Encoding": "gzip"}
        got = proxy.ask("/anthropic/v1/messages", request, headers)
        again = proxy.ask("/anthropic/v1/messages", request, headers)
        original = provider.sent[2]
    message = read_anthropic(got.body) if streamed else got.json
    assert message["content"] == [searching["content"][0], *done["content"]]
    assert message["usage"]["output_tokens"] == 10
    assert (original.body, original.headers["accept-encoding"]) == (request, "identity")
    assert (again.status, again.note) == (200, "pass; reason=refused-before")


def test_a_stream_may_end_without_an_empty_line(start: StartProxy) -> None:
    def step(call: Json) -> Answer:
        *pieces, last = chat_events(call)
        return events(*pieces, last.rstrip())

    searching = chat_call(SEARCH, {"query": "select:mcp__mail__send"}, "s1")
    called = chat_call(CALL, enveloped("mcp__mail__send", {"city": "x"}), "k1")
    with serving(Provider(step(searching), step(called))) as provider:
        got = start(provider).ask("/openai/v1/chat/completions", chat_request(stream=True))
    assert got.body.count(b"[DONE]") == 1
    assert got.body.endswith(b"data: [DONE]")
    assert b'"mcp__mail__send"' in got.body


def test_a_compressed_answer_is_asked_for_again(start: StartProxy) -> None:
    done = anthropic_answer({"type": "text", "text": "No."})
    compressed = Answer([gzip.compress(b"{}")], headers={"content_encoding": "gzip"})
    with serving(Provider(compressed, answer(done))) as provider:
        proxy = start(provider)
        request = anthropic_request(model=proxy.unique)
        got = proxy.ask("/anthropic/v1/messages", request)
    assert (got.status, got.json, got.note) == (200, done, "pass; reason=refused")


def test_a_mistake_of_the_hosts_stays_its_mistake(start: StartProxy) -> None:
    refusal = answer({"type": "error", "error": {"message": "max_tokens"}}, 400)
    done = answer(anthropic_answer({"type": "text", "text": "No."}))
    with serving(Provider(refusal, refusal, done)) as provider:
        proxy = start(provider)
        got = proxy.ask("/anthropic/v1/messages", anthropic_request())
        assert (got.status, got.json["error"]["message"]) == (400, "max_tokens")
        later = proxy.ask("/anthropic/v1/messages", anthropic_request())
        assert later.note.startswith("envelope"), later.note


@pytest.mark.parametrize("status", [429, 500, 529])
def test_other_errors_of_the_provider_go_through(start: StartProxy, status: int) -> None:
    error = {"type": "error", "error": {"message": "later"}}
    with serving(Provider(answer(error, status, retry_after="7"))) as provider:
        got = start(provider).ask("/anthropic/v1/messages", anthropic_request())
        assert len(provider.sent) == 1
    assert (got.status, got.json, got.headers["retry-after"]) == (status, error, "7")


def test_an_error_behind_a_search_keeps_its_headers(start: StartProxy) -> None:
    searching = anthropic_answer(use(SEARCH, {"query": "mail"}, "toolu_s"))
    error = {"type": "error", "error": {"type": "rate_limit_error", "message": "later"}}
    with serving(Provider(answer(searching), answer(error, 429, retry_after="60"))) as provider:
        got = start(provider).ask("/anthropic/v1/messages", anthropic_request())
        assert len(provider.sent) == 2
    assert (got.status, got.json, got.headers["retry-after"]) == (429, error, "60")


@pytest.mark.parametrize("status", [429, 503, 529])
@pytest.mark.parametrize("streamed", [True, False])
def test_a_provider_without_time_behind_a_search_is_asked_once_more(
    start: StartProxy, status: int, streamed: bool
) -> None:
    searching = anthropic_answer(use(SEARCH, {"query": "mail"}, "toolu_s"))
    done = anthropic_answer({"type": "text", "text": "Sent."})
    busy = answer({"type": "error", "error": {"message": "later"}}, status, retry_after="0")

    def step(message: Json) -> Answer:
        return events(*anthropic_events(message)) if streamed else answer(message)

    with serving(
        Provider(step(searching), busy, step(done), step(searching), busy, busy)
    ) as provider:
        proxy = start(provider)
        got = proxy.ask("/anthropic/v1/messages", anthropic_request(stream=streamed))
        failed = proxy.ask("/anthropic/v1/messages", anthropic_request(stream=streamed))
        assert len(provider.sent) == 6, "it is asked once more, and not twice"
        assert provider.sent[1].body == provider.sent[2].body
    message = read_anthropic(got.body) if streamed else got.json
    assert message["content"] == done["content"]
    if streamed:
        assert read_events(failed.body)[-1]["error"]["message"] == "later"
    else:
        assert (failed.status, failed.headers["retry-after"]) == (status, "0")


def test_an_error_behind_a_search_is_told_amid_the_stream(
    start: StartProxy,
) -> None:
    searching = anthropic_answer(use(SEARCH, {"query": "mail"}, "toolu_s"))
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "later"}}
    late = answer(error, 529, retry_after="60")
    with serving(Provider(events(*anthropic_events(searching)), late)) as provider:
        got = start(provider).ask("/anthropic/v1/messages", anthropic_request(stream=True))
    assert read_events(got.body)[-1] == error


def test_a_cut_stream_is_cut_for_the_host(start: StartProxy) -> None:
    called = anthropic_answer(use(CALL, enveloped("mcp__git__log", {"city": "Bern"})))
    pieces = anthropic_events(called)
    with serving(Provider(events(*pieces[:-4], cut=True))) as provider:
        proxy = start(provider)
        connection = proxy.connection()
        body = json.dumps(anthropic_request(stream=True))
        connection.request("POST", "/anthropic/v1/messages", body, proxy.keys)
        with pytest.raises(http.client.IncompleteRead) as cut:
            connection.getresponse().read()
        connection.close()
    begun = read_events(cut.value.partial)
    assert begun[1]["content_block"]["name"] == "mcp__git__log"
    assert not any(one["type"] == "message_stop" for one in begun)


def test_a_host_that_leaves_ends_the_rewritten_request(
    start: StartProxy,
) -> None:
    pieces = anthropic_events(anthropic_answer({"type": "text", "text": "x" * 700}))[:9]
    given = Answer(pieces, kind="text/event-stream", endless=True)
    with serving(Provider(given)) as provider:
        proxy = start(provider)
        connection = proxy.connection()
        body = json.dumps(anthropic_request())
        connection.request("POST", "/anthropic/v1/messages", body, proxy.keys)
        response = connection.getresponse()
        assert response.getheader("x-toolgate", "").startswith("envelope")
        assert response.read(9)
        response.close()
        connection.close()
        wait_until(lambda: provider.left == 1, "the provider still answers")


@pytest.mark.parametrize(
    ("settings", "request_body", "reason"),
    [
        (PATIENT.replace("envelope", "pass"), anthropic_request(), "strategy"),
        (PATIENT.replace("envelope", "auto"), anthropic_request(), "few-tools"),
        (PATIENT + 'keep = ["mcp__*"]', anthropic_request(), "nothing-to-defer"),
        (PATIENT + 'max_body = "99B"', anthropic_request(), "large"),
        (
            PATIENT.replace('first_decision_timeout = "2m"', 'first_decision_timeout = "0ms"'),
            anthropic_request(),
            "new-tools",
        ),
        (
            PATIENT,
            anthropic_request(
                tools=[
                    {
                        "type": "tool_search_tool_bm25_20251119",
                        "name": "tool_search_tool_bm25",
                    },
                    *anthropic_tools(),
                ]
            ),
            "host-defers",
        ),
        (
            PATIENT,
            anthropic_request({"role": "assistant", "content": "x"}),
            "no-request",
        ),
    ],
)
def test_in_doubt_the_original_goes_up(
    start: StartProxy, settings: str, request_body: Json, reason: str
) -> None:
    request = json.dumps(request_body, indent=1).encode()
    done = answer(anthropic_answer({"type": "text", "text": "No."}))
    with serving(Provider(done)) as provider:
        got = start(provider, settings).ask("/anthropic/v1/messages", request)
        assert got.note == f"pass; reason={reason}"
        assert provider.sent[0].body == request


def test_without_a_plane_the_original_goes_up(start_afresh: StartProxy) -> None:
    request = json.dumps(anthropic_request()).encode()
    done = answer(anthropic_answer({"type": "text", "text": "No."}))
    with serving(Provider(done, done)) as provider:
        proxy = start_afresh(provider, PATIENT, "--server", f"http://127.0.0.1:{free_port()}")
        for _ in range(2):
            got = proxy.ask("/anthropic/v1/messages", request)
            assert (got.status, got.note) == (200, "pass; reason=plane-failed")
        assert [sent.body for sent in provider.sent] == [request, request]


def test_a_plane_of_others_gets_the_tools_in_a_tenant_of_their_own(
    binary: Path, tmp_path: Path, server: ToolgateProcess
) -> None:
    done = answer(anthropic_answer({"type": "text", "text": "No."}))
    with (
        serving(Provider(done, done, done)) as provider,
        Proxy(binary, tmp_path, provider.url, PATIENT).started(
            "--server", f"http://{server.target}"
        ) as proxy,
    ):
        got = proxy.ask("/anthropic/v1/messages", anthropic_request())
        assert got.note.startswith("envelope"), got.note
        texts = [json.dumps(tool).encode() for tool in anthropic_tools()[1:]]
        # A set is of the proxy's tenant, also where another's has the same tools.
        texts = [b"default", *texts]
        digest = hashlib.sha256(b"".join(len(text).to_bytes(8, "little") + text for text in texts))
        numbers = server.client("llm-numbers").list_servers()
        [number] = [found.name for found in numbers if found.description != "free"]
        client = server.client(f"llm-{number}-{digest.hexdigest()[:32]}")
        registered = sorted(found.name for found in client.list_servers())
        for name in registered:
            client.unregister_server(name)
        lost = proxy.ask("/anthropic/v1/messages", anthropic_request())
        again = proxy.ask("/anthropic/v1/messages", anthropic_request())
    assert lost.note == "pass; reason=plane-failed"
    assert again.note.startswith("envelope"), again.note
    assert registered == ["calendar", "files", "git", "mail", "weather"]
    assert list(client.list_servers()) == []


NATIVE = PATIENT.replace("envelope", "native")
BETAS = ["mid-conversation-tool-changes-2026-07-01", "inline-tools-2026-09-15"]


def added(messages: list[Json]) -> list[str]:
    """Names of the tools that messages add amid a conversation."""
    blocks = [
        block
        for message in messages
        if message["role"] == "system"
        for block in message["content"]
        if block["type"] == "tool_addition"
    ]
    return [block["tool"]["definition"]["name"] for block in blocks]


def test_native_adds_tools_amid_the_conversation(start: StartProxy) -> None:
    model = {"model": "claude-opus-5-5"}
    called = anthropic_answer(use("mcp__weather__forecast", {"city": "Bern"}))
    searching = anthropic_answer(use(SEARCH, {"query": "select:mcp__mail__send"}, "toolu_s"))
    done = anthropic_answer({"type": "text", "text": "No."})
    steps = [answer(called), answer(searching), answer(done)]
    with serving(Provider(*steps)) as provider:
        proxy = start(provider, NATIVE)
        user = {"role": "user", "content": RAIN}
        headers = {"anthropic-beta": "own-beta"}
        got = proxy.ask("/anthropic/v1/messages", anthropic_request(user, **model), headers)
        assert got.note.startswith("native; deferred=6"), got.note
        assert got.json == called
        [first] = provider.sent
        assert names(first) == ["Bash", SEARCH]
        assert first.headers["anthropic-beta"].split(",") == ["own-beta", *BETAS]
        assert first.json["messages"][0] == user
        assert "mcp__weather__forecast" in added(first.json["messages"][1:])

        said = {"role": "assistant", "content": got.json["content"]}
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "dry"}
        answered = {"role": "user", "content": [result]}
        again = proxy.ask(
            "/anthropic/v1/messages", anthropic_request(user, said, answered, **model), headers
        )
        assert again.json["content"] == done["content"]
        second, third = (sent.json["messages"] for sent in provider.sent[1:])
    # The cached prefix holds, and a tool that is there is not added again.
    assert second[:2] == first.json["messages"]
    assert second[2:4] == [said, answered]
    assert added(second).count("mcp__weather__forecast") == 1
    assert third[: len(second)] == second
    assert "mcp__mail__send" in added(third)


def test_native_is_the_envelope_for_models_that_do_not_take_it(start: StartProxy) -> None:
    done = answer(anthropic_answer({"type": "text", "text": "No."}))
    with serving(Provider(done)) as provider:
        request = anthropic_request(model="claude-haiku-4-5")
        got = start(provider, NATIVE).ask("/anthropic/v1/messages", request)
        assert got.note.startswith("envelope"), got.note
        assert "anthropic-beta" not in provider.sent[0].headers


def test_the_sdk_of_anthropic_reads_a_turn_with_a_search(start: StartProxy) -> None:
    searching = anthropic_answer(
        {"type": "text", "text": "Let me see. "},
        use(SEARCH, {"query": "select:mcp__mail__send"}, "toolu_s"),
    )
    called = anthropic_answer(use(CALL, enveloped("mcp__mail__send", {"city": "x"}), "toolu_c"))
    steps = [events(*anthropic_events(message)) for message in (searching, called)]
    with serving(Provider(*steps)) as provider:
        proxy = start(provider)
        url = f"http://127.0.0.1:{proxy.port}/anthropic"
        with (
            anthropic.Anthropic(base_url=url, api_key=proxy.unique, max_retries=0) as client,
            client.messages.stream(
                model="m",
                max_tokens=9,
                tools=cast(Any, anthropic_tools()),
                messages=[{"role": "user", "content": RAIN}],
            ) as stream,
        ):
            message = stream.get_final_message()
        assert len(provider.sent) == 2
    [text, call] = message.content
    assert text.type == "text"
    assert text.text == "Let me see. "
    assert call.type == "tool_use"
    assert (call.name, call.input) == ("mcp__mail__send", {"city": "x"})
    assert (message.stop_reason, message.usage.output_tokens) == ("tool_use", 10)


def test_the_sdk_of_openai_reads_a_turn_with_a_search(start: StartProxy) -> None:
    searching = chat_call(SEARCH, {"query": "select:mcp__mail__send"}, "s1")
    called = chat_call(CALL, enveloped("mcp__mail__send", {"city": "x"}), "k1")
    steps = [events(*chat_events(call)) for call in (searching, called)]
    with serving(Provider(*steps)) as provider:
        proxy = start(provider)
        url = f"http://127.0.0.1:{proxy.port}/openai/v1"
        with openai.OpenAI(base_url=url, api_key=proxy.unique, max_retries=0) as client:
            request = chat_request(stream=True)
            chunks: list[Any] = list(client.chat.completions.create(**request))
        assert len(provider.sent) == 2
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    pieces = [piece for delta in deltas for piece in delta.tool_calls or []]
    assert (pieces[0].id, pieces[0].function.name) == ("k1", "mcp__mail__send")
    text = "".join(piece.function.arguments or "" for piece in pieces)
    assert json.loads(text) == {"city": "x"}


CHILD = """
import json, os, sys, urllib.request
request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages",
    sys.argv[1].encode(), {"Content-Type": "application/json"})
with urllib.request.urlopen(request) as response:
    print(response.headers["x-toolgate"], json.load(response)["content"][0]["text"])
assert os.environ["OPENAI_BASE_URL"].endswith("/openai/v1")
assert os.environ["GOOGLE_GEMINI_BASE_URL"].endswith("/gemini")
sys.exit(7)
"""


def run_child(binary: Path, folder: Path, provider: Provider, settings: str = "") -> str:
    """Runs a host behind `toolgate run`. Returns what that said."""
    (folder / "llm.toml").write_text(f"[llm]\n{PATIENT}{settings}")
    ended = subprocess.run(
        [str(binary), "run", "--", sys.executable, "-c", CHILD, json.dumps(anthropic_request())],
        cwd=folder,
        env={**command_environment(), "ANTHROPIC_BASE_URL": provider.url + "/base/"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == 7, ended
    assert ended.stdout.startswith("envelope; deferred=6")
    assert ended.stdout.endswith("No.\n")
    return ended.stderr


def test_a_program_runs_behind_a_proxy_of_its_own(binary: Path, tmp_path: Path) -> None:
    with serving(Provider(answer(anthropic_answer({"type": "text", "text": "No."})))) as provider:
        said = run_child(binary, tmp_path, provider)
        [sent] = provider.sent
    assert sent.path == "/base/v1/messages"
    assert "1 request with deferred tools, 0 sent as they came" in said
    assert "(computed)" in said
    assert "the provider counted, of these: 10 tokens of input" in said
    assert "no price is known of m; llm.toml sets one" in said
    assert "$" not in said


def test_the_report_of_a_program_is_in_money_by_its_users_prices(
    binary: Path, tmp_path: Path
) -> None:
    searching = anthropic_answer(use(SEARCH, {"query": "mail"}, "toolu_s"))
    searching["usage"] = {"input_tokens": 3_000, "output_tokens": 20}
    last = anthropic_answer({"type": "text", "text": "No."})
    last["usage"] = {"input_tokens": 4_000, "output_tokens": 10}
    with serving(Provider(answer(searching), answer(last))) as provider:
        prices = '[llm.prices]\n"M*" = { input = 5.0, output = 25 }\n'
        said = run_child(binary, tmp_path, provider, prices)
        assert len(provider.sent) == 2
    spent = (7_000 * 5 + 30 * 25) / 1e6
    hidden = (4_000 * 5 + 20 * 25) / 1e6
    assert f"1 request cost ${spent:.4f}, without Toolgate about $0.01" in said, said
    # The definitions of these few tools cost less than the search.
    assert " more, net (computed)" in said
    assert f"requests that hosts did not see cost ${hidden:.4f}" in said
    assert "no price" not in said
    assert "lost cache" not in said


def run_program(binary: Path, folder: Path, *program: str) -> subprocess.CompletedProcess[str]:
    """Runs a program behind a proxy of its own, which reads the folder's `llm.toml`."""
    return subprocess.run(
        [str(binary), "run", "--", *program],
        cwd=folder,
        env=command_environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_prices_that_make_no_sense_start_nothing(binary: Path, tmp_path: Path) -> None:
    (tmp_path / "llm.toml").write_text("[llm.prices]\nm = { input = 0.0, output = 25.0 }\n")
    ended = run_program(binary, tmp_path, sys.executable, "-c", "print('ran')")
    assert ended.returncode != 0
    assert 'llm.prices."m".input is 0' in ended.stderr
    assert ended.stdout == ""


@pytest.mark.parametrize("streamed", [True, False])
def test_accounts_are_in_money_where_prices_are_known(
    binary: Path, start_afresh: StartProxy, streamed: bool
) -> None:
    searching = anthropic_answer(use(SEARCH, {"query": "mail"}, "toolu_s"))
    done = anthropic_answer({"type": "text", "text": "No."})

    def step(message: Json) -> Answer:
        return events(*anthropic_events(message)) if streamed else answer(message)

    steps = [step(message) for message in (searching, done, done)]
    with serving(Provider(*steps)) as provider:
        proxy = start_afresh(provider, PRICED)
        for model in ("m", "dear"):
            request = anthropic_request(stream=streamed, model=model)
            proxy.ask("/anthropic/v1/messages", request)
        usage = proxy.ask("/toolgate/usage", method="GET").json
        shown = subprocess.run(
            [str(binary), "usage", "--llm", f"http://127.0.0.1:{proxy.port}"],
            env=command_environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
    dear, priced = usage["accounts"]
    assert (dear["model"], "cost_usd" in dear) == ("dear", False)
    cost = priced["cost_usd"]
    assert cost == usage["totals"]["cost_usd"]
    assert cost["requests"] == 1
    assert cost["spent"] == pytest.approx((20 * 5 + 10 * 25) / 1e6)
    assert cost["hidden_requests"] == pytest.approx((10 * 5 + 5 * 25) / 1e6)
    # Fewer tokens than were sent in the definitions' place: the prompt is that of the definitions.
    without = priced["deferred_tokens"] * 5 + 5 * 25
    assert cost["without_toolgate_computed"] == pytest.approx(without / 1e6)
    saved = cost["without_toolgate_computed"] - cost["spent"]
    assert cost["saved_computed"] == pytest.approx(saved)
    assert cost["lost_cache_computed"] == 0
    rows = [line.split()[-2:] for line in shown.stdout.splitlines()[1:]]
    assert rows == [["-", "-"], ["$0.000350", f"${saved:.6f}"]]


def test_cache_that_is_lost_counts_against_the_proxy(start_afresh: StartProxy) -> None:
    said = {"role": "assistant", "content": [{"type": "text", "text": "No."}]}
    asked = {"role": "user", "content": RAIN}
    thanks = {"role": "user", "content": "Thanks."}
    done = anthropic_answer({"type": "text", "text": "No."})

    def using(read: int, written: int) -> Answer:
        cache = {"cache_read_input_tokens": read, "cache_creation_input_tokens": written}
        return answer({**done, "usage": {**done["usage"], **cache}})

    with serving(Provider(using(0, 5_000), using(5_000, 90), using(0, 5_000))) as provider:
        proxy = start_afresh(provider, PRICED)

        def lost() -> float:
            cost: Json = proxy.totals()["cost_usd"]
            return float(cost["lost_cache_computed"])

        proxy.ask("/anthropic/v1/messages", anthropic_request(asked))
        proxy.ask("/anthropic/v1/messages", anthropic_request(asked, said, thanks))
        assert lost() == 0
        # The proxy did not see how this one began: it may have gone up as it came.
        other = {"role": "user", "content": "Write a poem."}
        proxy.ask("/anthropic/v1/messages", anthropic_request(other, said, thanks))
        assert 0 < lost() < 5_500 * 5 * 1.25 / 1e6


def test_signals_reach_the_program(binary: Path, tmp_path: Path) -> None:
    child = (
        "import signal, sys; signal.signal(15, lambda *_: sys.exit(9)); "
        "print('up', flush=True); signal.pause()"
    )
    process = subprocess.Popen(
        [str(binary), "run", "--", sys.executable, "-c", child],
        cwd=tmp_path,
        env=command_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.terminate()
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 9


def test_a_program_that_is_not_there_is_told(binary: Path, tmp_path: Path) -> None:
    ended = run_program(binary, tmp_path, "no-such-program")
    assert ended.returncode == 1
    assert "no-such-program can't be started" in ended.stderr
