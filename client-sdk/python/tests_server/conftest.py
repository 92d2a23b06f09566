"""A running Toolgate, which TOOLGATE_TARGET names; a tenant of its own for each test."""

import os
import uuid
from collections.abc import Iterator

import pytest

from toolgate import Client


@pytest.fixture(scope="session")
def target() -> str:
    named = os.environ.get("TOOLGATE_TARGET")
    if not named:
        pytest.fail("TOOLGATE_TARGET must name a running `toolgate serve`, such as 127.0.0.1:7070")
    return named


@pytest.fixture
def tenant() -> str:
    return f"tenant-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def client(target: str, tenant: str) -> Iterator[Client]:
    with Client(target, tenant=tenant, timeout=30) as client:
        yield client


@pytest.fixture
def unreachable() -> Iterator[Client]:
    with Client("127.0.0.1:1", timeout=1) as client:
        yield client
