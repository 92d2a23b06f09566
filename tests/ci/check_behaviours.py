"""Every test that docs/behaviours.md names is there."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs" / "behaviours.md"

TESTS = {
    ".rs": re.compile(r"#\[(?:tokio::)?test\b[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*(?:async )?fn (\w+)"),
    ".py": re.compile(r"^\s*(?:async )?def (test_\w+)", re.MULTILINE),
}
"""What defines tests, by the ending of the file."""


def cells() -> list[str]:
    """The third column."""
    rows = [line for line in TABLE.read_text().splitlines() if re.match(r"\| [ABCD]\d", line)]
    return [row.split(" | ")[-1] for row in rows]


def defined_tests() -> set[str]:
    """The names of all tests in Rust and Python files that git knows."""
    command = ["git", "-C", str(ROOT), "ls-files", *(f"*{ending}" for ending in TESTS)]
    files = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return {
        name
        for file in map(Path, files)
        if (ROOT / file).exists()
        for name in TESTS[file.suffix].findall((ROOT / file).read_text())
    }


def mistakes_of(cell: str, defined: set[str]) -> list[str]:
    """Returns what a cell names that is not there: tests, files, and titles behind a file."""
    named = re.findall(r"`([^`]+)`", cell)
    found = [
        f"no test is called {name}" for name in named if "/" not in name and name not in defined
    ]
    for path, title in re.findall(r'`([^`]*/[^`]*)`(?: "([^"]+)")?', cell):
        if not (ROOT / path).exists():
            found.append(f"there is no {path}")
        elif title and title not in (ROOT / path).read_text():
            found.append(f'{path} has no test "{title}"')
    return found


def main() -> int:
    """Prints what is missing; 1 when anything is."""
    rows = cells()
    if not rows:
        print(f"{TABLE}: names no tests")
        return 1
    defined = defined_tests()
    mistakes = sorted({mistake for cell in rows for mistake in mistakes_of(cell, defined)})
    for mistake in mistakes:
        print(f"{TABLE.relative_to(ROOT)}: {mistake}")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
