"""A promise of the service, and what was measured of it."""

from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """One measured thing against what it is held to."""

    what: str
    promised: str
    measured: str
    held: bool
    why: str = ""
    """Where it is short: by how much, and why."""


@dataclass(frozen=True)
class Series:
    """A line of a plot, by seconds."""

    name: str
    values: list[float]


@dataclass(frozen=True)
class Plot:
    """Lines over the seconds of a measurement."""

    file: str
    title: str
    unit: str
    series: list[Series]
    marks: dict[str, float] = field(default_factory=dict)
    """Events, and the second of each."""

    def draw(self, folder: Path) -> None:
        # Only where plots are asked for: the figures need no library.
        import_module("matplotlib").rcParams["svg.hashsalt"] = self.file
        canvas = import_module("matplotlib.figure").Figure(figsize=(9, 3.2), layout="constrained")
        axes = canvas.subplots()
        for series in self.series:
            axes.plot(range(len(series.values)), series.values, label=series.name, linewidth=1.5)
        for what, second in self.marks.items():
            axes.axvline(second, color="grey", linestyle=":", linewidth=1)
            axes.annotate(
                what, (second, 1), xycoords=("data", "axes fraction"), fontsize=8, va="top"
            )
        axes.set(title=self.title, xlabel="seconds", ylabel=self.unit, ylim=(0, None))
        axes.legend(fontsize=8)
        axes.grid(alpha=0.3)
        folder.mkdir(parents=True, exist_ok=True)
        canvas.savefig(folder / self.file, metadata={"Date": None})


@dataclass(frozen=True)
class Promise:
    """A row of the table, with what it was measured by."""

    title: str
    how: str
    figures: list[Figure]
    plots: list[Plot] = field(default_factory=list)
    command: str = ""
    """The command that measures it again."""
