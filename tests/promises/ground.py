"""Places for measurements: servers on cores of their own, the load generator on others."""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalogs import SHIPPED
from toolgate_process import ToolgateProcess

Report = dict[str, Any]

PEOPLE = ["--intents", str(SHIPPED.parent / "intents" / "people.jsonl")]
"""Has the load generator draw its intents from people's. They repeat, so whoever wants each one
embedded turns the server's cache off."""


@dataclass(frozen=True)
class Ground:
    """The binaries, and which cores are whose."""

    toolgate: Path
    generator: Path
    folder: Path

    @property
    def server_cores(self) -> set[int]:
        """All but the last, which the load generator has."""
        cores = sorted(os.sched_getaffinity(0))
        return set(cores[:-1]) or set(cores)

    @property
    def generator_cores(self) -> set[int]:
        return set(sorted(os.sched_getaffinity(0))[-1:])

    @contextmanager
    def server(
        self, settings: Mapping[str, str] | None = None, name: str = "server"
    ) -> Iterator[ToolgateProcess]:
        """A running server that ends with the block, in a folder of its own."""
        folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.folder))
        threads = {"encoder.threads": str(len(self.server_cores)), "log.level": "warn"}
        process = ToolgateProcess(self.toolgate, folder, {**threads, **(settings or {})})
        with on(self.server_cores):
            process.start()
        try:
            yield process
        finally:
            process.stop()

    def load(self, targets: list[str], *arguments: str) -> Report:
        """Returns the callers' view: the generator's report."""
        return self.end_load(self.begin_load(targets, *arguments))

    def begin_load(self, targets: list[str], *arguments: str) -> "subprocess.Popen[bytes]":
        named = [part for target in targets for part in ("--target", f"http://{target}")]
        with on(self.generator_cores):
            return subprocess.Popen([self.generator, *named, *arguments], stdout=subprocess.PIPE)

    def end_load(self, running: "subprocess.Popen[bytes]") -> Report:
        text, _ = running.communicate(timeout=7200)
        if running.returncode:
            raise SystemExit(f"the load generator failed with {running.returncode}")
        report: Report = json.loads(text)
        return report


@contextmanager
def on(cores: set[int]) -> Iterator[None]:
    """Processes that are started in the block run on these cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def ground(toolgate: Path, generator: Path) -> Iterator[Ground]:
    with tempfile.TemporaryDirectory(prefix="toolgate-promises-") as folder:
        yield Ground(toolgate, generator, Path(folder))


def register(server: ToolgateProcess, *tenants: str, servers: int | None = None) -> None:
    """Registers the shipped catalogs, or the first of them, with each tenant."""
    for tenant in tenants:
        with server.client(tenant, timeout=300) as client:
            for file in sorted(SHIPPED.glob("*.json"))[:servers]:
                client.register_server(file.stem, file)


def resident_mib(server: ToolgateProcess) -> float:
    """Memory that the process holds now."""
    return _status_kib(server, "VmRSS") / 1024


def peak_mib(server: ToolgateProcess) -> float:
    """The most that it ever held, since `forget_peak`."""
    return _status_kib(server, "VmHWM") / 1024


def forget_peak(server: ToolgateProcess) -> None:
    Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")


def metric(server: ToolgateProcess, name: str) -> float:
    """The sum of a metric over its labels."""
    lines = server.get("/metrics")[1].splitlines()
    found = [line.rsplit(" ", 1)[1] for line in lines if line.partition("{")[0].split()[0] == name]
    return sum(float(value) for value in found)


def _status_kib(server: ToolgateProcess, field: str) -> int:
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))
