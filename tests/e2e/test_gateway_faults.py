"""Servers behind a gateway that are killed or misbehave: no wrong answer, and no process left."""

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from gateway_process import GatewayProcess, Json, kill, message, text_of
from waiting import wait_until

MISBEHAVING = Path(__file__).with_name("misbehaving_mcp_server.py")
NAMES = ["ash", "birch", "cedar", "dogwood"]

CALLS = 1_000
KILLS = 40
HOSTS = 8
SEED = 20_261_128

# Words that a failed call may have, and what is true of it then.
HONEST = [
    (r"was lost during the call: .*may have had effects|The request may have had effects", "lost"),
    (r"is not available: .*did not run|: the server is not available: ", "did not run"),
    (r"is busy: try again|: the server is busy", "did not run"),
]


def settings(folder: Path, *names: str, call_timeout: str = "60s") -> str:
    """A gateway's file with such servers, which are started again without a pause that counts."""
    lines = [f'[gateway]\ncall_timeout = "{call_timeout}"']
    for name in names:
        command = json.dumps([sys.executable, str(MISBEHAVING), name, str(folder)])
        lines.append(f'[server.{name}]\ncommand = {command}\ntrust = "trusted"')
        lines.append('restart = { min = "100ms", max = "100ms" }')
    return "\n".join(lines) + "\n"


def processes(log: Path) -> dict[int, bool]:
    """The processes of a server that run, by number: whether each is the server itself."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().decode().split("\0")
            state = (entry.parent / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except (OSError, IndexError):
            continue
        is_server = words[1:4] == [str(MISBEHAVING), log.name, str(log.parent)]
        if state not in "ZX" and (is_server or str(log) in words):
            found[int(entry.parent.name)] = is_server
    return found


def servers(log: Path) -> list[int]:
    """The numbers of a server's own process: one, but while another takes its place."""
    return [number for number, is_server in processes(log).items() if is_server]


@contextmanager
def running(binary: Path, folder: Path, *names: str, **more: str) -> Iterator[GatewayProcess]:
    """A gateway before such servers. No process of theirs outlives it."""
    logs = folder / "logs"
    logs.mkdir()
    with GatewayProcess(binary, folder, settings(logs, *names, **more)) as gateway:
        yield gateway
        assert gateway.stop() == 0
    assert [processes(logs / name) for name in names] == [{}] * len(names)


@dataclass(frozen=True)
class Call:
    """A call of a server's tool, and the face that it goes to."""

    server: str
    tool: str
    about: str
    face: str

    def made(self, gateway: GatewayProcess) -> tuple[bool, str]:
        """Makes the call; returns True if it succeeded, and the text of its answer."""
        arguments: Json = {"about": self.about}
        name = self.tool
        if self.face != "/mcp/s":
            name = f"{self.server}__{self.tool}"
        if self.face == "/mcp":
            name, arguments = "call_read_tool", {"name": name, "arguments": arguments}
        path = f"{self.face}/{self.server}" if self.face == "/mcp/s" else self.face
        status, answer = gateway.post(
            path, message("tools/call", {"name": name, "arguments": arguments})
        )
        assert status == 200 or "error" in answer, (status, answer)
        if "error" in answer:
            return False, str(answer["error"]["message"])
        return not answer["result"].get("isError"), text_of(answer["result"])

    def outcome(self, gateway: GatewayProcess) -> str:
        """Right, or what an honest failure says; a wrong or unknown answer fails the test."""
        is_success, text = self.made(gateway)
        if is_success:
            assert text == f"{self.server} says {self.about}", self
            return "right"
        said = [means for pattern, means in HONEST if re.search(pattern, text, re.DOTALL)]
        assert said, (self, text)
        return said[0]


def until_it_answers(gateway: GatewayProcess, log: Path) -> None:
    """Waits until a server answers, and has its own process and the one that this started."""
    wait_until(lambda: Call(log.name, "echo", "end", "/mcp").made(gateway)[0])
    wait_until(lambda: sorted(processes(log).values()) == [False, True])


class Killer:
    """Makes calls; those whose number was drawn are held by their server, which is then killed."""

    def __init__(self, gateway: GatewayProcess, logs: Path) -> None:
        self.gateway = gateway
        self.logs = logs
        drawn = random.Random(SEED)
        self.killed = set(drawn.sample(range(CALLS), KILLS))
        self.plan = [
            Call(
                drawn.choice(NAMES),
                "hold" if number in self.killed else "echo",
                f"call {number}",
                drawn.choice(["/mcp", "/mcp/all", "/mcp/s"]),
            )
            for number in range(CALLS)
        ]
        self.numbers = count()
        self.outcomes: dict[str, str] = {}

    def work(self) -> None:
        """Makes the next call until there is none, as one host of several."""
        while (number := next(self.numbers)) < CALLS:
            call = self.plan[number]
            held = number in self.killed
            self.outcomes[call.about] = self.kill_amid(call) if held else call.outcome(self.gateway)

    def kill_amid(self, call: Call) -> str:
        """Makes a call, and kills its server while it has the call."""
        with ThreadPoolExecutor(1) as pool:
            held = pool.submit(call.outcome, self.gateway)
            wait_until(lambda: held.done() or call.about in self.ran(call.server))
            if not held.done():
                for process in servers(self.logs / call.server):
                    # Another host's kill may have come first.
                    with suppress(ProcessLookupError):
                        kill(process)
            return held.result()

    def ran(self, server: str) -> list[str]:
        """Returns the subjects of the calls that a server ran."""
        log = self.logs / server
        return log.read_text().splitlines() if log.exists() else []


def test_a_thousand_calls_through_kills_are_right_or_say_what_happened(
    binary: Path, tmp_path: Path
) -> None:
    with running(binary, tmp_path, *NAMES) as gateway:
        killer = Killer(gateway, tmp_path / "logs")
        with ThreadPoolExecutor(HOSTS) as pool:
            for host in [pool.submit(killer.work) for _ in range(HOSTS)]:
                host.result()
        for name in NAMES:
            until_it_answers(gateway, tmp_path / "logs" / name)
    ran = Counter(about for name in NAMES for about in killer.ran(name))
    assert len(killer.outcomes) == CALLS
    for about, outcome in killer.outcomes.items():
        runs = {"right": {1}, "lost": {0, 1}, "did not run": {0}}[outcome]
        assert ran[about] in runs, (about, outcome, ran[about])
    counted = Counter(killer.outcomes.values())
    held = Counter(killer.outcomes[f"call {number}"] for number in killer.killed)
    assert held["right"] == 0
    assert held["lost"] > 0
    assert counted["right"] > CALLS / 2, counted


# Faults, what a call that has one says, and whether another process takes the server's place.
FAULTS = {
    "half": ("was lost during the call", True),
    "huge": ("has more than", False),
    "storm": ("says storm", False),
    "restart": ("", True),
}


@pytest.fixture(scope="module")
def faulty(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with running(binary, tmp_path_factory.mktemp("faulty"), *FAULTS) as gateway:
        yield gateway


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_leaves_one_process_of_its_server(faulty: GatewayProcess, fault: str) -> None:
    log = faulty.folder / "logs" / fault
    said, is_replaced = FAULTS[fault]
    before = processes(log)
    assert sorted(before.values()) == [False, True]
    if said:
        _, text = Call(fault, fault, fault, "/mcp").made(faulty)
        assert said in text
    else:
        restart(faulty, fault)
    until_replaced(faulty, log, before if is_replaced else {})
    if not is_replaced:
        assert processes(log) == before


def test_a_stopped_process_is_ended_with_what_it_started(binary: Path, tmp_path: Path) -> None:
    with running(binary, tmp_path, "ash", call_timeout="500ms") as gateway:
        log = tmp_path / "logs" / "ash"
        before = processes(log)
        _, text = Call("ash", "freeze", "freeze", "/mcp").made(gateway)
        assert "gave no answer within" in text
        restart(gateway, "ash")
        until_replaced(gateway, log, before)


def restart(gateway: GatewayProcess, server: str) -> None:
    status, _, _ = gateway.send("POST", f"/gateway/restart/{server}", {}, {})
    assert status == 202


def until_replaced(gateway: GatewayProcess, log: Path, before: dict[int, bool]) -> None:
    """Waits until none of the processes before is there, and the server answers."""
    wait_until(lambda: not before.keys() & processes(log).keys(), "it is still there")
    until_it_answers(gateway, log)
