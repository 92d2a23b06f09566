"""A real authorization server on a free port, for tests: `oidc-provider` from npm, pinned."""

import fcntl
import json
import select
import shutil
import ssl
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import trustme

Json = dict[str, Any]

SOURCE = Path(__file__).with_name("authorization-server")
INSTALLED = Path(__file__).resolve().parents[2] / ".cache" / "authorization-server"
FILES = ("package.json", "package-lock.json", "server.mjs")


STARTS = 4
"""Processes that are started, at most, before one runs the script."""
HANGS_AFTER = 60
"""Seconds that a process may take to begin."""


def installed() -> Path:
    """Installs the script and its packages once for each change of them; returns the folder."""
    stamp = INSTALLED / ".installed"
    wanted = "".join((SOURCE / name).read_text() for name in FILES)
    INSTALLED.mkdir(parents=True, exist_ok=True)
    with (INSTALLED / ".lock").open("w") as lock:
        # Tests of several files run beside each other.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != wanted:
            for name in FILES:
                shutil.copy(SOURCE / name, INSTALLED / name)
            quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
            subprocess.run(["npm", "ci", *quiet], cwd=INSTALLED, check=True)
            stamp.write_text(wanted)
    return INSTALLED


def machine_client(name: str, **more: object) -> Json:
    """Returns a client that gets tokens for itself. Its secret is `secret-` and its name."""
    return {
        "client_id": name,
        "client_secret": f"secret-{name}",
        "grant_types": ["client_credentials"],
        "response_types": [],
        "redirect_uris": [],
        "token_endpoint_auth_method": "client_secret_post",
        **more,
    }


def started(command: list[str]) -> subprocess.Popen[str]:
    """Returns a process that has begun to write.

    Now and then Node.js hangs before it runs a line of the script. Such a process is started again.
    """
    for _ in range(STARTS):
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout is not None
        if select.select([process.stdout], [], [], HANGS_AFTER)[0]:
            return process
        process.kill()
        process.communicate()
    raise RuntimeError(f"{command[0]} hung {STARTS} times")


class AuthorizationServer:
    """One authorization server; over https where an authority for its certificate is given."""

    def __init__(
        self,
        folder: Path,
        clients: list[Json],
        scopes: list[str] | None = None,
        authority: trustme.CA | None = None,
        accounts: Json | None = None,
    ) -> None:
        options: Json = {
            "clients": clients,
            "scopes": scopes or ["mcp"],
            "accounts": accounts or {},
        }
        self._tls: ssl.SSLContext | None = None
        if authority is not None:
            certificate = authority.issue_cert("127.0.0.1")
            options["cert"] = str(folder / "authorization-server.pem")
            options["key"] = str(folder / "authorization-server.key")
            chain = b"".join(pem.bytes() for pem in certificate.cert_chain_pems)
            Path(options["cert"]).write_bytes(chain)
            certificate.private_key_pem.write_to_path(options["key"])
            self._tls = ssl.create_default_context()
            authority.configure_trust(self._tls)
        self._process = started(["node", str(installed() / "server.mjs"), json.dumps(options)])
        assert self._process.stdout is not None
        self.issuer: str = json.loads(self._process.stdout.readline())["issuer"]

    def get(self, path: str) -> Json:
        """Returns the JSON at a path."""
        with urllib.request.urlopen(self.issuer + path, timeout=30, context=self._tls) as response:
            document: Json = json.load(response)
        return document

    def metadata(self) -> Json:
        """Returns what it says of itself."""
        return self.get("/.well-known/openid-configuration")

    @property
    def jwks_url(self) -> str:
        """The URL of its keys."""
        url: str = self.metadata()["jwks_uri"]
        return url

    def token(self, client: str, resource: str, scope: str = "mcp") -> str:
        """Returns an access token of a machine client for a resource."""
        form = {
            "grant_type": "client_credentials",
            "client_id": client,
            "client_secret": f"secret-{client}",
            "resource": resource,
            **({"scope": scope} if scope else {}),
        }
        body = urllib.parse.urlencode(form).encode()
        request = urllib.request.Request(self.issuer + "/token", data=body)
        with urllib.request.urlopen(request, timeout=30, context=self._tls) as response:
            token: str = json.load(response)["access_token"]
        return token

    def refreshed(self) -> dict[str, int]:
        """Counts the tokens that it has refreshed, by account."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("refreshed\n")
        self._process.stdin.flush()
        counts: dict[str, int] = json.loads(self._process.stdout.readline())
        return counts

    def set_clock(self, seconds: int) -> None:
        """Moves its clock by so many seconds from the real time."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"clock {seconds}\n")
        self._process.stdin.flush()
        assert json.loads(self._process.stdout.readline()) == {"clock": seconds}

    def close(self) -> None:
        """Ends it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()
