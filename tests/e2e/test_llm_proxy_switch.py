"""`toolgate llm` by the operator's word on deferral: the kill switch, modes and lists of models."""

import json
from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
import test_llm_proxy_responses as responses
from conftest import StartProxy, StartServer
from llm_provider import Answer, Got, Json, Provider, answer, serving
from llm_tools import CALL, DEFERRAL, MORE, PATIENT, RAIN, SEARCH, enveloped
from test_llm_proxy_envelope import (
    BETAS,
    NATIVE,
    added,
    anthropic_answer,
    anthropic_request,
    anthropic_tools,
    names,
    use,
)
from waiting import wait_until

PATH = "/anthropic/v1/messages"
OFF = "pass; reason=switched-off"
KILLED = ("--set", "deferral.kill_switch=true")
SEARCH_TOOL = {
    "type": "tool_search_tool_bm25_20251119",
    "name": "tool_search_tool_bm25",
}


def done() -> Answer:
    """The end of a turn."""
    return answer(anthropic_answer({"type": "text", "text": "No."}))


def user(content: Any) -> Json:
    """A message of the user's."""
    return {"role": "user", "content": content}


def searched() -> list[Json]:
    """A conversation in which the provider's search and the host loaded a tool."""
    references = [{"type": "tool_reference", "tool_name": "mcp__git__log"}]
    found = {"type": "tool_search_tool_search_result", "tool_references": references}
    searching = [
        {
            "type": "server_tool_use",
            "id": "s1",
            "name": "tool_search_tool_bm25",
            "input": {},
        },
        {"type": "tool_search_tool_result", "tool_use_id": "s1", "content": found},
        use("mcp__git__log", {"city": "x"}),
    ]
    result = [*references, {"type": "text", "text": "two commits"}]
    addition = {"type": "tool_addition", "tool": references[0]}
    return [
        user(RAIN),
        {"role": "assistant", "content": searching},
        user([{"type": "tool_result", "tool_use_id": "toolu_1", "content": result}]),
        {"role": "system", "content": [addition]},
        {"role": "assistant", "content": "Two."},
        user("And tomorrow?"),
    ]


def hosts_own(**more: Any) -> Json:
    """A request of a host that defers its tools by itself."""
    tools = [
        SEARCH_TOOL,
        *({**tool, "defer_loading": True} for tool in anthropic_tools()),
    ]
    return {**anthropic_request(*searched()), "tools": tools, **more}


def test_b19_the_kill_switch_strips_what_a_host_defers_by_itself(
    start: StartProxy,
) -> None:
    betas = [
        "own-beta",
        *BETAS,
        "tool-search-tool-2025-10-19",
        "advanced-tool-use-2025-11-20",
    ]
    headers = {"anthropic-beta": ", ".join(betas), "x-api-key": "k"}
    whole = json.dumps(hosts_own(metadata={"n": "N"}), indent=1).replace('"N"', "1.50e3")
    whole = whole.replace("And tomorrow?", "h\\u00e9")
    with serving(Provider(done())) as provider:
        proxy = start(provider, PATIENT, *KILLED)
        got = proxy.ask(PATH, whole.encode(), headers)
        [sent] = provider.sent
    assert (got.status, got.note) == (200, OFF)
    text = sent.body.decode()
    for trace in DEFERRAL:
        assert trace not in text, trace
    assert sent.json["tools"] == anthropic_tools()
    ask, call, result, said, last = sent.json["messages"]
    assert (ask, said, last) == (user(RAIN), searched()[4], user("h\u00e9"))
    assert call["content"] == [use("mcp__git__log", {"city": "x"})]
    assert result["content"][0]["content"] == [{"type": "text", "text": "two commits"}]
    assert sent.headers["anthropic-beta"] == "own-beta"
    assert sent.headers["x-api-key"] == "k"
    assert "1.50e3" in text
    assert '"h\\u00e9"' in text
    assert text.startswith(whole[: whole.index('"tools"')])


def test_b19_the_kill_switch_leaves_all_else_as_it_is(
    start: StartProxy,
) -> None:
    plain = json.dumps(anthropic_request(), indent=1).encode()
    own = json.dumps(hosts_own(), indent=1).encode()
    programs = anthropic_tools()
    programs[1]["allowed_callers"] = ["code_execution_20250825"]
    advanced = json.dumps(anthropic_request(tools=programs), indent=1).encode()
    betas = {"anthropic-beta": "own , advanced-tool-use-2025-11-20"}
    with serving(Provider(done(), done(), done(), done())) as provider:
        killed = start(provider, PATIENT, *KILLED)
        assert killed.ask(PATH, plain, {"anthropic-beta": "own ,second"}).note == OFF
        assert killed.ask(PATH, advanced, betas).note == OFF
        # Without the switch a host's own deferral is its own.
        deferring = start(provider)
        assert deferring.ask(PATH, own, betas).note == "pass; reason=nothing-to-defer"
        first, second, third = provider.sent
    assert (first.body, first.headers["anthropic-beta"]) == (plain, "own ,second")
    assert (second.body, second.headers["anthropic-beta"]) == (
        advanced,
        betas["anthropic-beta"],
    )
    assert (third.body, third.headers["anthropic-beta"]) == (
        own,
        betas["anthropic-beta"],
    )


def test_b19_the_kill_switch_strips_searches_of_openai(
    start: StartProxy,
) -> None:
    own = responses.function("exec", "Runs a command.")
    space = {"type": "namespace", "name": "mcp__git", "description": "x"}
    log = responses.function("log", "Shows the history.")
    items = [
        responses.user(RAIN),
        responses.thought("rs_1"),
        {
            "type": "tool_search_call",
            "call_id": "s",
            "execution": "client",
            "arguments": {},
        },
        {
            "type": "tool_search_output",
            "call_id": "s",
            "execution": "client",
            "tools": [log],
        },
        responses.call("log", {}, namespace="mcp__git"),
        {"type": "function_call_output", "call_id": "call_1", "output": "none"},
        {"type": "additional_tools", "role": "developer", "tools": [log]},
    ]
    deferred = {**space, "tools": [{**log, "defer_loading": True}]}
    request = responses.request(*items, tools=[own, {"type": "tool_search"}, deferred])
    with serving(Provider(answer(responses.response(responses.said("No."))))) as provider:
        got = start(provider, PATIENT, *KILLED).ask(responses.PATH, request)
        [sent] = provider.sent
    assert (got.status, got.note) == (200, OFF)
    assert sent.json["tools"] == [own, {**space, "tools": [log]}]
    assert sent.json["input"] == [items[0], items[1], items[4], items[5]]


class Operator:
    """Someone who changes the settings of the plane within a proxy while it runs."""

    def __init__(self, start: StartProxy, provider: Provider, folder: Path) -> None:
        self._start = start
        self._provider = provider
        self._file = folder / "plane.toml"
        self._file.write_text("")

    def start(self, settings: str = PATIENT) -> None:
        """Starts the proxy."""
        self._proxy = self._start(self._provider, settings, "--server-config", str(self._file))

    def say(self, settings: str, note: str, probe: Callable[[], Got]) -> None:
        """Sets keys, and waits until a probe is answered with this note."""
        self._file.write_text(settings)
        self._proxy.hang_up()
        wait_until(lambda: probe().note.startswith(note), f"never {note}")
        self._provider.sent.clear()

    def ask(self, request: Json, path: str = PATH) -> Got:
        """Sends a host's request."""
        return self._proxy.ask(path, request, {"anthropic-beta": "own-beta"})


@pytest.mark.parametrize(
    ("settings", "strategy", "model", "name", "arguments"),
    [
        (PATIENT, "envelope", "m", CALL, enveloped("mcp__git__log", {"city": "x"})),
        (NATIVE, "native", "claude-opus-5-5", "mcp__git__log", {"city": "x"}),
    ],
)
def test_b2_a_conversation_goes_on_when_deferral_is_switched_off_and_on(
    start_afresh: StartProxy,
    tmp_path: Path,
    settings: str,
    strategy: str,
    model: str,
    name: str,
    arguments: Json,
) -> None:
    called = answer(anthropic_answer(use(name, arguments)))
    with serving(Provider(called, *repeat(done(), 1_000))) as provider:
        operator = Operator(start_afresh, provider, tmp_path)
        operator.start(settings)
        plain = use("mcp__git__log", {"city": "x"})
        got = operator.ask(anthropic_request(model=model))
        assert got.note.startswith(strategy), got.note
        assert got.json["content"] == [plain]
        result = {
            "type": "tool_result",
            "tool_use_id": "toolu_1",
            "content": "two commits",
        }
        turn = [user(RAIN), {"role": "assistant", "content": [plain]}, user([result])]

        def probe() -> Got:
            return operator.ask(anthropic_request(user("Send a mail."), model=model))

        operator.say("[deferral]\nkill_switch = true\n", OFF, probe)
        request = anthropic_request(*turn, model=model)
        off = operator.ask(request)
        assert (off.status, off.note) == (200, OFF)
        [sent] = provider.sent
        assert sent.json == json.loads(json.dumps(request))
        assert sent.headers["anthropic-beta"] == "own-beta"

        operator.say("", strategy, probe)
        turn += [
            {"role": "assistant", "content": "Two."},
            user("Who wrote the last commit?"),
        ]
        on = operator.ask(anthropic_request(*turn, model=model))
        assert (on.status, on.note.split(";")[0]) == (200, strategy)
        [sent] = provider.sent
    assert SEARCH in names(sent)
    assert MORE in json.dumps(sent.json["messages"]) or added(sent.json["messages"])


def test_b2_a_conversation_that_openai_keeps_goes_on_when_deferral_is_switched_off(
    start_afresh: StartProxy, tmp_path: Path
) -> None:
    searching = responses.response(responses.call(SEARCH, responses.FIND_MAIL, "call_s"))
    calling = responses.call(CALL, enveloped("mcp__mail__send", {"city": "x"}), "call_c")
    called = responses.response(calling, identifier="resp_2")
    end = answer(responses.response(responses.said("Sent."), identifier="resp_3"))
    with serving(Provider(answer(searching), answer(called), *repeat(end, 1_000))) as provider:
        operator = Operator(start_afresh, provider, tmp_path)
        operator.start()
        first = operator.ask(responses.request(store=True), responses.PATH)
        assert first.note.startswith("envelope"), first.note

        def probe() -> Got:
            return operator.ask(responses.request(responses.user("Git?")), responses.PATH)

        operator.say("[deferral]\nkill_switch = true\n", OFF, probe)
        output = {"type": "function_call_output", "call_id": "call_c", "output": "sent"}
        request = responses.request(output, store=True, previous_response_id="resp_1")
        assert operator.ask(request, responses.PATH).note == OFF
        [sent] = provider.sent
    assert sent.json == {**request, "previous_response_id": "resp_2"}


@pytest.mark.parametrize(
    ("settings", "model", "note"),
    [
        ("[deferral]\nmode = 'off'\n", "m", "pass; reason=not-deferred"),
        # The proxy tells the window of a model that it knows.
        ("[deferral]\nmode = 'auto:1'\n", "m", "pass; reason=not-deferred"),
        (
            "[deferral]\nmode = 'auto:1'\n",
            "claude-opus-4-8",
            "pass; reason=not-deferred",
        ),
        ("[deferral]\nmode = 'auto:1'\n", "gpt-4o", "envelope"),
        (
            "[deferral]\ndenied_models = ['haiku']\n",
            "claude-haiku-5-5",
            "pass; reason=not-deferred",
        ),
        ("[deferral]\ndenied_models = ['haiku']\n", "claude-opus-4-8", "envelope"),
    ],
)
def test_b2_b11_modes_and_denied_models_of_the_plane_hold(
    start: StartProxy, tmp_path: Path, settings: str, model: str, note: str
) -> None:
    (tmp_path / "plane.toml").write_text(settings)
    tools = anthropic_tools()
    for tool in tools:
        tool["description"] += " word" * 300
    request = json.dumps(anthropic_request(model=model, tools=tools), indent=1).encode()
    with serving(Provider(done())) as provider:
        proxy = start(provider, PATIENT, "--server-config", str(tmp_path / "plane.toml"))
        assert proxy.ask(PATH, request).note.startswith(note)
        [sent] = provider.sent
    assert (sent.body == request) == note.startswith("pass")


def test_b19_a_plane_of_others_is_asked_and_what_it_said_last_counts(
    start_afresh: StartProxy, start_server: StartServer
) -> None:
    server = start_server({"deferral.kill_switch": "true"})
    with serving(Provider(done(), done())) as provider:
        proxy = start_afresh(provider, PATIENT, "--server", f"http://{server.target}")
        assert proxy.ask(PATH, hosts_own()).note == OFF
        server.stop()
        assert proxy.ask(PATH, hosts_own()).note == OFF
        first, second = provider.sent
    assert first.json["tools"] == second.json["tools"] == anthropic_tools()


def test_b11_models_that_the_file_lists_get_no_tools_amid_a_conversation(
    start: StartProxy,
) -> None:
    with serving(Provider(done(), done())) as provider:
        proxy = start(provider, NATIVE + 'no_native_models = ["claude-opus-5*"]\n')
        listed = proxy.ask(PATH, anthropic_request(model="claude-opus-5-5"))
        other = proxy.ask(PATH, anthropic_request(model="claude-opus-4-8"))
    assert listed.note.startswith("envelope"), listed.note
    assert other.note.startswith("native"), other.note
