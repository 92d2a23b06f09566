"""Encryption of the connection: a value that a client takes, and gRPC's credentials for it."""

import os
import ssl
from dataclasses import dataclass, field
from pathlib import Path

import grpc

Pem = str | Path | bytes
"""A path to a PEM file, or what such a file holds."""


@dataclass(frozen=True, slots=True)
class Tls:
    """An encrypted connection's certificates. Each is a path to a PEM file, or its bytes.

        Client("tools.example:443", tls=Tls(ca="ca.pem", certificate="me.pem", key="me.key"))

    Files are read when a client is made.
    """

    ca: Pem | None = None
    """The authorities that the service's certificate must come from. None: the system's."""
    certificate: Pem | None = None
    """This client's certificate, with its chain, for services that ask for one (mTLS)."""
    key: Pem | None = field(default=None, repr=False)
    """The certificate's private key."""
    server_name: str = ""
    """The name that the service's certificate must be for. "": the target's host."""

    def __post_init__(self) -> None:
        """Refuses what cannot be meant.

        Raises:
            TypeError: something that is neither a path nor bytes.
            ValueError: a certificate without its key or a key alone, or a PEM as text.
        """
        for name in ("ca", "certificate", "key"):
            _refuse_other(name, getattr(self, name))
        if (self.certificate is None) != (self.key is None):
            lacking = "key" if self.key is None else "certificate"
            raise ValueError(f"a certificate and its key go together: Tls has no {lacking}=")

    def to_grpc(self) -> grpc.ChannelCredentials:
        """Returns gRPC's credentials.

        Raises:
            OSError: a file that cannot be read.
        """
        ca = _system_authorities() if self.ca is None else _read(self.ca)
        certificate = None if self.certificate is None else _read(self.certificate)
        key = None if self.key is None else _read(self.key)
        return grpc.ssl_channel_credentials(ca, key, certificate)


def _refuse_other(name: str, pem: object) -> None:
    if not isinstance(pem, str | Path | bytes | None):
        raise TypeError(f"Tls({name}=...) takes a path or PEM bytes, not {type(pem).__name__}")
    if isinstance(pem, str) and "-----BEGIN" in pem:
        raise ValueError(f"Tls({name}=...) reads text as a path: give the PEM itself as bytes")


def _read(pem: Pem) -> bytes:
    return pem if isinstance(pem, bytes) else Path(pem).read_bytes()


def _system_authorities() -> bytes | None:
    """The system's certificate authorities; None: those that gRPC brings, or is told of."""
    if "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH" in os.environ:
        return None
    paths = ssl.get_default_verify_paths()
    # Where OpenSSL looks into a folder, distributions keep all of them in this one file of it.
    bundle = paths.cafile or os.path.join(paths.capath or "", "ca-certificates.crt")
    if os.path.isfile(bundle):
        return Path(bundle).read_bytes()
    # Windows and macOS keep them elsewhere.
    found = ssl.create_default_context().get_ca_certs(binary_form=True)
    return "".join(map(ssl.DER_cert_to_PEM_cert, found)).encode() or None
