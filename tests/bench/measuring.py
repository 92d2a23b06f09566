"""Parts that every Python engine of the comparison shares: workloads, clock and report.

The counterpart of encoder-worker/encoder/examples/encoder_speed.rs: the same flags, the same
workloads, the same way to time them and the same report.
"""

import argparse
import importlib
import itertools
import json
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

numpy: Any = importlib.import_module("numpy")
tokenizers: Any = importlib.import_module("tokenizers")

WARM_UP_CALLS = 2
LEAST_CALLS = 3
TOKENIZER_ROUNDS = 50


class Engine(Protocol):
    """A loaded model."""

    @property
    def name(self) -> str:
        """Says what is measured, with its version."""

    def prepare(self, ids: Any, mask: Any) -> Any:
        """Turns a padded batch into what `embed` takes; not timed."""

    def embed(self, batch: Any) -> Any:
        """Pooled and normalised, one row per text."""


@dataclass
class Report:
    """The report that tests/bench/encoders.py reads."""

    engine: str
    load_ms: float
    tokens: dict[str, int] = field(default_factory=dict)
    p50_ms: dict[str, float] = field(default_factory=dict)
    texts_per_s: dict[str, float] = field(default_factory=dict)
    tokenize_us: float = math.nan
    cosine_min: float = math.nan
    rss_mib: float = math.nan


def run(load: Callable[[Path, argparse.Namespace], Engine]) -> None:
    """Measures one engine and prints its report."""
    arguments = _arguments()
    model_dir = Path(os.environ["TOOLGATE_MODEL_DIR"])
    started = time.perf_counter()
    tokenizer = _tokenizer(model_dir)
    engine = load(model_dir, arguments)
    report = Report(engine.name, (time.perf_counter() - started) * 1e3)
    for line in arguments.workloads.read_text(encoding="utf-8").splitlines():
        _measure(engine, tokenizer, json.loads(line), arguments.seconds, report)
    report.rss_mib = _resident_mib()
    print(json.dumps(asdict(report)))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workloads", type=Path, required=True)
    parser.add_argument("--format", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--onnx", type=Path, help="the folder of the ONNX models")
    return parser.parse_args()


def _tokenizer(model_dir: Path) -> Any:
    tokenizer = tokenizers.Tokenizer.from_file(str(model_dir / "tokenizer.json"))
    settings = json.loads((model_dir / "sentence_bert_config.json").read_text(encoding="utf-8"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(settings["max_seq_length"])
    return tokenizer


def _measure(
    engine: Engine, tokenizer: Any, workload: dict[str, Any], seconds: float, report: Report
) -> None:
    name, size, texts = workload["name"], workload["batch"], workload["texts"]
    ids = _tokenize(tokenizer, texts)
    report.tokens[name] = sum(map(len, ids))
    batches = [engine.prepare(*_pad(chunk)) for chunk in _chunks(ids, size)]
    if expected := workload.get("embeddings"):
        report.cosine_min = _least_cosine(engine, batches, expected)
        return
    median = _median_seconds(engine, batches, seconds)
    if size == 1:
        report.p50_ms[name] = median * 1e3
    else:
        report.texts_per_s[name] = size / median
    if name == "short":
        report.tokenize_us = _time_tokenizer(tokenizer, texts)


def _tokenize(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    return [tokenizer.encode(text).ids for text in texts]


def _chunks(ids: list[list[int]], size: int) -> Iterator[list[list[int]]]:
    return (ids[start : start + size] for start in range(0, len(ids), size))


def _pad(texts: list[list[int]]) -> tuple[Any, Any]:
    """To the longest of the batch; the padding token of BERT's vocabulary is 0."""
    shape = (len(texts), max(map(len, texts)))
    ids, mask = numpy.zeros(shape, numpy.int64), numpy.zeros(shape, numpy.int64)
    for row, text in enumerate(texts):
        ids[row, : len(text)] = text
        mask[row, : len(text)] = 1
    return ids, mask


def _median_seconds(engine: Engine, batches: list[Any], limit: float) -> float:
    endless = itertools.cycle(batches)
    for _ in range(WARM_UP_CALLS):
        engine.embed(next(endless))
    samples: list[float] = []
    started = time.perf_counter()
    while len(samples) < LEAST_CALLS or time.perf_counter() - started < limit:
        batch = next(endless)
        call = time.perf_counter()
        engine.embed(batch)
        samples.append(time.perf_counter() - call)
    return statistics.median(samples)


def _least_cosine(engine: Engine, batches: list[Any], expected: list[list[float]]) -> float:
    found = [numpy.asarray(engine.embed(batch), numpy.float64)[0] for batch in batches]
    return min(
        _cosine(vector, numpy.array(other)) for vector, other in zip(found, expected, strict=True)
    )


def _cosine(a: Any, b: Any) -> float:
    return float(a @ b / math.sqrt((a @ a) * (b @ b)))


def _time_tokenizer(tokenizer: Any, texts: Sequence[str]) -> float:
    samples = []
    for _ in range(TOKENIZER_ROUNDS):
        started = time.perf_counter()
        _tokenize(tokenizer, texts)
        samples.append((time.perf_counter() - started) * 1e6 / len(texts))
    return statistics.median(samples)


def _resident_mib() -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    [line] = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) / 1024
