"""Requests in other words than their tools, without an encoder (C5); what is indexed (C8)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from catalogs import tool
from gateway_process import GatewayProcess, plain_server
from toolgate_process import ToolgateProcess

from toolgate import Client, DegradedReason, FoundBy

NOBODY_EMBEDS = {"encoder.in_process": "false", "encoder.workers": "127.0.0.1:1"}
"""The one worker is an address where nothing listens."""

PARAMETERS = {
    "type": "object",
    "properties": {
        "target": {
            "type": "object",
            "properties": {"iban": {"type": "string", "description": "Account to credit"}},
        },
        "rows": {
            "type": "array",
            "items": {"type": "object", "properties": {"vat": {"description": "Tax rate"}}},
        },
    },
}

TOOLS = [
    tool("email_list", "Returns the newest messages of an account."),
    tool("file_delete", "Removes a file."),
    tool("member_search", "Searches members of the organization."),
    tool("calendar_event_create", "Creates an event."),
    tool("weather_forecast", "Forecast for a city."),
    tool("transfer_run", "Runs it.", inputSchema=PARAMETERS),
]


@pytest.fixture(scope="module")
def wordy(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolgateProcess]:
    process = ToolgateProcess(binary, tmp_path_factory.mktemp("wordy"), NOBODY_EMBEDS).start()
    yield process
    assert process.stop() == 0, process.log_text()[-4000:]


@pytest.fixture(scope="module")
def client(wordy: ToolgateProcess) -> Iterator[Client]:
    with wordy.client("synonyms", timeout=120) as client:
        client.register_server("office", TOOLS)
        yield client


@pytest.mark.parametrize(
    ("request_text", "wanted"),
    [
        ("check my inbox", "email_list"),
        ("could you throw that away for me?", "file_delete"),
        ("which colleague did this", "member_search"),
        ("make an appointment with her", "calendar_event_create"),
        ("will I need an umbrella", "weather_forecast"),
    ],
)
def test_c5_a_request_finds_a_tool_that_shares_no_word(
    client: Client, request_text: str, wanted: str
) -> None:
    found = client.search_tools(request_text)
    assert found.tools[0].name == wanted, [tool.name for tool in found]
    turn = client.route(request_text)
    assert turn.degraded == (DegradedReason.LEXICAL_ONLY,)
    assert next(iter(turn)).name == wanted
    assert next(iter(turn)).found_by is FoundBy.WORDS


def test_c5_nothing_arbitrary_is_found(client: Client) -> None:
    assert len(client.search_tools("how old is the universe?")) == 0
    assert len(client.route("how old is the universe?")) == 0


def test_c5_discover_tools_finds_by_other_words(
    binary: Path, tmp_path: Path, wordy: ToolgateProcess
) -> None:
    plane = ("--server", wordy.target, "--tenant", "synonyms-gateway")
    with GatewayProcess(binary, tmp_path, plain_server("notes"), plane) as gateway:
        text = gateway.text("discover_tools", {"query": "what were my remarks?"})
    assert "notes__read_note#" in text


@pytest.mark.parametrize("query", ["iban", "the account to credit", "vat", "what is the tax rate"])
def test_c8_parameters_of_objects_and_lists_are_searched(client: Client, query: str) -> None:
    found = client.search_tools(query)
    assert found.tools[0].name == "transfer_run", [tool.name for tool in found]
