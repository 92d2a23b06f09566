"""Intents in other languages: labelled rightly, and never without a tool."""

import json
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest
from catalogs import NOTES, OTHER_LANGUAGES, SHIPPED, WEATHER
from conftest import StartServer
from intents import ENGLISH, LANGUAGES, MULTILINGUAL, OWN_LANGUAGE, LabelledIntent, read
from toolgate_command import run
from toolgate_process import ToolgateProcess
from waiting import PATIENCE

from toolgate import Client, DegradedReason

ABROAD = read(MULTILINGUAL)


def tools(folder: Path = SHIPPED) -> set[str]:
    catalogs = [json.loads(file.read_text()) for file in folder.glob("*.json")]
    return {
        f"{catalog['name']}/{tool['name']}" for catalog in catalogs for tool in catalog["tools"]
    }


@pytest.mark.parametrize(
    ("file", "catalogs"),
    [(ENGLISH, SHIPPED), (MULTILINGUAL, SHIPPED), (OWN_LANGUAGE, OTHER_LANGUAGES)],
    ids=lambda path: path.stem,
)
def test_every_label_is_a_tool_and_no_intent_comes_twice(file: Path, catalogs: Path) -> None:
    intents = read(file)
    assert set().union(*(intent.relevant for intent in intents)) <= tools(catalogs)
    assert len({intent.query for intent in intents}) == len(intents)
    assert all(bool(intent.relevant) == (intent.sort != "no-tool") for intent in intents)


def test_ten_languages_and_more_have_intents_enough() -> None:
    counts = Counter(intent.sort for intent in ABROAD)
    assert set(counts) == set(LANGUAGES)
    assert sum(counts.values()) >= 120
    assert len([count for count in counts.values() if count >= 12]) >= 10


def register_shipped(client: Client) -> None:
    for file in sorted(SHIPPED.glob("*.json")):
        client.register_server(file.stem, file)


# Spanish, Portuguese or Italian without an accent can't be told from English: an intent of it that
# is far from every tool gets none, as English ones do.
BEYOND_ASCII = [intent for intent in ABROAD if intent.has_letters_beyond_ascii]


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_intent_in_another_alphabet_or_with_accents_gets_tools(
    shipped: Client, language: str
) -> None:
    intents = [intent for intent in BEYOND_ASCII if intent.sort == language]
    assert len(intents) >= 8
    assert without_tools(shipped, intents) == []


def test_tools_in_other_languages_are_found_by_the_forms_of_their_words(shipped: Client) -> None:
    first, found = Counter[str](), Counter[str]()
    with ExitStack() as registered:
        for file in OTHER_LANGUAGES.glob("*.json"):
            shipped.register_server(file.stem, file)
            registered.callback(shipped.unregister_server, file.stem)
        for intent in read(OWN_LANGUAGE):
            names = [f"{tool.server}/{tool.name}" for tool in shipped.route(intent.query)]
            first[intent.sort] += bool(intent.relevant & set(names[:1]))
            found[intent.sort] += bool(intent.relevant & set(names))
    # Cut to stems as if they were English, 43 of the 60 come first.
    assert first.total() >= 53, first
    assert min(found.values()) >= 9, found


MULTILINGUAL_MODEL = {"encoder.model": "multilingual-e5-small"}


def test_a_multilingual_encoder_is_one_setting(binary: Path, start_server: StartServer) -> None:
    fetched = run(binary, "model", "fetch", "--model", MULTILINGUAL_MODEL["encoder.model"])
    assert fetched.returncode == 0, fetched.stderr
    server = start_server(MULTILINGUAL_MODEL)
    with server.client("multilingual", timeout=120) as client:
        client.register_server("weather", WEATHER)
        client.register_server("notes", NOTES)
        # By words, none of these shares any with the tools.
        for intent in ("明天会下雨吗？", "Какая завтра будет погода?"):  # noqa: RUF001
            turn = client.route(intent)
            assert not turn.degraded
            assert next(iter(turn)).server == "weather"


def test_a_model_that_is_not_there_is_told_with_its_command(
    binary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    process = ToolgateProcess(binary, tmp_path, MULTILINGUAL_MODEL)
    assert process.launch().wait(timeout=PATIENCE) != 0
    assert "`toolgate model fetch --model multilingual-e5-small`" in process.log_text()


def test_help_names_every_model(binary: Path) -> None:
    text = run(binary, "model", "fetch", "--help").stdout
    assert "all-MiniLM-L6-v2" in text
    assert "multilingual-e5-small" in text


NOBODY_EMBEDS = {"encoder.in_process": "false", "encoder.workers": "127.0.0.1:1"}
"""The one worker is an address where nothing listens."""


def test_so_it_does_without_an_encoder(start_server: StartServer) -> None:
    with start_server(NOBODY_EMBEDS).client("languages", timeout=120) as client:
        register_shipped(client)
        answer = client.route(ABROAD[0].query)
        assert answer.degraded == (DegradedReason.LEXICAL_ONLY,)
        # These share no word with any tool, and nothing arbitrary is sent as if it were found.
        assert len(without_tools(client, ABROAD)) <= 3


def without_tools(client: Client, intents: list[LabelledIntent]) -> list[str]:
    return [intent.query for intent in intents if not len(client.route(intent.query))]
