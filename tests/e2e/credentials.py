"""Credentials for tests: API keys by the command line, tokens and certificates signed here."""

import json
import os
import ssl
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from toolgate_command import run

from toolgate import Tls

ISSUER = "https://id.example.com/"
AUDIENCE = "toolgate"


def b64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


class Signer:
    """An identity provider's key."""

    def __init__(self, kid: str, algorithm: str = "EdDSA") -> None:
        self.kid = kid
        self.algorithm = algorithm
        self.key: Any = {
            "RS256": lambda: rsa.generate_private_key(65537, 2048),
            "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
            "EdDSA": ed25519.Ed25519PrivateKey.generate,
        }[algorithm]()

    def jwk(self) -> dict[str, str]:
        public = self.key.public_key()
        if self.algorithm == "RS256":
            numbers = public.public_numbers()
            n, e = numbers.n.to_bytes(256, "big"), numbers.e.to_bytes(3, "big")
            fields = {"kty": "RSA", "n": b64(n), "e": b64(e)}
        elif self.algorithm == "ES256":
            numbers = public.public_numbers()
            x, y = numbers.x.to_bytes(32, "big"), numbers.y.to_bytes(32, "big")
            fields = {"kty": "EC", "crv": "P-256", "x": b64(x), "y": b64(y)}
        else:
            fields = {"kty": "OKP", "crv": "Ed25519", "x": b64(public.public_bytes_raw())}
        return {**fields, "kid": self.kid, "use": "sig", "alg": self.algorithm}

    def sign(self, message: bytes) -> bytes:
        signed: bytes
        if self.algorithm == "RS256":
            signed = self.key.sign(message, padding.PKCS1v15(), hashes.SHA256())
        elif self.algorithm == "ES256":
            r, s = decode_dss_signature(self.key.sign(message, ec.ECDSA(hashes.SHA256())))
            signed = r.to_bytes(32, "big") + s.to_bytes(32, "big")
        else:
            signed = self.key.sign(message)
        return signed

    def token(
        self, header: Mapping[str, Any] | None = None, seconds: float = 600, **claims: Any
    ) -> str:
        """A token of `acme`'s agent; claims that are None are left out."""
        said = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": "ann",
            "tenant": "acme",
            "roles": ["agent"],
            "exp": int(time.time() + seconds),
            **claims,
        }
        said = {name: value for name, value in said.items() if value is not None}
        head = {"alg": self.algorithm, "kid": self.kid, "typ": "JWT", **(header or {})}
        message = f"{b64(json.dumps(head).encode())}.{b64(json.dumps(said).encode())}"
        return f"{message}.{b64(self.sign(message.encode()))}"


def jwks(*signers: Signer) -> str:
    return json.dumps({"keys": [signer.jwk() for signer in signers]})


def token_settings(**where: str) -> dict[str, str]:
    """Configuration of a server that takes tokens; `where` is jwks_file or jwks_url."""
    return {
        "auth.methods": "jwt",
        "auth.issuer": ISSUER,
        "auth.audience": AUDIENCE,
        "auth.clock_skew": "0s",
        **{f"auth.{name}": value for name, value in where.items()},
    }


class Keys:
    """API keys in the store of a server's folder."""

    def __init__(self, binary: Path, folder: Path) -> None:
        self._binary = binary
        self._data = folder / "data"

    def command(self, *arguments: str) -> Any:
        """Returns the JSON that `toolgate key` prints."""
        store = ("--set", f"store.path={self._data}")
        done = run(self._binary, "key", *arguments, "--json", *store)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def create(self, *roles: str, tenant: str = "acme", **options: str) -> dict[str, Any]:
        arguments = [part for role in roles for part in ("--role", role)]
        arguments += ["--tenant", tenant] if tenant else []
        for name, value in options.items():
            arguments += [f"--{name}", value]
        made: dict[str, Any] = self.command("create", *arguments)
        return made


def client_certificate(issuer: trustme.CA, uri: str, name: str) -> tuple[bytes, bytes]:
    """A certificate of this URI and common name, and its key (PEM). trustme knows no URIs."""
    authority = x509.load_pem_x509_certificate(issuer.cert_pem.bytes())
    signing = serialization.load_pem_private_key(issuer.private_key_pem.bytes(), None)
    assert isinstance(signing, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = [x509.NameAttribute(x509.NameOID.COMMON_NAME, name)] if name else []
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name(subject))
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    )
    if uri:
        names = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(uri)])
        builder = builder.add_extension(names, critical=not name)
    certificate = builder.sign(signing, hashes.SHA256())
    return (
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


class KeyServer:
    """An https server with an identity provider's key set, which counts how often it is asked."""

    def __init__(self, authority: trustme.CA) -> None:
        self.body = "{}"
        self.asked = 0
        self.fails = False
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked += 1
                self.send_response(500 if outer.fails else 200)
                body = outer.body.encode()
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}/jwks.json"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Certificates:
    """An authority, and the files of a server and of clients."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = trustme.CA()
        self.clients = trustme.CA()
        self.ca = folder / "ca.pem"
        self.client_ca = folder / "clients.pem"
        self.authority.cert_pem.write_to_path(str(self.ca))
        self.clients.cert_pem.write_to_path(str(self.client_ca))
        self.write_server("127.0.0.1")

    def write_server(self, *names: str) -> None:
        """The key goes first: in between, the pair is no good, as when an operator copies files."""
        issued = self.authority.issue_cert(*names)
        for name, pem in [
            ("key.pem", issued.private_key_pem.bytes()),
            ("cert.pem", b"".join(blob.bytes() for blob in issued.cert_chain_pems)),
        ]:
            draft = self.folder / f"{name}.new"
            draft.write_bytes(pem)
            os.replace(draft, self.folder / name)

    def settings(self, **more: str) -> dict[str, str]:
        return {
            "tls.cert_file": str(self.folder / "cert.pem"),
            "tls.key_file": str(self.folder / "key.pem"),
            **more,
        }

    def client(self, uri: str = "", name: str = "", of: trustme.CA | None = None) -> Tls:
        """Returns the credentials of a client with a certificate of this URI or common name."""
        certificate, key = client_certificate(of or self.clients, uri, name)
        return Tls(ca=self.ca, certificate=certificate, key=key)
