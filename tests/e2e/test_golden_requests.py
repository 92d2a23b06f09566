"""Whole requests to the providers byte for byte: those that each provider's package posts for a
conversation, and those that the LLM proxy makes of a host's.

With `--update-golden` the files in `golden` are written anew, and the tests that wrote are skipped.
"""

import asyncio
from collections.abc import Callable, Iterator

import pytest
import test_llm_proxy_gemini as gemini
import test_llm_proxy_responses as responses
from conftest import StartProxy
from golden_requests import FOLDER, difference, written
from llm_provider import Answer, Json, Provider, Sent, answer, serving
from llm_tools import PATIENT
from test_integrations_types import FORECAST, SAID, SMALL, Step, answered, with_a_loop
from test_llm_proxy_envelope import (
    anthropic_answer,
    anthropic_request,
    chat_answer,
    chat_call,
    chat_request,
    use,
)

from toolgate import SEARCH_TOOL, Client

STRATEGIES = {
    "anthropic": ("native", "envelope", "cut", "pass"),
    "openai_responses": ("native", "envelope", "cut", "pass"),
    "openai_chat": ("envelope", "cut", "pass"),
    "gemini": ("envelope", "cut", "pass"),
}
"""The strategies that each API takes."""
CASES = [(api, strategy) for api, strategies in STRATEGIES.items() for strategy in strategies]
PROXIED = [(api, strategy) for api, strategy in CASES if strategy != "pass"]
"""The same through the LLM proxy, which with `pass` sends a host's bytes."""
ALERTS = "mcp__weather__get_rain_alerts"
SEARCH: Step = (SEARCH_TOOL.model_name, {"query": f"select:{ALERTS}"})
SCRIPT: tuple[Step, ...] = (
    (FORECAST, {"text": "Oslo"}),
    "Rain.",
    SEARCH,
    (ALERTS, {"text": "Oslo"}),
    "No storm.",
)
ONE_TOOL = ("--set", "router.top_k=1")
"""Of several, scores that differ by the machine's arithmetic could change the order."""
CLAUDE, GPT = "claude-opus-5-5", "gpt-6.1"
FIND_MAIL = {"query": "select:mcp__mail__send"}


def is_openais_own(api: str, strategy: str) -> bool:
    """Returns true where the search is OpenAI's `tool_search`, which the client executes."""
    return (api, strategy) == ("openai_responses", "native")


def searching(number: int) -> Json:
    """An answer with a search of OpenAI's own."""
    item: Json = {"id": f"tsc_{number}", "type": "tool_search_call", "call_id": f"call_{number}"}
    item |= {"arguments": SEARCH[1], "execution": "client", "status": "completed"}
    said = {"id": f"resp_{number}", "object": "response", "created_at": 1, "model": "m"}
    said |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return {**said, "status": "completed", "output": [item]}


def answers(api: str, strategy: str) -> Iterator[Callable[[Sent], Answer] | Answer]:
    """The script's answers. With `pass` there is nothing to search for."""
    script = [step for step in SCRIPT if strategy != "pass" or step != SEARCH]
    for number, given in enumerate(answered(api, script)):
        if is_openais_own(api, strategy) and script[number] == SEARCH:
            yield answer(searching(number))
        else:
            yield given


def check(request: pytest.FixtureRequest, name: str, sent: list[Sent]) -> None:
    """Holds requests to a file, or writes it where that is asked for."""
    file = FOLDER / name
    content = written(sent)
    if request.config.getoption("--update-golden"):
        file.write_bytes(content)
        pytest.skip(f"{name} was written")
    assert file.exists(), f"{name} is missing: --update-golden writes it"
    told = difference(file.read_bytes(), content)
    assert not told, f"{name}, which --update-golden writes anew:\n{told}"


@pytest.mark.parametrize(("api", "strategy"), CASES)
def test_whole_requests_are_what_the_golden_files_say_byte_for_byte(
    client: Client, request: pytest.FixtureRequest, api: str, strategy: str
) -> None:
    with serving(Provider(*answers(api, strategy))) as provider:
        asyncio.run(with_a_loop(client, api, provider.url, strategy, SAID, SMALL))
    check(request, f"{api}-{strategy}.http", provider.sent)


def asked(api: str) -> tuple[str, Json]:
    """Returns the path and the body of a host's request to the proxy."""
    match api:
        case "anthropic":
            return "/anthropic/v1/messages", anthropic_request(model=CLAUDE)
        case "openai_responses":
            return responses.PATH, responses.request(model=GPT)
        case "openai_chat":
            return "/openai/v1/chat/completions", chat_request()
        case _:
            return gemini.WHOLE, gemini.request()


def searched(api: str, strategy: str) -> Json:
    """Returns a model's answer that searches, which the proxy goes on from."""
    name = SEARCH_TOOL.model_name
    match api:
        case "anthropic":
            return anthropic_answer(use(name, FIND_MAIL, "toolu_s"))
        case "openai_responses" if strategy == "native":
            return responses.response(responses.searched(FIND_MAIL))
        case "openai_responses":
            return responses.response(responses.call(name, FIND_MAIL, "call_s"))
        case "openai_chat":
            return chat_answer(chat_call(name, FIND_MAIL, "call_s"))
        case _:
            return gemini.response(gemini.call(name, gemini.FIND_MAIL))


@pytest.mark.parametrize(("api", "strategy"), PROXIED)
def test_whole_requests_of_the_proxy_are_what_the_golden_files_say_byte_for_byte(
    start: StartProxy, request: pytest.FixtureRequest, api: str, strategy: str
) -> None:
    path, body = asked(api)
    given = searched(api, strategy)
    with serving(Provider(answer(given), answer({}))) as provider:
        proxy = start(provider, PATIENT.replace("envelope", strategy), *ONE_TOOL)
        got = proxy.ask(path, body)
        assert got.note.startswith(strategy), got.note
    assert len(provider.sent) == 2, "the search is gone on from"
    check(request, f"proxy-{api}-{strategy}.http", provider.sent)


def test_each_golden_file_belongs_to_a_case() -> None:
    names = {f"{api}-{strategy}.http" for api, strategy in CASES}
    names |= {f"proxy-{api}-{strategy}.http" for api, strategy in PROXIED}
    assert {path.name for path in FOLDER.iterdir()} == names


def test_a_difference_of_one_byte_is_told() -> None:
    def sent(body: bytes, **headers: str) -> bytes:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return written([Sent("POST", "/v1/messages", named, body)])

    before = sent(b'{"a":1}', anthropic_beta="x")
    assert difference(before, before) == ""
    assert "anthropic-beta" in difference(before, sent(b'{"a":1}'))
    assert '+ "a": 2' in difference(before, sent(b'{"a":2}', anthropic_beta="x"))
    assert "other bytes" in difference(before, sent(b'{"a": 1}', anthropic_beta="x"))
    assert sent(b"{}", date="today") == sent(b"{}"), "what counts is kept alone"
