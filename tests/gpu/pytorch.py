#!/usr/bin/env python3
"""Measures sentence-transformers in fp16 on the same GPU as `gpu_speed` does, as such JSON lines.

pytorch.py MODEL_DIR [--compile]: with --compile, the network goes through torch.compile first.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable

import torch
from sentence_transformers import SentenceTransformer

# As in encoder-worker/encoder/examples/gpu_speed.rs.
WORDS = ["open", "issue", "find", "file", "note", "mail", "user", "team"]
TOKENS = [14, 50, 200, 256]
TEXTS = [1, 8, 32, 128, 512]
MEASURE_FOR = 0.7


def main() -> None:
    """Loads the model, measures it, prints a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    engine = "torch.compile fp16" if options.compile else "sentence-transformers fp16"
    started = time.perf_counter()
    model = SentenceTransformer(options.model, device="cuda").half().eval()
    if options.compile:
        model[0].auto_model = torch.compile(model[0].auto_model, dynamic=True)
    model.encode(["find the open issues of a repository"])
    load_ms = (time.perf_counter() - started) * 1e3
    print(json.dumps({"engine": engine, "load_ms": load_ms}), flush=True)
    for tokens in TOKENS:
        for texts in TEXTS:
            print(json.dumps({"engine": engine} | measure(model, texts, tokens)), flush=True)


def measure(model: SentenceTransformer, texts: int, tokens: int) -> dict[str, float]:
    """One size: whole calls with tokenization, and the network alone."""
    batch = [text_of(index, tokens) for index in range(texts)]
    features = {name: value.to("cuda") for name, value in model.tokenize(batch).items()}
    if features["input_ids"].shape[1] != tokens:
        raise SystemExit(f"{features['input_ids'].shape[1]} tokens a text, not {tokens}")
    calls = times_of(lambda: model.encode(batch, batch_size=texts, show_progress_bar=False))

    @torch.inference_mode()
    def forward() -> None:
        model(dict(features))["sentence_embedding"].float().cpu()

    alone = times_of(forward)
    return {
        "texts": texts,
        "tokens": tokens,
        "p50_ms": statistics.median(calls) * 1e3,
        "texts_per_s": len(calls) * texts / sum(calls),
        "forward_texts_per_s": len(alone) * texts / sum(alone),
    }


def times_of(work: Callable[[], object]) -> list[float]:
    """Seconds of each call, after some that do not count."""
    for _ in range(5):
        work()
    torch.cuda.synchronize()
    times: list[float] = []
    began = time.perf_counter()
    while time.perf_counter() - began < MEASURE_FOR:
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return times


def text_of(index: int, tokens: int) -> str:
    """A text of that many tokens, the two special ones included."""
    return " ".join(WORDS[(i * 3 + index) % len(WORDS)] for i in range(tokens - 2))


if __name__ == "__main__":
    main()
