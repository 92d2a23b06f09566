"""Builds each language's package, and its driver on what was built."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from runner.cases import CONFORMANCE, ROOT

SDKS = CONFORMANCE.parent
DRIVERS = CONFORMANCE / "drivers"
BUILD = ROOT / ".cache" / "conformance"
PACKAGES = ROOT / ".cache" / "packages"
VERSION = "0.1.0"


@dataclass(frozen=True)
class Language:
    """A language, and how to get its driver."""

    name: str
    package: Callable[[Path], None]
    """Builds the package as its registry takes it, into the folder."""
    install: Callable[[Path, Path], list[str]]
    """Installs what the first folder holds in the second, clean one; the driver's command."""


def build(language: Language) -> None:
    """Builds the package anew."""
    folder = PACKAGES / language.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    language.package(folder)
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        if file.suffix in (".whl", ".gz", ".tgz", ".zip", ".jar", ".crate"):
            print(f"  {file.relative_to(ROOT)}  {file.stat().st_size / 1024:,.0f} KiB")


def install(language: Language) -> list[str]:
    """The command of the driver, installed in a clean folder on the package that was built."""
    folder = BUILD / language.name
    folder.mkdir(parents=True, exist_ok=True)
    return language.install(PACKAGES / language.name, folder)


def _run(command: Sequence[str | Path], cwd: Path = ROOT, **environment: str) -> None:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, stdout=subprocess.PIPE, check=False
    )
    if done.returncode != 0:
        sys.stdout.buffer.write(done.stdout)
        raise SystemExit(f"failed: {' '.join(map(str, command))}")


def _package_python(out: Path) -> None:
    _run([sys.executable, "-m", "build", "--no-isolation", "--outdir", out, SDKS / "python"])


def _install_python(packages: Path, folder: Path) -> list[str]:
    shutil.rmtree(folder)
    _run([sys.executable, "-m", "venv", folder])
    (wheel,) = packages.glob("*.whl")
    pip: list[str | Path] = [
        folder / "bin" / "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    _run([*pip, wheel])
    return [str(folder / "bin" / "python"), str(DRIVERS / "python" / "driver.py")]


def _package_typescript(out: Path) -> None:
    source = SDKS / "typescript"
    if not (source / "node_modules").exists():
        _run(["npm", "ci", "--no-audit", "--no-fund"], source)
    _run(["npm", "pack", "--silent", "--pack-destination", out], source)


def _install_typescript(packages: Path, folder: Path) -> list[str]:
    shutil.rmtree(folder)
    shutil.copytree(DRIVERS / "typescript", folder, ignore=shutil.ignore_patterns("node_modules"))
    (tarball,) = packages.glob("*.tgz")
    _run(["npm", "install", "--no-save", "--no-audit", "--no-fund", tarball], folder)
    return ["node", str(folder / "driver.mjs")]


def _package_go(out: Path) -> None:
    _run(["go", "run", "./pack", out], SDKS / "go" / "scripts")


def _install_go(packages: Path, folder: Path) -> list[str]:
    _run([DRIVERS / "go" / "build.sh", packages, folder])
    return [str(folder / "driver")]


def _package_java(out: Path) -> None:
    target = f"-DaltDeploymentRepository=packages::file:{out}"
    _run(["mvn", "-B", "-q", "-DskipTests", "deploy", target], SDKS / "java")


def _install_java(packages: Path, _: Path) -> list[str]:
    _run([DRIVERS / "java" / "build.sh", packages])
    return [str(DRIVERS / "java" / "run.sh")]


def _package_rust(out: Path) -> None:
    crates = ("toolgate-llm", "toolgate-proto", "toolgate-client")
    packages = [part for crate in crates for part in ("--package", crate)]
    # Verifying would compile all a second time; the driver's build is the proof.
    _run(["cargo", "package", "--locked", "--quiet", "--no-verify", "--allow-dirty", *packages])
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    for crate in crates:
        shutil.copy(target / "package" / f"{crate}-{VERSION}.crate", out)


def _install_rust(packages: Path, folder: Path) -> list[str]:
    _run([DRIVERS / "rust" / "build.sh", packages])
    return [str(DRIVERS / "rust" / "target" / "release" / "toolgate-conformance-driver")]


LANGUAGES = (
    Language("python", _package_python, _install_python),
    Language("typescript", _package_typescript, _install_typescript),
    Language("go", _package_go, _install_go),
    Language("java", _package_java, _install_java),
    Language("rust", _package_rust, _install_rust),
)
