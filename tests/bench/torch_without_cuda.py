"""Lets a PyTorch wheel made for CUDA run on the CPU without gigabytes of CUDA libraries.

Such a wheel links CUDA's libraries, so `import torch` fails without them, although nothing calls
them as long as nothing asks for a GPU. This puts one small library in the place of all that are
missing. Each of its functions answers 100, CUDA's number for "there is no device", and PyTorch
goes on with its CPU code, which is the same in every wheel. Where nothing is missing, nothing is
done.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

STAND_IN = "libno_cuda.so"
NAMES_OF_ERRORS = {"cudaGetErrorName", "cudaGetErrorString"}
PREFIXES = re.compile("cu|nccl|nv|__cuda")


def main() -> None:
    """Prepares the `torch/lib` folder that the command line names."""
    folder = Path(sys.argv[1])
    _remove_earlier(folder)
    missing = _missing_libraries(folder)
    if missing:
        _compile(folder / STAND_IN, _unresolved_symbols(folder))
    for name in missing:
        (folder / name).symlink_to(STAND_IN)


def _remove_earlier(folder: Path) -> None:
    for path in folder.iterdir():
        if path.name == STAND_IN or (path.is_symlink() and path.readlink() == Path(STAND_IN)):
            path.unlink()


def _libraries(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("*.so*")) if not path.is_symlink()]


def _missing_libraries(folder: Path) -> set[str]:
    """The names that the dynamic linker does not find; libcuda itself is the driver's."""
    lines = (line for path in _libraries(folder) for line in _output("ldd", path))
    return {line.split()[0] for line in lines if line.endswith("=> not found")}


def _unresolved_symbols(folder: Path) -> dict[str, str]:
    """Lists the libraries' needs of CUDA, each with its version; empty where it has none."""
    wanted = dict(_symbols("--undefined-only", folder))
    given = {name for name, _ in _symbols("--defined-only", folder)}
    return {name: wanted[name] for name in wanted.keys() - given if PREFIXES.match(name)}


def _symbols(which: str, folder: Path) -> Iterator[tuple[str, str]]:
    for path in _libraries(folder):
        for line in _output("nm", "--dynamic", which, path):
            name, _, version = line.split()[-1].partition("@")
            yield name, version.lstrip("@")


def _compile(library: Path, symbols: dict[str, str]) -> None:
    source = "".join(map(_function, sorted(symbols)))
    with tempfile.NamedTemporaryFile("w", suffix=".map") as script:
        script.write(_version_script(symbols))
        script.flush()
        linking = ["-shared", "-fPIC", f"-Wl,--version-script={script.name}", "-o", str(library)]
        command = ["cc", "-w", "-fno-builtin", "-x", "c", "-", *linking]
        subprocess.run(command, input=source, text=True, check=True)


def _function(name: str) -> str:
    if name in NAMES_OF_ERRORS:
        return f'const char *{name}(void) {{ return "no CUDA here"; }}\n'
    return f"int {name}(void) {{ return 100; }}\n"


def _version_script(symbols: dict[str, str]) -> str:
    """The linker insists on a symbol's version where the library that wants it names one."""
    nodes = []
    for version in sorted(set(symbols.values()) - {""}):
        names = sorted(name for name, its in symbols.items() if its == version)
        nodes.append(f"{version} {{ global: {'; '.join(names)}; }};\n")
    return "".join(nodes)


def _output(*command: str | Path) -> list[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()


if __name__ == "__main__":
    main()
