"""Telling the model what it can search for: the whole list once, then only what changed.

Announcements go at the end of the history and stay there, so that the cached prefix before them
holds. After a compaction, when they are gone, begin again with `announced=None`.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

Searchable = Mapping[str, str] | Iterable[str]


@dataclass(frozen=True, slots=True)
class Announcement:
    """Announcement to the model in this turn."""

    full: bool
    """True when this is the whole list."""
    added: dict[str, str]
    """Tools to search for that were not announced: a line by name, "" for the name alone."""
    removed: tuple[str, ...]
    """Names that were announced and are neither searchable nor loaded now, in their order."""
    announced: tuple[str, ...]
    """Every name that the model has been told of and that is still there; for the next turn."""

    def text(self) -> str:
        """The text to append to the history; "" when there is nothing to tell."""
        tag = "searchable-tools" if self.full else "searchable-tools-added"
        parts = []
        if self.added:
            parts.append(_tagged(tag, map(_line, self.added.items())))
        if self.removed:
            parts.append(_tagged("searchable-tools-removed", self.removed))
        return "\n".join(parts)


def announce(
    searchable: Searchable,
    *,
    loaded: Collection[str] = (),
    announced: Iterable[str] | None = None,
) -> Announcement:
    """Returns the changes since the last announcement.

    Args:
        searchable: Names of the tools that a search can find, or one line by name, such as a
            `SummaryPool` applied. Loaded ones may be among them.
        loaded: Names of the tools whose definitions the model has: they need no search, and are
            not reported as removed.
        announced: The last announcement's `announced`. None: the model has been told nothing.
    """
    lines = dict(searchable) if isinstance(searchable, Mapping) else dict.fromkeys(searchable, "")
    known = list(dict.fromkeys(announced or ()))
    there = set(lines) | set(loaded)
    told = set(known)
    added = {n: line for n, line in lines.items() if n not in told and n not in loaded}
    removed = tuple(name for name in known if name not in there)
    kept = [name for name in known if name in there]
    return Announcement(announced is None, added, removed, (*kept, *added))


def _tagged(tag: str, lines: Iterable[str]) -> str:
    return "\n".join([f"<{tag}>", *lines, f"</{tag}>"])


def _line(named: tuple[str, str]) -> str:
    name, line = named
    # One line each, whatever a summary holds.
    return f"{name}: {' '.join(line.split())}" if line.strip() else name
