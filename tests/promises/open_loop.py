"""A shipped client in an open loop: with its own connections, retries and round robin."""

import random
import secrets
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from toolgate import Client, ToolgateError

AT_ONCE = 64


class OpenLoop:
    """Route calls with new intents. Latency counts from when a call is due."""

    def __init__(self, client: Client, rate: float) -> None:
        self._client = client
        self._rate = rate
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._latencies: defaultdict[int, list[float]] = defaultdict(list)
        self.offered = 0
        self.errors: Counter[str] = Counter()

    def unanswered(self) -> int:
        """Calls that failed, for whatever reason. To be asked when all are over."""
        return self.offered - sum(len(answers) for answers in self._latencies.values())

    def p99(self) -> list[float]:
        """Of the answers to calls that were due in each second, in milliseconds; 0 without any."""
        seconds = range(max(self._latencies, default=-1) + 1)
        return [_p99(self._latencies.get(second, [])) * 1_000 for second in seconds]

    def begin_calls(self) -> None:
        """Poisson arrivals, until `end`."""
        due = self._began
        with ThreadPoolExecutor(AT_ONCE) as pool:
            while not self._over.wait(max(0.0, due - time.monotonic())):
                self.offered += 1
                pool.submit(self._call, due)
                due += random.expovariate(self._rate)

    def end(self) -> None:
        self._over.set()

    def _call(self, due: float) -> None:
        try:
            self._client.route(f"what did {secrets.token_hex(4)} write in the ledger")
        except ToolgateError as error:
            with self._lock:
                self.errors[error.code.name] += 1
            return
        with self._lock:
            self._latencies[int(due - self._began)].append(time.monotonic() - due)


@contextmanager
def calling(targets: list[str], tenant: str, rate: float, timeout: float) -> Iterator[OpenLoop]:
    """Calls go on over all targets until the block ends; then all are over."""
    with Client(f"ipv4:{','.join(targets)}", tenant=tenant, timeout=timeout) as client:
        loop = OpenLoop(client, rate)
        thread = threading.Thread(target=loop.begin_calls)
        thread.start()
        try:
            yield loop
        finally:
            loop.end()
            thread.join()


def _p99(latencies: list[float]) -> float:
    return sorted(latencies)[int(len(latencies) * 0.99)] if latencies else 0.0
