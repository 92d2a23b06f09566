#!/usr/bin/env python3
"""Regenerates src/toolgate/_gen from proto/toolgate/v1; `--check` only says whether it is current.

The generator's version decides which runtimes users may have: grpcio-tools 1.76 writes for grpcio
1.76 and protobuf 6.31 and newer. Raise it only together with the bounds in pyproject.toml.
"""

import argparse
import difflib
import re
import sys
import tempfile
from pathlib import Path

import grpc_tools
from grpc_tools import protoc

PYTHON_SDK = Path(__file__).resolve().parent.parent
PROTO = PYTHON_SDK.parent.parent / "proto"
COMMITTED = PYTHON_SDK / "src" / "toolgate" / "_gen"

INIT_TEXT = '"""Generated from proto/; regenerate with `make proto`, never edit."""\n'
# protoc imports by the proto package's path, which would clash with the package `toolgate` itself.
GENERATED_IMPORT = re.compile(r"^from toolgate\.v1 import ", re.MULTILINE)


def main() -> int:
    """Generates or checks; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail on a difference")
    check: bool = parser.parse_args().check
    with tempfile.TemporaryDirectory() as folder:
        fresh = _generate(Path(folder))
    if check:
        return _compare(fresh)
    _write(fresh)
    return 0


def _generate(folder: Path) -> dict[Path, str]:
    """Runs protoc into an empty folder; returns the texts by path below `_gen`."""
    sources = sorted(str(path) for path in (PROTO / "toolgate" / "v1").glob("*.proto"))
    tools = Path(sys.executable).parent
    arguments = [
        "protoc",
        f"-I{PROTO}",
        f"-I{Path(grpc_tools.__file__).parent / '_proto'}",
        f"--plugin=protoc-gen-mypy={tools / 'protoc-gen-mypy'}",
        f"--plugin=protoc-gen-mypy_grpc={tools / 'protoc-gen-mypy_grpc'}",
        f"--python_out={folder}",
        f"--grpc_python_out={folder}",
        f"--mypy_out=quiet:{folder}",
        f"--mypy_grpc_out=quiet:{folder}",
        *sources,
    ]
    if protoc.main(arguments) != 0:
        raise SystemExit("protoc failed")
    texts = {Path("__init__.py"): INIT_TEXT, Path("v1/__init__.py"): INIT_TEXT}
    for path in sorted((folder / "toolgate" / "v1").iterdir()):
        text = path.read_text(encoding="utf-8")
        if not _is_empty_grpc_module(path.name, text):
            texts[Path("v1") / path.name] = GENERATED_IMPORT.sub(
                "from toolgate._gen.v1 import ", text
            )
    return texts


def _is_empty_grpc_module(name: str, text: str) -> bool:
    """True for the gRPC modules of proto files that define no service."""
    stem = name.partition(".")[0]
    return stem.endswith("_grpc") and "Stub" not in text


def _compare(fresh: dict[Path, str]) -> int:
    committed = {
        path.relative_to(COMMITTED): path.read_text(encoding="utf-8")
        for path in COMMITTED.rglob("*.py*")
        if path.suffix in {".py", ".pyi"}
    }
    stale = sorted(
        path for path in fresh.keys() | committed.keys() if fresh.get(path) != committed.get(path)
    )
    for path in stale:
        old = committed.get(path, "").splitlines(keepends=True)
        new = fresh.get(path, "").splitlines(keepends=True)
        difference = list(difflib.unified_diff(old, new, f"committed/{path}", f"fresh/{path}"))
        sys.stderr.writelines(difference[:20])
    if stale:
        print("src/toolgate/_gen is not current: run `make proto`", file=sys.stderr)
        return 1
    print(f"{len(fresh)} generated files are current")
    return 0


def _write(fresh: dict[Path, str]) -> None:
    for path in COMMITTED.rglob("*.py*"):
        if path.suffix in {".py", ".pyi"}:
            path.unlink()
    for relative, text in fresh.items():
        target = COMMITTED / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    print(f"wrote {len(fresh)} files")


if __name__ == "__main__":
    sys.exit(main())
