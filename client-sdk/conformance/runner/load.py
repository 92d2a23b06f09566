"""Soaks and the cost of each SDK's own layer, language by language."""

import statistics
import time
from typing import Any

from waiting import PATIENCE

from runner.cases import tools_list
from runner.driver import Driver, DriverError
from runner.languages import BUILD
from runner.places import Places
from runner.table import Results

FILES_ALLOWED = 3
"""File descriptors that a soak may leave open beyond those before it: a pool's idle connection."""
BLOCKS = 10
TENANT = "load"
# The tenant too: a raw stub puts none in.
REQUEST = {"tenant": TENANT, "intents": [{"text": "will it rain in Bern tomorrow?"}]}


def report(
    commands: dict[str, list[str]], places: Places, soak: int, bench: int, results: Results
) -> str:
    """Markdown with a table of what was measured; what leaks is a failure."""
    rows = []
    for language, command in commands.items():
        driver = Driver(command, BUILD / f"{language}.log")
        settings = {"target": places.target("server"), "tenant": TENANT, "timeout": 60}
        try:
            rows.append(_measured(language, driver, settings, soak, bench, results))
        except DriverError as error:
            results.broken(language, str(error))
        driver.close()
    columns = (
        "language",
        "failed",
        "calls a second",
        "open files before, after",
        "resident MiB before, after",
        "raw stub us",
        "SDK us",
        "ratio",
    )
    said = (
        f"\nSoak: {soak:,} Route calls, 16 at a time, then {soak // 100} clients opened and "
        f"closed. Overhead: the\nmedian of {bench} calls, one at a time, in {BLOCKS} blocks that "
        "alternate.\n"
    )
    header = f"{said}\n| {' | '.join(columns)} |\n|---{'|---:' * (len(columns) - 1)}|\n"
    return header + "".join(rows)


def _measured(
    language: str,
    driver: Driver,
    settings: dict[str, Any],
    soak: int,
    bench: int,
    results: Results,
) -> str:
    _prepare(driver, settings)
    files, memory = driver.open_files(), driver.resident_kib()
    asked = {"request": REQUEST, "calls": soak, "concurrency": 16}
    done = _ok(driver.ask("soak", asked, settings))
    times = max(soak // 100, 1)
    _ok(driver.ask("open_close", {"request": {"server": "weather"}, "times": times}, settings))
    after = _files_left(driver, files + FILES_ALLOWED)
    if done["failed"]:
        results.broken(language, f"the soak's calls failed: {done['failed']}")
    if after > files + FILES_ALLOWED:
        results.broken(language, f"the soak left {after - files} files open")
    raw, own = _overhead(driver, settings, bench)
    cells = [
        language,
        str(sum(done["failed"].values())),
        f"{soak / done['seconds']:,.0f}",
        f"{files}, {after}",
        f"{memory / 1024:.0f}, {driver.resident_kib() / 1024:.0f}",
        f"{raw:.0f}",
        f"{own:.0f}",
        f"{own / raw:.2f}",
    ]
    return f"| {' | '.join(cells)} |\n"


def _files_left(driver: Driver, allowed: int) -> int:
    """The files that are open once no more than allowed are, or for good: closing takes a while."""
    give_up = time.monotonic() + PATIENCE
    while (left := driver.open_files()) > allowed and time.monotonic() < give_up:
        time.sleep(0.05)
    return left


def _prepare(driver: Driver, settings: dict[str, Any]) -> None:
    """A catalog to route in, and a client that is warm."""
    request = {"server": "weather", "tools_list_json": tools_list({"many": 20}, {})}
    _ok(driver.ask("RegisterServer", {"request": request}, settings))
    warm = {"request": REQUEST, "calls": 200, "concurrency": 16}
    _ok(driver.ask("soak", warm, settings))
    _ok(driver.ask("open_close", {"request": {"server": "weather"}, "times": 2}, settings))


def _overhead(driver: Driver, settings: dict[str, Any], calls: int) -> tuple[float, float]:
    """Medians in microseconds: of the raw stub, and of the SDK's method."""
    times: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(BLOCKS):
        for raw, found in times.items():
            asked = {"request": REQUEST, "calls": max(calls // BLOCKS, 20), "raw": raw}
            # The first ones open the channel.
            found += _ok(driver.ask("bench", asked, settings))["micros"][10:]
    return statistics.median(times[True]), statistics.median(times[False])


def _ok(answer: dict[str, Any]) -> Any:
    if "error" in answer:
        raise DriverError(f"failed: {answer['error']}")
    return answer["ok"]
