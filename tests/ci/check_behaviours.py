"""Every test that docs/behaviours.md names is there."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs" / "behaviours.md"


def named_tests() -> list[str]:
    """The names in the third column, which stand in backquotes and are no paths."""
    rows = [line for line in TABLE.read_text().splitlines() if re.match(r"\| [ABCD]\d", line)]
    cells = [row.split(" | ")[-1] for row in rows]
    names = [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    return [name for name in names if "/" not in name]


def defined_tests() -> set[str]:
    """The names of all functions in Rust and Python files that git knows."""
    command = ["git", "-C", str(ROOT), "ls-files", "*.rs", "*.py"]
    files = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    pattern = re.compile(r"^\s*(?:pub )?(?:async )?(?:fn|def) (\w+)", re.MULTILINE)
    return {
        name
        for file in files
        if (ROOT / file).exists()
        for name in pattern.findall((ROOT / file).read_text())
    }


def main() -> int:
    """Prints what is missing; 1 when anything is."""
    named = named_tests()
    if not named:
        print(f"{TABLE}: names no tests")
        return 1
    missing = sorted(set(named) - defined_tests())
    for name in missing:
        print(f"{TABLE.relative_to(ROOT)}: no test is called {name}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
