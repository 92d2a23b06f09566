"""Tasks of servers of 2026-07-28: those whose hosts leave, and results that are cut."""

import http.client
import json
import subprocess
import sys
from pathlib import Path

from begun_mcp_server import DUG
from gateway_process import REVISION, GatewayProcess, Json, message, messages
from waiting import PATIENCE, wait_until

BEGUN = Path(__file__).with_name("begun_mcp_server.py")
TASKS: Json = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


def test_a_task_whose_host_leaves_before_it_knows_its_id_is_cancelled(
    binary: Path, tmp_path: Path
) -> None:
    log, audit = tmp_path / "log", tmp_path / "audit.jsonl"
    command = json.dumps([sys.executable, str(BEGUN), str(log)])
    config = f"[gateway]\naudit_file = {json.dumps(str(audit))}\n[server.mine]\ncommand = {command}"
    with GatewayProcess(binary, tmp_path, config) as gateway:
        body = message("tools/call", {"name": "dig", "arguments": {}})
        body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = TASKS
        host = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=PATIENCE)
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": REVISION,
            "Mcp-Method": "tools/call",
            "Mcp-Name": "dig",
        }
        host.request("POST", "/mcp/s/mine", json.dumps(body), headers)
        wait_until(lambda: messages(log, "tools/call"))
        host.close()
        wait_until(lambda: '"outcome":"cancelled"' in audit.read_text())
        assert not messages(log, "tasks/cancel")
        log.with_name(f"{log.name}.go").touch()
        wait_until(lambda: messages(log, "tasks/cancel"), log.read_text)
        [cancelled] = messages(log, "tasks/cancel")
        assert cancelled["params"]["taskId"] == "task-0"


def test_the_result_of_a_task_is_cut_and_its_rest_is_read_by_handle(
    binary: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    log.with_name(f"{log.name}.go").touch()
    command = json.dumps([sys.executable, str(BEGUN), str(log)])
    with GatewayProcess(binary, tmp_path, f"[server.mine]\ncommand = {command}") as gateway:
        short = "/mcp/all?limit=1KiB"

        def ended(tool: str, path: str) -> Json:
            """The state of a task that has ended."""
            begun = declaring_tasks(gateway, "tools/call", {"name": tool, "arguments": {}}, path)
            assert begun["resultType"] == "task", begun
            return declaring_tasks(gateway, "tasks/get", {"taskId": begun["taskId"]}, path)

        state = ended("mine__dig", short)
        assert state["status"] == "completed"
        [shown, data] = [item["text"] for item in state["result"]["content"]]
        assert "structuredContent" not in state["result"]
        assert len(shown) < 2_000
        assert "read_result handle=" in data
        handle = shown.split("handle=")[1].split()[0]
        assert gateway.text("read_result", {"handle": handle, "offset": 0}, short).startswith(
            DUG[:5_000]
        )
        whole = ended("dig", "/mcp/s/mine")["result"]
        assert whole["content"][0]["text"] == DUG
        assert whole["structuredContent"] == {"spades": 1_000}


def test_an_id_that_another_process_gave_again_leads_to_no_task_of_before(
    binary: Path, tmp_path: Path
) -> None:
    log, path = tmp_path / "log", "/mcp/s/mine"
    log.with_name(f"{log.name}.go").touch()
    command = json.dumps([sys.executable, str(BEGUN), str(log)])
    with GatewayProcess(binary, tmp_path, f"[server.mine]\ncommand = {command}") as gateway:
        dig: Json = {"name": "dig", "arguments": {}}
        before = declaring_tasks(gateway, "tools/call", dig, path)
        at = ["--url", gateway.url]
        restart = [str(binary), "gateway", "restart", "mine", *at]
        subprocess.run(restart, check=True, capture_output=True)

        def is_anew() -> bool:
            """Whether its server runs since the restart."""
            status = [str(binary), "gateway", "status", "--json", *at]
            told = subprocess.run(status, check=True, capture_output=True, text=True).stdout
            [mine] = json.loads(told)["servers"]
            return bool(mine["restarts"] == 1 and mine["state"] == "ready")

        wait_until(is_anew)
        after = declaring_tasks(gateway, "tools/call", dig, path)
        answer = task_answer(gateway, "tasks/get", {"taskId": before["taskId"]}, path)
        assert answer.get("error", {}).get("code") == -32602, answer
        state = declaring_tasks(gateway, "tasks/get", {"taskId": after["taskId"]}, path)
        assert state["status"] == "completed"
        asked = [sent["params"]["taskId"] for sent in messages(log, "tasks/get")]
        assert asked == ["task-0"], "both have this ID at their server"


def task_answer(gateway: GatewayProcess, method: str, params: Json, path: str) -> Json:
    """The answer to a request of a host that declares tasks."""
    body = message(method, params)
    body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = TASKS
    name = {"Mcp-Name": params["taskId"]} if "taskId" in params else {}
    answer: Json = gateway.post(path, body, name)[1]
    return answer


def declaring_tasks(gateway: GatewayProcess, method: str, params: Json, path: str) -> Json:
    """The result of such a request."""
    answer = task_answer(gateway, method, params, path)
    assert "result" in answer, answer
    result: Json = answer["result"]
    return result
