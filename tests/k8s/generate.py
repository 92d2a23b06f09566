"""Writes what of the chart follows from something else.

The schema of `config` follows from the server's keys, the table of values in the chart's
README from values.yaml. With --check, says what is stale instead.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import table
import yaml

CHART = table.ROOT / "k8s" / "toolgate"
BEGIN, END = "<!-- values:begin -->\n", "<!-- values:end -->\n"
WIDTH = 110


def schema_text() -> str:
    """values.schema.json with the `config` that the keys give."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    schema["properties"]["config"] = table.config_schema()
    return laid_out(schema, 0) + "\n"


def laid_out(value: Any, depth: int) -> str:
    """JSON with what fits in a line on one."""
    line = json.dumps(value)
    if not isinstance(value, dict | list) or len(line) + 2 * depth <= WIDTH:
        return line
    inner, outer = "  " * (depth + 1), "  " * depth
    if isinstance(value, list):
        parts = [laid_out(item, depth + 1) for item in value]
        return "[\n" + ",\n".join(inner + part for part in parts) + f"\n{outer}]"
    pairs = [f"{json.dumps(name)}: {laid_out(item, depth + 1)}" for name, item in value.items()]
    return "{\n" + ",\n".join(inner + pair for pair in pairs) + f"\n{outer}}}"


def documented_values() -> list[tuple[str, str, str]]:
    """Path, default and meaning of every value that has a comment, in the order of values.yaml."""
    rows: list[tuple[str, str, str]] = []
    path: list[tuple[int, str]] = []
    comment: list[str] = []
    text = (CHART / "values.yaml").read_text()
    values = yaml.safe_load(text)
    for line in text.split("\n\n", 1)[1].splitlines():
        if match := re.match(r" *# (.*)", line):
            comment.append(match[1])
            continue
        if match := re.match(r"( *)([A-Za-z]\w*):", line):
            depth = len(match[1])
            path = [part for part in path if part[0] < depth]
            path.append((depth, match[2]))
            if comment:
                names = [name for _, name in path]
                rows.append((".".join(names), default_of(values, names), " ".join(comment)))
        comment = []
    return rows


def default_of(values: Any, names: list[str]) -> str:
    """A default as one writes it, in one line."""
    for name in names:
        values = values[name]
    text = yaml.safe_dump(values, default_flow_style=True, width=10_000, sort_keys=False).strip()
    return text.removesuffix("\n...").strip()


def readme_text() -> str:
    """The chart's README with the table of values that values.yaml gives."""
    readme = (CHART / "README.md").read_text()
    before, rest = readme.split(BEGIN)
    after = rest.split(END)[1]
    rows = [
        f"| `{path}` | `{default}` | {meaning.replace('|', chr(92) + '|')} |"
        for path, default, meaning in documented_values()
    ]
    head = ["| value | default | what it is |", "|---|---|---|"]
    return before + BEGIN + "\n".join([*head, *rows]) + "\n" + END + after


def outputs() -> dict[Path, str]:
    """Every generated file, as it should be."""
    return {CHART / "values.schema.json": schema_text(), CHART / "README.md": readme_text()}


def main(arguments: list[str]) -> int:
    """Writes, or with --check compares; 1 when something is stale."""
    stale = [path for path, text in outputs().items() if path.read_text() != text]
    for path in stale:
        if "--check" in arguments:
            print(f"{path.relative_to(table.ROOT)} is stale: run `make k8s-generate`")
        else:
            path.write_text(outputs()[path])
            print(f"wrote {path.relative_to(table.ROOT)}")
    return int("--check" in arguments and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
