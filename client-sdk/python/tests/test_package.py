"""Tests the package's contents, and what importing it brings along."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import toolgate

PROJECT = Path(__file__).resolve().parents[1]
HEAVY = (
    "agents",
    "anthropic",
    "google.genai",
    "langchain",
    "langchain_core",
    "openai",
    "pydantic",
    "pydantic_ai",
)


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


def test_the_core_loads_no_vendors_package() -> None:
    loaded = run(f"import sys, toolgate; print([m for m in {HEAVY} if m in sys.modules])")
    assert loaded == "[]"


@pytest.mark.parametrize(
    ("module", "needs", "extra"),
    [
        ("langchain", "langchain", "langchain"),
        ("openai_agents", "agents", "openai-agents"),
        ("pydantic_ai", "pydantic_ai", "pydantic-ai"),
    ],
)
def test_without_its_extra_an_integration_says_what_to_install(
    module: str, needs: str, extra: str
) -> None:
    code = (
        f"import sys; sys.modules[{needs!r}] = None\n"
        f"try: import toolgate.{module}\n"
        "except ImportError as error: print(error)"
    )
    assert f"pip install 'toolgate[{extra}]'" in run(code)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=PROJECT, capture_output=True, check=True, timeout=60)
    return folder


def sources() -> set[str]:
    package = PROJECT / "src"
    files = (path for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {str(path.relative_to(package)) for path in files}


def test_the_wheel_holds_the_package_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    about = f"toolgate-{toolgate.__version__}.dist-info"
    described = {f"{about}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "licenses/LICENSE")}
    assert names == sources() | described
    assert "toolgate/py.typed" in names
    assert {
        name + "i"
        for name in names
        if name.startswith("toolgate/_gen/v1/") and "_pb2" in name and name.endswith(".py")
    } <= names


def test_the_source_distribution_builds_the_same(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    root = f"toolgate-{toolgate.__version__}"
    with tarfile.open(archive) as opened:
        names = {name.removeprefix(f"{root}/") for name in opened.getnames()}
    beside = {"LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}
    assert names - {".gitignore"} == {f"src/{name}" for name in sources()} | beside


def test_the_wheel_works_without_its_sources(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path)
    first = f"import sys; sys.path.insert(0, {str(tmp_path)!r})"
    assert run(f"{first}; import toolgate; print(toolgate.__file__)").startswith(str(tmp_path))
