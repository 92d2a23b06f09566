"""Training the additions: contrastive, both ways, over batches of tools that are mistaken."""

import math
import sys
import time
from dataclasses import dataclass

import torch
from batches import Sampler, may_serve
from encoder import Encoder
from torch import nn


@dataclass(frozen=True)
class Settings:
    """Values chosen on one fold; docs/encoder-card.md has the figures."""

    rank: int = 16
    first: int = 3  # the lowest layer with additions
    steps: int = 120
    batch: int = 48
    group: int = 4
    rate: float = 1e-3
    sharpness: float = 20.0  # what cosines are multiplied by; one over the temperature
    by_request: float = 0.3  # how often a request is to find another one of its tool
    public: float = 0.3  # the part of public pairs in a batch
    seed: int = 1


def tune(encoder: Encoder, sampler: Sampler, settings: Settings) -> None:
    """Runs all steps; the learning rate rises over the first tenth, and falls to nothing."""
    encoder.unmerge()
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=settings.rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: pace(step, settings.steps))
    started, total = time.monotonic(), 0.0
    for step in range(1, settings.steps + 1):
        loss = loss_of(encoder, sampler, settings)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        total += loss.item()
        if step % 20 == 0:
            spent = time.monotonic() - started
            print(f"step {step}: loss {total / 20:.3f}, {spent:.0f} s", file=sys.stderr)
            total = 0.0
    encoder.set_scale(1.0)


def pace(step: int, steps: int) -> float:
    """The part of the learning rate at a step."""
    rising = max(1, steps // 10)
    return (step + 1) / rising if step < rising else (steps - step) / (steps - rising)


def loss_of(encoder: Encoder, sampler: Sampler, settings: Settings) -> torch.Tensor:
    """InfoNCE from requests to tools and back; tools that may serve as well don't count."""
    rows = sampler.batch(settings.batch)
    vectors = encoder.forward([row.request.text for row in rows] + [row.positive for row in rows])
    requests, tools = vectors.split(len(rows))
    hidden = torch.tensor(may_serve(rows), device=vectors.device)
    scores = (settings.sharpness * requests @ tools.T).masked_fill(hidden, -math.inf)
    own = torch.arange(len(rows), device=vectors.device)
    there = nn.functional.cross_entropy(scores, own)
    back = nn.functional.cross_entropy(scores.T, own)
    return (there + back) / 2
