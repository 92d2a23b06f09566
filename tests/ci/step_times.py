"""Writes the times of the last `make test` into docs/checks.md.

With --check, only checks that the page lists the steps of the Makefile.
"""

import os
import re
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "checks.md"
LOGS = ROOT / ".cache" / "steps"
ROW = re.compile(r"^\| `([a-z0-9-]+)` \| (\d+) \| (.*) \|$", re.MULTILINE)
CONDITIONS = re.compile(r"^Times are of one run .*?(?=Steps in lanes)", re.MULTILINE | re.DOTALL)


def steps_of_makefile() -> list[str]:
    """The steps in the order of the table that `make test` prints."""
    text = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    variables = dict(re.findall(r"^([A-Z_]+) := (.*)$", text, re.MULTILINE))
    steps = re.sub(r"\$\((\w+)\)", lambda name: variables[name[1]], variables["STEPS"])
    return ["tools", *(word for word in steps.split() if word not in "[/]")]


def check(page: str) -> list[str]:
    """Lists the mistakes of the page's list of steps."""
    listed = [name for name, _, _ in ROW.findall(page)]
    steps = steps_of_makefile()
    if listed == steps:
        return []
    missing = [step for step in steps if step not in listed]
    gone = [step for step in listed if step not in steps]
    return [f"lists other steps than the Makefile: missing {missing}, gone {gone}, or out of order"]


def processor() -> str:
    """The processor's name, where Linux says it, and whether the fast encoder runs on it."""
    try:
        info = Path("/proc/cpuinfo").read_text()
    except OSError:
        info = ""
    found = re.search(r"^model name\s*: (.*)$", info, re.MULTILINE)
    name = found[1].replace("(R)", "") if found else "unknown processor"
    return f"{name} with AVX-512" if re.search(r"\bavx512f\b", info) else name


def counted() -> tuple[int, int]:
    """Tests that passed: cargo's, and pytest's."""
    text = "\n".join(log.read_text(errors="replace") for log in sorted(LOGS.glob("*.log")))
    cargo = re.findall(r"^test result: ok\. (\d+) passed", text, re.MULTILINE)
    pytest = re.findall(r"^(?=[=0-9]).*?(\d+) passed.* in [0-9.:]+ ?s", text, re.MULTILINE)
    return sum(map(int, cargo)), sum(map(int, pytest))


def write(page: str) -> str:
    """The page with the times of the last run, which has to have been whole."""
    table = LOGS / "table"
    if not table.exists():
        raise SystemExit("no whole run is recorded in .cache/steps: run `make test`")
    rows = [line.split(maxsplit=2) for line in table.read_text().splitlines()[1:]]
    if failed := [name for name, _, result in rows if result != "ok"]:
        raise SystemExit(f"the last `make test` failed, and its times mean nothing: {failed}")
    seconds = {name: took for name, took, _ in rows}
    if missing := [step for step in steps_of_makefile() if step not in seconds]:
        raise SystemExit(f"the last run was not whole; missing {missing}")
    date = datetime.fromtimestamp(table.stat().st_mtime, UTC).date()
    cargo, pytest = counted()
    conditions = (
        f"Times are of one run on {os.cpu_count()} cores ({processor()}), {date}:\n"
        f"{int(seconds['total']):,} s in all, {cargo:,} cargo tests and {pytest:,} pytest tests. "
    )
    page = CONDITIONS.sub(lambda _: conditions, page)
    return ROW.sub(lambda row: f"| `{row[1]}` | {seconds[row[1]]} | {row[3]} |", page)


def main() -> int:
    """Writes the page; with --check only reads it, and fails where it is wrong."""
    page = PAGE.read_text()
    problems = check(page)
    if not CONDITIONS.search(page):
        problems.append("lacks the sentence from 'Times are of one run' to 'Steps in lanes'")
    for problem in problems:
        print(f"{PAGE.relative_to(ROOT)}: {problem}")
    if problems:
        return 1
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(write(page))
    return 0


if __name__ == "__main__":
    sys.exit(main())
