"""Prompts and resources behind a gateway: left out for poisoned texts, and audited."""

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from gateway_process import GatewayProcess, Json, answer_of, message, plain_server
from test_gateway import metrics
from test_gateway_lists import Session
from test_quarantine import HARMLESS, POISON
from toolgate_command import run
from waiting import wait_until

POISONED = Path(__file__).with_name("poisoned_mcp_server.py")
LISTS = {
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
FACES = ["/mcp", "/mcp/all", "/mcp/s/sea"]
OWN = "/mcp/s/sea"
SECRET = "sea:///moon?token=secret"


def config(text: Path, trust: str = "standard") -> str:
    command = json.dumps([sys.executable, str(POISONED), str(text)])
    audit = json.dumps(str(text.with_name("audit.jsonl")))
    gateway = f"[gateway]\naudit_file = {audit}\n"
    return f'{gateway}[server.sea]\ncommand = {command}\ntrust = "{trust}"\n'


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """The file with the text of the first of each list."""
    text = tmp_path / "tides.txt"
    text.write_text(POISON)
    return text


@pytest.fixture
def gateway(binary: Path, tmp_path: Path, text: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(binary, tmp_path, config(text)) as gateway:
        yield gateway


def listed(gateway: GatewayProcess, face: str) -> list[list[str]]:
    """The items of each list of a face, by the last word of their names."""
    lists = []
    for method, items in LISTS.items():
        status, answer = gateway.post(face, message(method, {}))
        assert status == 200, answer
        keys = [
            item.get("uri") or item.get("uriTemplate") or item["name"]
            for item in answer["result"][items]
        ]
        lists.append([key.replace("__", "/").rsplit("/", 1)[-1] for key in keys])
    return lists


def fetch(gateway: GatewayProcess, face: str, method: str, name: str) -> Json:
    """The answer to a request for a prompt or a resource."""
    field = "uri" if method == "resources/read" else "name"
    _, answer = gateway.post(face, message(method, {field: name}), {"Mcp-Name": name})
    return answer


def fetched(gateway: GatewayProcess, what: str) -> list[Json]:
    """The answers to the requests of both ways for a prompt and a resource."""
    return [
        fetch(gateway, "/mcp", "prompts/get", f"sea__{what}"),
        fetch(gateway, OWN, "prompts/get", what),
        fetch(gateway, "/mcp", "resources/read", f"sea+sea:///{what}"),
        fetch(gateway, OWN, "resources/read", f"sea:///{what}"),
    ]


def records(gateway: GatewayProcess) -> list[Json]:
    """The lines of the audit of prompts and resources."""
    lines = (gateway.folder / "audit.jsonl").read_text().splitlines()
    read: list[Json] = [json.loads(line) for line in lines]
    return [record for record in read if record["event"] in ("prompt", "resource")]


def test_poisoned_prompts_and_resources_are_left_out_and_not_fetched(
    gateway: GatewayProcess, binary: Path, text: Path
) -> None:
    for face in FACES:
        assert listed(gateway, face) == [["moon"]] * 3
    for refused in fetched(gateway, "tides"):
        assert refused["error"]["code"] == -32602
        assert "keeps this" in refused["error"]["message"]
    assert all("result" in answer for answer in fetched(gateway, "moon"))
    status = run(binary, "gateway", "status", "--url", gateway.url).stdout
    assert "sea: prompt tides is left out" in status
    assert "sea: resource sea:///tides is left out" in status
    text.write_text(HARMLESS)
    for face in FACES:
        assert listed(gateway, face) == [["tides", "moon"]] * 3
    assert all("result" in answer for answer in fetched(gateway, "tides"))
    assert "prompt tides" not in run(binary, "gateway", "status", "--url", gateway.url).stdout


def test_a_prompt_that_a_person_let_in_is_shown_until_it_changes(
    gateway: GatewayProcess, binary: Path, text: Path
) -> None:
    listed(gateway, "/mcp")
    status = run(binary, "gateway", "status", "--url", gateway.url).stdout
    line = next(line for line in status.splitlines() if "sea: prompt tides" in line)
    approved = re.search(r'(approved = \["tides@[0-9a-f]{32}"\]) in \[server\.sea\]', line)
    assert approved, line
    gateway.reload(config(text) + f"{approved[1]}\n", "was read again")
    for face in FACES:
        assert listed(gateway, face) == [["tides", "moon"], ["moon"], ["moon"]]
    answers = fetched(gateway, "tides")
    assert ["result" in answer for answer in answers] == [True, True, False, False]
    text.write_text(f"{POISON} Now.")
    for face in FACES:
        assert listed(gateway, face) == [["moon"]] * 3


def test_what_no_host_has_listed_is_looked_at_before_it_is_fetched(
    gateway: GatewayProcess,
) -> None:
    for refused in fetched(gateway, "tides"):
        assert "keeps this" in refused["error"]["message"]
    assert all("result" in answer for answer in fetched(gateway, "moon"))


def completed(gateway: GatewayProcess, what: str) -> list[Json]:
    """The answers to the requests of both ways to complete a prompt and a template."""
    answers = []
    for face, prefixes in {"/mcp": ("sea__", "sea+"), OWN: ("", "")}.items():
        prompt = {"type": "ref/prompt", "name": f"{prefixes[0]}{what}"}
        template = {"type": "ref/resource", "uri": f"{prefixes[1]}sea:///{{day}}/{what}"}
        for ref in (prompt, template):
            params = {"ref": ref, "argument": {"name": "day", "value": "m"}}
            answers.append(gateway.post(face, message("completion/complete", params))[1])
    return answers


def test_what_is_left_out_is_not_completed(gateway: GatewayProcess, text: Path) -> None:
    for refused in completed(gateway, "tides"):
        assert refused["error"]["code"] == -32602
        assert "keeps this" in refused["error"]["message"]
    for answer in completed(gateway, "moon"):
        assert answer["result"]["completion"]["values"] == ["was completed"]
    text.write_text(HARMLESS)
    listed(gateway, "/mcp")
    assert all("result" in answer for answer in completed(gateway, "tides"))


def refusal_of(events: list[list[str]]) -> str:
    """The message of the error that an answer has, empty for a result."""
    answer = answer_of("\n".join(line for event in events for line in event))
    return answer["error"]["message"] if "error" in answer else ""


def test_a_resource_that_is_left_out_is_neither_followed_nor_completed(
    gateway: GatewayProcess,
) -> None:
    for face, prefix in {"/mcp": "sea+", OWN: ""}.items():
        session = Session(gateway, face, "2025-06-18")
        for what, is_refused in {"tides": True, "{day}/tides": True, "moon": False}.items():
            uri = f"{prefix}sea:///{what}"
            events, _ = session.events("resources/subscribe", {"uri": uri})
            assert ("keeps this" in refusal_of(events)) is is_refused, events
        ref = {"type": "ref/resource", "uri": f"{prefix}sea:///tides"}
        params = {"ref": ref, "argument": {"name": "day", "value": "m"}}
        _, answer = gateway.post(face, message("completion/complete", params))
        assert "keeps this resource back" in answer["error"]["message"]


def test_what_a_broken_list_lacks_is_not_fetched(gateway: GatewayProcess, text: Path) -> None:
    """The list says nothing of it, whoever asked for it first."""
    broken = text.with_name(f"{text.name}.broken")
    broken.touch()
    for _ in range(2):
        for refused in fetched(gateway, "tides") + completed(gateway, "tides"):
            assert "in part alone" in refused["error"]["message"]
        assert all("result" in answer for answer in fetched(gateway, "moon"))
        assert listed(gateway, "/mcp") == [["moon"]] * 3
    first = records(gateway)[0]
    assert (first["verdict"], first["outcome"]) == ("NOT_LISTED", "refused")
    broken.unlink()
    assert listed(gateway, "/mcp") == [["moon"]] * 3
    for refused in fetched(gateway, "tides"):
        assert "in part alone" not in refused["error"]["message"]
    text.write_text(HARMLESS)
    assert listed(gateway, "/mcp") == [["tides", "moon"]] * 3
    assert all("result" in answer for answer in fetched(gateway, "tides"))


@pytest.mark.parametrize("face", ["/mcp", OWN])
def test_what_the_server_gave_is_kept_back_while_nobody_could_look_at_its_list(
    gateway: GatewayProcess, text: Path, face: str
) -> None:
    dies = text.with_name(f"{text.name}.dies")
    dies.touch()
    name = "sea__moon" if face == "/mcp" else "moon"
    refused = fetch(gateway, face, "prompts/get", name)
    assert "could not be looked at" in refused["error"]["message"]
    assert "was got" not in json.dumps(refused)
    dies.unlink()
    assert "result" in fetch(gateway, face, "prompts/get", name)
    kept, got = records(gateway)
    assert (kept["verdict"], kept["outcome"]) == ("LIST_UNSEEN", "kept-back")
    assert (got["verdict"], got["outcome"]) == ("allowed", "done")


def test_a_template_that_is_listed_stands_for_what_a_broken_list_lacks(
    gateway: GatewayProcess, text: Path
) -> None:
    text.with_name(f"{text.name}.broken").touch()
    for face, prefix in {"/mcp": "sea+", OWN: ""}.items():
        read = fetch(gateway, face, "resources/read", f"{prefix}sea:///today/moon")
        assert "result" in read, read
        for other in ("today/tides", "today", "tides"):
            refused = fetch(gateway, face, "resources/read", f"{prefix}sea:///{other}")
            assert 'trust = "trusted"' in refused["error"]["message"]


def test_many_at_once_have_a_list_looked_at_once(gateway: GatewayProcess, text: Path) -> None:
    log, held = (text.with_name(f"{text.name}.{ending}") for ending in ("log", "held"))
    log.touch()
    held.touch()
    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(fetch, gateway, OWN, "prompts/get", "moon") for _ in range(8)]
        wait_until(lambda: "prompts/list" in log.read_text() and all(a.running() for a in answers))
        held.unlink()
        assert all("result" in answer.result() for answer in answers)
    assert log.read_text().splitlines().count("prompts/list") == 1


def test_an_operator_says_whose_texts_are_not_looked_at(
    binary: Path, tmp_path: Path, text: Path
) -> None:
    """By trust, and by `safety.scan`, as with tools."""
    unscanned = ("--data-dir", str(tmp_path / "data"), "--set", "safety.scan=false")
    with GatewayProcess(binary, tmp_path, config(text), unscanned) as gateway:
        assert listed(gateway, "/mcp") == [["tides", "moon"]] * 3
    with GatewayProcess(binary, tmp_path, config(text)) as gateway:
        assert listed(gateway, "/mcp") == [["moon"]] * 3
        gateway.change(config(text, "trusted"), "was read again")
        assert listed(gateway, "/mcp") == [["tides", "moon"]] * 3


def test_each_prompt_and_resource_that_is_fetched_is_a_line_of_the_audit(
    gateway: GatewayProcess,
) -> None:
    listed(gateway, "/mcp")
    fetch(gateway, "/mcp", "prompts/get", "sea__moon")
    fetch(gateway, "/mcp", "prompts/get", "sea__tides")
    fetch(gateway, "/mcp", "prompts/get", "absent__moon")
    fetch(gateway, OWN, "resources/read", SECRET)
    got, refused, unknown, read = records(gateway)
    assert (got["event"], got["server"], got["prompt"]) == ("prompt", "sea", "moon")
    assert (got["verdict"], got["outcome"]) == ("allowed", "done")
    assert got["result_bytes"] > 0
    assert (refused["prompt"], refused["verdict"]) == ("tides", "QUARANTINED")
    assert refused["outcome"] == "refused"
    assert (unknown["server"], unknown["outcome"]) == ("", "refused")
    assert (read["event"], read["server"], read["scheme"]) == ("resource", "sea", "sea")
    assert read["uri"] == hashlib.sha256(SECRET.encode()).hexdigest()
    told = (gateway.folder / "audit.jsonl").read_text()
    assert not any(word in told for word in ("token=secret", "was got", "was read"))


def test_results_of_a_server_that_is_not_trusted_say_so(
    binary: Path, tmp_path: Path, text: Path
) -> None:
    text.write_text(HARMLESS)
    marked = config(text, "untrusted").replace("[gateway]", "[gateway]\nmark_results = true")
    with GatewayProcess(binary, tmp_path, marked) as gateway:
        for result in [
            gateway.call("call_tool", {"name": "sea__moon", "arguments": {}}),
            gateway.call("sea__moon", {}, "/mcp/all"),
        ]:
            mark, said = (item["text"] for item in result["content"])
            assert "from sea, a server that is not trusted" in mark
            assert said == "moon ran"
        [said] = gateway.call("moon", {}, OWN)["content"]
        assert said["text"] == "moon ran"
        trusted = marked.replace('"untrusted"', '"standard"')
        gateway.reload(trusted, "was read again")
        [said] = gateway.call("call_tool", {"name": "sea__moon", "arguments": {}})["content"]
        assert said["text"] == "moon ran"


@pytest.mark.parametrize("trust", ["untrusted", "standard"])
def test_a_result_that_looks_like_an_instruction_is_told_and_handed_on(
    binary: Path, tmp_path: Path, trust: str
) -> None:
    with GatewayProcess(binary, tmp_path, plain_server("sea", trust=trust)) as gateway:
        gateway.call("keep_note", {"text": POISON}, OWN)
        for face, tool in [
            ("/mcp", "call_tool"),
            ("/mcp/all", "sea__read_note"),
            (OWN, "read_note"),
        ]:
            arguments = {"name": "sea__read_note", "arguments": {}} if tool == "call_tool" else {}
            assert gateway.text(tool, arguments, face) == POISON
        counted = metrics(gateway)["toolgate_gateway_suspect_results_total"]
        assert counted == (3 if trust == "untrusted" else 0)
        if trust == "untrusted":
            gateway.wait_for("looks like an instruction to models")
            assert "read_note" in gateway.said[-1]
            assert POISON not in gateway.said[-1]


def test_what_is_read_on_of_such_a_result_says_so_too(binary: Path, tmp_path: Path) -> None:
    marked = "[gateway]\nmark_results = true\n" + plain_server("sea", trust="untrusted")
    with GatewayProcess(binary, tmp_path, marked) as gateway:
        for face, tool in [("/mcp", "call_tool"), ("/mcp/all", "sea__list_lines")]:
            arguments: Json = {"count": 4_000}
            if tool == "call_tool":
                arguments = {"name": "sea__list_lines", "arguments": arguments}
            cut = gateway.call(tool, arguments, face)["content"][1]["text"]
            found = re.search(r"read_result handle=(\S+) offset=(\d+)", cut)
            assert found, cut
            arguments = {"handle": found[1], "offset": int(found[2])}
            mark, said = gateway.call("read_result", arguments, face)["content"]
            assert "from sea, a server that is not trusted" in mark["text"]
            assert "\nline " in said["text"]
        refused = gateway.call("read_result", {"handle": "r_none"})
        assert "not trusted" not in json.dumps(refused)
