"""The rules of a provider's prompt cache, as the binary that TOOLGATE_BIN names has them
(`toolgate bench prices`)."""

import json
import os
import subprocess
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Rates:
    """The rules for the prompts of a model."""

    write: float
    """The price of a token that is written to the cache, in tokens that are neither read nor
    written."""
    read: float
    """The price of a token that is read from the cache."""
    least: int
    """The least length of a prefix that is cached, in tokens."""
    step: int
    """The tokens by which longer prefixes are told apart."""

    @staticmethod
    @cache
    def of(api: str, model: str) -> "Rates":
        """Returns the rules for a model of an API, by the API's name in `RenderOptions`."""
        binary = os.environ["TOOLGATE_BIN"]
        command = [binary, "bench", "prices", "--api", api, "--model", model, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        (rules,) = json.loads(done.stdout)
        return Rates(rules["write"], rules["read"], rules["least"], rules["step"])

    # The requests that are priced here were really sent. What they share is counted in their bytes,
    # and what that costs is reckoned apart from the binary, so that a mistake there does not
    # confirm itself.
    def cached(self, shared: int) -> int:
        """The tokens that the cache serves of those that an earlier request shares."""
        return 0 if shared < self.least else shared - (shared - self.least) % self.step

    def price(self, tokens: int, shared: int) -> float:
        """The price of a prompt."""
        if tokens < self.least:
            return tokens
        cached = self.cached(shared)
        return cached * self.read + (tokens - cached) * self.write
