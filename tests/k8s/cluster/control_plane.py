"""etcd and kube-apiserver on free ports, with nothing that schedules or runs pods."""

import contextlib
import ctypes
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import tools
from api import Api
from ports import LOCAL, free_port

START_SECONDS = 120
STOP_SECONDS = 20


def die_with_parent() -> None:
    """Where Linux can do it: a process ends when the tests do, even when these are killed."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


@contextlib.contextmanager
def process(program: Path, arguments: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A running program, stopped at the end."""
    with log.open("wb") as out:
        # In a session of its own, it is stopped here and not by the terminal.
        running = subprocess.Popen(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd=log.parent,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
    try:
        yield running
    finally:
        running.terminate()
        try:
            running.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait(timeout=STOP_SECONDS)


def await_true(condition: Callable[[], bool], running: subprocess.Popen[bytes], log: Path) -> None:
    """Waits until the condition holds.

    Raises:
        AssertionError: The process ended, or it took too long; the end of what it logged.
    """
    give_up = time.monotonic() + START_SECONDS
    while not condition():
        ended = running.poll()
        if ended is not None or time.monotonic() > give_up:
            said = log.read_text(errors="replace")[-4000:]
            raise AssertionError(f"{log.stem} is not ready (exit code {ended}):\n{said}")
        time.sleep(0.2)


def etcd_arguments(folder: Path, client: int, peer: int) -> list[str]:
    """Of an etcd with one member."""
    return [
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls=http://{LOCAL}:{client}",
        f"--advertise-client-urls=http://{LOCAL}:{client}",
        f"--listen-peer-urls=http://{LOCAL}:{peer}",
        f"--initial-advertise-peer-urls=http://{LOCAL}:{peer}",
        f"--initial-cluster=default=http://{LOCAL}:{peer}",
        # Its data is thrown away.
        "--unsafe-no-fsync",
    ]


def server_arguments(folder: Path, etcd: int, port: int) -> list[str]:
    """Of a kube-apiserver with the admission plugins that are on by default."""
    # It makes its certificate and key itself. No pod here uses a service account's token, so that
    # the same key may sign those.
    key = folder / "apiserver.key"
    return [
        f"--etcd-servers=http://{LOCAL}:{etcd}",
        f"--bind-address={LOCAL}",
        f"--advertise-address={LOCAL}",
        f"--secure-port={port}",
        f"--cert-dir={folder}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={key}",
        f"--service-account-key-file={key}",
        "--service-cluster-ip-range=10.96.0.0/16",
        # The service `kubernetes` may not lead to a loopback address, and nobody here follows it.
        "--endpoint-reconciler-type=none",
    ]


def listens(port: int) -> bool:
    """Returns True if anyone listens there."""
    with socket.socket() as probe:
        probe.settimeout(5)
        return probe.connect_ex((LOCAL, port)) == 0


@contextlib.contextmanager
def control_plane() -> Iterator[Api]:
    """An API server that is ready, for an administrator."""
    with contextlib.ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="toolgate-cluster-")))
        client, peer, port = (free_port() for _ in range(3))
        log = folder / "etcd.log"
        etcd = ends.enter_context(process(tools.ETCD, etcd_arguments(folder, client, peer), log))
        await_true(lambda: listens(client), etcd, log)
        token = secrets.token_hex(16)
        tokens = folder / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(f'{token},admin,admin,"system:masters"\n')
        log = folder / "kube-apiserver.log"
        arguments = server_arguments(folder, client, port)
        server = ends.enter_context(process(tools.KUBE_APISERVER, arguments, log))
        certificate = folder / "apiserver.crt"
        await_true(lambda: certificate.exists() and listens(port), server, log)
        api = Api(f"https://{LOCAL}:{port}", token, certificate)
        await_true(api.ready, server, log)
        yield api
