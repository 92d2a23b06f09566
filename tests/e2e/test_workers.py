"""Worker processes under traffic: killed, stopped, slow, cut off, made to answer nonsense.

TOOLGATE_E2E_CALLS says how many Route calls go through each at least (`make test-faults`:
10,000)."""

import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from catalogs import NOTES, WEATHER
from conftest import StartServer
from cut_network import CutNetwork
from toolgate_process import ToolgateProcess
from waiting import PATIENCE

CALLERS = 4
CALLS = int(os.environ.get("TOOLGATE_E2E_CALLS", "100"))
SOON = 300.0 + CALLS / 50
"""Seconds. Longer than anything here takes on a machine with much else to do."""


@dataclass
class Traffic:
    """Outcomes of callers' calls."""

    calls: int = 0
    problems: list[str] = field(default_factory=list)


@dataclass
class Workers:
    """A server with two workers on the CPU, all in use."""

    server: ToolgateProcess
    fault: Path

    def metric(self, sample: str) -> float:
        """The sum of all samples whose name and labels match."""
        text = self.server.get("/metrics")[1]
        return sum(float(value) for value in re.findall(rf"^{sample} (\S+)$", text, re.MULTILINE))

    def in_use(self) -> float:
        return self.metric(r'toolgate_encoder_worker_state\{.*state="serving"\}')

    def answered(self) -> float:
        return self.metric(r'toolgate_embed_answered_total\{tier="cpu"\}')

    def processes(self) -> list[int]:
        found: list[int] = []
        for thread in Path(f"/proc/{self.server.process.pid}/task").iterdir():
            # A thread may have ended since.
            with suppress(FileNotFoundError, ProcessLookupError):
                children = (thread / "children").read_text().split()
                found += map(int, children)
        return sorted(found)


def until(condition: Callable[[], bool], what: str) -> float:
    """Seconds that it took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < SOON, what
        time.sleep(0.02)
    return time.monotonic() - began


def in_use(start_server: StartServer, fault: Path, settings: dict[str, str]) -> Workers:
    """A server with an embedding cache of nothing, two workers in use, and tools to route to."""
    settings = {"encoder.cache_memory": "0B", **settings}
    workers = Workers(start_server(settings), fault)
    until(lambda: workers.in_use() == 2, "two workers in use")
    with workers.server.client() as client:
        client.register_server("notes", NOTES)
        client.register_server("weather", WEATHER)
    return workers


@pytest.fixture
def workers(start_server: StartServer, tmp_path: Path, request: pytest.FixtureRequest) -> Workers:
    """Two local workers, which have the fault named by the test while a file exists."""
    kind = getattr(request, "param", "garbage")
    fault = tmp_path / "fault"
    # Read by debug builds of the worker, which get the server's environment.
    settings = {"encoder.local_workers": "cpu,cpu", "fault": f"{kind},while={fault}"}
    return in_use(start_server, fault, settings)


@pytest.fixture
def remote_worker(binary: Path) -> Iterator[str]:
    """The address of a worker that nobody supervises."""
    options = ["--device=cpu", "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0"]
    command = [str(binary), "encoder-worker", *options, "--log-format=json"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        events = (json.loads(line) for line in process.stderr)
        yield next(str(event["grpc"]) for event in events if event.get("message") == "listening")
        process.terminate()
        # Read on, so that the worker never waits for a full pipe.
        process.stderr.read()


@contextmanager
def traffic(server: ToolgateProcess) -> Iterator[Traffic]:
    """Route calls without a pause, none like another."""
    end, lock, seen = threading.Event(), threading.Lock(), Traffic()

    def call(caller: int) -> None:
        with server.client(timeout=PATIENCE) as client:
            turn = 0
            while not end.is_set():
                turn += 1
                try:
                    answer = client.route(f"write note {turn} of {caller} about the weather")
                    problem = "degraded" if answer.degraded else ""
                except Exception as error:
                    problem = repr(error)
                with lock:
                    seen.calls += 1
                    if problem:
                        seen.problems.append(problem)

    with ThreadPoolExecutor(CALLERS) as pool:
        callers = [pool.submit(call, caller) for caller in range(CALLERS)]
        try:
            yield seen
        finally:
            end.set()
            for caller in callers:
                caller.result()


def check(workers: Workers, break_it: Callable[[], None], mend_it: Callable[[], None]) -> None:
    with traffic(workers.server) as seen:
        until(lambda: seen.calls > CALLS // 2, "traffic")
        break_it()
        moved = until(lambda: workers.in_use() < 2, "a worker out of use")
        mend_it()
        back = until(lambda: workers.in_use() == 2, "both workers in use again")
        before = workers.answered()
        until(lambda: workers.answered() > before + 50, "traffic at the workers again")
        until(lambda: seen.calls > CALLS, "traffic")
    print(f"{seen.calls} calls; moved after {moved:.2f} s, back {back:.2f} s later")
    assert seen.problems == []


def test_a_worker_that_is_killed_is_started_again(workers: Workers) -> None:
    victim = workers.processes()[0]
    check(workers, lambda: os.kill(victim, signal.SIGKILL), lambda: None)
    processes = workers.processes()
    assert len(processes) == 2
    assert victim not in processes


def test_a_worker_that_hangs_is_not_waited_for(workers: Workers) -> None:
    victim = workers.processes()[0]
    check(
        workers,
        lambda: os.kill(victim, signal.SIGSTOP),
        lambda: os.kill(victim, signal.SIGCONT),
    )


def test_workers_that_answer_nonsense_are_out_of_use(workers: Workers) -> None:
    check(workers, workers.fault.touch, workers.fault.unlink)


def test_workers_that_have_learnt_their_canaries_and_lie_to_calls_are_out_of_use(
    start_server: StartServer, tmp_path: Path
) -> None:
    fault = tmp_path / "fault"
    settings = {
        "encoder.local_workers": "cpu,cpu",
        "encoder.health_interval": "50ms",
        "encoder.compare_one_in": "1",
        "fault": f"lie,while={fault}",
    }
    workers = in_use(start_server, fault, settings)
    fault.touch()
    with traffic(workers.server) as seen:
        until(lambda: workers.in_use() == 0, "both out of use")
        # On a machine with much else to do, they may be out of use because a check came late.
        ejected = r'toolgate_encoder_worker_ejections_total\{.*result="(?:different|garbage)"\}'
        until(lambda: workers.metric(ejected) >= 1, "one out of use for its answers")
    assert seen.problems == []
    fault.unlink()
    until(lambda: workers.in_use() == 2, "both in use again")


@pytest.mark.parametrize("workers", ["slow:3000"], indirect=True)
def test_workers_that_are_slow_are_out_of_use(workers: Workers) -> None:
    check(workers, workers.fault.touch, workers.fault.unlink)


@pytest.mark.parametrize("workers", ["slow:150"], indirect=True)
def test_workers_that_are_a_little_slow_stay_in_use_and_fail_nobody(workers: Workers) -> None:
    with traffic(workers.server) as seen:
        workers.fault.touch()
        until(lambda: seen.calls > min(CALLS, 500), "traffic at a tenth of the pace")
    # On a machine with much else to do, workers are slower than this, and words answer meanwhile.
    assert set(seen.problems) <= {"degraded"}
    assert len(seen.problems) < seen.calls, "a slow worker answers"
    until(lambda: workers.in_use() == 2, "both in use")


def test_a_worker_behind_a_cut_network_is_not_waited_for(
    start_server: StartServer, remote_worker: str, tmp_path: Path
) -> None:
    network = CutNetwork(remote_worker)
    settings = {"encoder.workers": f"{network.address},{remote_worker}"}
    check(in_use(start_server, tmp_path / "none", settings), network.cut, network.mend)
    network.close()


def test_workers_end_with_the_server_however_it_ends(workers: Workers) -> None:
    processes = workers.processes()
    assert len(processes) == 2
    workers.server.kill()
    until(lambda: not any(Path(f"/proc/{one}/exe").exists() for one in processes), "their end")
