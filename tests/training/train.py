#!/usr/bin/env python3
"""Trains the adapter of Toolgate's encoder for finding tools. README.md says how long it takes."""

import argparse
from pathlib import Path

import adapter
import torch
from batches import Sampler, Source
from encoder import Encoder
from splits import ROOT, pack_source, public_sources, read_repository
from tuning import Settings, tune

MODEL_DIR = Path.home() / ".cache/toolgate/models/all-MiniLM-L6-v2"
OUT = ROOT / "encoder-worker/adapters/tools-v1.safetensors"


def main() -> None:
    """Reads, mines, trains, writes."""
    options = arguments().parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    base = adapter.verified(options.model_dir)
    settings = Settings(
        rank=options.rank, first=options.first, steps=options.steps, rate=options.rate
    )
    sources = read_sources(options, settings)
    encoder = Encoder(options.model_dir, settings.rank, settings.first, seed=settings.seed)
    tune(encoder, Sampler(sources, settings.by_request, settings.group, settings.seed), settings)
    adapter.write(encoder, options.out, base, options.scale)
    print(options.out)


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = Settings()
    parser.add_argument("--model-dir", type=Path, default=MODEL_DIR, help="the packaged model")
    parser.add_argument("--public", type=Path, help="folder of public sets, to train on them too")
    parser.add_argument("--fold", type=int, help="keep the servers of this fold, 0 to 4, for tests")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--scale", type=float, default=0.6, help="how much of it is to count")
    parser.add_argument("--rank", type=int, default=default.rank)
    parser.add_argument("--first", type=int, default=default.first, help="lowest adapted layer")
    parser.add_argument("--steps", type=int, default=default.steps)
    parser.add_argument("--rate", type=float, default=default.rate, help="learning rate")
    parser.add_argument("--threads", type=int, help="one is faster than two on a busy machine")
    return parser


def read_sources(options: argparse.Namespace, settings: Settings) -> list[tuple[Source, float]]:
    """Packs, and public pairs if there are, with their parts of a batch."""
    untuned = Encoder(options.model_dir)
    packs = pack_source(read_repository(), options.fold, untuned)
    if options.public is None:
        return [(packs, 1.0)]
    public = public_sources(options.public, untuned)
    share = settings.public / len(public)
    return [(packs, 1 - settings.public), *((source, share) for source in public)]


if __name__ == "__main__":
    main()
