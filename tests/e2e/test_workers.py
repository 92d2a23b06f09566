"""Worker processes of the server: killed, stopped, made to answer nonsense, under traffic."""

import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from catalogs import NOTES, WEATHER
from conftest import StartServer
from toolgate_process import ToolgateProcess

CALLERS = 4
SOON = 60.0
"""Seconds. Longer than anything here takes on a machine with much else to do."""


@dataclass
class Traffic:
    """What callers got."""

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
        task = Path(f"/proc/{self.server.process.pid}/task")
        children = (thread / "children" for thread in task.iterdir())
        return sorted(int(child) for file in children for child in file.read_text().split())


def until(condition: Callable[[], bool], what: str) -> float:
    """Seconds that it took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < SOON, what
        time.sleep(0.02)
    return time.monotonic() - began


@pytest.fixture
def workers(start_server: StartServer, tmp_path: Path) -> Workers:
    fault = tmp_path / "fault"
    settings = {"encoder.local_workers": "cpu,cpu", "encoder.cache_memory": "0B"}
    # Read by debug builds of the worker, which get the server's environment.
    settings["fault"] = f"garbage,while={fault}"
    workers = Workers(start_server(settings), fault)
    until(lambda: workers.in_use() == 2, "two workers in use")
    with workers.server.client() as client:
        client.register_server("notes", NOTES)
        client.register_server("weather", WEATHER)
    return workers


@contextmanager
def traffic(server: ToolgateProcess) -> Iterator[Traffic]:
    """Route calls without a pause, none like another."""
    end, lock, seen = threading.Event(), threading.Lock(), Traffic()

    def call(caller: int) -> None:
        with server.client(timeout=5) as client:
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
        until(lambda: seen.calls > 50, "traffic")
        break_it()
        moved = until(lambda: workers.in_use() < 2, "a worker out of use")
        mend_it()
        back = until(lambda: workers.in_use() == 2, "both workers in use again")
        before = workers.answered()
        until(lambda: workers.answered() > before + 50, "traffic at the workers again")
    print(f"{seen.calls} calls; moved after {moved:.2f} s, back {back:.2f} s later")
    assert seen.problems == []
    assert moved < 4


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


def test_workers_end_with_the_server_however_it_ends(workers: Workers) -> None:
    processes = workers.processes()
    assert len(processes) == 2
    workers.server.kill()
    until(lambda: not any(Path(f"/proc/{one}/exe").exists() for one in processes), "their end")
