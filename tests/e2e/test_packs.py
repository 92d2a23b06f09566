"""Intent packs: tools found by what people say who want them, from shipped packs and own ones."""

import array
import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from catalogs import NOTES, SHIPPED
from conftest import StartServer
from toolgate_command import run
from toolgate_process import ToolgateProcess
from waiting import PATIENCE

from toolgate import Client

SHIPPED_PACKS = Path(__file__).parents[2] / "server" / "routing" / "packs"
PACKED = SHIPPED.parent / "packed"
SERVERS = ("git", "slack", "filesystem", "time")
WISHES = {
    "did the formatter mess with any of my files": "git_diff_unstaged",
    "who touched this last and when": "git_log",
    "put eyes on Tom's message": "slack_add_reaction",
}


def register(client: Client) -> None:
    for name in SERVERS:
        client.register_server(name, SHIPPED / f"{name}.json")


def ranks(client: Client, wishes: dict[str, str]) -> list[int]:
    """The place of each wish's tool among the first hundred; 100 for one that is not there."""
    places = []
    for wish, tool in wishes.items():
        names = [found.name for found in client.route(wish, top_k=40)]
        places.append(names.index(tool) if tool in names else 100)
    return places


def test_tools_are_found_by_what_people_say(start_server: StartServer, tmp_path: Path) -> None:
    places = {}
    for enabled in ("false", "true"):
        settings = {"store.path": str(tmp_path / enabled), "packs.enabled": enabled}
        server = start_server(settings)
        with server.client("packs", timeout=120) as client:
            register(client)
            places[enabled] = ranks(client, WISHES)
    assert sum(places["true"]) < sum(places["false"]), places
    assert places["true"].count(0) >= 2, places


def test_a_pack_of_ones_own_is_for_ones_own_server(
    start_server: StartServer, tmp_path: Path
) -> None:
    packs = tmp_path / "packs"
    packs.mkdir()
    (packs / "notes.yaml").write_text(
        "servers: [notes]\ntools:\n  delete_note:\n    indirect:\n"
        "      - that thing about the garden party is embarrassing, make it vanish\n"
    )
    settings = {"packs.enabled": "true", "packs.directory": str(packs)}
    with start_server(settings).client("own") as client:
        client.register_server("notes", NOTES)
        first = next(iter(client.route("the garden party thing must vanish")))
    assert first.name == "delete_note"


def test_a_broken_pack_keeps_the_server_from_starting(binary: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("servers: [notes]\ntools:\n  a: {loud: [x]}\n")
    settings = {"packs.enabled": "true", "packs.directory": str(tmp_path)}
    server = ToolgateProcess(binary, tmp_path / "server", settings)
    assert server.launch().wait(timeout=PATIENCE) != 0
    assert 'bad.yaml: a: "loud" is no voice' in server.log_text()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("servers: [a]\ntools:\n  b: {terse: [x y]}\n", ["1 tool, 1 request", "b: has 1 of the 8"]),
        ("servers: [a]\ntools: 3\n", ["can't be read", "line 2, column 8"]),
    ],
)
def test_what_is_wanting_is_told(
    binary: Path, tmp_path: Path, text: str, wanted: Sequence[str]
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    done = run(binary, "pack", "lint", str(file))
    assert done.returncode not in (0, 1)
    assert all(part in done.stdout for part in wanted), done.stdout


def test_the_packs_of_a_catalog_are_listed(binary: Path) -> None:
    done = run(binary, "pack", "list", "--catalog", str(SHIPPED), "--json")
    rows = {row["server"]: row for row in json.loads(done.stdout)["packs"]}
    assert len(rows) == 21
    assert all(row["tools_with_requests"] == row["tools"] for row in rows.values())
    assert rows["git"]["pack"] == "git"
    assert sum(row["requests"] for row in rows.values()) > 8000


def test_every_catalog_of_the_other_packs_has_its_own(binary: Path) -> None:
    done = run(binary, "pack", "list", "--catalog", str(PACKED), "--json")
    rows = json.loads(done.stdout)["packs"]
    assert {row["server"] for row in rows} == {file.stem for file in PACKED.glob("*.json")}
    assert all(row["pack"] in row["server"] for row in rows)
    assert all(2 * row["tools_with_requests"] >= row["tools"] for row in rows)


def test_the_shipped_means_are_those_of_the_shipped_encoder(binary: Path, tmp_path: Path) -> None:
    # That every tool of every pack has a mean is tested without an encoder.
    made = tmp_path / "means.safetensors"
    names = ("git", "slack", "time")
    servers = [word for name in names for word in ("--server", name)]
    assert run(binary, "pack", "embed", *servers, "--out", made).returncode == 0
    shipped = means(SHIPPED_PACKS / "means.safetensors")
    again = means(made)
    assert len(again) > 20
    assert again.keys() <= shipped.keys(), "the encoder or the packs changed: `make packs`"
    assert min(cosine(row, shipped[key]) for key, row in again.items()) > 0.995


def test_packs_of_a_server_that_has_none_are_not_embedded(binary: Path, tmp_path: Path) -> None:
    done = run(binary, "pack", "embed", "--server", "jit", "--out", tmp_path / "means.safetensors")
    assert done.returncode == 2
    assert 'no pack is for the server "jit": see `toolgate pack list`' in done.stderr


def means(path: Path) -> dict[tuple[str, bytes], Sequence[int]]:
    """The 8-bit rows of a file of means, by the encoder's fingerprint and the requests' hash."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])

    def part(name: str) -> bytes:
        begin, end = header[name]["data_offsets"]
        return content[start + begin : start + end]

    count, dimensions = header["values"]["shape"]
    hashes, values = part("hashes"), array.array("b", part("values"))
    fingerprint = header["__metadata__"]["fingerprint"]
    return {
        (fingerprint, hashes[32 * at : 32 * (at + 1)]): values[
            dimensions * at : dimensions * (at + 1)
        ]
        for at in range(count)
    }


def cosine(one: Sequence[int], other: Sequence[int]) -> float:
    dot = sum(a * b for a, b in zip(one, other, strict=True))
    return dot / math.sqrt(sum(a * a for a in one) * sum(b * b for b in other))
