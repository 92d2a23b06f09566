"""Requests of a client to Route."""

from typing import Any

import pytest

from toolgate import Client


def routed(client: Client, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Keeps the arguments of each Route."""
    asked: list[dict[str, Any]] = []
    route = client.route

    def kept(*given: Any, **named: Any) -> Any:
        asked.append(named)
        return route(*given, **named)

    monkeypatch.setattr(client, "route", kept)
    return asked
