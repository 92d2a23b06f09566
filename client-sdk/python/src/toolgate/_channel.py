"""Channel settings that both clients share: message sizes and what is retried."""

import json
import re
from collections.abc import Sequence

DEFAULT_TARGET = "127.0.0.1:7070"
DEFAULT_TIMEOUT = 5.0
"""Seconds."""
PAGE_SIZE = 100
"""Items that a listing fetches at a time unless told otherwise."""

# A page of 1,000 tools or 100 promoted schemas may pass gRPC's default of 4 MiB.
_MAX_RECEIVED_BYTES = 64 * 1024 * 1024

# UNAVAILABLE alone is retried: nothing else says that the service did no work.
_SERVICE_CONFIG = {
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
        }
    ]
}

ChannelOptions = Sequence[tuple[str, str | int]]


_HOST_AND_PORT = re.compile(r"(\[[^\[\]]+\]|[^:/\[\]\s]+):[0-9]{1,5}")
_GRPC_SCHEMES = ("dns", "ipv4", "ipv6", "passthrough", "unix", "unix-abstract", "vsock", "xds")


def target_of(target: str, encrypted: bool) -> str:
    """The target as gRPC takes it: `http://` and `https://` are left out, as people write them.

    Raises:
        ValueError: no port, a path, or a scheme that says other than the credentials.
    """
    scheme, separator, rest = target.partition("://")
    if not separator or scheme not in ("http", "https"):
        return _checked(target)
    if scheme == "https" and not encrypted:
        raise ValueError(
            f"{target!r} asks for encryption: give credentials=grpc.ssl_channel_credentials()"
        )
    if scheme == "http" and encrypted:
        raise ValueError(f"{target!r} asks for no encryption, but there are credentials")
    address = rest.rstrip("/")
    # Without a port gRPC takes the one of https.
    if scheme == "https" and address and not re.search(r"[:/\s]", address):
        return address
    if not _HOST_AND_PORT.fullmatch(address):
        raise _no_target(target)
    return address


def _checked(target: str) -> str:
    # gRPC takes any text for a host's name, and 443 where no port is said.
    if target.partition(":")[0] in _GRPC_SCHEMES or _HOST_AND_PORT.fullmatch(target):
        return target
    raise _no_target(target)


def _no_target(target: str) -> ValueError:
    return ValueError(f"{target!r} is no target: say host:port, such as {DEFAULT_TARGET}")


def channel_options(extra: ChannelOptions) -> list[tuple[str, str | int]]:
    """The defaults, followed by the caller's own, which win."""
    return [
        ("grpc.max_receive_message_length", _MAX_RECEIVED_BYTES),
        ("grpc.enable_retries", 1),
        ("grpc.service_config", json.dumps(_SERVICE_CONFIG)),
        *extra,
    ]
