"""`toolgate lint`: what keeps tools from being found, and what a registration says of it."""

import json
from pathlib import Path
from typing import Any

from catalogs import SHIPPED, tool
from toolgate_command import run, write_tools
from toolgate_process import ToolgateProcess


def by_code(report: dict[str, Any]) -> dict[str, list[str]]:
    codes: dict[str, list[str]] = {}
    for finding in report["findings"]:
        codes.setdefault(finding["code"], []).append(finding["tool"])
    return codes


WANTING = [
    tool("get_orders", "GET /v1/orders"),
    {"name": "purge", "inputSchema": {"type": "object"}},
    tool("send_letter", "Send a letter to someone who lives abroad."),
    tool("post_letter", "Send a letter to someone who lives abroad."),
    tool("send_letter", "Send it once more."),
    tool("broken", "Has a schema that is none.", inputSchema={"type": 3}),
]


def test_findings_name_the_tool_and_what_would_be_right(binary: Path, tmp_path: Path) -> None:
    done = run(binary, "lint", write_tools(tmp_path / "shop.json", WANTING), "--json")
    assert done.returncode == 3, done.stderr
    report = json.loads(done.stdout)
    codes = by_code(report)
    assert codes["REJECTED"] == ["broken"]
    assert codes["DUPLICATE_NAME"] == ["send_letter"]
    assert codes["MACHINE_MADE_DESCRIPTION"] == ["get_orders"]
    assert codes["EMPTY_DESCRIPTION"] == ["purge"]
    assert codes["NEAR_TWIN"] == ["post_letter"]
    # The one parameter of the others has a name and a type, and nothing else.
    assert codes["MISSING_PARAMETER_DESCRIPTION"] == ["get_orders", "post_letter", "send_letter"]
    assert all(finding["remedy"] for finding in report["findings"])
    twin = next(finding for finding in report["findings"] if finding["code"] == "NEAR_TWIN")
    assert twin["evidence"]["twin"] == "shop/send_letter"
    assert len(report["tools"]) == 4
    assert all(found["intent_rank"] >= 1 for found in report["tools"])
    assert report["counts"]["UNFINDABLE"] == 0


def test_the_exit_code_is_what_it_is_asked_to_be(binary: Path, tmp_path: Path) -> None:
    good = write_tools(tmp_path / "good.json", [tool("time_of", "Tell the time of day in a city.")])
    warned = write_tools(tmp_path / "warned.json", [WANTING[1]])
    for arguments, code in [
        ((good,), 0),
        ((warned,), 0),
        ((warned, "--fail-on", "warning"), 3),
        ((warned, "--fail-on", "never"), 0),
        ((tmp_path / "absent.json",), 1),
        ((warned, "--fail-on", "note"), 2),
    ]:
        done = run(binary, "lint", *arguments)
        assert done.returncode == code, (arguments, done.stderr)


def test_people_get_lines_counts_and_nothing_else(binary: Path, tmp_path: Path) -> None:
    path = write_tools(tmp_path / "shop.json", WANTING)
    done = run(binary, "lint", path)
    assert "error REJECTED shop/broken: tools[5].inputSchema: " in done.stdout
    assert "warning EMPTY_DESCRIPTION shop/purge: it has no description\n  say in" in done.stdout
    assert "4 tools: 2 errors, " in done.stdout
    assert done.stderr == ""
    errors = run(binary, "lint", path, "--show", "error").stdout
    assert "EMPTY_DESCRIPTION shop" not in errors
    assert "not listed" in errors


def test_suggestions_find_better(binary: Path, tmp_path: Path) -> None:
    guard = (
        "Data modification warning: this tool changes records that others in the company need, "
        "so make sure that the user has asked for exactly this change before it is called, and "
        "show what will be changed in a table with one row for each of the fields that change."
    )
    things = ["invoice", "parcel", "voucher", "booking", "ticket"]
    tools = [tool(f"op_{n}", f"{guard} Cancels one {thing}.") for n, thing in enumerate(things)]
    others = [tool(f"{thing}_rules", f"Read when to cancel one {thing}.") for thing in things]
    path = write_tools(tmp_path / "crm.json", tools + others)
    report = json.loads(run(binary, "lint", path, "--suggest", "--json").stdout)
    assert by_code(report)["BOILERPLATE"] == [f"op_{n}" for n in range(5)]
    assert report["suggestions"], report["tools"]
    for suggestion in report["suggestions"]:
        before = suggestion["rank_before"]
        assert before is None or suggestion["rank_after"] < before
        assert "Cancel one" in suggestion["summary"]


def test_the_same_files_give_the_same_answer(binary: Path) -> None:
    files = [SHIPPED / name for name in ("git.json", "slack.json", "time.json")]
    first = run(binary, "lint", *files, "--suggest", "--json")
    again = run(binary, "lint", *files, "--suggest", "--json")
    assert first.returncode == 0, first.stderr
    assert first.stdout == again.stdout


def test_a_registration_says_what_is_wanting(
    binary: Path, server: ToolgateProcess, tenant: str, tmp_path: Path
) -> None:
    path = write_tools(tmp_path / "shop.json", WANTING[:3])
    at = ("--endpoint", f"http://{server.target}", "--tenant", tenant)
    done = run(binary, "register", path, "--trust", "standard", *at)
    assert done.returncode == 0, done.stderr
    assert done.stderr == (
        "shop: 1 tool without a description, 1 tool with a generated description, "
        f"2 tools with parameters without a description; `toolgate lint {path}` shows them\n"
    )
    quiet = run(binary, "register", path, *at, "--json")
    assert (quiet.returncode, quiet.stderr) == (0, "")
