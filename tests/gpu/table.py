#!/usr/bin/env python3
"""One Markdown table from the JSON lines on standard input (`gpu_speed`, `pytorch.py`)."""

import json
import sys
from typing import Any


def main() -> None:
    """Reads all, then prints: a row for each size, three columns for each engine."""
    lines = [json.loads(line) for line in sys.stdin if line.startswith("{")]
    for line in lines:
        if "load_ms" in line:
            print(f"{line['engine']}: loaded and run once in {line['load_ms']:.0f} ms")
    rows: dict[tuple[int, int], dict[str, dict[str, Any]]] = {}
    for line in lines:
        if "texts" in line:
            rows.setdefault((line["tokens"], line["texts"]), {})[line["engine"]] = line
    engines = list(dict.fromkeys(line["engine"] for line in lines if "texts" in line))
    heads = [f"{engine}: p50 ms | texts/s | network alone, texts/s" for engine in engines]
    print("\n| tokens | texts a call | " + " | ".join(heads) + " |")
    print("|" + "---|" * (2 + 3 * len(engines)))
    for (tokens, texts), found in rows.items():
        cells = " | ".join(cell(found.get(engine)) for engine in engines)
        print(f"| {tokens} | {texts} | {cells} |")


def cell(line: dict[str, Any] | None) -> str:
    """One engine's three numbers for one size."""
    if line is None:
        return "- | - | -"
    p50, whole, alone = line["p50_ms"], line["texts_per_s"], line["forward_texts_per_s"]
    return f"{p50:.2f} | {whole:,.0f} | {alone:,.0f}"


if __name__ == "__main__":
    main()
