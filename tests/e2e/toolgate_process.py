"""A real `toolgate serve` on free ports, in its own data directory. Builds nothing."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import grpc
from toolgate_command import ONE_THREAD
from waiting import PATIENCE, wait_until

from toolgate import Client

_PASSED_ON = ("TOOLGATE_MODEL_DIR", "TOOLGATE_MODEL_HUB")


class ToolgateProcess:
    """One server process. `settings` are configuration keys such as {"handle.ttl": "1s"}."""

    def __init__(
        self, binary: Path, folder: Path, settings: Mapping[str, str] | None = None
    ) -> None:
        self._binary = binary
        self.folder = folder
        self._settings = dict(settings or {})
        self.log = folder / "server.log"
        self.target = ""
        self.admin = ""
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> "ToolgateProcess":
        self.launch()
        self._await_ready()
        return self

    def launch(self) -> subprocess.Popen[bytes]:
        """Starts the process without waiting until it answers."""
        self.target = f"127.0.0.1:{free_port()}"
        self.admin = f"127.0.0.1:{free_port()}"
        return self._spawn()

    def start_again(self) -> "ToolgateProcess":
        """Starts it where it was before."""
        self._spawn()
        self._await_ready()
        return self

    def _spawn(self) -> subprocess.Popen[bytes]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [self._binary, "serve"],
                env=self._environment(),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return self._process

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "not started"
        return self._process

    def client(self, tenant: str = "", timeout: float = PATIENCE) -> Client:
        return Client(self.target, tenant=tenant, timeout=timeout)

    def get(self, path: str) -> tuple[int, str]:
        """A page of the admin port: status and text."""
        try:
            with urllib.request.urlopen(f"http://{self.admin}{path}", timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(timeout=PATIENCE)

    def calls_in_progress(self) -> int:
        lines = self.get("/metrics")[1].splitlines()
        value = next(line for line in lines if line.startswith("toolgate_admission_calls "))
        return int(float(value.split()[1]))

    def stop(self) -> int:
        """Stops in good order; the exit status."""
        if self.process.poll() is None:
            self.terminate()
        try:
            return self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        finally:
            remove_reserve(self.folder / "data")

    def log_text(self) -> str:
        return self.log.read_text(errors="replace")

    def await_log(self, words: str, times: int = 1) -> str:
        """The log once it has these words so often: calls' lines are written after answers."""
        log = ""

        def is_there() -> bool:
            nonlocal log
            log = self.log_text()
            return log.count(words) >= times and log.endswith("\n")

        wait_until(is_there, lambda: log[-4000:])
        return log

    def _environment(self) -> dict[str, str]:
        # Whatever the developer's shell or configuration file says must not reach the server.
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("TOOLGATE_") or name in _PASSED_ON
        }
        if "encoder.model" in self._settings:
            # A server takes a model's name or a directory, not both.
            inherited.pop("TOOLGATE_MODEL_DIR", None)
        settings = {
            "server.listen": self.target,
            "server.admin_listen": self.admin,
            "store.path": str(self.folder / "data"),
            **self._settings,
        }
        named = {f"TOOLGATE_{key.replace('.', '_').upper()}": v for key, v in settings.items()}
        return {**inherited, **ONE_THREAD, "XDG_CONFIG_HOME": str(self.folder / "config"), **named}

    def _await_ready(self) -> None:
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            if self.process.poll() is not None:
                raise AssertionError(f"exited with {self.process.returncode}:\n{self.log_text()}")
            try:
                if self.get("/readyz")[0] == 200:
                    self._await_channel()
                    return
            except OSError:
                pass
            time.sleep(0.05)
        self.kill()
        raise AssertionError(f"not ready within {PATIENCE} s:\n{self.log_text()}")

    def _await_channel(self) -> None:
        with grpc.insecure_channel(self.target) as channel:
            grpc.channel_ready_future(channel).result(timeout=PATIENCE)


def remove_reserve(data: Path) -> None:
    """Frees the 32 MiB that a store which nobody has open any more keeps of the disk."""
    (data / "toolgate.db-reserve").unlink(missing_ok=True)


_held: list[socket.socket] = []


def free_port() -> int:
    """A port that nobody listens on and that no other process is given, until this one ends."""
    # Bound and not listening, it refuses connections. With SO_REUSEADDR a server may bind it too.
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    _held.append(holder)
    port: int = holder.getsockname()[1]
    if sys.platform != "linux":  # Elsewhere one may not; the port may then be taken by others.
        holder.close()
    return port
