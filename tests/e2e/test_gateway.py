"""`toolgate gateway`: one MCP server in the place of many, as hosts use it."""

import http.client
import json
import os
import pty
import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from exact_mcp_server import DEFINITIONS
from gateway_process import (
    PLAIN,
    GatewayProcess,
    Json,
    answer_to,
    free_address,
    is_running,
    kill,
    message,
    plain_server,
    text_of,
)
from plain_mcp_server import TOOLS, URI, lines
from toolgate_command import PATIENT_PLANE, command_environment, run
from toolgate_process import ToolgateProcess, remove_reserve
from waiting import PATIENCE, wait_until

SERVERS = ["notes", "other"]
EXACT = "exact_mcp_server.py"
MISBEHAVING = Path(__file__).with_name("misbehaving_mcp_server.py")
DOCS = Path(__file__).parents[2] / "docs"
OWN_TOOLS = ["discover_tools", "call_read_tool", "call_tool", "read_result"]


@pytest.fixture(scope="module")
def gateway(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    config = '[gateway]\nresult_limit = "1KiB"\n' + plain_server("notes") + plain_server("other")
    process = GatewayProcess(binary, tmp_path_factory.mktemp("gateway"), config).start()
    yield process
    assert process.stop() == 0


def found(gateway: GatewayProcess, query: str) -> dict[str, str]:
    """The names with tags that a search shows, by the names without."""
    text = gateway.text("discover_tools", {"query": query})
    return {name.split("#")[0]: name for name in re.findall(r"^\S+#\w{6}", text, re.MULTILINE)}


def test_a_host_starts_with_four_small_tools(gateway: GatewayProcess) -> None:
    tools = gateway.tools()
    assert [tool["name"] for tool in tools] == OWN_TOOLS
    assert len(json.dumps(tools)) < 4 * 1_000, "about 4 characters a token"
    assert tools[0]["title"] == "Find tools", "by which a screen can leave searches out"
    assert "notes (4: note, keep), other (4: note, keep)." in tools[0]["description"]
    assert gateway.tools() == tools, "the same bytes each time keep the provider's cache"


def test_a_tool_that_was_not_shown_is_found_and_called(gateway: GatewayProcess) -> None:
    names = found(gateway, "store a note")
    kept = gateway.call(
        "call_tool", {"name": names["notes__keep_note"], "arguments": {"text": "x"}}
    )
    assert text_of(kept) == "kept"
    read = found(gateway, "select:notes__read_note")["notes__read_note"]
    assert gateway.text("call_read_tool", {"name": read}) == "x"


def test_a_server_that_claims_long_results_has_them_as_far_as_the_operator_lets_it(
    binary: Path, tmp_path: Path
) -> None:
    claim = 'env = { PLAIN_CLAIM = "1000000000" }\n'
    limits = '[gateway]\nresult_limit = "1KiB"\nresult_limit_max = "8KiB"\n'
    doubted = plain_server("doubted", trust="untrusted") + claim
    config = limits + plain_server("own") + claim + doubted + plain_server("modest")

    def shown(gateway: GatewayProcess, server: str, count: int) -> int:
        named = {"name": f"{server}__list_lines", "arguments": {"count": count}}
        return len(gateway.text("call_tool", named))

    with GatewayProcess(binary, tmp_path, config) as gateway:
        few = len(lines(300))
        assert 2_048 < few < 8_192
        assert shown(gateway, "own", 300) == few
        assert few < shown(gateway, "own", 5_000) < 9_000
        for server in ("doubted", "modest"):
            assert shown(gateway, server, 300) < 2_048


def test_results_keep_fields_and_contents_that_no_library_knows(gateway: GatewayProcess) -> None:
    result = gateway.call("call_tool", {"name": "notes__read_note", "arguments": {}})
    assert list(result)[:2] == ["zeta", "content"]
    assert json.dumps(result["zeta"]) == "1.0"
    assert result["content"][1] == {"type": "novel", "a": 1}


def test_a_tool_that_writes_is_not_called_as_one_that_reads(gateway: GatewayProcess) -> None:
    refused = gateway.call(
        "call_read_tool", {"name": "notes__keep_note", "arguments": {"text": "y"}}
    )
    assert refused["isError"] is True
    assert "call_tool" in text_of(refused)


def test_a_refused_call_says_what_would_be_right(gateway: GatewayProcess) -> None:
    refused = gateway.call("call_tool", {"name": "notes__keep_note", "arguments": {"txt": "y"}})
    assert refused["isError"] is True
    told = text_of(refused)
    assert '"text" is a required property' in told
    assert "input schema: {" in told
    tag = re.search(r"#\w{6}", told)
    assert tag, told
    name = f"notes__keep_note{tag.group()}"
    assert gateway.text("call_tool", {"name": name, "arguments": {"text": "y"}}) == "kept"
    unknown = gateway.text("call_tool", {"name": "notes__keep_notes"})
    assert "notes__keep_note" in unknown, unknown


def test_a_wrong_tag_shows_the_definition_again(gateway: GatewayProcess) -> None:
    arguments = {"name": "notes__keep_note#000000", "arguments": {"text": "z"}}
    refused = gateway.call("call_tool", arguments)
    assert refused["isError"] is True
    assert "changed" in text_of(refused)
    assert "input schema: {" in text_of(refused)


@pytest.mark.parametrize(
    "call",
    [
        {"name": "mcp__tg__notes__keep_note", "arguments": {"text": "a"}},
        {"name": "notes__keep_note", "arguments": '{"text": "a"}'},
        {"tool": "notes__keep_note", "args": {"text": "a"}},
        {"name": "notes__keep_note", "text": "a"},
        {"name": "keep_note", "arguments": {"text": "a"}, "server": "x"},
    ],
)
def test_calls_are_taken_as_models_write_them(gateway: GatewayProcess, call: Json) -> None:
    result = gateway.call("call_tool", call)
    if call["name" if "name" in call else "tool"] == "keep_note":
        assert "Several MCP servers" in text_of(result)
    else:
        assert text_of(result).startswith("kept")


def test_a_long_result_is_cut_and_read_on(gateway: GatewayProcess) -> None:
    cut = gateway.text("call_tool", {"name": "notes__list_lines", "arguments": {"count": 2_000}})
    assert len(cut) < 1_200
    assert cut.startswith("line 0\n")
    pointer = re.search(r"read_result handle=(\S+) offset=(\d+)", cut)
    assert pointer, cut
    handle, offset = pointer.groups()
    text = cut[: cut.index("\n[...")]
    while offset:
        piece = gateway.text("read_result", {"handle": handle, "offset": int(offset)})
        content, _, told = piece.rpartition("\n[bytes")
        text += content
        rest = re.search(r"offset=(\d+)", told)
        offset = rest.group(1) if rest else ""
    assert text == lines(2_000)
    needle = gateway.text("read_result", {"handle": handle, "find": "line 1500"})
    assert "line 1500" in needle
    assert gateway.call("read_result", {"handle": "r_unknown"})["isError"] is True


def test_a_host_names_its_own_limit_in_the_url(gateway: GatewayProcess) -> None:
    call = {"name": "notes__list_lines", "arguments": {"count": 2_000}}
    assert gateway.text("call_tool", call, "/mcp?limit=none") == lines(2_000)
    status, _ = gateway.post("/mcp?limit=many", message("tools/list", {}))
    assert status == 400


def test_a_host_that_searches_by_itself_sees_every_tool(gateway: GatewayProcess) -> None:
    tools = gateway.tools("/mcp/all")
    names = [tool["name"] for tool in tools]
    of_servers = sorted(f"{server}__{tool['name']}" for server in SERVERS for tool in TOOLS)
    assert names == ["read_result", *of_servers], "results are cut there too"
    whole = [tool["name"] for tool in gateway.tools("/mcp/all?limit=none")]
    assert whole == of_servers
    shown = {tool["name"]: tool for tool in tools}
    for tool in TOOLS:
        assert shown[f"notes__{tool['name']}"] == {**tool, "name": f"notes__{tool['name']}"}
    assert gateway.text("notes__keep_note", {"text": "x"}, "/mcp/all") == "kept"
    refused = gateway.call("notes__keep_note", {"txt": "x"}, "/mcp/all")
    assert refused["isError"] is True
    assert '"text" is a required property' in text_of(refused)
    assert gateway.call("discover_tools", {"query": "x"}, "/mcp/all")["isError"] is True


def result_of(gateway: GatewayProcess, method: str, params: Json) -> Json:
    headers = {"Mcp-Name": params["uri"]} if "uri" in params else {}
    status, answer = gateway.post("/mcp", message(method, params), headers)
    assert status == 200, answer
    result: Json = answer["result"]
    return result


def test_prompts_and_resources_say_whose_they_are(gateway: GatewayProcess) -> None:
    prompts = result_of(gateway, "prompts/list", {})["prompts"]
    assert prompts == [{"name": f"{server}__greet", "novel": 1.0} for server in SERVERS]
    got = result_of(gateway, "prompts/get", {"name": "other__greet"})
    assert got["messages"][0]["content"]["text"] == "say hello to greet"
    resources = result_of(gateway, "resources/list", {})["resources"]
    assert [resource["uri"] for resource in resources] == [f"{name}+{URI}" for name in SERVERS]
    gateway.call("keep_note", {"text": "of other"}, "/mcp/s/other")
    read = result_of(gateway, "resources/read", {"uri": f"other+{URI}"})
    assert read["contents"] == [{"uri": f"other+{URI}", "text": "of other"}]
    unknown = message("prompts/get", {"name": "absent__greet"})
    assert gateway.post("/mcp", unknown)[1]["error"]["code"] == -32602


def test_one_server_is_handed_through_as_it_is(gateway: GatewayProcess) -> None:
    names = [tool["name"] for tool in gateway.tools("/mcp/s/notes")]
    assert names == ["read_note", "keep_note", "list_lines", "process_id"]
    call: Json = {"count": 2_000}
    assert gateway.text("list_lines", call, "/mcp/s/notes") == lines(2_000)
    status, _ = gateway.post("/mcp/s/absent", message("tools/list", {}))
    assert status == 404


def test_a_killed_server_comes_back_and_costs_others_nothing(gateway: GatewayProcess) -> None:
    tell = {"name": "other__process_id"}
    before = int(gateway.text("call_read_tool", tell))
    kill(before)
    assert gateway.text("call_read_tool", {"name": "notes__process_id"}).isdigit()
    told = ""

    def is_back() -> bool:
        nonlocal told
        told = gateway.text("call_read_tool", tell)
        return told.isdigit() and int(told) != before

    wait_until(is_back, lambda: told)


@pytest.mark.parametrize(
    "headers", [{"Host": "gateway.example"}, {"Origin": "https://page.example"}]
)
def test_pages_and_other_names_are_refused(
    gateway: GatewayProcess, headers: dict[str, str]
) -> None:
    status, _ = gateway.post("/mcp", message("tools/list", {}), headers)
    assert status == 403


def test_people_see_what_hosts_see(binary: Path, gateway: GatewayProcess) -> None:
    at = ["--url", gateway.url]
    status = run(binary, "gateway", "status", *at)
    assert status.returncode == 0, status.stderr
    assert re.search(r"notes +ready", status.stdout)
    assert "searches: " in status.stdout
    why = run(binary, "gateway", "why", "store a note", *at)
    assert "notes__keep_note#" in why.stdout
    call = run(binary, "gateway", "call", "notes", "keep_note", '{"text": "x"}', *at)
    assert call.stdout == 'kept\n{\n  "type": "novel",\n  "a": 1\n}\n'
    refused = run(binary, "gateway", "call", "notes", "keep_note", "{}", *at)
    assert refused.returncode == 3
    unknown = run(binary, "gateway", "logs", "absent", *at)
    assert unknown.returncode == 1
    assert "absent" in unknown.stderr


def test_people_are_answered_whatever_the_face_at_mcp_shows(binary: Path, tmp_path: Path) -> None:
    config = '[gateway]\nexpose = "all"\n' + plain_server("notes")
    with GatewayProcess(binary, tmp_path, config) as gateway:
        at = ["--url", gateway.url]
        why = run(binary, "gateway", "why", "store a note", *at)
        assert "notes__keep_note#" in why.stdout, why.stderr
        call = run(binary, "gateway", "call", "notes", "keep_note", '{"text": "x"}', *at)
        assert call.stdout.startswith("kept\n"), call.stderr
        assert metrics(gateway)["toolgate_gateway_searches_total"] == 0, "no model's search"


def test_a_server_that_left_while_the_gateway_was_down_is_not_in_the_catalog(
    binary: Path, tmp_path: Path
) -> None:
    both = plain_server("notes") + plain_server("ghost")
    with GatewayProcess(binary, tmp_path, both) as gateway:
        assert "of 8 tools" in gateway.text("discover_tools", {"query": "store a note"})
    with GatewayProcess(binary, tmp_path, plain_server("notes")) as gateway:

        def is_gone() -> bool:
            text = gateway.text("discover_tools", {"query": "store a note"})
            return f"of {len(TOOLS)} tools" in text and "ghost" not in text

        wait_until(is_gone)


def test_the_hit_rate_is_in_the_metrics(binary: Path, tmp_path: Path) -> None:
    with GatewayProcess(binary, tmp_path, plain_server("notes")) as gateway:
        before = metrics(gateway)
        found(gateway, "process id")
        for _ in range(5):
            gateway.call("call_tool", {"name": "notes__list_lines", "arguments": {"count": 1}})
        name = found(gateway, "store a note")["notes__keep_note"]
        gateway.call("call_tool", {"name": name, "arguments": {"text": "x"}})
        after = metrics(gateway)
        status = run(binary, "gateway", "status", "--url", gateway.url, "--json")
        gateway.call("keep_note", {"text": "y"}, "/mcp/s/notes")
        gateway.call("none", {}, "/mcp/s/notes")
        whole = metrics(gateway)
    documented = (DOCS / "gateway.md").read_text()
    assert all(f"`{name}`" in documented for name in after)
    assert whole["toolgate_gateway_calls_total"] == 8, "calls at the server's own face count"
    failed = "toolgate_gateway_calls_failed_total"
    assert [counts[failed] for counts in (after, whole)] == [0, 0]
    names = ["searches", "search_hits", "search_misses", "calls"]
    counts = [f"toolgate_gateway_{name}_total" for name in names]
    assert [before[name] for name in counts] == [0, 0, 0, 0]
    assert [after[name] for name in counts] == [2, 1, 1, 6]
    assert after["toolgate_gateway_tools"] == len(TOOLS)
    told = json.loads(status.stdout)
    assert (told["hits"], told["misses"]) == (1, 1)


def test_calls_without_a_result_count_as_failed(binary: Path, tmp_path: Path) -> None:
    command = json.dumps([sys.executable, str(MISBEHAVING), "shed", str(tmp_path)])
    entry = f"[server.shed]\ncommand = {command}\nrestart = {{ min = '100ms' }}\n"
    with GatewayProcess(binary, tmp_path, entry) as gateway:
        gateway.call("shed__echo", {"about": "rain"}, "/mcp/all")
        gateway.call("shed__half", {"about": "rain"}, "/mcp/all")
        half = {"name": "half", "arguments": {"about": "rain"}}
        gateway.post("/mcp/s/shed", message("tools/call", half))
        counted = metrics(gateway)
    assert counted["toolgate_gateway_calls_total"] == 3
    assert counted["toolgate_gateway_calls_failed_total"] == 2
    assert counted["toolgate_gateway_calls_refused_total"] == 0


def metrics(gateway: GatewayProcess) -> dict[str, float]:
    """Returns the samples of `/metrics` by name, summed over labels. Scrapers ask by address."""
    with urllib.request.urlopen(gateway.url + "/metrics", timeout=PATIENCE) as answer:
        text = answer.read().decode()
    samples: dict[str, float] = {}
    for name, value in re.findall(r"^(\w+)(?:\{.*\})? (\S+)$", text, re.MULTILINE):
        samples[name] = samples.get(name, 0) + float(value)
    return samples


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "10.1.2.3:7080"}, 200),
        ({"Host": "[fd00::1]"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": "10.1.2.3", "Origin": "http://evil.example"}, 403),
    ],
)
def test_metrics_are_for_scrapers_and_not_for_pages(
    gateway: GatewayProcess, headers: dict[str, str], status: int
) -> None:
    host = gateway.url.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=PATIENCE)
    connection.request("GET", "/metrics", headers=headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    assert answer.status == status


@pytest.mark.parametrize(
    ("up_to", "tokens", "is_whole"), [(3, 2_000, False), (4, 2_000, True), (4, 500, False)]
)
def test_c8_few_tools_are_all_shown_where_the_file_says_so(
    binary: Path, tmp_path: Path, up_to: int, tokens: int, is_whole: bool
) -> None:
    config = f'[gateway]\nload_all_up_to = {up_to}\nshown_names = "strict"\n'
    config += f"start_tokens = {tokens}\n"
    with GatewayProcess(binary, tmp_path, config + plain_server("notes")) as gateway:
        shown = [tool["name"] for tool in gateway.tools()]
        called = gateway.call("notes__read_note", {})
    whole = sorted(f"notes__{tool['name']}" for tool in TOOLS)
    assert shown == OWN_TOOLS + (whole if is_whole else [])
    assert called.get("isError", False) is not is_whole


def test_one_connection_too_many_is_closed_and_the_others_go_on(
    binary: Path, tmp_path: Path
) -> None:
    config = "[gateway]\nmax_connections = 2\n" + plain_server("notes")
    with GatewayProcess(binary, tmp_path, config) as gateway:
        place = urlsplit(gateway.url)
        first = http.client.HTTPConnection(place.hostname or "", place.port, timeout=PATIENCE)
        second = http.client.HTTPConnection(place.hostname or "", place.port, timeout=PATIENCE)
        assert (status_of(first), status_of(second)) == (200, 200)
        with socket.create_connection((place.hostname, place.port), timeout=PATIENCE) as third:
            assert third.recv(1) == b"", "closed at once, so that its host notices"
        assert status_of(first) == 200
        second.close()
        wait_until(lambda: is_let_in(gateway), "the place is free again")
        first.close()


def test_a_flood_of_connections_ends_no_host_that_works(binary: Path, tmp_path: Path) -> None:
    most = 8
    config = f"[gateway]\nmax_connections = {most}\n" + plain_server("notes")
    with GatewayProcess(binary, tmp_path, config) as gateway, ExitStack() as flood:
        place = (urlsplit(gateway.url).hostname or "", urlsplit(gateway.url).port or 0)
        host = http.client.HTTPConnection(*place, timeout=PATIENCE)
        assert status_of(host) == 200
        opened = [
            flood.enter_context(socket.create_connection(place, timeout=PATIENCE))
            for _ in range(4 * most)
        ]
        # Those that hold no place are closed at once.
        refused = opened[most - 1 :]
        assert {connection.recv(1) for connection in refused} == {b""}
        assert {status_of(host) for _ in range(20)} == {200}
        flood.close()
        wait_until(lambda: is_let_in(gateway), "other hosts are let in again")
        assert status_of(host) == 200
        host.close()


def status_of(connection: http.client.HTTPConnection) -> int:
    """The status of an answer, after which the connection stays open."""
    connection.request("GET", "/livez")
    response = connection.getresponse()
    response.read()
    return response.status


def is_let_in(gateway: GatewayProcess) -> bool:
    """True if the gateway answers on a new connection."""
    try:
        return gateway.send("GET", "/livez", {}, None)[0] == 200
    except OSError:
        return False


def test_a_host_may_start_it_on_standard_streams(binary: Path, tmp_path: Path) -> None:
    gateway = GatewayProcess(binary, tmp_path, plain_server("notes"))
    opening = {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with subprocess.Popen(
        gateway.command("--stdio"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=command_environment(),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        answers: list[Json] = []
        requests: list[Json] = [opening, ready, listing]
        for sent in requests:
            process.stdin.write(json.dumps(sent) + "\n")
            process.stdin.flush()
            if "id" in sent:
                answers.append(json.loads(answer_to(sent["id"], process.stdout)))
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
    assert answers[0]["result"]["protocolVersion"] == "2025-06-18"
    assert "notes" in answers[0]["result"]["instructions"]
    assert [tool["name"] for tool in answers[1]["result"]["tools"]] == OWN_TOOLS


def test_hosts_start_gateways_beside_one_that_runs(gateway: GatewayProcess) -> None:
    opening = {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    with ExitStack() as hosts:
        for _ in range(2):
            process = hosts.enter_context(
                subprocess.Popen(
                    gateway.command("--stdio"),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    env=command_environment(),
                )
            )
            assert process.stdin is not None
            assert process.stdout is not None
            hosts.callback(process.stdin.close)
            process.stdin.write(json.dumps(opening) + "\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            assert "notes" in answer["result"]["instructions"]


def test_no_process_is_left_behind(binary: Path, tmp_path: Path) -> None:
    with GatewayProcess(binary, tmp_path, plain_server("notes")) as gateway:
        child = int(gateway.text("call_read_tool", {"name": "notes__process_id"}))
        assert is_running(child)
        assert gateway.stop() == 0
    assert not is_running(child)


def test_no_process_is_left_behind_a_gateway_that_was_killed(binary: Path, tmp_path: Path) -> None:
    # Of several: none holds another's input open.
    servers = ["a", "b", "c"]
    config = "".join(plain_server(name) for name in servers)
    with GatewayProcess(binary, tmp_path, config) as gateway:
        calls = [{"name": f"{name}__process_id"} for name in servers]
        children = [int(gateway.text("call_read_tool", call)) for call in calls]
        assert all(is_running(child) for child in children)
        kill(gateway.process_id)
        wait_until(lambda: not any(is_running(child) for child in children), "orphans are left")


def test_no_process_of_a_server_outlives_a_gateway_that_was_killed(
    binary: Path, tmp_path: Path
) -> None:
    # It neither reads its input nor heeds SIGTERM, and belongs to its server's group.
    told = tmp_path / "deaf"
    script = f"(trap '' TERM HUP; echo $$ >&2; exec sleep 600) <&- >&- & echo $! > {told}; exec "
    command = json.dumps(["sh", "-c", script + '"$0" "$1"', sys.executable, str(PLAIN)])
    entry = f"[server.notes]\ncommand = {command}\n"
    with GatewayProcess(binary, tmp_path, entry) as gateway:
        deaf = int(told.read_text())
        assert is_running(deaf)
        kill(gateway.process_id)
        wait_until(lambda: not is_running(deaf), "an orphan is left")


def test_what_a_host_starts_with_is_bounded_and_told(binary: Path, tmp_path: Path) -> None:
    settings = 'always_on = ["titled__odd", "notes__read_note"]\n'
    servers = plain_server("notes") + plain_server("titled").replace(PLAIN.name, EXACT)
    gateway = GatewayProcess(binary, tmp_path, f"[gateway]\n{settings}{servers}")
    gateway.start("a host starts with")
    try:
        tools = gateway.tools()
    finally:
        gateway.stop()
    assert [tool["name"] for tool in tools] == [*OWN_TOOLS, "titled__odd", "notes__read_note"]
    assert tools[4] == {**json.loads(DEFINITIONS[0]), "name": "titled__odd"}
    line = re.search(r"(\d+) tools, ([\d,]+) tokens; a host starts with ([\d,]+)", gateway.said[-1])
    assert line, gateway.said
    assert line[1] == str(len(TOOLS) + len(DEFINITIONS))
    whole = int(line[3].replace(",", ""))
    tight = GatewayProcess(
        binary, tmp_path, f"[gateway]\nstart_tokens = {whole - 1}\n{settings}{servers}"
    )
    with tight:
        cut = [tool["name"] for tool in tight.tools()]
    assert cut == [*OWN_TOOLS, "titled__odd"], "the last does not fit"


@pytest.mark.parametrize(
    ("trust", "word", "is_read"),
    [
        ("trusted", "", True),
        ("standard", "", False),
        ("standard", 'tools = { read_only = ["read_*"] }\n', True),
    ],
)
def test_a_tool_reads_by_the_word_of_a_trusted_server_or_of_the_operator(
    binary: Path, tmp_path: Path, trust: str, word: str, is_read: bool
) -> None:
    config = plain_server("notes", trust=trust) + word
    with GatewayProcess(binary, tmp_path, config) as gateway:
        shown = gateway.text("discover_tools", {"query": "select:notes__read_note"})
        result = gateway.call("call_read_tool", {"name": "notes__read_note"})
    assert ("\n  read: " in shown) is is_read
    assert result.get("isError", False) is not is_read


def test_strict_gateways_run_only_what_was_shown(binary: Path, tmp_path: Path) -> None:
    config = '[gateway]\nshown_names = "strict"\nalways_on = ["notes__read_note"]\n'
    config += plain_server("notes")
    with GatewayProcess(binary, tmp_path, config) as gateway:
        shown = [tool["name"] for tool in gateway.tools()]
        call = {"name": "notes__keep_note", "arguments": {"text": "x"}}
        refused = gateway.call("call_tool", call)
        name = found(gateway, "select:notes__keep_note")["notes__keep_note"]
        kept = gateway.text("call_tool", {**call, "name": name})
        read = gateway.text("notes__read_note", {})
    assert shown == [*OWN_TOOLS, "notes__read_note"]
    assert refused["isError"] is True
    assert "select:notes__keep_note" in text_of(refused)
    assert kept == "kept"
    assert read == "x"


def test_a_policy_hides_tools_in_every_face(
    binary: Path, server: ToolgateProcess, tenant: str, tmp_path: Path
) -> None:
    plane = ("--server", server.target, "--tenant", tenant)
    with GatewayProcess(binary, tmp_path, plain_server("notes"), plane) as gateway:
        before = [tool["name"] for tool in gateway.tools("/mcp/s/notes")]
        with server.client(tenant) as client:
            rule = "{name: no-writing, match: {tools: [keep_note]}, denied: true}"
            client.set_policy(f"rules: [{rule}]")
        after = [tool["name"] for tool in gateway.tools("/mcp/s/notes")]
        shown = found(gateway, "select:notes__keep_note")
        arguments = {"text": "x"}
        direct = gateway.call("keep_note", arguments, "/mcp/s/notes")
        called = gateway.call("call_tool", {"name": "notes__keep_note", "arguments": arguments})
    assert before == ["read_note", "keep_note", "list_lines", "process_id"]
    assert after == ["read_note", "list_lines", "process_id"]
    assert shown == {}
    for refused in [direct, called]:
        assert refused["isError"] is True
        assert "There is no tool" in text_of(refused)


def test_a_call_at_a_servers_own_face_unlocks_what_waits_for_it(
    binary: Path, server: ToolgateProcess, tenant: str, tmp_path: Path
) -> None:
    plane = ("--server", server.target, "--tenant", tenant)
    with GatewayProcess(binary, tmp_path, plain_server("notes"), plane) as gateway:
        with server.client(tenant) as client:
            rule = "match: {tools: [read_note]}, precondition: {has_prior_tool_output: keep_note}"
            client.set_policy(f"rules: [{{name: after, {rule}}}]")
        face = "/mcp/s/notes"
        locked = gateway.call("read_note", {}, face)
        # The server ends at a call without the text.
        status, _ = gateway.post(face, message("tools/call", {"name": "keep_note"}))
        still = gateway.call("read_note", {}, face)
        kept = gateway.text("keep_note", {"text": "x"}, face)
        read = gateway.text("read_note", {}, face)
        elsewhere = gateway.call("call_read_tool", {"name": "notes__read_note"})
    for refused in [locked, still]:
        assert refused["isError"] is True
        assert "may not run yet" in text_of(refused)
    assert status != 404
    assert kept == "kept"
    assert read == "x"
    assert not elsewhere.get("isError"), elsewhere


def test_one_host_can_not_open_all_sessions_there_are(binary: Path, tmp_path: Path) -> None:
    opening = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    body: Json = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening}
    older = {"MCP-Protocol-Version": "2025-06-18"}
    with GatewayProcess(binary, tmp_path, plain_server("notes")) as gateway:
        statuses = [gateway.post("/mcp", body, older)[0] for _ in range(1_025)]
        tools = gateway.tools()
    assert statuses == [200] * 1_024 + [503]
    assert len(tools) == len(OWN_TOOLS), "a host without a session is served"


def test_a_gateway_without_a_model_says_how_to_get_it(binary: Path, tmp_path: Path) -> None:
    gateway = GatewayProcess(binary, tmp_path, plain_server("notes"))
    done = subprocess.run(
        gateway.command("--listen", "127.0.0.1:0", "--model-dir", str(tmp_path / "none")),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=command_environment(),
    )
    assert done.returncode == 1
    folder = tmp_path / "none"
    told = f"error: the encoder's model is not in {folder}: `toolgate model fetch` gets it\n"
    assert done.stderr == told


@pytest.mark.parametrize(
    "command", ["status", "why x", "call notes echo", "logs notes", "restart notes"]
)
def test_without_a_gateway_people_are_told_how_to_start_one(binary: Path, command: str) -> None:
    url = f"http://{free_address()}"
    done = run(binary, "gateway", *command.split(), "--url", url)
    assert done.returncode == 4
    assert done.stderr == (
        f"error: no gateway answers at {url} (Connection refused): start it with "
        "`toolgate gateway`, or name the address of one that listens elsewhere "
        "(--listen, gateway.listen) with --url\n"
    )


def test_what_a_call_names_wrong_is_told_with_the_nearest(binary: Path, tmp_path: Path) -> None:
    broken = '[server.broken]\ncommand = ["sh", "-c", "echo no package >&2; exit 3"]\n'
    restart = '[server.broken.restart]\nmin = "600s"\nmax = "600s"\n'
    gateway = GatewayProcess(binary, tmp_path, plain_server("notes") + broken + restart)
    gateway.start("broken: waiting")
    try:

        def is_searchable() -> bool:
            done = run(binary, "gateway", "status", "--json", "--url", gateway.url)
            return any(server["is_searchable"] for server in json.loads(done.stdout)["servers"])

        wait_until(is_searchable, "the tools of notes")

        def called(*words: str) -> str:
            done = run(binary, "gateway", *words, "--url", gateway.url)
            assert done.returncode == (3 if words[0] == "call" else 1), done.stderr
            assert done.stdout == ""
            return done.stderr

        server = (
            "error: the gateway has no server `nots`: did you mean `notes`? "
            "`toolgate gateway status` lists them\n"
        )
        assert called("call", "nots", "echo") == server
        assert called("logs", "nots") == server
        assert called("restart", "nots") == server
        assert "no server `zebra`: `toolgate gateway status`" in called("logs", "zebra")
        assert "did you mean `notes`?" in called("logs", "ntoes"), "two letters changed places"
        found = run(binary, "gateway", "why", "ntoes", "--url", gateway.url)
        assert found.stderr == "did you mean the server `notes`?\n"
        config = tmp_path / "gateway.toml"
        login = run(binary, "gateway", "login", "nots", "--config", config)
        assert login.returncode == 2
        assert "has no server.nots: did you mean `notes`?" in login.stderr
        assert called("call", "notes", "raed_note") == (
            "error: notes has no tool `raed_note`: did you mean `read_note`? "
            "`toolgate gateway why notes` lists them\n"
        )
        pending = gateway.text("discover_tools", {"query": "store a note"})
        assert "Not there yet: broken (waiting: the handshake failed: it ended" in pending
        assert called("call", "broken", "echo") == (
            "error: broken is not ready (waiting): the handshake failed: "
            "it ended (exit status: 3); its standard error ends with: no package\n"
        )
    finally:
        gateway.stop()


def test_a_server_that_wrote_nothing_is_told_with_what_starts_it(
    binary: Path, tmp_path: Path
) -> None:
    absent = '[server.absent]\ncommand = ["/nonexistent/program"]\n'
    lazy = plain_server("lazy", start="lazy")
    gateway = GatewayProcess(binary, tmp_path, lazy + absent)
    gateway.start("lazy: idle")
    try:
        for name, want in (
            ("lazy", ": it is started by the first call of one of its tools"),
            ("absent", ": its last start failed, and it is tried again by itself, or now by "),
        ):
            done = run(binary, "gateway", "logs", name, "--url", gateway.url)
            assert (done.returncode, done.stdout) == (0, "")
            begins = f"{name} has written no lines to its standard error{want}"
            assert done.stderr.startswith(begins), done.stderr
        assert "/nonexistent/program" in done.stderr
    finally:
        gateway.stop()


def test_a_server_that_is_not_there_is_told_once(binary: Path, tmp_path: Path) -> None:
    nobody = '[server.web]\nurl = "http://127.0.0.1:1/mcp"\n'
    gateway = GatewayProcess(binary, tmp_path, nobody)
    gateway.start("web: waiting")
    gateway.stop()
    assert "rmcp" not in "".join(gateway.said), "the library's own lines are left out"


def test_what_is_no_server_or_no_gateway_is_told(binary: Path, gateway: GatewayProcess) -> None:
    done = run(binary, "usage", "--endpoint", gateway.url)
    assert done.returncode == 4
    for part in ("no Toolgate server: it answers with HTTP status 404", "server.listen", "7070"):
        assert part in done.stderr
    done = run(binary, "usage", "--llm", gateway.url)
    assert done.returncode == 1
    assert f"what answers at {gateway.url} is no LLM proxy (404 Not Found)" in done.stderr


def said_at_a_terminal(binary: Path, folder: Path, *settings: str) -> str:
    """Returns what a gateway writes on a terminal until its servers are there."""
    folder.mkdir()
    gateway = GatewayProcess(binary, folder, plain_server("notes"))
    screen, terminal = pty.openpty()
    process = subprocess.Popen(
        gateway.command("--listen", "127.0.0.1:0", *settings),
        stdin=subprocess.DEVNULL,
        stderr=terminal,
        env={**command_environment(), **PATIENT_PLANE},
    )
    os.close(terminal)
    said = b""
    try:
        while b"behind discover_tools" not in said:
            said += os.read(screen, 4096)
    finally:
        process.terminate()
        process.wait(60)
        os.close(screen)
        remove_reserve(folder / "data")
    return said.decode()


def test_audited_changes_are_on_a_terminal_only_if_they_are_asked_for(
    binary: Path, tmp_path: Path
) -> None:
    audited = "toolgate::audit"
    assert audited not in said_at_a_terminal(binary, tmp_path / "usual")
    asked = said_at_a_terminal(binary, tmp_path / "asked", "--set", "log.level=info")
    assert audited in asked
    folder = tmp_path / "log"
    folder.mkdir()
    with GatewayProcess(binary, folder, plain_server("notes")) as gateway:
        assert audited in "".join(gateway.said), "a log that nobody watches has them"


def test_an_address_for_a_service_beside_it_is_told_and_not_taken(
    binary: Path, tmp_path: Path
) -> None:
    file = tmp_path / "plane.toml"
    file.write_text('[server]\nlisten = "127.0.0.1:1"\n')
    plane = ("--data-dir", str(tmp_path / "data"), "--server-config", str(file))
    told = f"{file}:2: server.listen is for `toolgate serve` and counts for nothing here: "
    with GatewayProcess(binary, tmp_path, plain_server("notes"), plane) as gateway:
        assert told in "".join(gateway.said)
    address = free_address()
    named = (*plane, "--set", f"server.listen={address}")
    with GatewayProcess(binary, tmp_path, plain_server("notes"), named) as gateway:
        said = "".join(gateway.said)
        assert f"routing plane on http://{address}" in said
        assert told not in said


def test_mistakes_of_the_file_are_told_before_anything_starts(binary: Path, tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text("[server.notes]\ncomand = 1\n")
    for arguments in [["gateway", "check", str(file)], ["gateway", "--config", str(file)]]:
        done = run(binary, *arguments)
        assert done.returncode == 2, done.stderr
        assert "comand" in done.stderr
        assert "line 2" in done.stderr
    file.write_text("[gateway]\ncolour = 1\n[server.a]\n[server.b]\ncommand = 1\n")
    told = run(binary, "gateway", "check", str(file)).stderr
    assert re.findall(r"line (\d+)", told) == ["2", "3", "5"], told
    file.write_text(plain_server("notes"))
    assert run(binary, "gateway", "check", str(file)).returncode == 0
    missing = run(binary, "gateway", "--config", str(tmp_path / "absent.toml"))
    assert missing.returncode == 2
    assert "absent.toml" in missing.stderr
