"""Questions of servers where hosts reach another replica of the gateway with each request."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from asking_hosts import Json, LegacyHost, ModernHost, RefusedError, text_of
from credentials import AUDIENCE, ISSUER, Signer, jwks
from fixture_gateway import Gateway, gateway
from gateway_process import free_address

FORM = "test_elicitation"
PERSON = {"username": "ada", "email": "ada@example.com"}
Pair = tuple[Gateway, Gateway]

INVALID_PARAMS = -32602
UNAUTHORIZED = 401


@contextmanager
def replicas(folder: Path, *, are_reached: bool = True, auth: str = "") -> Iterator[Pair]:
    """Two gateways with one key before a server of 2025-11-25, each with a process of its own."""
    key = folder / "sealing-key"
    key.write_text("5e" * 32)

    def settings(address: str) -> str:
        lines = [f'sealing_key = "file:{key}"']
        lines += [f'replica_url = "http://{address}"'] if are_reached else []
        return "\n".join([*lines, auth])

    addresses = [free_address(), free_address()]
    one, other = (
        gateway(folder / name, "--legacy", settings=settings(address), listen=address)
        for name, address in zip(["one", "other"], addresses, strict=True)
    )
    with one as first, other as second:
        yield first, second


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with replicas(tmp_path_factory.mktemp("replicas")) as started:
        yield started


def answers_to(asked: Json) -> Json:
    [key] = asked["inputRequests"]
    return {key: {"action": "accept", "content": PERSON}}


def test_a_call_that_waits_is_found_from_the_other_replica(pair: Pair) -> None:
    one, other = pair
    host = ModernHost(one.url)
    asked = host.call(FORM, {"message": "?"})
    host.move(other.url)
    said = text_of(host.answer(FORM, {"message": "?"}, asked, answers_to(asked)))
    assert '"username":"ada"' in said
    again = host.answer(FORM, {"message": "?"}, asked, answers_to(asked))
    assert "may have had effects" in text_of(again)


def test_calls_of_the_search_face_are_found_too(pair: Pair) -> None:
    one, other = pair
    host = ModernHost(one.search_url)
    arguments = {"name": f"fixture__{FORM}", "arguments": {"message": "?"}}
    asked = host.call("call_tool", arguments)
    host.move(other.search_url)
    said = text_of(host.answer("call_tool", arguments, asked, answers_to(asked)))
    assert '"username":"ada"' in said


def test_an_answer_reaches_the_replica_that_asks(pair: Pair) -> None:
    one, other = pair
    host = LegacyHost(one.url)
    stream = host.stream("tools/call", {"name": FORM, "arguments": {"message": "?"}})
    question = next(stream)
    assert question["method"] == "elicitation/create"
    host.move(other.url)
    host.answer(question["id"], {"action": "accept", "content": PERSON})
    assert '"username":"ada"' in text_of(next(stream)["result"])
    assert text_of(host.call("echo", {"message": "here"})) == "here"


def test_another_session_can_not_answer(pair: Pair) -> None:
    one, other = pair
    asked, stranger = LegacyHost(one.url), LegacyHost(other.url)
    stream = asked.stream("tools/call", {"name": FORM, "arguments": {"message": "?"}})
    question = next(stream)
    stranger.answer(question["id"], {"action": "accept", "content": {**PERSON, "username": "eve"}})
    asked.move(other.url)
    asked.answer(question["id"], {"action": "accept", "content": PERSON})
    assert '"username":"ada"' in text_of(next(stream)["result"])


def test_a_call_at_a_replica_that_nobody_reaches_is_lost_and_says_so(tmp_path: Path) -> None:
    with replicas(tmp_path, are_reached=False) as (one, other):
        host = ModernHost(one.url)
        asked = host.call(FORM, {"message": "?"})
        host.move(other.url)
        lost = host.answer(FORM, {"message": "?"}, asked, answers_to(asked))
        assert lost["isError"] is True
        assert "may have had effects" in text_of(lost)
        host.move(one.url)
        said = text_of(host.answer(FORM, {"message": "?"}, asked, answers_to(asked)))
        assert '"username":"ada"' in said, "it still waits where it is"


def test_a_call_is_lost_with_its_replica_and_a_session_is_not(tmp_path: Path) -> None:
    with replicas(tmp_path) as (one, other):
        modern, legacy = ModernHost(one.url), LegacyHost(one.url)
        asked = modern.call(FORM, {"message": "?"})
        stream = legacy.stream("tools/call", {"name": FORM, "arguments": {"message": "?"}})
        question = next(stream)
        one.kill()
        stream.close()
        modern.move(other.url)
        lost = modern.answer(FORM, {"message": "?"}, asked, answers_to(asked))
        assert "may have had effects" in text_of(lost)
        legacy.move(other.url)
        with pytest.raises(RefusedError):
            legacy.answer(question["id"], {"action": "accept", "content": PERSON})
        assert text_of(legacy.call("echo", {"message": "here"})) == "here"


def test_a_session_ends_where_its_host_says_so(pair: Pair) -> None:
    one, other = pair
    host = LegacyHost(one.url)
    host.move(other.url)
    assert text_of(host.call("echo", {"message": "here"})) == "here"
    host.leave()
    with pytest.raises(RefusedError):
        host.call("echo", {"message": "gone"})


def test_what_is_handed_on_keeps_the_credential_of_its_host(tmp_path: Path) -> None:
    signer = Signer("k1")
    keys = tmp_path / "jwks.json"
    keys.write_text(jwks(signer))
    auth = (
        f'[gateway.auth]\nmethods = ["jwt"]\nissuer = "{ISSUER}"\n'
        f'jwks_file = "{keys}"\naudiences = ["{AUDIENCE}"]'
    )
    ann, bob = signer.token(sub="ann"), signer.token(sub="bob")
    with replicas(tmp_path, auth=auth) as (one, other):
        host = ModernHost(one.url, token=ann)
        asked = host.call(FORM, {"message": "?"})
        # Nobody else's, at either replica, with a credential or without.
        for thief in (other.url, one.url):
            with pytest.raises(RefusedError) as refused:
                answer(ModernHost(thief, token=bob), asked)
            assert refused.value.code == INVALID_PARAMS
            with pytest.raises(RefusedError) as refused:
                answer(ModernHost(thief), asked)
            assert refused.value.code == UNAUTHORIZED
        host.move(other.url)
        assert '"username":"ada"' in text_of(answer(host, asked))
        older = LegacyHost(one.url, token=ann)
        stream = older.stream("tools/call", {"name": FORM, "arguments": {"message": "?"}})
        question = next(stream)
        stranger = LegacyHost(other.url, token=bob)
        eve = {"action": "accept", "content": {**PERSON, "username": "eve"}}
        stranger.answer(question["id"], eve)
        older.move(other.url)
        older.answer(question["id"], {"action": "accept", "content": PERSON})
        assert '"username":"ada"' in text_of(next(stream)["result"])
        assert text_of(older.call("echo", {"message": "here"})) == "here"


def answer(host: ModernHost, asked: Json) -> Json:
    return host.answer(FORM, {"message": "?"}, asked, answers_to(asked))
