"""Questions of servers to hosts, through the gateway, in all four pairs of revisions."""

import json
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from asking_hosts import ALL, Json, LegacyHost, ModernHost, RefusedError, accepting, text_of
from fixture_gateway import Gateway, gateway
from fixture_process import fixture_url
from waiting import wait_until

ERAS = ["--legacy", "--modern"]
FORM = "test_elicitation"
PERSON = {"username": "ada", "email": "ada@example.com"}


@pytest.fixture(scope="module", params=ERAS)
def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Gateway]:
    """A gateway before a fixture of either era, over standard streams."""
    arguments = [argument for argument in [request.param] if argument == "--legacy"]
    with gateway(tmp_path_factory.mktemp("gateway"), *arguments) as started:
        yield started


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway before a fixture of 2025-11-25, over standard streams."""
    with gateway(tmp_path_factory.mktemp("gateway"), "--legacy") as started:
        yield started


@pytest.fixture(scope="module")
def older_http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway before a fixture of 2025-11-25 at a URL: one process, whatever connects."""
    folder = tmp_path_factory.mktemp("gateway")
    with fixture_url("--legacy") as url, gateway(folder, url=url) as started:
        yield started


def only_question(asked: Json) -> tuple[str, Json]:
    assert asked["resultType"] == "input_required", asked
    [(key, question)] = asked["inputRequests"].items()
    return key, question


def answered(host: ModernHost, tool: str, arguments: Json, asked: Json, content: Json) -> Json:
    key, _ = only_question(asked)
    answers = {key: {"action": "accept", "content": content}}
    return host.answer(tool, arguments, asked, answers)


def test_an_older_host_is_asked_on_the_stream_of_its_call(running: Gateway) -> None:
    host = LegacyHost(running.url)
    said = text_of(host.call(FORM, {"message": "Who?"}, accepting(PERSON)))
    assert '"username":"ada"' in said


def test_a_newer_host_answers_with_its_next_try(running: Gateway) -> None:
    host = ModernHost(running.url)
    asked = host.call(FORM, {"message": "Who?"})
    _, question = only_question(asked)
    assert question["method"] == "elicitation/create"
    assert question["params"]["message"] == "Who?"
    said = text_of(answered(host, FORM, {"message": "Who?"}, asked, PERSON))
    assert '"username":"ada"' in said


AT_URL = "test_elicitation_at_url"
URL = "https://bank.example/confirm?of=1"
OPENS_URLS: Json = {"elicitation": {"form": {}, "url": {}}}
ACCEPTED: Json = {"action": "accept"}


def test_an_older_host_is_sent_to_a_url(running: Gateway) -> None:
    asked: list[Json] = []

    def answer(method: str, params: Json) -> Json:
        assert method == "elicitation/create"
        asked.append(params)
        return ACCEPTED

    host = LegacyHost(running.url, OPENS_URLS)
    said = text_of(host.call(AT_URL, {"url": URL}, answer))
    assert json.loads(said)["action"] == "accept"
    [question] = asked
    assert (question["mode"], question["url"]) == ("url", URL)
    assert question["elicitationId"] == "the-id"


def test_a_newer_host_is_sent_to_a_url(running: Gateway) -> None:
    host = ModernHost(running.url, "opener", OPENS_URLS)
    asked = host.call(AT_URL, {"url": URL})
    key, question = only_question(asked)
    assert question["method"] == "elicitation/create"
    assert (question["params"]["mode"], question["params"]["url"]) == ("url", URL)
    said = text_of(host.answer(AT_URL, {"url": URL}, asked, {key: ACCEPTED}))
    assert json.loads(said)["action"] == "accept"


def test_a_host_that_opens_no_urls_is_sent_to_none(older: Gateway) -> None:
    """The server asks all the same; nobody hears of it."""
    forms: Json = {"elicitation": {}}
    for host in (LegacyHost(older.url, forms), ModernHost(older.url, "forms", forms)):
        with pytest.raises(RefusedError) as refused:
            host.call(AT_URL, {"url": URL})
        assert "elicitation/create" in str(refused.value)


def test_a_call_that_waits_too_long_is_cancelled_and_said_to_be_lost(tmp_path: Path) -> None:
    with (
        fixture_url("--legacy") as url,
        gateway(tmp_path, url=url, settings='question_timeout = "1ms"') as started,
    ):
        host = ModernHost(started.url)
        asked = host.call(FORM, {"message": "?"})
        wait_until(lambda: open_questions(started) == 0, lambda: "the server still waits")
        lost = answered(host, FORM, {"message": "?"}, asked, PERSON)
        assert lost["isError"] is True
        assert "waited too long" in text_of(lost)
        with pytest.raises(RefusedError):
            LegacyHost(started.url).call(FORM, {"message": "?"}, lambda _method, _params: None)


@pytest.mark.parametrize("kind", [LegacyHost, ModernHost])
def test_tools_behind_the_search_ask_too(
    running: Gateway, kind: type[LegacyHost] | type[ModernHost]
) -> None:
    arguments = {"name": f"fixture__{FORM}", "arguments": {"message": "Who?"}}
    if kind is LegacyHost:
        result = LegacyHost(running.search_url).call("call_tool", arguments, accepting(PERSON))
    else:
        host = ModernHost(running.search_url)
        asked = host.call("call_tool", arguments)
        result = answered(host, "call_tool", arguments, asked, PERSON)
    assert '"username":"ada"' in text_of(result)


def test_several_questions_at_once_may_be_answered_one_by_one(running: Gateway) -> None:
    tool = "test_input_required_result_multiple_inputs"
    host = ModernHost(running.url)
    asked = host.call(tool, {})
    methods = {"elicitation/create", "sampling/createMessage", "roots/list"}
    assert {one["method"] for one in asked["inputRequests"].values()} == methods
    answers: Json = {
        "elicitation/create": {"action": "accept", "content": {"name": "ada"}},
        "sampling/createMessage": {
            "role": "assistant",
            "content": {"type": "text", "text": "hello"},
            "model": "m",
        },
        "roots/list": {"roots": []},
    }
    given = {key: answers[one["method"]] for key, one in asked["inputRequests"].items()}
    result = host.answer(tool, {}, asked, given)
    assert text_of(result) == "all answered"


def test_only_what_a_host_declares_is_declared_to_the_server(running: Gateway) -> None:
    tool = "test_missing_capability"
    with pytest.raises(RefusedError):
        ModernHost(running.url, capabilities={"elicitation": {}}).call(tool, {})
    host = ModernHost(running.url, capabilities={"sampling": {}})
    assert text_of(host.call(tool, {})) == "This client declares sampling."
    with pytest.raises(RefusedError):
        LegacyHost(running.url, {"roots": {}}).call(tool, {})


def test_each_of_several_hosts_sees_its_own_questions(older: Gateway) -> None:
    """Four hosts ask at once; every question says whose call it belongs to."""
    wrong: list[str] = []

    def older_host(name: str) -> None:
        host = LegacyHost(older.url)

        def answer(_method: str, params: Json) -> Json:
            if params["message"] != name:
                wrong.append(f"{name} was asked {params['message']}")
            return {"action": "accept", "content": {**PERSON, "username": name}}

        for _ in range(5):
            said = text_of(host.call(FORM, {"message": name}, answer))
            if f'"username":"{name}"' not in said:
                wrong.append(f"{name} got {said}")

    def newer_host(name: str) -> None:
        # The same name of the host, so that the two share a connection.
        host = ModernHost(older.url, "twin")
        for _ in range(5):
            asked = host.call(FORM, {"message": name})
            _, question = only_question(asked)
            if question["params"]["message"] != name:
                wrong.append(f"{name} was asked {question}")
            content = {**PERSON, "username": name}
            said = text_of(answered(host, FORM, {"message": name}, asked, content))
            if f'"username":"{name}"' not in said:
                wrong.append(f"{name} got {said}")

    threads = [
        threading.Thread(target=host, args=(f"{host.__name__}-{number}",))
        for host in (older_host, newer_host)
        for number in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_state_is_taken_from_its_own_request_only(running: Gateway) -> None:
    host = ModernHost(running.url)
    tool = "test_input_required_result_request_state"
    asked = host.call(tool, {})
    key, _ = only_question(asked)
    answers = {key: {"action": "accept", "content": {"ok": True}}}
    state: str = asked["requestState"]
    for changed in ["", "x", state[:-2], f"{state}x", state[::-1]]:
        with pytest.raises(RefusedError) as refused:
            host.answer(tool, {}, {"requestState": changed}, answers)
        assert refused.value.code == -32602
    with pytest.raises(RefusedError):
        host.answer("test_input_required_result_multi_round", {}, asked, answers)
    assert text_of(host.answer(tool, {}, asked, answers)) == "state-ok"


def test_an_answer_that_comes_twice_is_taken_once(older: Gateway) -> None:
    host = ModernHost(older.url)
    asked = host.call(FORM, {"message": "?"})
    assert "ada" in text_of(answered(host, FORM, {"message": "?"}, asked, PERSON))
    again = answered(host, FORM, {"message": "?"}, asked, PERSON)
    assert again["isError"] is True
    assert "may have had effects" in text_of(again)


def test_a_call_that_waits_is_lost_with_its_server_and_says_so(
    tmp_path: Path,
) -> None:
    with gateway(tmp_path, "--legacy") as started:
        host = ModernHost(started.url)
        asked = host.call(FORM, {"message": "?"})
        assert len(started.fixtures()) == 2
        started.kill_fixtures()
        with pytest.raises(RefusedError) as refused:
            answered(host, FORM, {"message": "?"}, asked, PERSON)
        assert "may have had effects" in str(refused.value)
        asked = host.call(FORM, {"message": "?"})
        assert "ada" in text_of(answered(host, FORM, {"message": "?"}, asked, PERSON))
        started.restart_fixture()
        with pytest.raises(RefusedError):
            host.answer(FORM, {"message": "?"}, {"requestState": "of another gateway"}, {})


@pytest.mark.parametrize("place", ["older", "older_http"])
def test_a_call_that_waits_keeps_no_other_call_of_its_host(
    place: str, request: pytest.FixtureRequest
) -> None:
    """Eight calls of one host wait at once; it goes on calling, and each answer finds its call."""
    started: Gateway = request.getfixturevalue(place)
    host = ModernHost(started.url, f"patient-{place}")
    asked = [host.call(FORM, {"message": str(number)}) for number in range(8)]
    assert text_of(host.call("echo", {"message": "still here"})) == "still here"
    for kind in [host, ModernHost(started.url, "late")]:
        with pytest.raises(RefusedError) as refused:
            kind.call(FORM, {"message": "one too many"})
        assert "8 calls wait" in str(refused.value)
    assert text_of(host.call("echo", {"message": "still here"})) == "still here"
    for number, one in reversed(list(enumerate(asked))):
        person = {**PERSON, "username": f"ada-{number}"}
        said = text_of(answered(host, FORM, {"message": str(number)}, one, person))
        assert f'"username":"ada-{number}"' in said


def test_a_question_on_a_stream_keeps_no_other_call_of_its_session(older: Gateway) -> None:
    host = LegacyHost(older.url)
    stream = host.stream("tools/call", {"name": FORM, "arguments": {"message": "?"}})
    question = next(stream)
    assert text_of(host.call("echo", {"message": "still here"})) == "still here"
    host.answer(question["id"], {"action": "accept", "content": PERSON})
    assert '"username":"ada"' in text_of(next(stream)["result"])


def test_a_flood_of_questions_is_bounded_and_the_call_goes_on(older: Gateway) -> None:
    host = LegacyHost(older.url)
    said = text_of(host.call("test_question_flood", {}, accepting({"name": "x"})))
    answered_count, refused_count = (int(word) for word in said.split() if word.isdigit())
    assert answered_count + refused_count == 200
    assert 1 <= answered_count <= 64
    assert text_of(host.call("echo", {"message": "still there"})) == "still there"


def open_questions(gateway: Gateway) -> int:
    host = ModernHost(gateway.url, capabilities={})
    return int(text_of(host.call("test_open_questions", {})))


def test_a_question_ends_when_its_host_leaves(older_http: Gateway) -> None:
    host = LegacyHost(older_http.url)
    stream = host.stream("tools/call", {"name": FORM, "arguments": {"message": "?"}})
    question = next(stream)
    assert question["method"] == "elicitation/create"
    assert open_questions(older_http) == 1
    host.leave()
    is_over = partial(open_questions, older_http)
    wait_until(lambda: is_over() == 0, "the server still waits for a host that is gone")


@pytest.mark.parametrize("place", ["older", "older_http"])
def test_a_question_that_comes_late_is_nobodys(place: str, request: pytest.FixtureRequest) -> None:
    """A host gives a call up, whose server asks only then: its next calls see nothing of that."""
    started: Gateway = request.getfixturevalue(place)
    leaving = LegacyHost(started.url)
    call = {"name": "test_late_question", "arguments": {}, "_meta": {"progressToken": "t"}}
    stream = leaving.stream("tools/call", call)
    assert next(stream)["method"] == "notifications/progress"
    leaving.cancel()
    stream.close()
    messages: list[str] = []

    def answer(_method: str, params: Json) -> Json:
        messages.append(params["message"])
        return {"action": "accept", "content": PERSON}

    for _ in range(3):
        leaving.call(FORM, {"message": "mine"}, answer)
    assert messages == ["mine"] * 3


def test_calls_of_one_host_ask_side_by_side_where_streams_tell_them_apart(
    older_http: Gateway,
) -> None:
    host = LegacyHost(older_http.url)
    streams = {
        name: host.stream("tools/call", {"name": FORM, "arguments": {"message": name}})
        for name in ["one", "two"]
    }
    questions = {name: next(stream) for name, stream in streams.items()}
    for name in reversed(streams):
        assert questions[name]["params"]["message"] == name
        content = {**PERSON, "username": name}
        host.answer(questions[name]["id"], {"action": "accept", "content": content})
        said = text_of(next(streams[name])["result"])
        assert f'"username":"{name}"' in said


def followed(gateway: Gateway) -> list[str]:
    said = text_of(ModernHost(gateway.url, capabilities={}).call("test_subscriptions", {}))
    uris: list[str] = [word for word in said.strip("[]").replace('"', "").split(",") if word]
    return uris


def until_followed(gateway: Gateway, expected: list[str]) -> None:
    wait_until(lambda: followed(gateway) == expected, lambda: str(followed(gateway)))


WATCHED = "test://watched-resource"


def updated_uri(messages: Iterator[Json]) -> str:
    for message in messages:
        if message.get("method") == "notifications/resources/updated":
            uri: str = message["params"]["uri"]
            return uri
    raise AssertionError("nothing was told")


def test_resources_are_followed_once_for_all_hosts_and_left_with_the_last(
    running: Gateway,
) -> None:
    hosts = [LegacyHost(running.url, {}), LegacyHost(running.search_url, {})]
    shown = [WATCHED, f"fixture+{WATCHED}"]
    updates = [host.updates() for host in hosts]
    for host, uri in zip(hosts, shown, strict=True):
        host.request("resources/subscribe", {"uri": uri})
    newer = ModernHost(running.url, capabilities={})
    listening = newer.stream(
        "subscriptions/listen", {"notifications": {"resourceSubscriptions": [WATCHED]}}
    )
    next(listening)
    until_followed(running, [WATCHED])
    newer.call("test_trigger_resource_update", {"uri": WATCHED})
    assert updated_uri(listening) == WATCHED
    assert [updated_uri(stream) for stream in updates] == shown
    listening.close()
    hosts[0].request("resources/unsubscribe", {"uri": WATCHED})
    assert followed(running) == [WATCHED]
    hosts[1].leave()
    until_followed(running, [])


def test_a_host_follows_only_so_many_resources(running: Gateway) -> None:
    host = LegacyHost(running.url, {})
    for number in range(64):
        host.request("resources/subscribe", {"uri": f"test://template/{number}/data"})
    with pytest.raises(RefusedError):
        host.request("resources/subscribe", {"uri": WATCHED})
    host.leave()
    until_followed(running, [])


TASKS: Json = {**ALL, "extensions": {"io.modelcontextprotocol/tasks": {}}}


def test_tasks_have_ids_of_the_gateway_in_each_face(tmp_path: Path) -> None:
    with gateway(tmp_path) as started:
        arguments = {"name": "fixture__confirm_delete", "arguments": {"filename": "x"}}
        host = ModernHost(started.search_url, capabilities=TASKS)
        task = host.call("call_tool", arguments)
        assert task["resultType"] == "task", task
        state = host.request("tasks/get", {"taskId": task["taskId"]})
        assert state["taskId"] == task["taskId"]
        assert state["status"] == "input_required"
        [key] = state["inputRequests"]
        answers = {key: {"action": "accept", "content": {"confirm": True}}}
        host.request("tasks/update", {"taskId": task["taskId"], "inputResponses": answers})
        direct = ModernHost(started.url, capabilities=TASKS)
        assert direct.request("tasks/get", {"taskId": task["taskId"]})["taskId"] == task["taskId"]
        for unknown in ["x", task["taskId"][:-4]]:
            with pytest.raises(RefusedError) as refused:
                host.request("tasks/get", {"taskId": unknown})
            assert refused.value.code == -32602
