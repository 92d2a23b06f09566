"""`toolgate llm` for a company: price, Gate, tenants and their shares, deadlines, metrics."""

import json
import re
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
import test_llm_proxy_gemini as gemini
import test_llm_proxy_responses as responses
from conftest import StartProxy
from credentials import Keys
from llm_provider import Answer, Json, Provider, Proxy, Sent, answer, events, serving
from llm_tools import CALL, MORE, PATIENT, PRICED, SEARCH, enveloped, read_events
from test_llm_proxy_envelope import (
    anthropic_answer,
    anthropic_events,
    anthropic_request,
    chat_answer,
    chat_call,
    chat_events,
    chat_request,
    names,
    read_anthropic,
    use,
)
from toolgate_command import run
from waiting import PATIENCE, wait_until

AUTO = PATIENT.replace("envelope", "auto")
CUT = PATIENT.replace("envelope", "cut")
ENFORCE = PATIENT + 'gate = "enforce"\n'
WORDS = "Shows what there is, with all that one may want to know of it. "
DONE = anthropic_answer({"type": "text", "text": "No."})
RULES = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}
"""A schema that arguments may break."""


def many(count: int) -> list[Json]:
    """Tools of as many servers' catalogs as hosts have."""
    return [
        {
            "name": f"mcp__server{number % 7}__tool_{number}",
            "description": f"Tool {number}. {WORDS * 4}",
            "input_schema": RULES,
        }
        for number in range(count)
    ]


def series(proxy: Proxy, name: str) -> dict[str, float]:
    """The values of a metric, by their labels."""
    text = proxy.ask("/metrics", method="GET").body.decode()
    found = re.findall(rf"^{name}(?:\{{(.*)\}})? (\S+)$", text, re.MULTILINE)
    return {labels: float(value) for labels, value in found}


def priced(proxy: Proxy, count: int, *more: Json) -> str:
    """Returns what is done with a conversation that begins with so many tools and one message."""
    own = anthropic_request()["tools"][0]
    user = {"role": "user", "content": "Show me tool 7 of server 0, please."}
    request = anthropic_request(user, *more, tools=[own, *many(count)])
    return proxy.ask("/anthropic/v1/messages", request).note


def test_many_tools_are_deferred_by_the_cheapest_strategy(
    start: StartProxy,
) -> None:
    with serving(Provider(*[answer(DONE)] * 9_999)) as provider:
        proxy = start(provider, AUTO)
        assert priced(proxy, 3) == "pass; reason=few-tools"
        assert len(provider.sent[-1].json["tools"]) == 4
        # A slow machine takes longer for new tools than a request waits.
        wait_until(lambda: priced(proxy, 60) != "pass; reason=new-tools")
        note = priced(proxy, 60)
        # Too short for the provider's cache, or described: never all of them.
        assert re.match(r"(cut|envelope); deferred=60", note), note
        assert len(provider.sent[-1].json["tools"]) < 40
        said = {"role": "assistant", "content": WORDS * 200}
        note = priced(proxy, 60, said, {"role": "user", "content": "And tool 8?"})
        # A base URL that is not the provider's own takes no tools amid a conversation.
        assert note.startswith("envelope; deferred=60"), note
        assert "anthropic-beta" not in provider.sent[-1].headers
        assert proxy.totals()["passed"]["few-tools"] == 1


def test_a_conversation_whose_tools_cost_less_than_deferring_them_keeps_them(
    start: StartProxy,
) -> None:
    with serving(Provider(*[answer(DONE)] * 9)) as provider:
        proxy = start(provider, AUTO + 'defer_above = "100"\n')
        assert priced(proxy, 2) == "pass; reason=cheaper"
        said = {"role": "assistant", "content": WORDS * 200}
        more = [said, {"role": "user", "content": "And tool 8?"}]
        assert priced(proxy, 2, *more) == "pass; reason=cheaper"
        assert [len(sent.json["tools"]) for sent in provider.sent] == [3, 3]
        assert proxy.totals()["passed"] == {"cheaper": 2}


def test_cut_sends_the_tools_of_the_turn_and_no_envelope(
    start: StartProxy,
) -> None:
    called = anthropic_answer(use("mcp__weather__forecast", {"city": "Bern"}))
    with serving(Provider(answer(called))) as provider:
        got = start(provider, CUT).ask("/anthropic/v1/messages", anthropic_request())
        [sent] = provider.sent
    assert got.note.startswith("cut; deferred=6"), got.note
    assert got.json == called
    assert names(sent)[:2] == ["Bash", SEARCH]
    assert "mcp__weather__forecast" in names(sent)
    assert CALL not in names(sent)
    assert MORE not in json.dumps(sent.json["messages"])


def test_a_refused_native_request_leaves_the_model_the_envelope(
    start_afresh: StartProxy,
) -> None:
    refusal = answer({"type": "error", "error": {"message": "tool_addition"}}, 400)
    native = PATIENT.replace("envelope", "native")
    model = {"model": "claude-opus-5-5"}
    with serving(Provider(refusal, answer(DONE), answer(DONE))) as provider:
        proxy = start_afresh(provider, native)
        refused = proxy.ask("/anthropic/v1/messages", anthropic_request(**model))
        later = proxy.ask("/anthropic/v1/messages", anthropic_request(**model))
        assert "anthropic-beta" not in provider.sent[2].headers
    assert refused.note == "pass; reason=refused"
    assert later.note.startswith("envelope"), later.note


def with_rules(request: Json) -> Json:
    """A request whose tools have arguments that they need."""
    for tool in request["tools"]:
        if "function" in tool:
            tool["function"]["parameters"] = RULES
        else:
            tool["input_schema"] = RULES
    return request


def test_calls_are_observed_and_nothing_changes(start_afresh: StartProxy) -> None:
    wrong = anthropic_answer(
        use(CALL, enveloped("mcp__weather__forecast", {"city": 7}), "toolu_1"),
        use(CALL, enveloped("mcp__weather__forecast", {"city": "Bern"}), "toolu_2"),
        use("mcp__weather__no_such_tool", {}, "toolu_3"),
        use("Bash", {"command": "ls"}, "toolu_4"),
    )
    with serving(Provider(answer(wrong), events(*anthropic_events(wrong)))) as provider:
        proxy = start_afresh(provider)
        got = proxy.ask("/anthropic/v1/messages", with_rules(anthropic_request()))
        streamed = proxy.ask("/anthropic/v1/messages", with_rules(anthropic_request(stream=True)))
        expected = {"allowed": 2, "arguments_invalid": 2, "unknown_tool": 2}
        wait_until(lambda: proxy.totals()["calls"] == expected, lambda: str(proxy.totals()))
        assert len(provider.sent) == 2
        gated = series(proxy, "toolgate_llm_gated_calls_total")
    assert got.json["content"][0] == use("mcp__weather__forecast", {"city": 7}, "toolu_1")
    assert len(read_anthropic(streamed.body)["content"]) == 4
    assert gated['outcome="arguments_invalid"'] == 2


@pytest.mark.parametrize("streamed", [True, False])
def test_the_model_corrects_a_refused_call_and_the_host_sees_the_other(
    start: StartProxy, streamed: bool
) -> None:
    wrong = anthropic_answer(
        {"type": "text", "text": "I look. "},
        use(CALL, enveloped("mcp__weather__forecast", {"city": 7}), "toolu_1"),
        use("Bash", {"command": "ls"}, "toolu_2"),
    )
    right = anthropic_answer(
        use(CALL, enveloped("mcp__weather__forecast", {"city": "Bern"}), "toolu_3")
    )

    def step(message: Json) -> Answer:
        return events(*anthropic_events(message)) if streamed else answer(message)

    with serving(Provider(step(wrong), step(right))) as provider:
        proxy = start(provider, ENFORCE)
        request = with_rules(anthropic_request(stream=streamed))
        got = proxy.ask("/anthropic/v1/messages", request)
        first, second = (sent.json["messages"] for sent in provider.sent)
        shown = proxy.totals()
    message = read_anthropic(got.body) if streamed else got.json
    assert message["content"] == [
        wrong["content"][0],
        use("mcp__weather__forecast", {"city": "Bern"}, "toolu_3"),
    ]
    assert message["usage"]["output_tokens"] == 10
    said, told = second[len(first) :]
    assert said["content"] == wrong["content"]
    refused, not_run = (block for block in told["content"] if block["type"] == "tool_result")
    assert refused["tool_use_id"] == "toolu_1"
    assert json.loads(refused["content"])["error"] == "arguments_invalid"
    assert "/city" in refused["content"]
    assert not_run["content"].startswith("Not run"), not_run
    assert shown["refusal_requests"] == 1
    assert shown["calls"] == {"allowed": 1, "arguments_invalid": 1}


@pytest.mark.parametrize("streamed", [True, False])
def test_chat_completions_are_corrected_too(start: StartProxy, streamed: bool) -> None:
    wrong = chat_call(CALL, enveloped("mcp__mail__send", {}), "k1")
    right = chat_call(CALL, enveloped("mcp__mail__send", {"city": "x"}), "k2")

    def step(call: Json) -> Answer:
        return events(*chat_events(call)) if streamed else answer(chat_answer(call))

    with serving(Provider(step(wrong), step(right))) as provider:
        proxy = start(provider, ENFORCE)
        request = with_rules(chat_request(stream=streamed))
        got = proxy.ask("/openai/v1/chat/completions", request)
        second = provider.sent[1].json["messages"]
    assert (second[2]["tool_calls"], second[3]["tool_call_id"]) == ([wrong], "k1")
    assert json.loads(second[3]["content"])["error"] == "arguments_invalid"
    if streamed:
        pieces = [
            piece
            for chunk in read_events(got.body)
            for choice in chunk["choices"]
            for piece in choice["delta"].get("tool_calls", [])
        ]
        assert {piece["index"] for piece in pieces} == {0}
        assert pieces[0]["id"] == "k2"
        written = "".join(piece["function"]["arguments"] for piece in pieces)
    else:
        [call] = got.json["choices"][0]["message"]["tool_calls"]
        assert call["id"] == "k2"
        written = call["function"]["arguments"]
    assert json.loads(written) == {"city": "x"}


@pytest.mark.parametrize("streamed", [True, False])
def test_responses_are_corrected_too(start: StartProxy, streamed: bool) -> None:
    patch = {"type": "custom_tool_call", "id": "ctc", "call_id": "k3", "name": "patch"}
    patch |= {"input": "x", "status": "completed"}
    wrong = responses.response(
        responses.said("I look. "),
        responses.thought("rs_1"),
        responses.call(CALL, enveloped("mcp__mail__send", {"city": 7}), "k1"),
        responses.call("send", {}, "k2", namespace="mcp__own"),
        patch,
    )
    right = responses.response(
        responses.call(CALL, enveloped("mcp__mail__send", {"city": "x"}), "k4"),
        identifier="resp_2",
    )
    inner = responses.function("send", "Sends.")
    own = [{"type": "namespace", "name": "mcp__own", "description": "", "tools": [inner]}]
    tools = [*responses.namespaces(), *own, {"type": "custom", "name": "patch"}]
    with serving(
        Provider(responses.step(wrong, streamed), responses.step(right, streamed))
    ) as provider:
        proxy = start(provider, ENFORCE + 'keep = ["mcp__own*"]\n')
        request = responses.request(tools=tools, stream=streamed)
        got = proxy.ask(responses.PATH, request)
        first, second = (sent.json["input"] for sent in provider.sent)
        shown = proxy.totals()
    whole = responses.got_response(got.body, streamed)
    text, call = whole["output"]
    plain = responses.call("send", {"city": "x"}, "k4", namespace="mcp__mail")
    assert (text, responses.parsed(call)) == (
        wrong["output"][0],
        responses.parsed(plain),
    )
    assert (whole["id"], whole["usage"]["input_tokens"]) == ("resp_1", 20)
    *_, refused, not_run, custom = second[len(first) :]
    assert [item["call_id"] for item in (refused, not_run, custom)] == [
        "k1",
        "k2",
        "k3",
    ]
    assert json.loads(refused["output"])["error"] == "arguments_invalid"
    assert not_run["output"].startswith("Not run"), not_run
    assert custom["type"] == "custom_tool_call_output"
    assert shown["calls"] == {"allowed": 1, "arguments_invalid": 1}


@pytest.mark.parametrize("streamed", [True, False])
def test_calls_that_no_text_answers_are_observed(start: StartProxy, streamed: bool) -> None:
    shell = {
        "type": "local_shell_call",
        "id": "ls",
        "call_id": "k2",
        "status": "completed",
    }
    wrong = responses.response(
        responses.call(CALL, enveloped("mcp__mail__send", {"city": 7}), "k1"), shell
    )
    with serving(Provider(responses.step(wrong, streamed))) as provider:
        proxy = start(provider, ENFORCE)
        got = proxy.ask(responses.PATH, responses.request(stream=streamed))
        expected = {"arguments_invalid": 1}
        wait_until(lambda: proxy.totals()["calls"] == expected, lambda: str(proxy.totals()))
    call, other = responses.got_response(got.body, streamed)["output"]
    assert (call["name"], other) == ("mcp__mail__send", shell)


@pytest.mark.parametrize("streamed", [True, False])
def test_gemini_is_corrected_too(start: StartProxy, streamed: bool) -> None:
    wrong = gemini.response(
        {"text": "I look. "},
        gemini.call(CALL, enveloped("mcp_git_log", {"city": 7}), thoughtSignature="czE="),
        gemini.call(SEARCH, {"query": "mail"}),
        gemini.call("read_file", {}),
    )
    right = gemini.response(gemini.call(CALL, enveloped("mcp_git_log", {"city": "x"})))
    step = answer(wrong)
    if streamed:
        # All in one event.
        step = events(f"data: {json.dumps(wrong)}\r\n\r\n".encode())
    with serving(Provider(step, gemini.step(right, streamed))) as provider:
        proxy = start(provider, ENFORCE)
        path = (gemini.STREAM if streamed else gemini.WHOLE).replace("gemini-3-pro", proxy.unique)
        got = proxy.ask(path, gemini.request())
        first, second = (sent.json["contents"] for sent in provider.sent)
        shown = proxy.totals()
        metrics = series(proxy, "toolgate_llm_requests_total")
        labels = f'api="gemini",model="{proxy.unique}",strategy="envelope",reason=""'
    plain = gemini.call("mcp_git_log", {"city": "x"})
    whole = gemini.read(got.body, streamed)
    assert gemini.parts_of(whole) == [{"text": "I look. "}, plain]
    assert whole["usageMetadata"]["candidatesTokenCount"] == 10
    said, told = second[len(first) :]
    assert said["parts"] == gemini.parts_of(wrong)
    told = [part["functionResponse"] for part in told["parts"] if "functionResponse" in part]
    assert [one["name"] for one in told] == [CALL, SEARCH, "read_file"]
    assert json.loads(told[0]["response"]["output"])["error"] == "arguments_invalid"
    assert told[2]["response"]["output"].startswith("Not run")
    assert shown["calls"] == {"allowed": 1, "arguments_invalid": 1}
    assert [one for one in metrics if f'"{proxy.unique}"' in one] == [labels]


@pytest.mark.parametrize("streamed", [True, False])
def test_what_is_cut_is_called_in_its_namespace_and_stays(
    start: StartProxy, streamed: bool
) -> None:
    called = responses.response(responses.call("mcp__weather__forecast", {"city": "Bern"}))
    with serving(Provider(*[responses.step(called, streamed)] * 2)) as provider:
        proxy = start(provider, CUT)
        more: Json = {
            "tools": responses.namespaces(),
            "stream": streamed,
            "store": True,
        }
        got = proxy.ask(responses.PATH, responses.request(**more))
        assert got.note.startswith("cut; deferred=6"), got.note
        output = {"type": "function_call_output", "call_id": "call_1", "output": "dry"}
        following = responses.request(output, previous_response_id="resp_1", **more)
        assert proxy.ask(responses.PATH, following).note.startswith("cut")
        first, second = provider.sent
    [call] = responses.got_response(got.body, streamed)["output"]
    plain = responses.call("forecast", {"city": "Bern"}, namespace="mcp__weather")
    assert responses.parsed(call) == responses.parsed(plain)
    assert "mcp__weather__forecast" in responses.names(first)
    assert responses.names(second) == responses.names(first)


@pytest.mark.parametrize("is_kept", [True, False])
def test_the_newer_apis_have_a_price_too(start: StartProxy, is_kept: bool) -> None:
    done = responses.response(responses.said("No."))
    given = [
        responses.function(one["name"], one["description"]) | {"parameters": one["input_schema"]}
        for one in many(60)
    ]
    functions: list[Json] = [
        {
            "name": one["name"],
            "description": one["description"],
            "parameters": gemini.OPEN_API,
        }
        for one in given
    ]
    with serving(
        Provider(*[answer(done)] * 4, answer(gemini.response({"text": "No."})))
    ) as provider:
        proxy = start(provider, AUTO + 'defer_above = "100"\n')
        asked = responses.request(responses.user("Show me tool 7."), tools=given, store=is_kept)
        note = proxy.ask(responses.PATH, asked).note
        kinds = "envelope" if is_kept else "(cut|envelope)"
        assert re.match(rf"{kinds}; deferred=60", note), note
        following = asked | {"previous_response_id": "resp_1"}
        note = proxy.ask(responses.PATH, following).note
        expected = "envelope; deferred=60" if is_kept else "pass; reason=unknown-history"
        assert note.startswith(expected), note
        few = asked | {"tools": given[:2]}
        assert proxy.ask(responses.PATH, few).note == "pass; reason=cheaper"
        assert proxy.ask(responses.PATH, few).note == "pass; reason=cheaper"
        asked = gemini.request(tools=[{"functionDeclarations": functions}])
        note = proxy.ask(gemini.WHOLE, asked).note
        assert re.match(r"(cut|envelope); deferred=60", note), note


@pytest.mark.parametrize("streamed", [True, False])
def test_a_model_that_insists_is_let_through(start: StartProxy, streamed: bool) -> None:
    def insist(_sent: Sent) -> Answer:
        wrong = anthropic_answer(use(CALL, enveloped("mcp__mail__send", {}), "toolu_1"))
        return events(*anthropic_events(wrong)) if streamed else answer(wrong)

    with serving(Provider(*[insist] * 9)) as provider:
        proxy = start(provider, ENFORCE)
        request = with_rules(anthropic_request(stream=streamed))
        got = proxy.ask("/anthropic/v1/messages", request)
        assert len(provider.sent) == 4
        expected = {"arguments_invalid": 4}
        wait_until(lambda: proxy.totals()["calls"] == expected, lambda: str(proxy.totals()))
    message = read_anthropic(got.body) if streamed else got.json
    assert message["content"] == [use("mcp__mail__send", {}, "toolu_1")]


def test_tenants_are_known_by_their_keys_and_see_their_own(
    binary: Path, start_afresh: StartProxy, tmp_path: Path
) -> None:
    keys = Keys(binary, tmp_path / "keys")
    acme = keys.create("agent", tenant="acme")["key"]
    other = keys.create("agent", tenant="other")["key"]
    admin = keys.create("admin", tenant="")["key"]
    place = tmp_path / "place"
    place.write_text(f"{tmp_path / 'keys' / 'data'}\n")
    settings = f'{PATIENT}key_store = "file:{place}"\n'
    with serving(Provider(*[answer(DONE)] * 9)) as provider:
        proxy = start_afresh(provider, settings)

        def ask(key: str, **more: Any) -> Any:
            headers = {"X-Api-Key": "sk-provider"}
            headers.update({"X-Toolgate-Key": key} if key else {})
            return proxy.ask("/anthropic/v1/messages", anthropic_request(**more), headers)

        missing = ask("")
        assert (missing.status, missing.json["type"]) == (401, "error")
        assert ask("tg_wrong").status == 401
        assert provider.sent == []
        assert ask(acme).note.startswith("envelope")
        assert ask(acme, model="n").note.startswith("envelope")
        assert ask(other).note.startswith("envelope")
        sent = provider.sent[0].headers
        assert sent["x-api-key"] == "sk-provider"
        assert "x-toolgate-key" not in sent

        def usage(key: str) -> Any:
            headers = {"X-Toolgate-Key": key}
            return proxy.ask("/toolgate/usage", method="GET", headers=headers)

        seen = [(one["tenant"], one["model"]) for one in usage(acme).json["accounts"]]
        assert seen == [("acme", "m"), ("acme", "n")]
        assert usage(acme).json["totals"]["rewritten"] == 2
        of_all = [one["tenant"] for one in usage(admin).json["accounts"]]
        assert of_all == ["acme", "acme", "other"]
        assert proxy.ask("/toolgate/usage", method="GET").status == 401
        bearer = {"Authorization": f"Bearer {acme}"}
        assert proxy.ask("/metrics", method="GET", headers=bearer).status == 403
        bearer = {"Authorization": f"Bearer {admin}"}
        scraped = proxy.ask("/metrics", method="GET", headers=bearer).body.decode()
        assert 'toolgate_llm_refused_total{reason="key-missing"} 1' in scraped
        assert "acme" not in scraped
        shown = run(
            binary,
            "usage",
            "--llm",
            f"http://127.0.0.1:{proxy.port}",
            env={"TOOLGATE_API_KEY": admin},
        )
        assert shown.returncode == 0, shown.stderr
        rows = [line.split()[:3] for line in shown.stdout.splitlines()[1:]]
        assert rows == [["acme", "m", "1"], ["acme", "n", "1"], ["other", "m", "1"]]
        log = proxy.log()
    assert "sk-provider" not in log
    assert acme not in log


def test_a_tenant_has_its_share_of_requests_and_another_finds_a_place(
    binary: Path, start_afresh: StartProxy, tmp_path: Path
) -> None:
    keys = Keys(binary, tmp_path / "keys")
    acme = keys.create("agent", tenant="acme")["key"]
    other = keys.create("agent", tenant="other")["key"]
    place = tmp_path / "keys" / "data"
    settings = f'strategy = "pass"\nmax_requests = 5\nkey_store = "{place}"\n'
    hold = threading.Event()
    held = Answer([b"data: 1\n\n", b"data: 2\n\n"], kind="text/event-stream", hold=hold)
    with serving(Provider(*[held] * 4, *[answer(DONE)] * 9)) as provider:
        proxy = start_afresh(provider, settings)
        open_ones = []
        for _ in range(4):
            connection = proxy.connection()
            headers = {"X-Toolgate-Key": acme}
            connection.request("POST", "/anthropic/v1/messages", b"{}", headers)
            response = connection.getresponse()
            assert response.status == 200
            open_ones.append((connection, response))

        def ask(key: str) -> Any:
            return proxy.ask("/anthropic/v1/messages", {}, {"X-Toolgate-Key": key})

        refused = ask(acme)
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        assert "llm.max_requests" in refused.json["error"]["message"]
        assert ask(other).status == 200
        hold.set()
        for connection, response in open_ones:
            response.read()
            connection.close()
        wait_until(lambda: ask(acme).status == 200, "the places are not given back")


def test_requests_that_find_no_memory_are_sent_as_they_came(
    start_afresh: StartProxy,
) -> None:
    settings = f'{PATIENT}request_memory = "64KiB"\n'
    with serving(Provider(*[answer(DONE)] * 2)) as provider:
        proxy = start_afresh(provider, settings)
        large = json.dumps(anthropic_request(system="x" * 80_000)).encode()
        got = proxy.ask("/anthropic/v1/messages", large)
        assert (got.status, got.note) == (200, "pass; reason=no-memory")
        assert provider.sent[0].body == large
        small = proxy.ask("/anthropic/v1/messages", anthropic_request())
        assert small.note.startswith("envelope"), small.note
        # Given back with the request, which ends after its answer.
        wait_until(lambda: series(proxy, "toolgate_llm_request_bytes") == {"": 0.0})


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (b"POST /anthropic/v1/messages HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", b""),
        (
            b"POST /anthropic/v1/messages HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Length: 9\r\n\r\n{",
            b"HTTP/1.1 408 ",
        ),
    ],
)
def test_hosts_that_are_slow_keep_no_place(
    start_afresh: StartProxy, sent: bytes, told: bytes
) -> None:
    with serving(Provider()) as provider:
        proxy = start_afresh(provider, 'head_timeout = "500ms"\nbody_timeout = "500ms"\n')
        with socket.create_connection(("127.0.0.1", proxy.port), PATIENCE) as host:
            host.sendall(sent)
            got = host.recv(65_536)
            # A head that does not come has no answer, or one that says so.
            assert got.startswith(told) or got == b"", got
        assert provider.sent == []


def test_metrics_say_what_was_done(start_afresh: StartProxy) -> None:
    searching = anthropic_answer(use(SEARCH, {"query": "mail"}, "toolu_s"))
    with serving(Provider(answer(searching), *[answer(DONE)] * 2)) as provider:
        proxy = start_afresh(provider, PRICED)
        proxy.ask("/anthropic/v1/messages", anthropic_request())
        proxy.ask("/openai/v1/chat/completions", {"model": "odd", "messages": []})
        requests = series(proxy, "toolgate_llm_requests_total")
        assert requests == {
            'api="anthropic",model="m",strategy="envelope",reason=""': 1,
            'api="openai_chat",model="odd",strategy="pass",reason="no-tools"': 1,
        }
        assert series(proxy, "toolgate_llm_deferred_tokens_total")['model="m"'] > 0
        assert series(proxy, "toolgate_llm_hop_tokens_total")['model="m"'] > 0
        totals = proxy.totals()
        sent = totals["instead_tokens"] + totals["hop_tokens"]
        saved = proxy.ask("/toolgate/usage", method="GET").json["saved_tokens_computed"]
        assert saved == totals["deferred_tokens"] - sent
        assert series(proxy, "toolgate_llm_provider_tokens_total") == {
            'model="m",kind="input"': 20,
            'model="m",kind="cached"': 0,
            'model="m",kind="output"': 10,
        }
        spent = series(proxy, "toolgate_llm_cost_usd_total")
        assert spent == {'model="m"': pytest.approx((20 * 5 + 10 * 25) / 1e6)}
        assert series(proxy, "toolgate_llm_hops_total") == {'reason="search"': 1}
        assert series(proxy, "toolgate_llm_searches_total") == {"": 1}
        assert series(proxy, "toolgate_llm_added_seconds_count") == {
            'strategy="envelope"': 1,
            'strategy="pass"': 1,
        }
        wait_until(lambda: series(proxy, "toolgate_llm_requests_open") == {"": 0})
        headers = {"Host": "10.0.0.7:9"}
        assert proxy.ask("/metrics", method="GET", headers=headers).status == 200
        headers = {"Host": "evil.example"}
        assert proxy.ask("/metrics", method="GET", headers=headers).status == 403
        text = proxy.ask("/metrics", method="GET").body.decode()
        families = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    docs = (Path(__file__).parents[2] / "docs" / "llm-proxy.md").read_text()
    documented = set(re.findall(r"^\| `(toolgate_llm_\w+?)(?:_total)?` \|", docs, re.MULTILINE))
    # A family is shown with its first series; other tests see these.
    assert documented - families == {"toolgate_llm_gated_calls", "toolgate_llm_refused"}
    assert families <= documented
