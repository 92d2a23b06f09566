"""Tasks of 2025-11-25 through the gateway."""

import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from asking_hosts import Json, LegacyHost, ModernHost, RefusedError, text_of
from fixture_gateway import TOOLGATE
from gateway_process import GatewayProcess, free_address, logged_server, messages
from toolgate_command import run
from waiting import wait_until

SERVER = Path(__file__).with_name("task_server.py")
RELATED = "io.modelcontextprotocol/related-task"
TASKS: Json = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
OWN = "/mcp/s/mine"

# The name of a tool at each face.
FACES = [(OWN, "dig"), ("/mcp", "mine__dig"), ("/mcp/all", "mine__dig")]
NEWER_TASKS: Json = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
GOES_ON = {"goes_on": True}


def mine(log: Path) -> str:
    """The entry of the server with tasks."""
    command = json.dumps([sys.executable, str(SERVER), str(log)])
    return f"[server.mine]\ncommand = {command}\nquestions = true\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The file with the requests that the server got."""
    return tmp_path / "mine.jsonl"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """The file with those of a server without tasks."""
    return tmp_path / "notes.jsonl"


@pytest.fixture
def url(tmp_path: Path, log: Path, notes: Path) -> Iterator[str]:
    audit = f"audit_file = {json.dumps(str(log.with_name('audit.jsonl')))}\n"
    gateway = f'[gateway]\nalways_on = ["mine__dig"]\n{audit}'
    config = f"{gateway}{mine(log)}{logged_server('notes', notes)}"
    with GatewayProcess(Path(TOOLGATE), tmp_path, config) as process:
        yield process.url


def begin(host: LegacyHost, tool: str, arguments: Json | None = None) -> Json:
    """The task that a call begins."""
    call = {"name": tool, "arguments": arguments or {}, "task": {"ttl": 60_000}}
    task: Json = host.request("tools/call", call)["task"]
    return task


def refusal(host: LegacyHost | ModernHost, method: str, params: Json) -> int:
    with pytest.raises(RefusedError) as refused:
        host.request(method, params)
    return refused.value.code


@pytest.mark.parametrize(("face", "tool"), FACES)
def test_a_host_looks_after_its_tasks(url: str, face: str, tool: str) -> None:
    host = LegacyHost(url + face)
    assert host.greeting["capabilities"]["tasks"] == TASKS
    assert "experimental" not in host.greeting["capabilities"]
    task = begin(host, tool)
    named = {"taskId": task["taskId"]}
    assert not task["taskId"].startswith("task-")
    assert (task["status"], task["ttl"]) == ("working", 60_000)
    state = host.request("tasks/get", named)
    assert (state["taskId"], state["status"]) == (task["taskId"], "working")
    result = host.request("tasks/result", named)
    assert text_of(result) == "dig as a task"
    assert result["_meta"] == {RELATED: named, "kept": 1}
    going = begin(host, tool, GOES_ON)
    listed = host.request("tasks/list", {})["tasks"]
    assert [one["taskId"] for one in listed] == [task["taskId"], going["taskId"]]
    cancelled = host.request("tasks/cancel", {"taskId": going["taskId"]})
    assert (cancelled["taskId"], cancelled["status"]) == (going["taskId"], "cancelled")


def test_a_task_is_known_by_the_gateways_name_alone(url: str) -> None:
    host = LegacyHost(url + OWN)
    task = begin(host, "dig")
    for method in ["tasks/get", "tasks/result", "tasks/cancel"]:
        for unknown in ["task-0", "", task["taskId"][:-4]]:
            assert refusal(host, method, {"taskId": unknown}) == -32602
    elsewhere = LegacyHost(f"{url}/mcp/s/notes")
    assert "tasks" not in elsewhere.greeting["capabilities"]
    assert refusal(elsewhere, "tasks/get", {"taskId": task["taskId"]}) == -32602
    assert elsewhere.request("tasks/list", {}) == {"tasks": []}
    assert refusal(host, "tasks/update", {"taskId": task["taskId"]}) == -32601


def test_what_runs_as_a_task_alone_is_called_like_any_other_tool(url: str, log: Path) -> None:
    call = {"name": "mine__drill", "arguments": {}}
    hosts: list[LegacyHost | ModernHost] = [
        LegacyHost(f"{url}/mcp"),
        ModernHost(f"{url}/mcp", capabilities={}),
    ]
    for host in hosts:
        result = host.call("call_tool", call)
        assert text_of(result) == "drill as a task"
        assert RELATED not in result.get("_meta", {})
        assert text_of(host.call("call_tool", call | {"name": "mine__dig"})) == "dig at once"


def test_a_task_that_nobody_waits_for_any_more_is_cancelled(url: str, log: Path) -> None:
    host = LegacyHost(f"{url}/mcp")
    arguments = {"name": "mine__drill", "arguments": GOES_ON}
    call: Json = {"name": "call_tool", "arguments": arguments}
    waiting = threading.Thread(target=lambda: list(host.stream("tools/call", call)), daemon=True)
    waiting.start()
    wait_until(lambda: messages(log, "tasks/get"))
    assert not messages(log, "tasks/cancel")
    host.cancel()
    wait_until(lambda: messages(log, "tasks/cancel"))
    host.leave()


def records(log: Path) -> list[list[str]]:
    """The event, the tool and the outcome of each line of the audit about the mine."""
    audit = log.with_name("audit.jsonl")
    lines = audit.read_text().splitlines() if audit.exists() else []
    told = [json.loads(line) for line in lines]
    return [[line["event"], line["tool"], line["outcome"]] for line in told if line.get("tool")]


def test_a_task_whose_host_leaves_before_it_knows_its_id_is_cancelled(url: str, log: Path) -> None:
    host = LegacyHost(f"{url}/mcp")
    arguments = {**GOES_ON, "waits": True}
    call: Json = {"name": "mine__dig", "arguments": arguments, "task": {}}
    waiting = threading.Thread(target=lambda: list(host.stream("tools/call", call)), daemon=True)
    waiting.start()
    wait_until(lambda: messages(log, "tools/call"))
    host.cancel()
    wait_until(lambda: records(log) == [["call", "dig", "cancelled"]])
    assert not messages(log, "tasks/cancel")
    log.with_name(f"{log.name}.go").touch()
    wait_until(lambda: messages(log, "tasks/cancel"))
    [cancelled] = messages(log, "tasks/cancel")
    assert cancelled["params"]["taskId"] == "task-0"
    host.leave()


def test_the_end_of_a_task_is_audited_once(url: str, log: Path) -> None:
    host = LegacyHost(url + OWN)
    task = begin(host, "dig")
    for _ in range(3):
        host.request("tasks/get", {"taskId": task["taskId"]})
    host.request("tasks/result", {"taskId": task["taskId"]})
    going = begin(host, "dig", GOES_ON)
    host.request("tasks/cancel", {"taskId": going["taskId"]})
    host.request("tasks/list", {})
    assert records(log) == [
        ["call", "dig", "begun"],
        ["task", "dig", "done"],
        ["call", "dig", "begun"],
        ["task", "dig", "cancelled"],
    ]


def test_the_end_of_a_task_without_a_result_is_audited(url: str, log: Path) -> None:
    host = LegacyHost(url + OWN)
    failing = begin(host, "dig", {"fails": True})
    for _ in range(2):
        assert refusal(host, "tasks/result", {"taskId": failing["taskId"]}) == -32000
    assert records(log) == [["call", "dig", "begun"], ["task", "dig", "failed"]]


def test_the_end_of_a_task_has_the_definition_that_was_called(tmp_path: Path, log: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    config = f"[gateway]\naudit_file = {json.dumps(str(audit))}\n{mine(log)}"
    with GatewayProcess(Path(TOOLGATE), tmp_path, config) as process:
        host = LegacyHost(process.url + OWN)
        named = {"taskId": begin(host, "dig")["taskId"]}
        process.reload(f'{config}tools = {{ deny = ["dig"] }}\n', "was read again")
        host.request("tasks/result", named)
    told = [json.loads(line) for line in audit.read_text().splitlines()]
    call, task = (line for line in told if line["event"] in ("call", "task"))
    assert [call["event"], task["event"]] == ["call", "task"]
    assert call["definition"]
    assert task["definition"] == call["definition"]


def test_a_task_that_has_ended_unlocks_what_waits_for_its_tool(tmp_path: Path, log: Path) -> None:
    address = free_address()
    plane = ("--data-dir", str(tmp_path / "data"), "--set", f"server.listen={address}")
    rule = "match: {tools: [look]}, precondition: {has_prior_tool_output: dig}"
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"rules: [{{name: after, {rule}}}]\n")
    with GatewayProcess(Path(TOOLGATE), tmp_path, mine(log), plane) as process:
        done = run(Path(TOOLGATE), "policy", "set", policy, "--endpoint", f"http://{address}")
        assert done.returncode == 0, done.stderr
        host = LegacyHost(process.url + OWN)
        assert "may not run yet" in text_of(host.call("look", {}))
        newer = ModernHost(process.url + OWN, capabilities=NEWER_TASKS)
        of_prompt = {"taskId": newer.request("prompts/get", {"name": "dig"})["taskId"]}
        wait_until(lambda: newer.request("tasks/get", of_prompt)["status"] == "completed")
        assert "may not run yet" in text_of(host.call("look", {})), "the tool did not run"
        named = {"taskId": begin(host, "dig")["taskId"]}
        assert "may not run yet" in text_of(host.call("look", {}))
        host.request("tasks/result", named)
        assert text_of(host.call("look", {})) == "look at once"


def test_the_result_of_a_task_of_a_server_that_is_not_trusted_says_so(
    tmp_path: Path, log: Path
) -> None:
    config = f'[gateway]\nmark_results = true\n{mine(log)}trust = "untrusted"\n'
    with GatewayProcess(Path(TOOLGATE), tmp_path, config) as process:
        for face, tool in FACES:
            host = LegacyHost(process.url + face)
            named = {"taskId": begin(host, tool)["taskId"]}
            *mark, said = (item["text"] for item in host.request("tasks/result", named)["content"])
            assert said == "dig as a task"
            is_marked = any("from mine, a server that is not trusted" in text for text in mark)
            assert is_marked == (face != OWN), mark


def test_a_wish_for_a_task_is_the_servers_to_refuse(url: str) -> None:
    host = LegacyHost(url + OWN)
    call = {"name": "look", "arguments": {}, "task": {}}
    assert refusal(host, "tools/call", call) == -32601
    assert text_of(host.call("look", {})) == "look at once"


def test_a_server_without_tasks_runs_the_call_at_once(url: str, notes: Path) -> None:
    host = LegacyHost(f"{url}/mcp/s/notes")
    call = {"name": "keep_note", "arguments": {"text": "x"}, "task": {}}
    assert text_of(host.request("tools/call", call)) == "kept"
    [sent] = messages(notes, "tools/call")
    assert "task" not in sent["params"]


def test_the_era_of_2026_has_no_such_tasks(url: str) -> None:
    host = ModernHost(url + OWN)
    assert "tasks" not in host.request("server/discover", {})["capabilities"]
    call = {"name": "dig", "arguments": {}, "task": {}}
    assert text_of(host.request("tools/call", call)) == "dig at once"
    for method in ["tasks/list", "tasks/result"]:
        assert refusal(host, method, {"taskId": "x"}) == -32601
