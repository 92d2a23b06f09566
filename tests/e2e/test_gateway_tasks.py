"""Tasks of servers of 2026-07-28 whose hosts leave."""

import http.client
import json
import sys
from pathlib import Path

from gateway_process import REVISION, GatewayProcess, Json, message, messages
from waiting import wait_until

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
        host = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=60)
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
