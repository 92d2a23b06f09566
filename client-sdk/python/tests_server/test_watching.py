"""A watch of a real catalog."""

import asyncio

from toolgate import AsyncClient, CatalogChange, Client

TOOL = {"name": "find", "inputSchema": {"type": "object"}}


def test_changes_come_as_they_are_made(client: Client) -> None:
    with client.watch_catalog() as watch:
        assert next(watch) == CatalogChange(0, (), False, False)
        client.register_server("notes", [TOOL])
        assert next(watch) == CatalogChange(1, ("notes",), False, False)
        client.set_policy({"rules": []})
        changed = next(watch)
    assert (changed.policy_changed, changed.servers) == (True, ())
    with client.watch_catalog(since_revision=0) as late:
        missed = next(late)
    assert (missed.revision, missed.servers) == (changed.revision, ("notes",))


def test_asyncio(target: str, tenant: str) -> None:
    async def watch() -> tuple[str, ...]:
        async with AsyncClient(target, tenant=tenant, timeout=30) as client:
            changes = client.watch_catalog()
            await anext(changes)
            await client.register_server("notes", [TOOL])
            changed = await anext(changes)
            await changes.aclose()
            return changed.servers

    assert asyncio.run(watch()) == ("notes",)
