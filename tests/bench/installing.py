"""Installs the baselines into a virtual environment of their own, each group for itself."""

import hashlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
GROUPS = ("onnxruntime", "torch")


class UnavailableError(Exception):
    """Tells why something cannot be measured here, in words for the table's reader."""


def python_of(venv: Path) -> Path:
    """The environment's interpreter."""
    return venv / "bin" / "python"


def install(venv: Path, group: str) -> None:
    """Installs a group of baselines, unless the same was done before."""
    requirements = HERE / f"requirements-{group}.txt"
    stamp = venv / f".{group}"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text(encoding="ascii") == wanted:
        return
    if not python_of(venv).exists():
        run([sys.executable, "-m", "venv", venv])
    print(f"installing {group} ...", file=sys.stderr, flush=True)
    pip: list[str | Path] = [python_of(venv), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    run([*pip, "install", "--no-deps", "--requirement", requirements])
    if group == "torch" and sys.platform == "linux":
        [libraries] = venv.glob("lib/python*/site-packages/torch/lib")
        run([sys.executable, HERE / "torch_without_cuda.py", libraries])
    stamp.write_text(wanted, encoding="ascii")


def write_onnx_models(venv: Path, model_dir: Path, folder: Path) -> None:
    """Exports, optimises and quantises the model that Toolgate reads."""
    print("writing the ONNX models ...", file=sys.stderr, flush=True)
    run([python_of(venv), HERE / "onnx_models.py", model_dir, folder])


def compile_hiding_library(folder: Path) -> Path:
    """A library that, preloaded, hides from a program all that is newer than AVX2."""
    library = folder / "hide_avx512.so"
    source = HERE / "hide_avx512.c"
    run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", library, source])
    run([sys.executable, "-c", ""], {"LD_PRELOAD": str(library)})
    return library


def run(command: Sequence[str | Path], environment: dict[str, str] | None = None) -> str:
    """Runs a command to its end; what it printed, or why it failed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    except OSError as error:
        raise UnavailableError(str(error)) from error
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line and not line.startswith("note:")]
        said = lines[-1] if lines else f"it ended with status {done.returncode}"
        raise UnavailableError(f"{Path(command[0]).name}: {said}")
    return done.stdout
