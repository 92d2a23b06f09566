"""Credentials of the gateway towards its servers, before a real authorization server."""

import json
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx
import pytest
from authorization_server import AuthorizationServer, machine_client
from forward_proxy import ForwardProxy
from gateway_process import GatewayProcess, Json, message, text_of
from guarded_mcp_server import GuardedServer
from toolgate_command import command_environment
from waiting import PATIENCE

CLIENTS = [
    machine_client("poster"),
    machine_client("basic", token_endpoint_auth_method="client_secret_basic"),
]


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuthorizationServer]:
    server = AuthorizationServer(tmp_path_factory.mktemp("issuer"), CLIENTS)
    yield server
    server.close()


@pytest.fixture
def guarded(issuer: AuthorizationServer) -> Iterator[GuardedServer]:
    with GuardedServer(issuer.issuer, issuer.jwks_url) as server:
        yield server


class Gateway(GatewayProcess):
    """A gateway whose server need not be ready at the start, with variables if there are any."""

    arguments = ("--set", "log.level=debug")

    def start(self, told: str = "needs login") -> "Gateway":
        self.said.clear()
        super().start(told)
        return self

    def __enter__(self) -> "Gateway":
        """Ends it in the end; it was started already."""
        return self

    def stop(self) -> int:
        """Ends it as an operator does; returns its exit code. `said` is all that it said."""
        code = super().stop()
        while (line := self._lines.get(timeout=PATIENCE)) is not None:
            self.said.append(line)
        return code

    def echo(self, text: str, headers: dict[str, str] | None = None) -> Json:
        body = message(
            "tools/call",
            {
                "name": "call_tool",
                "arguments": {"name": "guarded__echo", "arguments": {"text": text}},
            },
        )
        status, answer = self.post("/mcp", body, headers)
        assert status == 200, answer
        result: Json = answer["result"]
        return result


def config(url: str, more: str = "") -> str:
    return f'[server.guarded]\nurl = "{url}"\n{more}\n'


def browse(url: str, redirect_uri: str) -> str:
    """Follows the pages of a login as a browser does; returns the redirect that ends them."""
    with httpx.Client(timeout=PATIENCE) as browser:
        for _ in range(12):
            answer = browser.get(url)
            assert answer.is_redirect, answer.text
            url = urljoin(url, answer.headers["location"])
            if url.startswith(redirect_uri):
                return url
    raise AssertionError(f"the pages do not end: {url}")


class LogIn:
    """A `toolgate gateway login` that runs, and its page."""

    def __init__(self, gateway: GatewayProcess) -> None:
        self.process = subprocess.Popen(
            command(gateway, "login", "guarded", "--no-browser"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=command_environment(),
        )
        assert self.process.stdout is not None
        self.page = self.process.stdout.readline().strip()
        assert self.page, self.process.stderr.read() if self.process.stderr else ""
        self.asked = {
            name: values[0] for name, values in parse_qs(urlsplit(self.page).query).items()
        }
        self.redirect_uri = self.asked["redirect_uri"]

    def finish(self) -> str:
        """Waits for its end; returns what it said."""
        out, said = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, said
        return out + said


def command(gateway: GatewayProcess, *words: str) -> list[str]:
    files = ["--config", str(gateway.folder / "gateway.toml")]
    data = ["--data-dir", str(gateway.folder / "data")]
    return [str(gateway._binary), "gateway", *words, *files, *data]


def log_in(gateway: GatewayProcess) -> str:
    login = LogIn(gateway)
    answer = httpx.get(browse(login.page, login.redirect_uri))
    assert answer.status_code == 200
    assert "script" not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    return login.finish()


def assert_silent(gateway: Gateway, guarded: GuardedServer, *texts: str) -> None:
    """Finds no token in what was said, and none in the files that are kept."""
    assert guarded.tokens
    status = gateway_status(gateway)
    assert gateway.stop() == 0
    said = "".join(gateway.said)
    kept = [file.read_bytes() for file in gateway.folder.rglob("*") if file.is_file()]
    for token in guarded.tokens:
        for text in (said, status, *texts):
            assert token not in text
        assert not any(token.encode() in content for content in kept)


def gateway_status(gateway: GatewayProcess) -> str:
    done = subprocess.run(
        [str(gateway._binary), "gateway", "status", "--url", gateway.url, "--json"],
        capture_output=True,
        text=True,
        check=True,
        env=command_environment(),
    )
    return done.stdout


def state(gateway: GatewayProcess) -> Json:
    (server,) = json.loads(gateway_status(gateway))["servers"]
    found: Json = server
    return found


def test_a_login_starts_the_server_and_its_tokens_are_renewed(
    binary: Path, tmp_path: Path, guarded: GuardedServer
) -> None:
    gateway = Gateway(binary, tmp_path, config(guarded.url)).start("needs login")
    assert "toolgate gateway login guarded" in state(gateway)["problem"]
    said = log_in(gateway)
    gateway.wait_for(" ready: ")
    assert text_of(gateway.echo("a")) == "a"
    assert len(guarded.tokens) == 1
    # Refused amid calls: all of them go on with one new token, and each runs once.
    guarded.refuse_known_tokens()
    words = [f"word {number}" for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(gateway.echo, words))
    assert [text_of(result) for result in results] == words
    assert sorted(guarded.calls) == sorted(["a", *words])
    assert len(guarded.tokens) == 2
    assert_silent(gateway, guarded, said)


def test_a_login_outlives_the_gateway_and_a_logout_ends_it(
    binary: Path, tmp_path: Path, guarded: GuardedServer
) -> None:
    gateway = Gateway(binary, tmp_path, config(guarded.url)).start("needs login")
    gateway.stop()
    log_in(gateway)
    gateway.start(" ready: ")
    assert text_of(gateway.echo("a")) == "a"
    out = subprocess.run(
        command(gateway, "logout", "guarded"),
        capture_output=True,
        text=True,
        check=True,
        env=command_environment(),
    )
    assert "logged out" in out.stderr
    refused = gateway.echo("b")
    assert refused["isError"] is True
    gateway.wait_for("needs login")
    assert guarded.calls == ["a"]
    assert_silent(gateway, guarded)


def test_a_stored_token_is_used_with_its_own_key_alone(
    binary: Path, tmp_path: Path, guarded: GuardedServer
) -> None:
    key = tmp_path / "credential-key"
    first, second = "a1" * 32, "b2" * 32
    key.write_text(first)
    named = f'[gateway]\ncredential_key = "file:{key}"\n'
    gateway = Gateway(binary, tmp_path, named + config(guarded.url)).start("needs login")
    log_in(gateway)
    gateway.wait_for(" ready: ")
    assert gateway.stop() == 0
    key.write_text(second)
    gateway.start("needs login")
    assert gateway.echo("of another key")["isError"] is True
    # The key that is missing has a name, of which nobody makes the key.
    listed = credentials(gateway, exits=3)
    missing = listed.split("needs the key ")[1].split(",")[0]
    assert f"is sealed with the key {missing}" in state(gateway)["problem"]
    assert first not in listed
    assert second not in listed
    assert gateway.stop() == 0
    assert guarded.calls == []
    known = len(guarded.tokens)
    # The new key seals, and the one of before still opens: a start seals anew what that had sealed.
    key.write_text(f"{second}\n{first}\n")
    gateway.start(" ready: ")
    assert "1 login sealed anew with the key" in "".join(gateway.said)
    assert f"nothing needs the key {missing} any more" in credentials(gateway)
    assert gateway.stop() == 0
    key.write_text(second)
    gateway.start(" ready: ")
    assert text_of(gateway.echo("rotated")) == "rotated"
    assert len(guarded.tokens) == known
    assert_silent(gateway, guarded)


def test_a_new_key_is_made_while_the_gateway_runs(
    binary: Path, tmp_path: Path, guarded: GuardedServer
) -> None:
    gateway = Gateway(binary, tmp_path, config(guarded.url)).start("needs login")
    log_in(gateway)
    gateway.wait_for(" ready: ")
    key = tmp_path / "data" / "credentials" / "key"
    before = key.read_text()
    said = credentials(gateway, "--rotate")
    assert "1 login sealed anew" in said
    assert before not in key.read_text()
    assert len(key.read_text().split()) == 1, "nothing needs the key of before"
    known = len(guarded.tokens)
    # It renews its login, and keeps it under the new key.
    guarded.refuse_known_tokens()
    assert text_of(gateway.echo("renewed")) == "renewed"
    assert gateway.stop() == 0
    gateway.start(" ready: ")
    assert text_of(gateway.echo("kept")) == "kept"
    assert len(guarded.tokens) == known + 1
    assert_silent(gateway, guarded, said)


def credentials(gateway: GatewayProcess, *words: str, exits: int = 0) -> str:
    """What `toolgate gateway credentials` says."""
    done = subprocess.run(
        command(gateway, "credentials", *words),
        capture_output=True,
        text=True,
        check=False,
        env=command_environment(),
    )
    assert done.returncode == exits, done.stderr
    return done.stdout + done.stderr


def test_a_login_that_ended_at_its_issuer_is_asked_for_again(
    binary: Path, tmp_path: Path, issuer: AuthorizationServer, guarded: GuardedServer
) -> None:
    gateway = Gateway(binary, tmp_path, config(guarded.url)).start("needs login")
    log_in(gateway)
    gateway.wait_for(" ready: ")
    assert text_of(gateway.echo("a")) == "a"
    # Beyond the life of the refresh token.
    issuer.set_clock(2 * 60 * 60)
    guarded.refuse_known_tokens()
    refused = gateway.echo("b")
    assert refused["isError"] is True
    assert "toolgate gateway login guarded" in text_of(refused)
    gateway.wait_for("needs login")
    issuer.set_clock(0)
    log_in(gateway)
    gateway.wait_for(" ready in ")
    assert text_of(gateway.echo("c")) == "c"
    assert guarded.calls == ["a", "c"]
    assert_silent(gateway, guarded)


def test_a_redirect_is_pasted_where_there_is_no_browser(
    binary: Path, tmp_path: Path, guarded: GuardedServer
) -> None:
    gateway = Gateway(binary, tmp_path, config(guarded.url))
    login = LogIn(gateway)
    ended = browse(login.page, login.redirect_uri)
    foreign = httpx.get(f"{login.redirect_uri}?code=x&state=guessed")
    assert foreign.status_code == 400
    assert login.process.stdin is not None
    login.process.stdin.write("https://elsewhere.example/?state=x\n" + ended + "\n")
    login.process.stdin.flush()
    assert "logged in" in login.finish()
    with gateway.start(" ready: "):
        assert text_of(gateway.echo("a")) == "a"


def test_a_flood_of_connections_keeps_no_browser_from_its_page(
    binary: Path, tmp_path: Path, guarded: GuardedServer
) -> None:
    gateway = Gateway(binary, tmp_path, config(guarded.url))
    login = LogIn(gateway)
    place = urlsplit(login.redirect_uri)
    with ExitStack() as flood:
        opened = [
            flood.enter_context(
                socket.create_connection((place.hostname, place.port or 0), timeout=PATIENCE)
            )
            for _ in range(40)
        ]
        # The oldest made room for others.
        assert opened[0].recv(1) == b""
        answer = httpx.get(browse(login.page, login.redirect_uri))
        assert answer.status_code == 200
    assert "logged in" in login.finish()


def test_a_login_asks_for_the_server_and_no_more(
    binary: Path, tmp_path: Path, guarded: GuardedServer
) -> None:
    login = LogIn(Gateway(binary, tmp_path, config(guarded.url)))
    login.process.terminate()
    login.process.communicate()
    assert login.asked["resource"] == guarded.url
    assert login.asked["code_challenge_method"] == "S256"
    assert login.asked["scope"].split() == ["mcp", "offline_access"]
    assert len(login.asked["state"]) == 43


@pytest.mark.parametrize("client", ["poster", "basic"])
def test_the_gateway_gets_tokens_for_itself(
    binary: Path, tmp_path: Path, guarded: GuardedServer, client: str
) -> None:
    secret = tmp_path / "secret"
    secret.write_text(f"secret-{client}\n")
    more = (
        'auth = "client-credentials"\n'
        f'oauth = {{ client_id = "{client}", client_secret = "file:{secret}", scopes = ["mcp"] }}'
    )
    gateway = Gateway(binary, tmp_path, config(guarded.url, more)).start(" ready: ")
    assert text_of(gateway.echo("a")) == "a"
    guarded.refuse_known_tokens()
    assert text_of(gateway.echo("b")) == "b"
    assert guarded.calls == ["a", "b"]
    assert len(guarded.tokens) == 2
    secret.unlink()
    assert_silent(gateway, guarded)
    assert f"secret-{client}" not in "".join(gateway.said)


def test_a_callers_token_goes_no_further(
    binary: Path, tmp_path: Path, issuer: AuthorizationServer, guarded: GuardedServer
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret-basic")
    more = (
        'auth = "client-credentials"\n'
        f'oauth = {{ client_id = "basic", client_secret = "file:{secret}", scopes = ["mcp"] }}'
    )
    with Gateway(binary, tmp_path, config(guarded.url, more)).start(" ready: ") as gateway:
        # It would be good there.
        callers = issuer.token("poster", guarded.url)
        result = gateway.echo("a", {"Authorization": f"Bearer {callers}", "Cookie": "c=1"})
        assert text_of(result) == "a"
    assert guarded.authorizations
    assert not any(callers in sent for sent in guarded.authorizations)


def test_a_proxy_of_the_network_is_followed_to_the_authorization_server_too(
    binary: Path,
    tmp_path: Path,
    issuer: AuthorizationServer,
    guarded: GuardedServer,
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret-basic")
    more = (
        'auth = "client-credentials"\n'
        f'oauth = {{ client_id = "basic", client_secret = "file:{secret}", scopes = ["mcp"] }}'
    )
    with ForwardProxy() as network:
        gateway = Gateway(binary, tmp_path, config(guarded.url, more))
        names = ("NO_PROXY", "ALL_PROXY", "HTTPS_PROXY")
        unset = {cased: "" for name in names for cased in (name, name.lower())}
        gateway.variables = {**unset, "HTTP_PROXY": network.url, "http_proxy": network.url}
        with gateway.start(" ready: "):
            assert text_of(gateway.echo("a")) == "a"
        assert any(asked == guarded.url for asked in network.asked), network.asked
        of_issuer = [asked for asked in network.asked if asked.startswith(issuer.issuer)]
    assert any("/.well-known/" in asked for asked in of_issuer), network.asked
    assert any("/.well-known/" not in asked for asked in of_issuer), "the token came by it too"


def test_another_issuer_than_the_operators_is_refused(
    binary: Path, tmp_path: Path, issuer: AuthorizationServer
) -> None:
    told = "http://127.0.0.1:9/elsewhere"
    with GuardedServer(issuer.issuer, issuer.jwks_url, told) as guarded:
        gateway = Gateway(binary, tmp_path, config(guarded.url))
        failed = subprocess.run(
            command(gateway, "login", "guarded", "--no-browser"),
            capture_output=True,
            text=True,
            check=False,
            env=command_environment(),
        )
        assert failed.returncode != 0
        assert "127.0.0.1:9" in failed.stderr
        more = f'oauth = {{ issuer = "{issuer.issuer}" }}'
        (tmp_path / "gateway.toml").write_text(config(guarded.url, more))
        log_in(gateway)
        with gateway.start(" ready: "):
            assert text_of(gateway.echo("a")) == "a"


def test_mistakes_are_told_with_their_line(binary: Path, tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(
        '[server.a]\nurl = "https://a.example/mcp"\nauth = "client-credentials"\n'
        '[server.a.oauth]\nclient_id = "me"\nclient_secret = "hunter2"\n'
    )
    checked = subprocess.run(
        [str(binary), "gateway", "check", str(file)],
        capture_output=True,
        text=True,
        check=False,
        env=command_environment(),
    )
    assert checked.returncode == 2
    assert "line 6: server.a: `oauth.client_secret`" in checked.stderr
    assert "env:NAME" in checked.stderr
    assert "hunter2" not in checked.stderr
