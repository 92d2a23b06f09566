"""`make install` and `make run` build quietly. A cargo of the test's own says what cargo says."""

import os
import subprocess
from pathlib import Path

import pytest
from waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[2]

# Where standard error is no terminal, cargo's bar ends with a carriage return and the next line
# follows it.
CARGO = r"""#!/usr/bin/env bash
set -euo pipefail
[[ " $* " == *" --profile local "* ]] || { echo "error: not the profile local: $*" >&2; exit 3; }
[[ " $* " == *" --locked "* ]] || { echo "error: not locked: $*" >&2; exit 3; }
for step in {1..50}; do
    printf '   Compiling crate-%s v1.0.0\n' "$step" >&2
    printf '    Building [====>      ] %s/50: crate-%s\r' "$step" "$step" >&2
done
if [[ -n ${BROKEN:-} ]]; then
    printf 'error[E0308]: mismatched types\n  --> server/src/main.rs:7:5\n' >&2
    exit 101
fi
mkdir -p "$CARGO_TARGET_DIR/local"
printf '#!/bin/sh\necho toolgate 0.0.0\n' >"$CARGO_TARGET_DIR/local/toolgate"
chmod +x "$CARGO_TARGET_DIR/local/toolgate"
"""


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """The environment of a shell whose cargo is `CARGO`."""
    cargo = tmp_path / "cargo" / "cargo"
    cargo.parent.mkdir()
    cargo.write_text(CARGO)
    cargo.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{cargo.parent}:{os.environ['PATH']}",
        "CARGO_TARGET_DIR": str(tmp_path / "target"),
        "PREFIX": str(tmp_path / "prefix"),
    }


def install(machine: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / "tests/demo/install.sh"],
        env=machine,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_it_is_installed_without_a_line_for_each_crate(machine: dict[str, str]) -> None:
    done = install(machine)
    assert done.returncode == 0, done.stdout
    assert "Compiling" not in done.stdout
    assert "Building [" not in done.stdout
    installed = Path(machine["PREFIX"]) / "bin" / "toolgate"
    assert os.access(installed, os.X_OK)
    assert f"{installed} is installed: toolgate 0.0.0" in done.stdout


def test_what_cargo_says_is_shown_when_it_fails(machine: dict[str, str]) -> None:
    done = install({**machine, "BROKEN": "yes"})
    assert done.returncode == 1, done.stdout
    assert "error[E0308]: mismatched types\n  --> server/src/main.rs:7:5" in done.stdout
    assert "Compiling" not in done.stdout
    assert "The build failed." in done.stdout
    assert not (Path(machine["PREFIX"]) / "bin" / "toolgate").exists()
