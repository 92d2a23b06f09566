"""Pages whose tables a script writes."""

from pathlib import Path


def rewrite(document: Path, name: str, text: str) -> None:
    """Replaces what stands between the marks of that name.

    Raises:
        ValueError: The page has no such marks; it stays as it is.
    """
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    page = document.read_text(encoding="utf-8")
    before, found_begin, rest = page.partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found_begin and found_end):
        raise ValueError(f"{document} has no {begin} ... {end}")
    document.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
