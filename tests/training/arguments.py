"""Requests as the product embeds them: what only an argument would hold is left out or typed."""

import functools
import re
from itertools import takewhile
from pathlib import Path

INTENT = Path(__file__).parents[2] / "server/routing/src/router/intent"
QUOTES = dict(zip("\"'`“„«「『<", "\"'`”“»」』>", strict=True))
QUOTED_MAX = 200
READ_MAX = 4096
WORDS_MIN = 3
ID_MIN = 7
PATHS = ("/", "~/", "./", "../", ".\\")
CLAUSES_MAX = 8
SENTENCE = re.compile(r"[?!;\n。？！；।]|\.(?=\s|$)")  # noqa: RUF001


@functools.cache
def listed(file: str, name: str) -> tuple[str, ...]:
    """The texts of a list in the product's source."""
    source = (INTENT / file).read_text("utf-8").split(f"const {name}", 1)[1]
    return tuple(re.findall(r'"([^"]+)"', source.split("];", 1)[0]))


def embedded(text: str) -> str:
    """Returns the text that is embedded for a request."""
    head = text[:READ_MAX]
    kept, words = 0, list[str]()
    for word in without_quotations(head).split():
        hint = shape(word)
        if hint is None:
            kept += 1
            words.append(word)
        elif hint and words[-1:] != [hint]:
            words.append(hint)
    if len(words) < WORDS_MIN or kept == len(head.split()):
        return text
    return " ".join(words) + text[READ_MAX:]


def without_quotations(text: str) -> str:
    """Returns the text with a space in the place of each quotation."""
    kept, at, before = list[str](), 0, " "
    while at < len(text):
        end = quotation_end(text, at, before)
        before = " " if end else text[at]
        kept.append(before)
        at = end or at + 1
    return "".join(kept)


def quotation_end(text: str, at: int, before: str) -> int:
    """Returns where the quotation that begins here ends; 0 if none does."""
    mark = text[at]
    if mark not in QUOTES or (mark == "'" and before.isalnum()):
        return 0
    close = QUOTES[mark]
    for found in re.finditer(re.escape(close), text[at + 1 : at + 1 + QUOTED_MAX]):
        end = at + 1 + found.end()
        if close == "'" and text[end : end + 1].isalnum():
            continue
        return 0 if "\n" in text[at:end] else end
    return 0


def shape(word: str) -> str | None:
    """Returns what an argument stands for, "" if it says nothing; None for any other word."""
    bare = trimmed(word)
    name, at, host = bare.partition("@")
    if "://" in bare or bare.startswith("www."):
        return "web page"
    if at and name and "." in host:
        return "email address"
    opened = word.lstrip("([\"'")
    hint = marked(opened, bare)
    if hint is not None:
        return hint
    if is_file(opened, bare):
        return "file"
    return numbered(bare) if re.search(r"[0-9]", bare) else None


def trimmed(word: str) -> str:
    """Returns the word without what is neither letter nor digit at its ends."""
    start = len(list(takewhile(lambda c: not c.isalnum(), word)))
    end = len(list(takewhile(lambda c: not c.isalnum(), reversed(word))))
    return word[start : len(word) - end] if start < len(word) else ""


def marked(opened: str, bare: str) -> str | None:
    """Returns the shape of what begins with a mark: `!40`, `#general`, `+49172`."""
    mark, rest = opened[:1], opened[1:]
    if not bare or not rest.startswith(bare):
        return None
    is_number = bare.isascii() and bare.isdigit()
    if is_number and mark in ("!", "#"):
        return "merge request" if mark == "!" else "issue"
    if is_number and mark == "+" and len(bare) >= ID_MIN:
        return "phone number"
    return "channel" if mark == "#" and bare[0].isalpha() else None


def is_file(opened: str, bare: str) -> bool:
    """Tells whether a word is a path or the name of a file."""
    if opened.startswith(PATHS) and bare[:1].isalnum():
        return True
    name, _, ending = bare.rpartition(".")
    return bare[1:3] == ":\\" or (bool(name) and ending in listed("shape.rs", "ENDINGS"))


def numbered(bare: str) -> str | None:
    """Returns the shape of a word with digits."""
    letters = any(c.isalpha() for c in bare)
    if re.fullmatch(r"[A-Z][A-Z0-9]+-[0-9]+", bare):
        return "issue"
    if not letters and re.fullmatch(r"-?[0-9]{1,3}\.[0-9]{3,}", bare) and abs(float(bare)) <= 180:
        return "coordinates"
    if letters and re.fullmatch(r"[0-9a-f]{7,40}", bare):
        return "commit"
    return "" if not letters or len(bare.encode()) >= ID_MIN else None


def clauses(text: str) -> list[str]:
    """Returns the clauses of a request; none if it is one."""
    pieces = SENTENCE.split(text[:2048])
    for separator in listed("clauses.rs", "BETWEEN"):
        pieces = [part for piece in pieces for part in piece.split(separator)]
    found = [piece.strip() for piece in pieces if says_something(piece.strip())][:CLAUSES_MAX]
    return found if len(found) > 1 else []


def says_something(clause: str) -> bool:
    """Tells whether a clause is long enough to ask for anything."""
    words = len(clause.split())
    is_spaced = clause.isascii() or words > 1
    return words >= WORDS_MIN or (not is_spaced and len(clause) >= 4)
