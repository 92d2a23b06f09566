"""Tests what SIGHUP has take effect, and what it says of the rest."""

import os
import signal
import time
from pathlib import Path

import pytest
from catalogs import NOTES, tool
from conftest import StartServer
from toolgate_process import ToolgateProcess
from waiting import PATIENCE

from toolgate import ToolgateError

SECRET = "a private errand in the town of Zzyzx"


class Reloaded:
    """A server with a configuration file that is written again and again."""

    def __init__(self, start_server: StartServer, tmp_path: Path, text: str = "") -> None:
        self.file = tmp_path / "server0" / "config" / "toolgate" / "toolgate.toml"
        self.file.parent.mkdir(parents=True)
        self.file.write_text(text)
        self.server: ToolgateProcess = start_server({})
        self.times = 0

    def read_again(self, text: str, words: str = "the configuration was read again") -> None:
        """Returns once the server has told so."""
        before = self.server.log_text().count(words)
        self.file.write_text(text)
        os.kill(self.server.process.pid, signal.SIGHUP)
        self.server.await_log(words, before + 1)


def refusal(server: ToolgateProcess, *intents: str) -> str:
    """Returns Route's refusal, once it refuses; limits follow the log by a moment."""
    give_up = time.monotonic() + PATIENCE
    with server.client() as client:
        while time.monotonic() < give_up:
            try:
                client.route(list(intents))
            except ToolgateError as error:
                return str(error)
            time.sleep(0.05)
    raise AssertionError("it was never refused")


def test_limits_take_effect(start_server: StartServer, tmp_path: Path) -> None:
    reloaded = Reloaded(start_server, tmp_path)
    server = reloaded.server
    with server.client() as client:
        client.register_server("notes", NOTES)
        assert len(client.route(["write a note", "read it"])) > 0
        reloaded.read_again("[limits]\nmax_intents = 1\nmax_tools_per_tenant = 3\n")
        assert "limits.max_intents" in refusal(server, "write a note", "read it")
        with pytest.raises(ToolgateError, match=r"limits\.max_tools_per_tenant"):
            client.register_server("more", [tool("another")])
        assert 'changed="limits.max_intents, limits.max_tools_per_tenant"' in server.log_text()
        reloaded.read_again("[limits]\ncalls_per_second_per_tenant = 1\n")
        assert "limits.calls_per_second_per_tenant" in refusal(server, "x")


def test_what_waits_for_a_restart_is_named(start_server: StartServer, tmp_path: Path) -> None:
    reloaded = Reloaded(start_server, tmp_path)
    waiting = '[handle]\nttl = "5m"\n'
    reloaded.read_again(waiting)
    told = 'which take effect at the next start keys="handle.ttl"'
    assert told in reloaded.server.log_text()
    # Nothing changed since, and it still waits.
    reloaded.read_again(waiting)
    assert reloaded.server.log_text().count(told) == 2
    reloaded.read_again("")
    assert reloaded.server.log_text().count(told) == 2


def test_a_mistake_changes_nothing(start_server: StartServer, tmp_path: Path) -> None:
    reloaded = Reloaded(start_server, tmp_path, "[limits]\nmax_intents = 2\n")
    with reloaded.server.client() as client:
        client.register_server("notes", NOTES)
    reloaded.read_again("[limits]\nmax_intents = 1\nmax_intent = 4\n", "nothing was changed")
    assert "limits.max_intent" in reloaded.server.log_text()
    with reloaded.server.client() as client:
        client.route(["one", "two"])


def test_intents_are_logged_while_that_is_on(start_server: StartServer, tmp_path: Path) -> None:
    reloaded = Reloaded(start_server, tmp_path)
    server = reloaded.server
    with server.client() as client:
        client.register_server("notes", NOTES)
        client.route(SECRET)
        client.search_tools(SECRET)
        assert SECRET not in server.log_text()
        reloaded.read_again("[log]\nintents = true\n")
        client.route(SECRET)
        client.search_tools(SECRET)
        server.await_log(SECRET, times=2)
        reloaded.read_again('[log]\nlevel = "error"\n', "log.level")
        client.route(SECRET)
    assert server.stop() == 0
    assert server.log_text().count(SECRET) == 2, "all that was logged is written by now"
