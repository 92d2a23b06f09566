"""Reads a server's metrics of a run: stages of Route, batches, time in the encoder."""

import re
from dataclasses import dataclass

from toolgate_process import ToolgateProcess

STAGES = ["admit", "embed", "gate", "search", "promote"]
_SAMPLE = re.compile(r"^(?P<name>\w+(?:\{[^}]*\})?) (?P<value>\S+)")


@dataclass(frozen=True)
class Reading:
    """All counters of a server at one moment, by name and labels."""

    samples: dict[str, float]

    @classmethod
    def of(cls, server: ToolgateProcess) -> "Reading":
        """Reads them now."""
        lines = server.get("/metrics")[1].splitlines()
        matches = filter(None, map(_SAMPLE.match, lines))
        return cls({match["name"]: float(match["value"]) for match in matches})

    def since(self, before: "Reading") -> "Reading":
        """Returns the counts in between."""
        earlier = before.samples
        return Reading({name: now - earlier.get(name, 0) for name, now in self.samples.items()})

    def mean(self, histogram: str, labels: str = "") -> float:
        """Of all that was observed; 0 when nothing was."""
        count = self.samples[f"{histogram}_count{labels}"]
        return self.samples[f"{histogram}_sum{labels}"] / count if count else 0.0

    def stage_seconds(self, stage: str) -> float:
        """The mean of a stage of Route."""
        return self.mean("toolgate_route_stage_duration_seconds", f'{{stage="{stage}"}}')

    def cells(self, seconds: float) -> list[str]:
        """One line of a table below [`HEADINGS`] for a run of so many seconds."""
        stages = [f"{self.stage_seconds(stage) * 1e3:.3f}" for stage in STAGES]
        batches = [self.mean(f"toolgate_embed_batch_{unit}") for unit in ("texts", "tokens")]
        busy = self.samples["toolgate_embed_device_busy_seconds_total"] / seconds
        return [*stages, *(f"{mean:.1f}" for mean in batches), f"{busy:.2f}"]


HEADINGS = [*(f"{stage} ms" for stage in STAGES), "batch texts", "batch tokens", "encoding"]
"""Means; "encoding" is the share of the time in which the encoder was at work."""
