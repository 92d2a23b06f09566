"""Credentials of each caller towards servers: logins in a browser, and exchanged tokens."""

import html
import json
import re
import urllib.parse
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import httpx
import jwt
import pytest
from authorization_server import AuthorizationServer, machine_client
from credentials import Keys
from gateway_process import Json, message, text_of
from guarded_mcp_server import GuardedServer
from test_gateway_credentials import Gateway, LogIn
from waiting import PATIENCE

EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCOUNTS = {
    "ann": {"tenant": "acme", "roles": ["agent"]},
    "bob": {"tenant": "acme", "roles": ["agent"]},
    "uma": {"tenant": "umbrella", "roles": ["agent"]},
}
CLIENTS = [
    *(machine_client(name, token_claims=claims) for name, claims in ACCOUNTS.items()),
    machine_client("exchanger", grant_types=["client_credentials", EXCHANGE]),
    machine_client("plain"),
]
PER_USER = """
[gateway]
audit_file = "{folder}/audit.jsonl"
[gateway.auth]
methods = ["jwt", "api-key"]
issuer = "{issuer}"
jwks_file = "{folder}/jwks.json"
scopes = ["mcp"]
tenant_claim = "tenant"
roles_claim = "roles"
[server.guarded]
url = "{url}"
auth = "oauth-per-user"
tenants = ["acme", "umbrella"]
"""


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuthorizationServer]:
    folder = tmp_path_factory.mktemp("issuer")
    server = AuthorizationServer(folder, CLIENTS, accounts=ACCOUNTS)
    yield server
    server.close()


@pytest.fixture
def guarded(issuer: AuthorizationServer) -> Iterator[GuardedServer]:
    with GuardedServer(issuer.issuer, issuer.jwks_url) as server:
        yield server


class Place(NamedTuple):
    """A gateway whose callers log in to its server by themselves, and all around it."""

    gateway: Gateway
    guarded: GuardedServer
    issuer: AuthorizationServer

    def bearer(self, name: str) -> dict[str, str]:
        """Returns the credential of a host of this principal."""
        token = self.issuer.token(name, f"{self.gateway.url}/mcp")
        return {"Authorization": f"Bearer {token}"}

    def link(self, name: str) -> str:
        """Returns the link that a call of this principal is answered with."""
        refused = self.gateway.echo("refused", self.bearer(name))
        assert refused["isError"] is True
        return link_in(text_of(refused))

    def connect(self, name: str) -> "Browser":
        """Connects this principal in a browser of its own."""
        browser = Browser(self.gateway.url, name)
        assert "Connected" in browser.connect(self.link(name)).text
        return browser


class Browser:
    """A person's browser: keeps cookies, follows redirects and refreshes, runs nothing."""

    def __init__(self, gateway: str, account: str) -> None:
        self._client = httpx.Client(timeout=PATIENCE)
        self._gateway = gateway
        self._account = account
        # The link that it came by last.
        self.link = ""

    def open(self, url: str) -> httpx.Response:
        """Opens a page, and follows where it leads."""
        for _ in range(20):
            answer = self._client.get(self._with_hint(url))
            if not answer.is_redirect:
                return answer
            url = urllib.parse.urljoin(url, answer.headers["location"])
        raise AssertionError(f"the pages do not end: {url}")

    def until(self, url: str, end: str) -> str:
        """Follows redirects to one that begins so, and does not open it."""
        for _ in range(20):
            answer = self._client.get(self._with_hint(url))
            assert answer.is_redirect, answer.text
            url = urllib.parse.urljoin(url, answer.headers["location"])
            if url.startswith(end):
                return url
        raise AssertionError(f"the pages do not end: {url}")

    def press(
        self, page: httpx.Response, action: str, origin: str | None = None, **more: str
    ) -> httpx.Response:
        """Presses a button of a page, and follows redirects of the gateway."""
        for form in re.findall(r"<form.*?</form>", page.text, re.DOTALL):
            fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
            if fields["action"] == action:
                target = html.unescape(re.findall(r'action="([^"]+)"', form)[0])
                break
        else:
            raise AssertionError(f"no button {action}: {page.text}")
        sent = {"Origin": self._gateway if origin is None else origin}
        answer = self._client.post(target, data={**fields, **more}, headers=sent)
        if answer.is_redirect:
            return self.open(urllib.parse.urljoin(target, answer.headers["location"]))
        return answer

    def sign_in(self, link: str) -> httpx.Response:
        """Opens a link and says who the person is, at the issuer; returns the page behind it."""
        self.link = link
        page = self.open(link)
        assert_harmless(page)
        return self.open(onward(self.press(page, "sign-in")))

    def connect(self, link: str) -> httpx.Response:
        """Goes the whole way of a link."""
        consent = self.sign_in(link)
        assert_harmless(consent)
        return self.open(onward(self.press(consent, "connect")))

    def _with_hint(self, url: str) -> str:
        is_login = "/auth?" in url and "login_hint" not in url
        return f"{url}&login_hint={self._account}" if is_login else url


def link_in(text: str) -> str:
    found = re.findall(r"http://\S+/gateway/connect/guarded/\S+", text)
    assert len(found) == 1, text
    link: str = found[0]
    return link


def onward(page: httpx.Response) -> str:
    """Returns the URL that a page leads to."""
    found = re.findall(r'http-equiv="refresh" content="0; url=([^"]+)"', page.text)
    assert found, page.text
    return html.unescape(found[0])


def assert_harmless(page: httpx.Response) -> None:
    """Finds nothing that runs in a page, and no way to frame it."""
    assert "<script" not in page.text
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert page.headers["x-frame-options"] == "DENY"
    assert page.headers["cache-control"] == "no-store"


def start(
    binary: Path, folder: Path, issuer: AuthorizationServer, config: str, url: str
) -> Gateway:
    (folder / "jwks.json").write_text(json.dumps(issuer.get("/jwks")))
    filled = config.format(folder=folder, issuer=issuer.issuer, url=url)
    return Gateway(binary, folder, filled)


@pytest.fixture
def place(
    binary: Path, tmp_path: Path, issuer: AuthorizationServer, guarded: GuardedServer
) -> Iterator[Place]:
    gateway = start(binary, tmp_path, issuer, PER_USER, guarded.url)
    login = LogIn(gateway)
    operator = Browser(gateway.url, "operator")
    assert operator.open(login.page).status_code == 200
    login.finish()
    gateway.start(" ready: ")
    yield Place(gateway, guarded, issuer)
    assert gateway.stop() == 0
    # No token of anybody was said or is kept in the clear.
    said = "".join(gateway.said)
    kept = [file.read_bytes() for file in gateway.folder.rglob("*") if file.is_file()]
    for token in guarded.tokens:
        assert token not in said
        assert not any(token.encode() in content for content in kept)


def test_calls_are_made_with_the_callers_own_login(place: Place) -> None:
    gateway, guarded, _ = place
    link = place.link("ann")
    browser = Browser(gateway.url, "ann")
    consent = browser.sign_in(link)
    for told in ["guarded", "ann", "acme", place.issuer.issuer, "mcp", "offline_access"]:
        assert told in consent.text
    page = onward(browser.press(consent, "connect"))
    asked = urllib.parse.parse_qs(urllib.parse.urlsplit(page).query)
    assert asked["code_challenge_method"] == ["S256"]
    assert asked["resource"] == [guarded.url]
    assert asked["redirect_uri"] == [f"{gateway.url}/gateway/connected"]
    assert "Connected" in browser.open(page).text
    assert text_of(gateway.echo("mine", place.bearer("ann"))) == "mine"
    # Nobody else has it: not in the same tenant, and not in another.
    assert "/gateway/connect/" in text_of(gateway.echo("a", place.bearer("bob")))
    assert "/gateway/connect/" in text_of(gateway.echo("b", place.bearer("uma")))
    place.connect("uma")
    assert text_of(gateway.echo("hers", place.bearer("uma"))) == "hers"
    assert text_of(gateway.echo("mine again", place.bearer("ann"))) == "mine again"
    assert "/gateway/connect/" in text_of(gateway.echo("c", place.bearer("bob")))
    assert guarded.calls == ["mine", "hers", "mine again"]
    assert guarded.callers == ["ann", "uma", "ann"]
    lines = (gateway.folder / "audit.jsonl").read_text().splitlines()
    connections = [line for line in map(json.loads, lines) if line["event"] == "connection"]
    assert [line["principal"] for line in connections] == ["ann", "uma"]


def test_a_link_is_for_its_person_alone(place: Place) -> None:
    link = place.link("ann")
    bob = Browser(place.gateway.url, "bob")
    page = bob.sign_in(link)
    assert page.status_code == 403
    assert "for somebody else" in page.text
    assert 'value="connect"' not in page.text
    # Without the button either.
    posted = bob._client.post(
        link, data={"action": "connect", "nonce": "x"}, headers={"Origin": place.gateway.url}
    )
    assert posted.is_redirect
    changed = link[:-2] + ("AA" if link[-2:] != "AA" else "BB")
    assert bob.open(changed).status_code == 400
    other = link.replace("/guarded/", "/another/")
    assert bob.open(other).status_code == 400
    assert "/gateway/connect/" in text_of(place.gateway.echo("a", place.bearer("bob")))


def test_a_login_ends_in_the_browser_where_it_began_and_once(place: Place) -> None:
    gateway = place.gateway
    link = place.link("ann")
    ann = Browser(gateway.url, "ann")
    consent = ann.sign_in(link)
    page = onward(ann.press(consent, "connect"))
    redirected = ann.until(page, f"{gateway.url}/gateway/connected")
    # In another browser: without a cookie, and of another person who is known here.
    assert Browser(gateway.url, "ann").open(redirected).status_code == 400
    bob = Browser(gateway.url, "bob")
    bob.sign_in(place.link("bob"))
    assert bob.open(redirected).status_code == 400
    assert "/gateway/connect/" in text_of(gateway.echo("a", place.bearer("ann")))
    assert "/gateway/connect/" in text_of(gateway.echo("a", place.bearer("bob")))
    assert "Connected" in ann.open(redirected).text
    assert ann.open(redirected).status_code == 400
    # The button is good once as well.
    assert ann.press(consent, "connect").status_code == 400


def test_a_redirect_of_another_issuer_is_refused(place: Place) -> None:
    gateway = place.gateway
    ann = Browser(gateway.url, "ann")
    consent = ann.sign_in(place.link("ann"))
    page = onward(ann.press(consent, "connect"))
    redirected = ann.until(page, f"{gateway.url}/gateway/connected")
    own = urllib.parse.quote(place.issuer.issuer, safe="")
    assert f"iss={own}" in redirected
    foreign = redirected.replace(f"iss={own}", "iss=https%3A%2F%2Fevil.example")
    refused = ann.open(foreign)
    assert refused.status_code == 502
    assert "does not come from" in refused.text
    # The login is over with it.
    assert ann.open(redirected).status_code == 400
    assert "/gateway/connect/" in text_of(gateway.echo("a", place.bearer("ann")))


def test_forms_of_other_pages_are_refused(place: Place) -> None:
    gateway = place.gateway
    ann = Browser(gateway.url, "ann")
    consent = ann.sign_in(place.link("ann"))
    assert ann.press(consent, "connect", origin="https://evil.example").status_code == 403
    assert ann.press(consent, "connect", origin="null").status_code == 403
    # A browser that was not signed in is asked who it is.
    stranger = Browser(gateway.url, "ann")
    stranger.open(place.link("ann"))
    assert "Who are you?" in stranger.press(consent, "connect").text


def test_an_api_key_says_who_a_person_is(place: Place) -> None:
    keys = Keys(place.gateway._binary, place.gateway.folder)
    mine = keys.create("agent", principal="kay")
    other = keys.create("agent", principal="kim")
    headers = {"Authorization": f"Bearer {mine['key']}"}
    link = link_in(text_of(place.gateway.echo("a", headers)))
    browser = Browser(place.gateway.url, "kay")
    page = browser.open(link)
    assert browser.press(page, "key", key="tg_nothing").status_code == 403
    assert browser.press(page, "key", key=other["key"]).status_code == 403
    page = browser.open(link)
    consent = browser.press(page, "key", key=mine["key"])
    assert "Connect to guarded?" in consent.text
    assert "Connected" in browser.open(onward(browser.press(consent, "connect"))).text
    assert text_of(place.gateway.echo("mine", headers)) == "mine"
    assert place.guarded.callers == ["kay"]


def test_a_login_is_renewed_once_and_its_end_leads_to_a_new_link(place: Place) -> None:
    gateway, guarded, _ = place
    browser = place.connect("ann")
    headers = place.bearer("ann")
    assert text_of(gateway.echo("a", headers)) == "a"
    guarded.refuse_known_tokens()
    assert text_of(gateway.echo("b", headers)) == "b"
    assert guarded.callers == ["ann", "ann"]
    page = browser.open(browser.link)
    assert "connected already" in page.text
    assert "Disconnected" in browser.press(page, "disconnect").text
    assert "/gateway/connect/" in text_of(gateway.echo("c", headers))
    assert guarded.calls == ["a", "b"]


def test_many_calls_of_a_person_renew_once_and_nobody_elses(place: Place) -> None:
    gateway, guarded, issuer = place
    names = ("ann", "uma")
    headers = {}
    for name in names:
        place.connect(name)
        headers[name] = place.bearer(name)
        assert text_of(gateway.echo("first", headers[name])) == "first"
    before = issuer.refreshed()
    guarded.refuse_known_tokens()
    calls = [(name, f"{name} {number}") for number in range(20) for name in names]
    with ThreadPoolExecutor(len(calls)) as threads:
        results = list(threads.map(lambda call: gateway.echo(call[1], headers[call[0]]), calls))
    assert [text_of(result) for result in results] == [text for _, text in calls]
    made = list(zip(guarded.callers, guarded.calls, strict=True))[len(names) :]
    assert sorted(made) == sorted(calls), "each call ran once, in its own person's name"
    after = issuer.refreshed()
    assert {name: after.get(name, 0) - before.get(name, 0) for name in names} == {
        "ann": 1,
        "uma": 1,
    }


URL_CAPABILITY: Json = {"elicitation": {"form": {}, "url": {}}}


def call_declaring(place: Place, name: str, text: str, **more: Json) -> Json:
    """Calls as a host of 2026-07-28 that opens URLs for its person."""
    arguments = {"name": "guarded__echo", "arguments": {"text": text}}
    body = message("tools/call", {"name": "call_tool", "arguments": arguments, **more})
    meta = body["params"]["_meta"]
    meta["io.modelcontextprotocol/clientCapabilities"] = URL_CAPABILITY
    status, answer = place.gateway.post("/mcp", body, place.bearer(name))
    assert status == 200, answer
    result: Json = answer["result"]
    return result


def test_a_host_that_opens_urls_is_asked(place: Place) -> None:
    asked = call_declaring(place, "ann", "a")
    assert asked["resultType"] == "input_required"
    ((name, question),) = asked["inputRequests"].items()
    assert question["method"] == "elicitation/create"
    assert question["params"]["mode"] == "url"
    declined = call_declaring(place, "ann", "b", inputResponses={name: {"action": "decline"}})
    assert declined["isError"] is True
    assert "/gateway/connect/" in text_of(declined)
    Browser(place.gateway.url, "ann").connect(question["params"]["url"])
    done = call_declaring(place, "ann", "c", inputResponses={name: {"action": "accept"}})
    assert text_of(done) == "c"
    assert place.guarded.calls == ["c"]


EXCHANGED = PER_USER.replace(
    'auth = "oauth-per-user"',
    'auth = "token-exchange"\n'
    'oauth = {{ client_id = "exchanger", client_secret = "file:{folder}/secret",'
    ' issuer = "{issuer}", scopes = ["mcp"] }}',
)


def test_a_callers_token_is_exchanged_for_one_that_is_for_the_server(
    binary: Path, tmp_path: Path, issuer: AuthorizationServer, guarded: GuardedServer
) -> None:
    (tmp_path / "secret").write_text("secret-exchanger\n")
    gateway = start(binary, tmp_path, issuer, EXCHANGED, guarded.url).start(" ready: ")
    place = Place(gateway, guarded, issuer)
    anns, umas = place.bearer("ann"), place.bearer("uma")
    listing = len(guarded.tokens)
    for number in range(3):
        assert text_of(gateway.echo(f"ann {number}", anns)) == f"ann {number}"
    assert text_of(gateway.echo("uma", umas)) == "uma"
    assert guarded.callers == ["ann", "ann", "ann", "uma"]
    # One exchange for each, and what was sent on is for the server alone.
    assert len(guarded.tokens) == listing + 2
    for token in guarded.tokens[listing:]:
        claims = jwt.decode(token, options={"verify_signature": False})
        assert claims["aud"] == guarded.url
    for sent in guarded.authorizations:
        assert sent not in (anns["Authorization"], umas["Authorization"])
    # Refused, it is exchanged anew.
    guarded.refuse_known_tokens()
    assert text_of(gateway.echo("again", anns)) == "again"
    # A key can't be exchanged.
    made = Keys(binary, tmp_path).create("agent", principal="kay")
    refused = gateway.echo("key", {"Authorization": f"Bearer {made['key']}"})
    assert refused["isError"] is True
    assert "no token" in text_of(refused)
    assert "key" not in guarded.calls
    assert gateway.stop() == 0
    said = "".join(gateway.said)
    for secret in [anns["Authorization"].split()[1], *guarded.tokens, "secret-exchanger"]:
        assert secret not in said


def test_a_token_that_can_not_be_exchanged_is_not_sent_on(
    binary: Path, tmp_path: Path, issuer: AuthorizationServer, guarded: GuardedServer
) -> None:
    (tmp_path / "secret").write_text("secret-plain\n")
    config = EXCHANGED.replace("exchanger", "plain")
    gateway = start(binary, tmp_path, issuer, config, guarded.url).start(" ready: ")
    place = Place(gateway, guarded, issuer)
    headers = place.bearer("ann")
    refused = gateway.echo("a", headers)
    assert refused["isError"] is True
    assert "did not run" in text_of(refused)
    assert guarded.calls == []
    assert headers["Authorization"] not in guarded.authorizations
    gateway.stop()
