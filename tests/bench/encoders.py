#!/usr/bin/env python3
"""Toolgate's encoder beside the engines that Python users have, on the same texts, as a table.

Every engine runs in a process of its own. A round runs each of them once, one after the other, so
that what else the machine does hits all alike; the table has the median of the rounds. Token ids
are made before the clock starts. README.md says how to read the figures.
"""

import argparse
import json
import math
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import installing
import workloads
from installing import HERE, UnavailableError

CACHE = HERE.parents[1] / ".cache"
MODEL = "all-MiniLM-L6-v2"
BASELINE = "onnxruntime int8 per channel"
LATENCIES = {"short": "short p50 ms", "medium": "medium", "long": "long"}
THROUGHPUTS = {"mixed_b32": "mixed b32 texts/s", "short_b32": "short b32 texts/s"}
# Libraries that have a switch for the instructions they may use.
SWITCHES = {
    "TOOLGATE_CPU": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
}


@dataclass(frozen=True)
class Engine:
    """One row's program; `group` says what must be installed for it, if anything."""

    name: str
    format: str
    group: str = ""


ENGINES = [
    Engine("sentence-transformers fp32", "float32", "torch"),
    Engine("sentence-transformers bf16", "bfloat16", "torch"),
    Engine("onnxruntime fp32", "fp32", "onnxruntime"),
    Engine("onnxruntime int8 per channel", "int8-per-channel", "onnxruntime"),
    Engine("onnxruntime int8 per tensor", "int8-per-tensor", "onnxruntime"),
    Engine("Toolgate fp32", "f32"),
    Engine("Toolgate bf16", "bf16"),
    Engine("Toolgate int8", "int8"),
]


@dataclass
class Row:
    """One engine with a number of threads, and what it reported in each round."""

    engine: Engine
    threads: int
    reports: list[dict[str, Any]] = field(default_factory=list)

    def figure(self, *keys: str) -> float:
        """The median of the rounds."""
        return statistics.median(self.figures(*keys))

    def figures(self, *keys: str) -> list[float]:
        """One figure of each round."""
        return [_at(report, keys) for report in self.reports]

    def speeds(self) -> list[float]:
        """The five figures that are compared, each so that more is faster."""
        latencies = [1 / self.figure("p50_ms", name) for name in LATENCIES]
        return latencies + [self.figure("texts_per_s", name) for name in THROUGHPUTS]


def main() -> None:
    """Installs, measures, prints."""
    bench = Bench(_arguments())
    bench.install()
    with tempfile.TemporaryDirectory() as folder:
        bench.measure(Path(folder))
    bench.print()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--toolgate", type=Path, help="the built example encoder_speed")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3, help="of all engines (default 3)")
    parser.add_argument("--seconds", type=float, default=0.5, help="of each workload (default 0.5)")
    parser.add_argument("--cpu", choices=["avx2"], help="use no newer instructions than these")
    parser.add_argument("--engines", default="", help="only those whose names contain this text")
    return parser.parse_args()


class Bench:
    """One run of the comparison."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._model_dir = _model_dir()
        self._venv = CACHE / "bench-venv"
        self._onnx = CACHE / "bench-onnx"
        self._missing: dict[str, str] = {}
        self._notes: list[str] = []
        self._hiding: Path | None = None
        self._rows: list[Row] = []

    def install(self) -> None:
        """Makes ready what can be made ready; notes why the rest cannot."""
        engines = [e for e in ENGINES if self._arguments.engines.lower() in e.name.lower()]
        for group in sorted({engine.group for engine in engines}):
            self._try([e for e in engines if e.group == group], partial(self._prepare, group))
        if self._arguments.cpu:
            self._limit()
        present = [engine for engine in engines if engine.name not in self._missing]
        self._rows = [Row(e, threads) for threads in self._arguments.threads for e in present]

    def _prepare(self, group: str) -> None:
        if not group:
            if not self._arguments.toolgate:
                raise UnavailableError("--toolgate does not name the built example encoder_speed")
            return
        installing.install(self._venv, group)
        if group == "onnxruntime":
            installing.write_onnx_models(self._venv, self._model_dir, self._onnx)

    def _limit(self) -> None:
        try:
            self._hiding = installing.compile_hiding_library(CACHE)
            self._notes.append(
                "AVX2 at most: Toolgate by TOOLGATE_CPU, the others by a trap on CPUID."
            )
        except UnavailableError:
            self._notes.append(
                "AVX2 at most, by switches of their own, for Toolgate and PyTorch. **onnxruntime "
                "has none, and this CPU or kernel cannot trap CPUID: it uses all instructions.**"
            )

    def measure(self, folder: Path) -> None:
        """Runs every engine once a round."""
        path = folder / "workloads.jsonl"
        lines = [json.dumps(workload) + "\n" for workload in workloads.workloads()]
        path.write_text("".join(lines), encoding="utf-8")
        for number in range(self._arguments.rounds):
            print(f"round {number + 1} of {self._arguments.rounds}", file=sys.stderr, flush=True)
            for row in self._rows:
                if row.engine.name not in self._missing:
                    self._try([row.engine], partial(self._run, row, path))
        self._rows = [row for row in self._rows if row.engine.name not in self._missing]

    def _run(self, row: Row, path: Path) -> None:
        flags = {"workloads": path, "threads": row.threads, "seconds": self._arguments.seconds}
        flags["format"] = row.engine.format
        words = [word for name, value in flags.items() for word in (f"--{name}", str(value))]
        output = installing.run([*self._program(row.engine), *words], self._environment(row))
        row.reports.append(json.loads(output.splitlines()[-1]))

    def _program(self, engine: Engine) -> list[str | Path]:
        if not engine.group:
            return [self._arguments.toolgate.resolve()]
        script = HERE / f"engine_{engine.group}.py"
        return [installing.python_of(self._venv), script, "--onnx", self._onnx]

    def _environment(self, row: Row) -> dict[str, str]:
        environment = dict(os.environ, TOOLGATE_MODEL_DIR=str(self._model_dir))
        environment |= {"OMP_NUM_THREADS": str(row.threads), "TOKENIZERS_PARALLELISM": "false"}
        environment |= {"HF_HUB_OFFLINE": "1", "RUST_BACKTRACE": "0"}
        if self._arguments.cpu:
            environment |= SWITCHES
            if self._hiding and row.engine.group:
                environment["LD_PRELOAD"] = str(self._hiding)
        return environment

    def _try(self, engines: Sequence[Engine], action: Callable[[], None]) -> None:
        try:
            action()
        except UnavailableError as error:
            self._missing |= dict.fromkeys((engine.name for engine in engines), str(error))

    def print(self) -> None:
        """The tables, what is missing, and what to know of this run."""
        print(f"{MODEL}; {_cpu()}, {os.cpu_count()} cores; ", end="")
        print(
            f"median of {self._arguments.rounds} rounds; token ids ready before the clock starts\n"
        )
        _print_table(list(self._main_table()))
        _print_table(list(self._second_table()))
        for name, reason in self._missing.items():
            print(f"- not measured: {name}: {reason}")
        for note in [*self._notes, *self._warnings()]:
            print(f"- {note}")

    def _main_table(self) -> Iterator[list[str]]:
        headings = ["engine", "threads", *LATENCIES.values(), *THROUGHPUTS.values()]
        yield [*headings, "cosine min", "RSS MiB", f"times as fast as {BASELINE}"]
        for row in self._rows:
            yield [
                row.engine.name,
                str(row.threads),
                *(f"{row.figure('p50_ms', name):.2f}" for name in LATENCIES),
                *(f"{row.figure('texts_per_s', name):,.0f}" for name in THROUGHPUTS),
                f"{row.figure('cosine_min'):.5f}",
                f"{row.figure('rss_mib'):,.0f}",
                self._ratio(row),
            ]

    def _ratio(self, row: Row) -> str:
        """The geometric mean over the five speeds, and each."""
        for other in self._rows:
            if other.engine.name == BASELINE and other.threads == row.threads:
                ratios = [a / b for a, b in zip(row.speeds(), other.speeds(), strict=True)]
                each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
                return f"{statistics.geometric_mean(ratios):.2f} ({each})"
        return ""

    def _second_table(self) -> Iterator[list[str]]:
        yield ["engine", "threads", "what ran", "load ms", "tokenizing a short text, us", "spread"]
        for row in self._rows:
            yield [
                row.engine.name,
                str(row.threads),
                row.reports[0]["engine"],
                f"{row.figure('load_ms'):,.0f}",
                f"{row.figure('tokenize_us'):.1f}",
                f"{_spread(row):.0%}",
            ]

    def _warnings(self) -> Iterator[str]:
        reports = [report for row in self._rows for report in row.reports]
        tokens = {json.dumps(report["tokens"], sort_keys=True) for report in reports}
        if len(tokens) > 1:
            yield f"**The engines did not see the same tokens: {'; '.join(sorted(tokens))}**"
        yield "spread: of a row's five speeds the one that varies most, (most - least) / median"


def _spread(row: Row) -> float:
    """Returns how far the rounds lie apart, for the figure where they do most."""
    keys = [("p50_ms", name) for name in LATENCIES]
    keys += [("texts_per_s", name) for name in THROUGHPUTS]
    figures = [row.figures(*key) for key in keys]
    return max((max(each) - min(each)) / statistics.median(each) for each in figures)


def _at(report: dict[str, Any], keys: Sequence[str]) -> float:
    value: Any = report
    for key in keys:
        value = value[key]
    return math.nan if value is None else float(value)


def _model_dir() -> Path:
    """Where `toolgate model fetch` puts the model."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    named = os.environ.get("TOOLGATE_MODEL_DIR")
    folder = Path(named) if named else cache / "toolgate" / "models" / MODEL
    if not (folder / "model.safetensors").exists():
        sys.exit(f"{folder} holds no model: run `toolgate model fetch`, or set TOOLGATE_MODEL_DIR")
    return folder


def _cpu() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _print_table(rows: list[list[str]]) -> None:
    for number, row in enumerate(rows):
        print(f"| {' | '.join(row)} |")
        if number == 0:
            print("|---" * len(row) + "|")
    print(flush=True)


if __name__ == "__main__":
    main()
