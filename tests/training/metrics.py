"""Figures with intervals: hits, recall, and how well the best overlap tells "no tool" apart."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from labelled import Request
from ranking import best
from scipy.stats import rankdata
from tools import Catalog
from words import Matrix

DEPTHS = (1, 5, 10)
RESAMPLES = 1000


def found_at(
    scores: Matrix, catalog: Catalog, requests: Sequence[Request], is_hit: bool = False
) -> Matrix:
    """For each request and depth the share of its tools that were found, or whether any was."""
    order = best(scores, max(DEPTHS))
    table = np.zeros((len(requests), len(DEPTHS)), dtype=np.float32)
    for i, request in enumerate(requests):
        wanted = {catalog.position[key] for key in request.tools}
        for j, depth in enumerate(DEPTHS):
            share = len(wanted.intersection(order[i, :depth].tolist())) / len(wanted)
            table[i, j] = float(share > 0) if is_hit else share
    return table


def interval(values: Matrix, seed: int = 1) -> tuple[float, float]:
    """95%, percentile bootstrap over requests."""
    draws = np.random.default_rng(seed).integers(0, len(values), (RESAMPLES, len(values)))
    low, high = np.percentile(values[draws].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def area(wanted: Matrix, unwanted: Matrix) -> float:
    """Returns how often one of the first has the greater value (Mann and Whitney)."""
    ranks: Any = rankdata(np.concatenate([wanted, unwanted]))
    first = len(wanted)
    above = ranks[:first].sum() - first * (first + 1) / 2
    return float(above / (first * len(unwanted)))


def line(table: Matrix) -> str:
    """Means at 1 / 5 / 10, and the interval at 5."""
    low, high = interval(table[:, 1])
    means = " / ".join(short(value) for value in table.mean(axis=0))
    return f"{means} [{short(low)}, {short(high)}]"


def short(value: float) -> str:
    """`.532`."""
    return f"{value:.3f}".removeprefix("0") if value >= 0 else f"-{-value:.3f}"
