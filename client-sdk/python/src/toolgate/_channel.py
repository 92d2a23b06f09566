"""Connections of both clients: the target, encryption, message sizes and retries."""

import ipaddress
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

import grpc

from toolgate.tls import Tls

DEFAULT_TARGET = "127.0.0.1:7070"
DEFAULT_TIMEOUT = 5.0
"""Seconds."""
PAGE_SIZE = 100
"""Items that a listing fetches at a time unless told otherwise."""

ChannelOptions = Sequence[tuple[str, str | int]]

_SERVICE_CONFIG = {
    # A service that drains or does not answer yet says so, and is left alone until it does.
    "healthCheckConfig": {"serviceName": ""},
    # Health is only asked for by this policy; it also uses every address of the target.
    "loadBalancingConfig": [{"round_robin": {}}],
    # UNAVAILABLE alone is retried: nothing else says that the service did no work.
    "methodConfig": [
        {
            "name": [{}],
            "retryPolicy": {
                "maxAttempts": 3,
                "initialBackoff": "0.1s",
                "maxBackoff": "1s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        },
        # A watch asks again by itself, within its time, and tells the last refusal.
        {"name": [{"service": "toolgate.v1.CatalogService", "method": "WatchCatalog"}]},
    ],
    # When most calls fail, retries would only add to the load.
    "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1},
}
_OPTIONS: list[tuple[str, str | int]] = [
    # A page of 1,000 tools or 100 promoted schemas may pass gRPC's default of 4 MiB.
    ("grpc.max_receive_message_length", 64 * 1024 * 1024),
    ("grpc.enable_retries", 1),
    ("grpc.service_config", json.dumps(_SERVICE_CONFIG)),
    # The retries of one call together last longer than this, so that the first call after a service
    # is back finds it. gRPC alone would wait for up to two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 200),
    # A connection that was lost without a word, under a watch that only waits, is noticed.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
]

_HOST_AND_PORT = re.compile(r"(\[[^\[\]]+\]|[^:/\[\]\s]+):[0-9]{1,5}")
# Prefixes of targets that say where the connection goes.
_ADDRESS_SCHEMES = ("dns", "ipv4", "ipv6", "passthrough")
_GRPC_SCHEMES = (*_ADDRESS_SCHEMES, "unix", "unix-abstract", "vsock", "xds")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A channel's target, credentials and options."""

    address: str
    """The target as gRPC takes it."""
    credentials: grpc.ChannelCredentials | None
    """None: no encryption."""
    options: ChannelOptions
    """gRPC's channel options."""


def endpoint(
    target: str,
    tls: Tls | bool | None,
    credentials: grpc.ChannelCredentials | None,
    options: ChannelOptions,
) -> Endpoint:
    """Puts a client's options together; the caller's own gRPC options win.

    Raises:
        OSError: a certificate's file that cannot be read.
        TypeError: `tls` is something else.
        ValueError: no such target, or one that says other than the encryption asked for.
    """
    if credentials is not None and tls is not None:
        raise ValueError("give tls= or credentials=, not both")
    if not isinstance(tls, Tls | bool | None):
        raise TypeError(f"tls= is a Tls, True or False, not {type(tls).__name__}")
    wanted = True if credentials is not None or isinstance(tls, Tls) else tls
    address, encrypted = target_of(target, wanted)
    settings = Tls() if tls is None or isinstance(tls, bool) else tls
    if encrypted and credentials is None:
        credentials = settings.to_grpc()
    found: list[tuple[str, str | int]] = []
    if settings.server_name:
        found.append(("grpc.ssl_target_name_override", settings.server_name))
    scheme, _, listed = address.partition(":")
    if scheme in ("ipv4", "ipv6") and "," in listed:
        # gRPC would take the whole list for the host's name, which no server accepts.
        found.append(("grpc.default_authority", listed.partition(",")[0]))
    if _is_loopback(address):  # No proxy is to see what stays here.
        found.append(("grpc.enable_http_proxy", 0))
    return Endpoint(address, credentials, [*_OPTIONS, *found, *options])


def refuse_plaintext(endpoint: Endpoint) -> None:
    """Refuses to send a secret where others may read it.

    Raises:
        ValueError: the connection is not encrypted and leaves this machine.
    """
    if endpoint.credentials is None and not _is_loopback(endpoint.address):
        raise ValueError(
            f"a key or token for {endpoint.address} would be sent unencrypted: use tls=True, or "
            "allow_insecure_credentials=True where the network itself is safe"
        )


def target_of(target: str, encrypted: bool | None) -> tuple[str, bool]:
    """The target as gRPC takes it, and whether it is encrypted.

    `http://` and `https://` are left out, as people write them.

    Args:
        target: As it was given.
        encrypted: True if other settings ask for it. None: whatever the scheme says.

    Raises:
        ValueError: no port, a path, or a scheme that says otherwise.
    """
    scheme, separator, rest = target.partition("://")
    if not separator or scheme not in ("http", "https"):
        return _checked(target), bool(encrypted)
    if scheme == "https" and encrypted is False:
        raise ValueError(f"{target!r} asks for encryption, tls=False for none")
    if scheme == "http" and encrypted:
        raise ValueError(f"{target!r} asks for no encryption, tls= or credentials= for it")
    address = rest.removesuffix("/")
    if not _HOST_AND_PORT.fullmatch(address):
        raise _no_target(target)
    return address, scheme == "https"


def _checked(target: str) -> str:
    # gRPC takes any text for a host's name, and 443 where no port is said.
    if target.partition(":")[0] in _GRPC_SCHEMES or _HOST_AND_PORT.fullmatch(target):
        return target
    raise _no_target(target)


def _no_target(target: str) -> ValueError:
    return ValueError(f"{target!r} is no target: say host:port, such as {DEFAULT_TARGET}")


def _is_loopback(address: str) -> bool:
    scheme, _, rest = address.partition(":")
    if scheme in ("unix", "unix-abstract"):
        return True
    hosts = rest.removeprefix("///") if scheme in _ADDRESS_SCHEMES else address
    return all(map(_is_loopback_host, hosts.split(",")))


def _is_loopback_host(host_and_port: str) -> bool:
    host = host_and_port.rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
