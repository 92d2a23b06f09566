"""The server's configuration keys, read from the source, and what the chart does with them."""

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "server" / "config" / "src"

# Keys that the chart sets from other values: addresses, paths, devices and secrets. `config` does
# not take them.
OWNED = frozenset(
    {
        "server.listen",
        "server.admin_listen",
        "server.drain_timeout",
        "store.path",
        "store.url",
        "store.url_file",
        "store.snapshot_budget",
        "encoder.model",
        "encoder.model_dir",
        "encoder.device",
        "encoder.workers",
        "encoder.gpus",
        "encoder.local_workers",
        "packs.directory",
        "handle.key",
        "handle.key_file",
        "handle.previous_key_file",
        "auth.methods",
        "auth.admin_key_file",
        "auth.jwks_file",
        "auth.jwks_url",
        "auth.issuer",
        "auth.audience",
        "tls.cert_file",
        "tls.key_file",
        "tls.client_ca_file",
        "safety.rules_file",
        "telemetry.otlp_endpoint",
    }
)

# Of those, the ones that the server does not know yet. A key that it knows leaves this list.
TO_COME: frozenset[str] = frozenset()

# Variables of encoder workers that they do not know yet. One that they know leaves this list.
WORKER_TO_COME: frozenset[str] = frozenset()

# Variables of the command line, likewise.
COMMAND_TO_COME: frozenset[str] = frozenset()

DURATION = {"type": "string", "pattern": "^[0-9]+ ?(ms|s|m|h)$"}
SIZE = {"type": "string", "pattern": "^[0-9]+ ?(B|KiB|MiB|GiB|TiB)$"}
UNITS = {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}


@dataclass(frozen=True)
class Key:
    """Configuration key: its name, its kind and its Rust type as the source writes them."""

    name: str
    kind: str
    type: str

    @property
    def section(self) -> str:
        """The part of the name before the dot."""
        return self.name.split(".", 1)[0]

    @property
    def short(self) -> str:
        """The part of the name after the dot."""
        return self.name.split(".", 1)[1]


def source_of_keys() -> str:
    """The files that declare keys."""
    return "".join(file.read_text() for file in sorted((CONFIG / "keys").glob("*.rs")))


def known_keys() -> list[Key]:
    """All keys, file by file."""
    kind = r"([\w:]+(?:\((?:[^()]|\([^()]*\))*\))?)"
    declaration = (
        r"pub const \w+: (?:Optional)?Key<(.+?)> =\s*"
        rf'(?:Optional)?Key::\w+\(\s*"([a-z_]+\.[a-z_]+)",\s*{kind},'
    )
    found = re.finditer(declaration, source_of_keys())
    return [Key(name=match[2], kind=match[3], type=match[1]) for match in found]


def worker_variables() -> frozenset[str]:
    """All variables that an encoder worker reads."""
    folder = ROOT / "encoder-worker" / "src"
    sources = [folder / "arguments.rs", *sorted((folder / "arguments").glob("*.rs"))]
    text = "".join(path.read_text() for path in sources)
    return frozenset(re.findall(r'env = "(TOOLGATE_\w+)"', text))


def command_variables() -> frozenset[str]:
    """All variables that the command line reads."""
    folder = ROOT / "server" / "src" / "cli"
    text = "".join(path.read_text() for path in sorted(folder.rglob("*.rs")))
    # Of the model, which its library reads.
    others = {"TOOLGATE_MODEL_DIR", "TOOLGATE_MODEL_HUB"}
    return frozenset(re.findall(r'env = "(TOOLGATE_\w+)"', text)) | others


def words_of(type_name: str) -> list[str]:
    """The words of a type with a closed set of values."""
    source = (CONFIG / "choice.rs").read_text()
    words = re.search(rf"impl Choice for {type_name} \{{\s*const WORDS.*?= &\[(.*?)\];", source)
    if words is None:
        raise ValueError(f"no words of {type_name}")
    return re.findall(r'"([^"]+)"', words[1])


def number(text: str) -> int:
    """An integer as the source writes one: `16 * MIB`, `1 << 40`, `1_000_000`."""

    def value(node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int(whole)):
                return whole
            case ast.Name(id=name):
                return UNITS[name]
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return value(left) * value(right)
            case ast.BinOp(left=left, op=ast.LShift(), right=right):
                return value(left) << value(right)
        raise ValueError(f"not a number: {text}")

    return value(ast.parse(text.strip(), mode="eval").body)


def schema_of(key: Key) -> dict[str, Any]:
    """Returns the schema of that key's value in values.yaml."""
    word, _, arguments = key.kind.partition("(")
    if word == "count":
        least, most = (number(part) for part in arguments.rstrip(")").split(","))
        return {"type": "integer", "minimum": least, "maximum": most}
    if word == "choice":
        return {"enum": words_of(key.type)}
    if key.type.startswith("Vec<"):
        return {"type": "array", "items": {"type": "string"}}
    simple: dict[str, dict[str, Any]] = {
        "span": DURATION,
        "size": SIZE,
        "FLAG": {"type": "boolean"},
        "decimal": {"type": "number"},
    }
    return simple.get(word, {"type": "string"})


def config_schema() -> dict[str, Any]:
    """The schema of `config`: every key but those that the chart sets itself."""
    sections: dict[str, dict[str, Any]] = {}
    for key in known_keys():
        if key.name not in OWNED:
            sections.setdefault(key.section, {})[key.short] = schema_of(key)
    properties = {
        name: {"type": "object", "additionalProperties": False, "properties": section}
        for name, section in sections.items()
    }
    return {"type": "object", "additionalProperties": False, "properties": properties}
