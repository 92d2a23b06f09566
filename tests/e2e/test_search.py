"""SearchTools, end to end: the grammar (B4 to B8), empty answers (B13), results by default (D1)."""

import json
import subprocess
from pathlib import Path

import grpc
import pytest
from catalogs import NOTES, invalid, over_limit, refused, too_many, tool
from toolgate_command import run
from toolgate_process import ToolgateProcess
from waiting import PATIENCE

from toolgate import (
    SEARCH_TOOL,
    Call,
    Client,
    Detail,
    RefusalCode,
    SearchForm,
    SearchResult,
    ToolgateError,
    ToolSettings,
)

CREATE = "mcp__notes__create_note"
FIND = "mcp__notes__find_notes"
DELETE = "mcp__notes__delete_note"
FORECAST = "mcp__weather__get_forecast"
RAIN = "mcp__weather__get_rain_alerts"


def names(result: SearchResult) -> list[str]:
    return [tool.model_name for tool in result]


def test_b4_select_by_every_spelling(notes: Client) -> None:
    query = f"select:{FORECAST},notes/create_note,functions.{FIND},delete_note"
    result = notes.search_tools(query, max_results=1)
    assert names(result) == [FORECAST, CREATE, FIND, DELETE]
    assert (result.form, result.message) == (SearchForm.SELECT, "")


def test_b4_what_is_loaded_already_is_selected_quietly(notes: Client) -> None:
    turn = notes.route("write down a note", threshold=-1)
    result = notes.search_tools(f"select:{CREATE}", handle=turn.handle)
    assert names(result) == [CREATE]
    assert not result.tools[0].newly_promoted
    assert result.refusals == ()


def test_b4_an_unknown_name_is_told_with_the_nearest(notes: Client) -> None:
    result = notes.search_tools("select:mcp__notes__creat_note")
    assert len(result) == 0
    assert [r.code for r in result.refusals] == [RefusalCode.UNKNOWN_TOOL]
    assert f"Did you mean {CREATE}?" in result.message


def test_b5_keywords_have_the_published_weights(client: Client) -> None:
    slack = [tool("send_message", "Posts."), tool("list_channels", "Shows.")]
    client.register_server("slack", slack)
    client.register_server("email", [tool("send_email", "Mails.")])
    client.register_server("github", [tool("create_issue", "Opens.")])
    result = client.search_tools("slack send")
    assert [(t.name, t.score) for t in result] == [
        ("send_message", 24),
        ("list_channels", 12),
        ("send_email", 12),
    ]
    assert result.form is SearchForm.KEYWORDS


def test_b5_hints_and_descriptions_count_on_word_boundaries(client: Client) -> None:
    hinted = [tool("a", "x"), tool("b", "already in a thread"), tool("c", "Read it.")]
    settings = [ToolSettings("a", search_hint="read mail")]
    client.register_server("s", hinted, tool_settings=settings)
    result = client.search_tools("read")
    assert [(t.name, t.score) for t in result] == [("a", 4), ("c", 2)]


def test_b6_required_terms(notes: Client) -> None:
    assert names(notes.search_tools("+notes +find")) == [FIND]
    result = notes.search_tools("+note +storms")
    assert len(result) == 0
    assert result.lacking_required_terms > 0
    assert "+note +storms" in result.message


@pytest.mark.parametrize("query", ["mcp__weather", "weather", "Weather", "MCP__WEATHER__get"])
def test_b7_a_servers_tools_without_scoring(notes: Client, query: str) -> None:
    result = notes.search_tools(query)
    assert names(result) == [FORECAST, RAIN]
    assert result.form is SearchForm.PREFIX
    assert {t.score for t in result} == {0}


def test_b8_references_schemas_signatures_and_names(notes: Client) -> None:
    asked = {
        detail: notes.search_tools(CREATE, detail=detail).tools[0] for detail in list(Detail)[1:]
    }
    assert asked[Detail.SCHEMAS].input_schema == NOTES[0]["inputSchema"]
    assert asked[Detail.SIGNATURES].signature.startswith(f"{CREATE}(title: string")
    for short in (Detail.NAMES, Detail.REFERENCES):
        assert (asked[short].input_schema_json, asked[short].signature) == ("", "")
    # The provider shows the model what a reference stands for.
    assert asked[Detail.REFERENCES].schema_tokens == asked[Detail.SCHEMAS].schema_tokens
    assert asked[Detail.NAMES].schema_tokens < asked[Detail.SIGNATURES].schema_tokens
    references = notes.search_tools(CREATE, detail="references").to_tool_references()
    assert references == [{"type": "tool_reference", "tool_name": CREATE}]


def test_b8_what_was_found_may_be_called(notes: Client) -> None:
    first = notes.search_tools(FORECAST)
    second = notes.search_tools(CREATE, handle=first.handle, detail="references")
    verdicts = notes.gate(second.handle, [Call(FORECAST), Call(CREATE, {"title": "a"})])
    assert all(v.allowed for v in verdicts)
    named = notes.search_tools(FORECAST, detail="names")
    assert notes.gate(named.handle, Call(FORECAST))[0].code is RefusalCode.TOOL_NOT_AVAILABLE


def test_natural_language_goes_by_meaning(notes: Client) -> None:
    result = notes.search_tools("will I need an umbrella tomorrow?")
    assert result.form is SearchForm.NATURAL
    assert names(result)[0] in (FORECAST, RAIN)
    assert result.tools[0].overlap > 0


def test_b13_an_empty_result_says_why(notes: Client) -> None:
    result = notes.search_tools("+xylophone")
    assert (len(result), result.searched_tools) == (0, 5)
    assert "+xylophone" in result.message


def test_d1_five_results_unless_said_otherwise(client: Client) -> None:
    client.register_server("many", [tool(f"do_{i}") for i in range(30)])
    assert len(client.search_tools("do")) == 5
    assert len(client.search_tools("do", max_results=30)) == 30
    assert len(client.search_tools("many", max_results=7)) == 7


def test_hidden_is_as_unknown(client: Client) -> None:
    secret = ToolSettings("open_vault", required_scopes=["admin"])
    tools = [tool("open_door", "Opens a door."), tool("open_vault", "Opens the vault.")]
    client.register_server("s", tools, tool_settings=[secret])
    for query in ["select:open_{}", "mcp__s__open_{}", "+{}", "select:s/open_{}"]:
        hidden = client.search_tools(query.format("vault"))
        absent = client.search_tools(query.format("cellar"))
        assert names(hidden) == names(absent) == []
        assert hidden.message == absent.message.replace("cellar", "vault")
        assert hidden.searched_tools == absent.searched_tools == 1
    assert "mcp__s__open_vault" not in names(client.search_tools("open_vault"))
    admin = client.search_tools("+vault", state={"scopes": ["admin"]})
    assert names(admin) == ["mcp__s__open_vault"]


def test_bad_queries_say_what_is_wrong(notes: Client) -> None:
    for query in ["", " \n", "select:", "select: , "]:
        with invalid(field="query"):
            notes.search_tools(query)
    with invalid(field="query"):
        notes.search_tools("select:" + ",".join(f"t{i}" for i in range(101)))
    with invalid(field="query"):
        notes.search_tools("+x " + " ".join(f"t{i}" for i in range(16)))
    with over_limit(32 * 1024, 32 * 1024 + 1):
        notes.search_tools("x" * (32 * 1024 + 1))
    for results in (0, 101):
        with too_many("max_results"):
            notes.search_tools("x", max_results=results)
    with invalid("HANDLE_INVALID"):
        notes.search_tools("x", handle="forged")
    with refused(grpc.StatusCode.UNAVAILABLE, "REVISION_NOT_REACHED"):
        notes.search_tools("x", min_revision=10**9, timeout=60)


def test_the_command_line_searches(
    notes: Client, server: ToolgateProcess, binary: Path, tenant: str
) -> None:
    def search(*arguments: str) -> subprocess.CompletedProcess[str]:
        line: list[str | Path] = [binary, "search", *arguments, "--tenant", tenant]
        line += ["--endpoint", f"http://{server.target}"]
        return subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE)

    found = search("+weather rain")
    assert (found.returncode, RAIN in found.stdout) == (0, True), found
    nothing = search("+xylophone")
    assert (nothing.returncode, "+xylophone" in nothing.stdout) == (3, True), nothing
    assert '"form": "prefix"' in search("notes", "--json").stdout
    for without in ([], [" "]):
        told = search(*without)
        assert told.returncode == 2
        assert 'such as: toolgate search "is anyone waiting for my review?"' in told.stderr


@pytest.mark.parametrize(
    "command",
    [
        "tools --server ntoes",
        "route x --server ntoes",
        "unregister ntoes",
        "catalog approve ntoes --all",
        "catalog quarantine list --server ntoes",
        "memory show --server ntoes",
        "memory clear --server ntoes",
    ],
)
def test_a_misspelt_server_is_told_with_the_nearest(
    notes: Client, server: ToolgateProcess, binary: Path, tenant: str, command: str
) -> None:
    at = ("--endpoint", f"http://{server.target}", "--tenant", tenant)
    done = run(binary, *command.split(), *at)
    assert done.returncode == (0 if command.startswith("memory") else 1), done.stderr
    said = "the catalog has no MCP server `ntoes`: did you mean `notes`? `toolgate servers` lists"
    assert said in done.stderr
    assert {one.name for one in notes.list_servers()} == {"notes", "weather"}


def test_the_models_search_is_counted_as_the_catalog_counts_it(client: Client) -> None:
    definition = {
        "name": SEARCH_TOOL.name,
        "description": SEARCH_TOOL.description,
        "inputSchema": SEARCH_TOOL.input_schema,
        "annotations": json.loads(SEARCH_TOOL.annotations_json),
    }
    client.register_server("own", [definition])
    (listed,) = client.list_tools("own")
    assert listed.schema_tokens == SEARCH_TOOL.schema_tokens


def test_what_the_model_searched_for_is_kept_with_its_schema(notes: Client) -> None:
    turn = notes.route("write down a note", top_k=1)
    assert turn.deferral.offer_search
    call = Call(SEARCH_TOOL.model_name, {"query": f"select:{FORECAST}"})
    answer = notes.answer_search(call, handle=turn.handle)
    assert json.loads(answer.text)["tools"] == [{"name": FORECAST}]
    assert notes.gate(answer.handle, Call(FORECAST, {"text": "Oslo"}))[0].allowed
    after = notes.route("write down a note", top_k=1, handle=answer.handle)
    assert [t.input_schema for t in after if t.model_name == FORECAST]
    whole = notes.answer_search(call, handle=turn.handle, detail="schemas")
    assert [tool.model_name for tool in whole.tools] == [FORECAST]
    assert "input_schema" in json.loads(whole.text)["tools"][0]


def test_a_query_that_nobody_can_search_for_is_the_models_mistake(notes: Client) -> None:
    for query in (" ", "select:", "x" * 40_000):
        answer = notes.answer_search(Call(SEARCH_TOOL.model_name, {"query": query}), handle="")
        assert answer.failed
        assert json.loads(answer.text)["message"]
    with pytest.raises(ToolgateError):
        notes.answer_search(Call(SEARCH_TOOL.model_name, {"query": "x"}), handle="made up")
