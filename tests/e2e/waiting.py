"""Waits for what a server does by itself."""

import time
from collections.abc import Callable

PATIENCE = 120.0
"""Seconds after which a test gives up. A wait ends with its condition: slow machines fail none."""


def wait_until(holds: Callable[[], object], what: Callable[[], str] | str = "in vain") -> None:
    """Fails with `what` if the condition does not hold within `PATIENCE`."""
    give_up = time.monotonic() + PATIENCE
    while not holds():
        shown = what if isinstance(what, str) else what()
        assert time.monotonic() < give_up, shown
        time.sleep(0.02)
