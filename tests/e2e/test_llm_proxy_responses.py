"""`toolgate llm` before OpenAI's Responses: what the provider is sent, and what the host gets."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest
from conftest import StartProxy
from llm_provider import Answer, Json, Provider, Sent, answer, events, serving
from llm_tools import CALL, MORE, PATIENT, RAIN, SCHEMA, SEARCH, TOOLS, enveloped, read_events
from toolgate_command import command_environment
from waiting import PATIENCE

PATH = "/openai/v1/responses"
FIND_MAIL = {"query": "select:mcp__mail__send"}


def function(name: str, said: str) -> Json:
    """A function tool."""
    return {"type": "function", "name": name, "description": said, "parameters": SCHEMA}


def tools() -> list[Json]:
    """The tools of a host, with some of its own and of the provider's."""
    own = [function("exec", "Runs a command."), {"type": "web_search"}, {"type": "local_shell"}]
    return [*own, *(function(name, said) for name, said in TOOLS.items())]


def namespaces() -> list[Json]:
    """The same in namespaces, as Codex has them."""
    found: dict[str, list[Json]] = {}
    for name, said in TOOLS.items():
        server, tool = name.removeprefix("mcp__").split("__")
        found.setdefault(f"mcp__{server}", []).append(function(tool, said))
    spaces = [
        {"type": "namespace", "name": name, "description": "An MCP server.", "tools": inner}
        for name, inner in found.items()
    ]
    return [function("exec", "Runs a command."), *spaces]


def request(*items: Json, **more: Any) -> Json:
    """A request."""
    return {
        "model": "m",
        "store": False,
        "instructions": "Be brief.",
        "tools": tools(),
        "input": list(items) or [user(RAIN)],
        **more,
    }


def user(text: str) -> Json:
    """A message of the user's."""
    content = [{"type": "input_text", "text": text}]
    return {"type": "message", "role": "user", "content": content}


def said(text: str, identifier: str = "msg_1") -> Json:
    """A message of the model's."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"type": "message", "id": identifier, "role": "assistant"}
    return {**message, "status": "completed", "content": content}


def call(name: str, arguments: Json, identifier: str = "call_1", **more: Any) -> Json:
    """A call of a function."""
    return {
        "type": "function_call",
        "id": f"fc_{identifier}",
        "call_id": identifier,
        "name": name,
        **more,
        "arguments": json.dumps(arguments),
        "status": "completed",
    }


def thought(identifier: str) -> Json:
    """Thoughts of the model's."""
    return {"type": "reasoning", "id": identifier, "summary": [], "encrypted_content": "e"}


def response(*output: Json, identifier: str = "resp_1", **more: Any) -> Json:
    """A whole answer."""
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 15,
    }
    return {
        "id": identifier,
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage,
        **more,
    }


def pieces(whole: Json) -> list[bytes]:
    """An answer as the events that OpenAI sends."""
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    shown: list[Json] = [{"type": f"response.{name}", "response": begun} for name in BEGINNINGS]
    for index, item in enumerate(whole["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        kind = item["type"]
        emptied: dict[str, Json] = {"function_call": {"arguments": ""}, "message": {"content": []}}
        empty = emptied.get(kind, {})
        added = {**item, **empty, "status": "in_progress"}
        shown.append({"type": ADDED, "output_index": index, "item": added})
        if kind == "message":
            [part] = item["content"]
            at = {**place, "content_index": 0}
            none = {**part, "text": ""}
            shown.append({"type": "response.content_part.added", **at, "part": none})
            for piece in cut(part["text"]):
                delta = {"delta": piece, "logprobs": []}
                shown.append({"type": "response.output_text.delta", **at, **delta})
            text = {"text": part["text"], "logprobs": []}
            shown.append({"type": "response.output_text.done", **at, **text})
            shown.append({"type": "response.content_part.done", **at, "part": part})
        if kind == "function_call":
            for piece in cut(item["arguments"]):
                shown.append({"type": ARGUMENTS + "delta", **place, "delta": piece})
            whole_text = {"arguments": item["arguments"], "name": item["name"]}
            shown.append({"type": ARGUMENTS + "done", **place, **whole_text})
        shown.append({"type": DONE, "output_index": index, "item": item})
    shown.append({"type": f"response.{whole['status']}", "response": whole})
    numbered = [{**one, "sequence_number": number} for number, one in enumerate(shown)]
    return [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in numbered]


BEGINNINGS = ("created", "in_progress")
ADDED = "response.output_item.added"
DONE = "response.output_item.done"
ARGUMENTS = "response.function_call_arguments."


def cut(text: str) -> list[str]:
    """A text in pieces."""
    return [text[at : at + 7] for at in range(0, len(text), 7)]


def step(whole: Json, streamed: bool) -> Answer:
    """An answer of the provider."""
    return events(*pieces(whole)) if streamed else answer(whole)


def read(body: bytes) -> Json:
    """The response that a host reads from a stream; fails where it breaks the API's rules."""
    shown = read_events(body)
    assert [one["sequence_number"] for one in shown] == list(range(len(shown)))
    begun: list[str] = []
    done: list[Json] = []
    texts: dict[str, str] = {}
    for one in shown:
        if one["type"] == ADDED:
            assert one["output_index"] == len(begun), shown
            begun.append(one["item"]["id"])
        elif one["type"] == ARGUMENTS + "delta":
            assert one["item_id"] == begun[one["output_index"]]
            texts[one["item_id"]] = texts.get(one["item_id"], "") + one["delta"]
        elif one["type"] == DONE:
            assert one["item"]["id"] == begun[one["output_index"]]
            assert len(done) == one["output_index"]
            done.append(one["item"])
            if one["item"]["type"] == "function_call":
                assert texts[one["item"]["id"]] == one["item"]["arguments"]
    last: Json = shown[-1]["response"]
    assert shown[-1]["type"] == "response.completed"
    assert [item for item in done if item["type"] != "reasoning"] == [
        item for item in last["output"] if item["type"] != "reasoning"
    ]
    assert {one["response"]["id"] for one in shown if "response" in one} == {last["id"]}
    return last


def got_response(body: bytes, streamed: bool) -> Json:
    """The response that a host got."""
    whole: Json = read(body) if streamed else json.loads(body)
    return whole


def names(sent: Sent) -> list[str]:
    """Names or types of the tools that were sent."""
    return [tool.get("name") or tool["type"] for tool in sent.json["tools"]]


def parsed(item: Json) -> Json:
    """A call with its arguments read."""
    return {**item, "arguments": json.loads(item["arguments"])}


@pytest.mark.parametrize("streamed", [True, False])
def test_a_call_goes_there_and_back_in_its_envelope(start: StartProxy, streamed: bool) -> None:
    inner = {"city": "Bern", "days": 1.0}
    called = response(
        thought("rs_1"),
        said("I look."),
        call(CALL, enveloped("mcp__weather__forecast", inner)),
        call("exec", {"command": "ls"}, "call_2"),
    )
    done = response(said("No."), identifier="resp_2")
    with serving(Provider(step(called, streamed), answer(done))) as provider:
        proxy = start(provider)
        got = proxy.ask(PATH, request(stream=streamed), {"authorization": "Bearer k"})
        assert got.note.startswith("envelope; deferred=6"), got.note
        whole = got_response(got.body, streamed)
        plain = call("mcp__weather__forecast", inner)
        assert [*map(parsed, whole["output"][2:])] == [
            parsed(plain),
            parsed(called["output"][3]),
        ]
        assert {**whole, "output": []} == {**called, "output": []}
        [first] = provider.sent
        assert names(first) == ["exec", "web_search", "local_shell", SEARCH, CALL]
        assert first.headers["authorization"] == "Bearer k"
        described = first.json["input"][0]["content"][-1]
        assert described["type"] == "input_text"
        assert described["text"].startswith(MORE)

        outputs = [
            {"type": "function_call_output", "call_id": one, "output": "dry"}
            for one in ("call_1", "call_2")
        ]
        items = [user(RAIN), *whole["output"], *outputs]
        again = proxy.ask(PATH, request(*items), {"authorization": "Bearer k"})
        assert again.json == done
        second = provider.sent[1].json
        usage = proxy.totals()["usage"]
    # The model sees its own call, and the cached prefix holds.
    assert [*map(parsed, second["input"][3:5])] == [*map(parsed, called["output"][2:])]
    assert second["input"][0] == first.json["input"][0]
    assert second["input"][1:3] == called["output"][:2]
    assert second["tools"] == first.json["tools"]
    assert usage == {"answers": 2, "input_tokens": 20, "cached_tokens": 8, "output_tokens": 10}


def test_what_is_not_edited_keeps_its_bytes(start: StartProxy) -> None:
    deferred = json.dumps(tools()[3:])[1:-1]
    own = '{"type":"function", "name" :"exec","parameters": {"n":1.50e3} }'
    body = (
        '{ "x":[1.0, 12345678901234567890123], "model":"m" ,"tools":[' + own + "," + deferred + "],"
        '"input":[{ "role":"user","content":"h\\u00e9" },'
        '{"type":"custom_tool_call","call_id":"c","name":"patch","input":"\\u00e9"},'
        '{"type":"custom_tool_call_output","call_id":"c","output":"o" },'
        '{"role":"user","content":"Will it rain in Bern?"}], "y" : {"a":1e2}}'
    )
    with serving(Provider(answer(response(said("No."))))) as provider:
        got = start(provider).ask(PATH, body.encode())
        [sent] = provider.sent
    assert got.note.startswith("envelope"), got.note
    text = sent.body.decode()
    assert text.startswith('{ "x":[1.0, 12345678901234567890123], "model":"m" ,"tools":[' + own)
    assert text.endswith(', "y" : {"a":1e2}}')
    kept = body[body.index('{ "role"') : body.index(',{"role":"user","content":"Will')]
    assert f'"input":[{kept},{{"role":"user","content":"Will it rain in Bern?' in text


@pytest.mark.parametrize("streamed", [True, False])
def test_a_search_is_answered_and_gone_on_from(start: StartProxy, streamed: bool) -> None:
    searching = response(said("Let me see. "), thought("rs_1"), call(SEARCH, FIND_MAIL, "call_s"))
    plain = call("mcp__mail__send", {"city": "x"}, "call_c")
    enveloped_call = call(CALL, enveloped("mcp__mail__send", {"city": "x"}), "call_c")
    called = response(thought("rs_2"), enveloped_call, identifier="resp_2")
    steps = [step(searching, streamed), step(called, streamed), answer(response(said("Done.")))]
    with serving(Provider(*steps)) as provider:
        proxy = start(provider)
        got = proxy.ask(PATH, request(stream=streamed))
        whole = got_response(got.body, streamed)
        output = {"type": "function_call_output", "call_id": "call_c", "output": "sent"}
        # A host that takes the items of the stream has the thoughts of the hidden search too.
        items = [searching["output"][0], thought("rs_1"), thought("rs_2"), plain, output]
        again = proxy.ask(PATH, request(user(RAIN), *items))
        first, second, third = (sent.json["input"] for sent in provider.sent)
        searches = proxy.totals()["searches"]
    assert again.note.startswith("envelope"), again.note
    shown = [searching["output"][0], thought("rs_2"), parsed(plain)]
    assert [*whole["output"][:-1], parsed(whole["output"][-1])] == shown
    assert (whole["id"], whole["status"]) == ("resp_1", "completed")
    assert whole["usage"]["input_tokens"] == 20
    assert whole["usage"]["input_tokens_details"]["cached_tokens"] == 8
    assert second[: len(first)] == first
    back = [{name: item[name] for name in item if name != "id"} for item in searching["output"]]
    *model, found = second[len(first) :]
    assert model == back
    assert (found["type"], found["call_id"]) == ("function_call_output", "call_s")
    assert "mcp__mail__send" in found["output"]
    assert MORE in found["output"], found
    assert searches == 1
    # Thoughts that led to a hidden search lead to nothing now: OpenAI would refuse them.
    assert [item.get("id") for item in third if item.get("type") == "reasoning"] == ["rs_2"]


@pytest.mark.parametrize("streamed", [True, False])
def test_a_search_before_what_the_host_sees_is_put_back(start: StartProxy, streamed: bool) -> None:
    """Thoughts want what followed them: a search, and then a message of the model's."""
    search = call(SEARCH, FIND_MAIL, "call_s")
    searching = response(thought("rs_1"), search, said("One moment."))
    done = response(said("Done.", "msg_2"), identifier="resp_2")
    bye = answer(response(said("Bye.", "msg_3"), identifier="resp_3"))
    with serving(Provider(step(searching, streamed), step(done, streamed), bye)) as provider:
        proxy = start(provider)
        whole = got_response(proxy.ask(PATH, request(stream=streamed)).body, streamed)
        items = [user(RAIN), *whole["output"], user("Thanks.")]
        got = proxy.ask(PATH, request(*items))
        first, _, third = (sent.json["input"] for sent in provider.sent)
    assert whole["output"] == [thought("rs_1"), said("One moment."), said("Done.", "msg_2")]
    assert got.note.startswith("envelope"), got.note
    kinds = [item["type"] for item in third[len(first) :]]
    assert kinds == [
        "reasoning",
        "function_call",
        "function_call_output",
        "message",
        "message",
        "message",
    ], third
    made, answered = third[len(first) + 1 :][:2]
    assert {**made, "id": search["id"]} == search
    assert answered["call_id"] == "call_s"


@pytest.mark.parametrize("streamed", [True, False])
def test_the_host_is_told_its_own_tools(start: StartProxy, streamed: bool) -> None:
    """OpenAI tells back in each answer the tools that it was sent, without what is secret."""
    server = {"type": "mcp", "server_label": "x", "server_url": "https://mcp.example"}
    secrets = {"server_url": "https://mcp.example/s3cret", "headers": {"x-key": "s3cret"}}

    def telling(*output: Json, identifier: str) -> Callable[[Sent], Answer]:
        def told(sent: Sent) -> Answer:
            assert {**server, **secrets} in sent.json["tools"]
            tools = [server if one["type"] == "mcp" else one for one in sent.json["tools"]]
            return step(response(*output, identifier=identifier, tools=tools), streamed)

        return told

    search = telling(call(SEARCH, FIND_MAIL, "call_s"), identifier="resp_1")
    with serving(Provider(search, telling(said("Done."), identifier="resp_2"))) as provider:
        listed = [*tools(), {**server, **secrets}]
        got = start(provider).ask(PATH, request(stream=streamed, tools=listed))
        assert all(SEARCH in names(sent) for sent in provider.sent)
    shown = [one["response"] for one in read_events(got.body) if "response" in one]
    for one in shown if streamed else [got.json]:
        assert one["tools"] == [*tools(), server]
    assert SEARCH not in got.body.decode()
    assert "s3cret" not in got.body.decode()


def test_a_request_that_is_passed_has_no_thoughts_of_a_hidden_search(start: StartProxy) -> None:
    searching = response(thought("rs_1"), call(SEARCH, FIND_MAIL, "call_s"))
    done = response(said("Done."), identifier="resp_2")
    steps = [step(searching, True), step(done, True), answer(response(said("Bye.")))]
    with serving(Provider(*steps)) as provider:
        proxy = start(provider)
        streamed = proxy.ask(PATH, request(stream=True))
        # Thoughts of others stay, also where nothing follows them.
        items = [thought("rs_1"), thought("rs_9"), said("Done."), user("Thanks.")]
        later = {"n": 1.0, **request(user(RAIN), *items, tools=tools()[:3])}
        passed = proxy.ask(PATH, json.dumps(later).encode())
        sent = provider.sent[2]
    assert b"rs_1" in streamed.body
    assert passed.note == "pass; reason=nothing-to-defer"
    assert sent.json == {**later, "input": [user(RAIN), *items[1:]]}
    assert sent.body.startswith(b'{"n": 1.0, "model": "m", "store": false, ')


def test_namespaces_of_codex_are_thinned_and_called(start: StartProxy) -> None:
    called = response(call(CALL, enveloped("mcp__weather__forecast", {"city": "Bern"})))
    with serving(Provider(step(called, True), answer(response(said("No."))))) as provider:
        proxy = start(provider, PATIENT + 'keep = ["mcp__mail__*"]')
        got = proxy.ask(PATH, request(tools=namespaces(), stream=True))
        assert got.note.startswith("envelope; deferred=5"), got.note
        [item] = read(got.body)["output"]
        plain = call("forecast", {"city": "Bern"}, namespace="mcp__weather")
        assert parsed(item) == parsed(plain)
        output = {"type": "function_call_output", "call_id": "call_1", "output": "dry"}
        proxy.ask(PATH, request(user(RAIN), item, output, tools=namespaces()))
        first, second = provider.sent
    [mail] = [space for space in namespaces() if space["name"] == "mcp__mail"]
    assert names(first) == ["exec", "mcp__mail", SEARCH, CALL]
    assert first.json["tools"][1] == mail
    assert parsed(second.json["input"][1]) == parsed(called["output"][0])


@pytest.mark.parametrize("streamed", [True, False])
def test_a_conversation_that_the_provider_keeps_goes_on(start: StartProxy, streamed: bool) -> None:
    searching = response(call(SEARCH, FIND_MAIL, "call_s"))
    called = response(
        call(CALL, enveloped("mcp__mail__send", {"city": "x"}), "call_c"), identifier="resp_2"
    )
    beside = response(
        call(SEARCH, {"query": "select:mcp__git__log"}, "call_b"),
        call("exec", {}, "call_e"),
        identifier="resp_3",
    )
    done = response(said("Done."), identifier="resp_4")
    steps = [step(one, streamed) for one in (searching, called, beside, done, done)]
    with serving(Provider(*steps)) as provider:
        proxy = start(provider)

        def ask(*items: Json, **more: Any) -> tuple[Json, str]:
            got = proxy.ask(PATH, request(*items, store=True, stream=streamed, **more))
            return got_response(got.body, streamed), got.note

        whole, _ = ask()
        assert whole["id"] == "resp_1"
        output = {"type": "function_call_output", "call_id": "call_c", "output": "sent"}
        second, note = ask(output, previous_response_id="resp_1")
        assert note.startswith("envelope"), note
        [plain] = second["output"]
        assert plain["name"] == "exec"
        output = {**output, "call_id": "call_e"}
        ask(output, previous_response_id="resp_3")
        unknown = request(user(RAIN), previous_response_id="resp_9", stream=streamed)
        passed = proxy.ask(PATH, json.dumps(unknown).encode())
        first, _, going_on, last, other = provider.sent
    assert MORE in json.dumps(first.json["input"])
    # The provider knows the turn by the answer behind the hidden search.
    assert going_on.json["previous_response_id"] == "resp_2"
    assert going_on.json["input"] == [{**output, "call_id": "call_c"}]
    assert names(going_on) == names(first)
    # A search beside a call of the host's has an answer too, and its tools are described.
    assert last.json["previous_response_id"] == "resp_3"
    hidden, shown = last.json["input"]
    assert (hidden["type"], hidden["call_id"]) == ("function_call_output", "call_b")
    assert shown["call_id"] == "call_e"
    assert '"mcp__git__log"' in shown["output"]
    assert passed.note == "pass; reason=unknown-history"
    assert other.body == json.dumps(unknown).encode()


NATIVE = PATIENT.replace("envelope", "native")


def searched(query: Json, identifier: str = "ts_1") -> Json:
    """A search by the API's own tool."""
    return {
        "type": "tool_search_call",
        "id": identifier,
        "call_id": f"call_{identifier}",
        "execution": "client",
        "arguments": query,
        "status": "completed",
    }


def added(items: list[Json]) -> list[str]:
    """Names of the tools that are added amid a conversation."""
    additions = [item for item in items if item.get("type") == "additional_tools"]
    assert all(item["role"] == "developer" for item in additions)
    return [tool["name"] for item in additions for tool in item["tools"]]


@pytest.mark.parametrize("streamed", [True, False])
def test_native_adds_tools_amid_the_conversation(start: StartProxy, streamed: bool) -> None:
    searching = response(said("Let me see. "), thought("rs_1"), searched(FIND_MAIL))
    send = call("mcp__mail__send", {"city": "x"}, "call_c")
    called = response(thought("rs_2"), send, identifier="resp_2")
    steps = [step(searching, streamed), step(called, streamed), answer(response(said("Done.")))]
    with serving(Provider(*steps)) as provider:
        proxy = start(provider, NATIVE)
        got = proxy.ask(PATH, request(stream=streamed))
        assert got.note.startswith("native; deferred=6"), got.note
        whole = got_response(got.body, streamed)
        output = {"type": "function_call_output", "call_id": "call_c", "output": "sent"}
        # A host that takes the items of the stream has the thoughts of the hidden search too.
        items = [searching["output"][0], thought("rs_1"), thought("rs_2"), send, output]
        again = proxy.ask(PATH, request(user(RAIN), *items))
        first, second, third = (sent.json for sent in provider.sent)
        assert names(provider.sent[0]) == ["exec", "web_search", "local_shell", "tool_search"]
    assert again.note.startswith("native"), again.note
    assert first["tools"][3]["execution"] == "client"
    # What the host says keeps its place, and the tools of the turn stand behind it.
    assert first["input"][0] == user(RAIN)
    assert "mcp__weather__forecast" in added(first["input"])
    assert "toolgate" not in json.dumps(first["input"])
    # The host sees one answer, without the search.
    assert whole["output"] == [searching["output"][0], thought("rs_2"), send]
    assert (whole["id"], whole["status"]) == ("resp_1", "completed")
    assert whole["usage"]["input_tokens"] == 20
    # The model has its search back, with the definition that it found.
    assert second["tools"] == first["tools"]
    assert second["input"][: len(first["input"])] == first["input"]
    back = [{name: item[name] for name in item if name != "id"} for item in searching["output"]]
    *model, found, counted = second["input"][len(first["input"]) :]
    assert model == back
    assert found == {
        "type": "tool_search_output",
        "execution": "client",
        "call_id": "call_ts_1",
        "status": "completed",
        "tools": [{**function("mcp__mail__send", TOOLS["mcp__mail__send"]), "strict": False}],
    }
    assert counted["role"] == "developer"
    shown = added(first["input"])
    assert json.loads(counted["content"]) == {"deferred_tools": len(TOOLS) - len(shown)}
    # Later requests have additions in the same places, what was found among them, and no search.
    assert third["tools"] == first["tools"]
    assert third["input"][: len(first["input"])] == first["input"]
    thoughts = [item["id"] for item in third["input"] if item.get("type") == "reasoning"]
    assert thoughts == ["rs_2"]
    assert "tool_search_call" not in json.dumps(third["input"])
    assert added(third["input"]).count("mcp__mail__send") == 1


def test_native_tools_of_namespaces_are_called_in_them(start: StartProxy) -> None:
    called = response(call("mcp__weather__forecast", {"city": "Bern"}))
    with serving(Provider(step(called, True), answer(response(said("No."))))) as provider:
        proxy = start(provider, NATIVE)
        got = proxy.ask(PATH, request(tools=namespaces(), stream=True))
        assert got.note.startswith("native; deferred=6"), got.note
        [item] = read(got.body)["output"]
        plain = call("forecast", {"city": "Bern"}, namespace="mcp__weather")
        assert parsed(item) == parsed(plain)
        output = {"type": "function_call_output", "call_id": "call_1", "output": "dry"}
        proxy.ask(PATH, request(user(RAIN), item, output, tools=namespaces()))
        first, second = (sent.json["input"] for sent in provider.sent)
    assert second[: len(first)] == first
    assert parsed(second[len(first)]) == parsed(called["output"][0])


@pytest.mark.parametrize("more", [{"store": True}, {"store": None}])
def test_native_is_the_envelope_where_the_provider_keeps_the_conversation(
    start: StartProxy, more: Json
) -> None:
    done = answer(response(said("No.")))
    with serving(Provider(done)) as provider:
        got = start(provider, NATIVE).ask(PATH, request(**more))
        assert got.note.startswith("envelope"), got.note
        assert CALL in names(provider.sent[0])


def test_a_search_by_the_apis_own_tool_for_nothing_is_told_how_to_search(
    start: StartProxy,
) -> None:
    searching = response(searched({}))
    with serving(Provider(answer(searching), answer(response(said("No."))))) as provider:
        start(provider, NATIVE).ask(PATH, request())
        sent = provider.sent[1].json["input"]
    output, told = sent[-2:]
    assert (output["type"], output["tools"]) == ("tool_search_output", [])
    assert told["role"] == "developer"
    assert "Say in `query`" in told["content"]


def test_a_search_by_the_apis_own_tool_that_finds_nothing_is_told_why(start: StartProxy) -> None:
    searching = response(searched({"query": "+xylophone"}))
    with serving(Provider(answer(searching), answer(response(said("No."))))) as provider:
        start(provider, NATIVE).ask(PATH, request())
        sent = provider.sent[1].json["input"]
    output, told = sent[-2:]
    assert (output["type"], output["tools"]) == ("tool_search_output", [])
    assert told["role"] == "developer"
    assert "No tool fits" in told["content"]
    assert "xylophone" not in told["content"], "the developer repeats no words of the model's"


def test_a_refused_native_request_leaves_the_model_the_envelope(
    start_afresh: StartProxy,
) -> None:
    refusal = answer({"error": {"message": "additional_tools", "type": "invalid"}}, 400)
    done = answer(response(said("No.")))
    with serving(Provider(refusal, done, done)) as provider:
        proxy = start_afresh(provider, NATIVE)
        asked = json.dumps(request(), indent=1).encode()
        refused = proxy.ask(PATH, asked)
        later = proxy.ask(PATH, asked)
        assert provider.sent[1].body == asked
        assert "additional_tools" not in json.dumps(provider.sent[2].json)
    assert refused.note == "pass; reason=refused"
    assert later.note.startswith("envelope"), later.note


def test_a_search_that_the_provider_refuses_back_is_followed_by_the_original(
    start_afresh: StartProxy,
) -> None:
    searching = step(response(searched(FIND_MAIL)), True)
    refusal = answer({"error": {"message": "tool_search_call", "type": "invalid"}}, 400)
    done = response(call("mcp__mail__send", {"city": "x"}), identifier="resp_2")
    with serving(Provider(searching, refusal, step(done, True))) as provider:
        asked = json.dumps(request(stream=True), indent=1).encode()
        got = start_afresh(provider, NATIVE).ask(PATH, asked)
        assert provider.sent[2].body == asked
    assert read(got.body)["output"] == done["output"]


def test_a_conversation_that_the_provider_keeps_is_made_shorter(start: StartProxy) -> None:
    searching = response(thought("rs_1"), call(SEARCH, FIND_MAIL, "call_s"))
    done = response(said("Done."), identifier="resp_2")
    shorter = {"id": "cmp_1", "object": "response.compaction", "output": []}
    steps = [step(searching, True), step(done, True), answer(shorter), answer(shorter)]
    with serving(Provider(*steps)) as provider:
        proxy = start(provider)
        proxy.ask(PATH, request(store=True, stream=True))
        compact = {
            "n": 1.0,
            "model": "m",
            "previous_response_id": "resp_1",
            "input": [thought("rs_1")],
        }
        got = proxy.ask(f"{PATH}/compact", json.dumps(compact).encode())
        other = json.dumps({**compact, "previous_response_id": "resp_9", "input": "x"}, indent=1)
        proxy.ask(f"{PATH}/compact", other.encode())
        sent, unknown = provider.sent[2:]
    assert (got.json, got.note) == (shorter, "pass; reason=no-chat")
    # The provider knows the turn by the answer behind the hidden search.
    assert sent.path == "/v1/responses/compact"
    assert sent.json == {**compact, "previous_response_id": "resp_2", "input": []}
    assert unknown.body == other.encode()


@pytest.mark.parametrize("streamed", [True, False])
def test_a_kept_turn_is_fetched_as_the_host_saw_it_and_deleted_whole(
    start: StartProxy, streamed: bool
) -> None:
    """OpenAI keeps an answer for each request of the turn; the host knows the first one's ID."""
    search = call(SEARCH, FIND_MAIL, "call_s")
    send = call(CALL, enveloped("mcp__mail__send", {"city": "x"}), "call_c")
    ours = [*tools()[:3], function(SEARCH, "."), function(CALL, ".")]
    first = response(thought("rs_1"), search, tools=ours)
    second = response(thought("rs_2"), send, identifier="resp_2", tools=ours)
    gone = {"id": "resp_1", "object": "response", "deleted": True}
    error = {"error": {"message": "later", "type": "server_error"}}
    late = answer(error, 503)
    turn = [step(first, streamed), step(second, streamed)]
    fetches = [answer(first), answer(second), late, answer(first), late]
    deletions = [late, answer({**gone, "id": "resp_2"}), answer(gone)]
    with serving(Provider(*turn, *fetches, *deletions)) as provider:
        proxy = start(provider)
        asked = request(store=True, stream=streamed)
        whole = got_response(proxy.ask(PATH, asked).body, streamed)
        place = f"{PATH}/{whole['id']}"
        fetched = proxy.ask(f"{place}?include[]=x", method="GET")
        failed = [proxy.ask(place, method="GET").status for _ in range(2)]
        deletion = [proxy.ask(place, method="DELETE") for _ in range(2)]
        sent = [(one.method, one.path) for one in provider.sent[2:]]
    assert fetched.note == "restored; answers=2"
    assert fetched.json == whole
    assert whole["tools"] == tools()
    assert [item["type"] for item in whole["output"]] == ["reasoning", "function_call"]
    assert failed == [503, 503], "half a turn is none"
    assert [(got.status, got.json) for got in deletion] == [(503, error), (200, gone)]
    one, two = "/v1/responses/resp_1", "/v1/responses/resp_2"
    assert sent[:2] == [("GET", f"{one}?include[]=x"), ("GET", f"{two}?include[]=x")]
    assert sent[2:5] == [("GET", one), ("GET", one), ("GET", two)]
    # The one that the host knows goes last, so that it can be asked for again.
    assert sent[5:] == [("DELETE", two), ("DELETE", two), ("DELETE", one)]


def test_the_items_of_a_kept_request_are_those_of_the_host(start: StartProxy) -> None:
    done = answer(response(said("No."), identifier="resp_1"))

    def items(sent: Sent) -> Answer:
        assert sent.path.endswith("/resp_1/input_items?limit=9")
        kept = [{"id": f"i{at}", **item} for at, item in enumerate(provider.sent[0].json["input"])]
        return answer({"object": "list", "data": kept[::-1], "has_more": False})

    made = [call("mcp__git__log", {"city": "x"}), said("Well.")]
    output = {"type": "function_call_output", "call_id": "call_1", "output": "none"}
    asked = [user("The log?"), made[0], output, made[1], user(RAIN)]
    with serving(Provider(done, items)) as provider:
        proxy = start(provider)
        proxy.ask(PATH, request(*asked, store=True))
        got = proxy.ask(f"{PATH}/resp_1/input_items?limit=9", method="GET")
        assert MORE in json.dumps(provider.sent[0].json["input"])
        assert CALL in json.dumps(provider.sent[0].json["input"])
    shown = [{name: item[name] for name in item if name != "id"} for item in got.json["data"]]
    expected = [{name: item[name] for name in item if name != "id"} for item in asked[::-1]]
    assert [*map(with_read_arguments, shown)] == [*map(with_read_arguments, expected)]


def with_read_arguments(item: Json) -> Json:
    """An item, with its arguments read if it is a call."""
    return parsed(item) if "arguments" in item else item


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_an_answer_that_was_not_rewritten_is_asked_for_as_it_is(
    start: StartProxy, method: str
) -> None:
    kept = json.dumps(response(call(SEARCH, FIND_MAIL), identifier="resp_9"), indent=1).encode()
    with serving(Provider(Answer([kept]))) as provider:
        got = start(provider).ask(f"{PATH}/resp_9", method=method)
        [sent] = provider.sent
    assert (got.body, got.note) == (kept, "pass; reason=no-chat")
    assert (sent.method, sent.path) == (method, "/v1/responses/resp_9")


def test_a_refused_request_is_sent_once_more_as_it_came(start: StartProxy) -> None:
    refusal = answer({"error": {"message": "tools", "type": "invalid_request_error"}}, 400)
    done = response(said("No."))
    with serving(Provider(refusal, answer(done))) as provider:
        proxy = start(provider)
        asked = json.dumps(request(model=proxy.unique), indent=1).encode()
        got = proxy.ask(PATH, asked)
        assert (got.status, got.json, got.note) == (200, done, "pass; reason=refused")
        assert provider.sent[1].body == asked


def test_an_error_behind_a_search_ends_the_stream(start: StartProxy) -> None:
    searching = response(call(SEARCH, FIND_MAIL, "call_s"))
    error = {"error": {"message": "later", "type": "server_error", "code": None}}
    with serving(Provider(step(searching, True), answer(error, 529, retry_after="60"))) as provider:
        got = start(provider).ask(PATH, request(stream=True))
    failed = read_events(got.body)[-1]
    assert (failed["type"], failed["response"]["id"]) == ("response.failed", "resp_1")
    assert failed["response"]["error"] == {"code": "server_error", "message": "later"}


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"conversation": "conv_1"}, "unknown-history"),
        ({"background": True}, "background"),
        ({"tools": [{"type": "tool_search"}, *tools()]}, "host-defers"),
        (
            {"input": [{"type": "additional_tools", "role": "developer", "tools": []}]},
            "host-defers",
        ),
        ({"input": [said("x")]}, "no-request"),
        ({"tools": [{"type": "web_search"}]}, "nothing-to-defer"),
    ],
)
def test_in_doubt_the_original_goes_up(start: StartProxy, more: Json, reason: str) -> None:
    asked = json.dumps(request(**more), indent=1).encode()
    with serving(Provider(answer(response(said("No."))))) as provider:
        got = start(provider).ask(PATH, asked)
        assert got.note == f"pass; reason={reason}"
        assert provider.sent[0].body == asked


def test_the_sdk_of_openai_reads_a_turn_with_a_search(start: StartProxy) -> None:
    searching = response(said("Let me see. "), thought("rs_1"), call(SEARCH, FIND_MAIL, "call_s"))
    called = response(
        thought("rs_2"),
        call(CALL, enveloped("mcp__mail__send", {"city": "x"}), "call_c"),
        identifier="resp_2",
    )
    with serving(Provider(step(searching, True), step(called, True))) as provider:
        proxy = start(provider)
        url = f"http://127.0.0.1:{proxy.port}/openai/v1"
        given: Json = {**request(), "input": RAIN}
        with (
            openai.OpenAI(base_url=url, api_key=proxy.unique, max_retries=0) as client,
            client.responses.stream(**given) as stream,
        ):
            whole = stream.get_final_response()
        assert len(provider.sent) == 2
    assert whole.id == "resp_1"
    [text, _, made] = whole.output
    assert text.type == "message"
    assert whole.output_text == "Let me see. "
    assert made.type == "function_call"
    assert (made.call_id, made.name, json.loads(made.arguments)) == (
        "call_c",
        "mcp__mail__send",
        {"city": "x"},
    )
    assert whole.usage is not None
    assert whole.usage.total_tokens == 30


def test_codex_is_told_of_its_proxy_by_an_argument(binary: Path, tmp_path: Path) -> None:
    codex = tmp_path / "codex"
    codex.write_text(f"#!{sys.executable}\nimport sys\nprint(sys.argv[1:])\n")
    codex.chmod(0o755)
    (tmp_path / "llm.toml").write_text("")

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(binary), "run", "--", str(codex), *arguments],
            cwd=tmp_path,
            env={**command_environment(), **environment},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    told = run("exec", "x", CODEX_API_KEY="k")
    assert told.stdout.startswith("['-c', 'openai_base_url=\"http://127.0.0.1:"), told
    assert told.stdout.endswith("/openai/v1\"', 'exec', 'x']\n"), told
    named = run("exec", OPENAI_BASE_URL="https://models.example/codex")
    assert "/openai\"', 'exec']" in named.stdout, named
    own = run("-c", 'openai_base_url="https://own.example"', CODEX_API_KEY="k")
    assert own.stdout.count("openai_base_url") == 1, own
    unknown = run("exec")
    assert unknown.stdout == "['exec']\n", unknown
    assert "goes past the proxy" in unknown.stderr, unknown
