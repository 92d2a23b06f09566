"""Pages whose tables a script writes."""

from pathlib import Path


def written(document: Path, name: str) -> str:
    """Returns what stands between the marks of that name.

    Raises:
        ValueError: The page has no such marks.
    """
    return _split(document, name)[1]


def rewrite(document: Path, name: str, text: str) -> None:
    """Replaces what stands between the marks of that name.

    Raises:
        ValueError: The page has no such marks; it stays as it is.
    """
    parts = _split(document, name)
    document.write_text(f"{parts[0]}\n{text}\n{parts[2]}", encoding="utf-8")


def _split(document: Path, name: str) -> list[str]:
    """Splits a page behind the mark that begins a part, and before the one that ends it."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    page = document.read_text(encoding="utf-8")
    before, found_begin, rest = page.partition(begin)
    part, found_end, after = rest.partition(end)
    if not (found_begin and found_end):
        raise ValueError(f"{document} has no {begin} ... {end}")
    return [before + begin, part, end + after]
