"""Layout and announcements: what stands where, and that bytes stay the same from turn to turn."""

import json
from typing import Any

from toolgate import ActiveTool, SummaryEntry, SummaryPool, announce, layout
from toolgate._gen.v1 import router_pb2

POOL = {"mcp__a__x": "Finds x.", "mcp__b__y": "Writes\n  y."}


def tool(name: str, **more: Any) -> ActiveTool:
    wire = {"input_schema_json": '{"type": "object"}', "description": "Finds.", **more}
    return ActiveTool.from_proto(router_pb2.ActiveTool(model_name=name, **wire))


def test_phase_1_ends_the_stable_prefix_behind_a_breakpoint() -> None:
    own, pool = layout.anthropic_system("Be brief.", POOL)
    assert own == {"type": "text", "text": "Be brief."}
    assert pool["cache_control"] == {"type": "ephemeral"}
    assert pool["text"].splitlines()[1:] == ["mcp__a__x: Finds x.", "mcp__b__y: Writes y."]
    assert layout.anthropic_system("", POOL) == [pool]
    openai = layout.openai_system("Be brief.", POOL)
    assert openai["role"] == "system"
    assert openai["content"] == f"Be brief.\n\n{pool['text']}"


def test_phase_2_stands_directly_before_what_the_user_said() -> None:
    blocks = layout.user_message("Find x.", [tool("mcp__a__x"), tool("b", input_schema_json="")])
    defined, said = blocks["content"]
    assert said == {"type": "text", "text": "Find x."}
    _, first, second = defined["text"].splitlines()
    assert json.loads(first) == {
        "name": "mcp__a__x",
        "description": "Finds.",
        "input_schema": {"type": "object"},
    }
    assert second == "b"
    image = {"type": "image", "source": {"type": "url", "url": "https://example.com/x.png"}}
    assert layout.user_message([image], [tool("a")])["content"][1] == image
    assert layout.user_message("Hi.", []) == {"role": "user", "content": "Hi."}


def test_the_responses_api_gets_phase_2_as_an_item_of_its_own() -> None:
    before, said = layout.responses_input("Find x.", [tool("mcp__a__x")])
    assert (before["role"], before["content"]) == ("developer", layout.phase_2([tool("mcp__a__x")]))
    assert said == {"role": "user", "content": "Find x."}
    assert layout.responses_input("Hi.", []) == [{"role": "user", "content": "Hi."}]


def prompt(system: list[dict[str, Any]], messages: list[Any]) -> str:
    return "\n".join(json.dumps(part) for part in [*system, *messages])


def test_thirty_turns_only_append_to_the_prompt() -> None:
    messages: list[Any] = []
    before = ""
    for turn in range(30):
        promoted = [tool(f"mcp__a__t{turn}")] if turn % 3 == 0 else []
        messages.append(layout.user_message(f"Turn {turn}.", promoted))
        now = prompt(layout.anthropic_system("Be brief.", dict(POOL)), messages)
        assert now.startswith(before)
        assert now.count("cache_control") == 1
        messages.append({"role": "assistant", "content": f"Done {turn}."})
        before = now


def test_a_changed_pool_keeps_the_bytes_before_the_change() -> None:
    change = SummaryPool(
        revision=2,
        full=False,
        added=(SummaryEntry("mcp__a__x", "Finds more."), SummaryEntry("mcp__c__z", "Drops z.")),
        removed=(),
        pool_tokens=9,
    )
    held = {"first": "Stays.", **POOL}
    before, after = layout.phase_1(held), layout.phase_1(change.apply_to(held))
    kept = before[: before.index("mcp__a__x")]
    assert after.startswith(kept)
    assert after.splitlines()[-2:] == ["mcp__a__x: Finds more.", "mcp__c__z: Drops z."]


def test_the_whole_list_is_announced_once_then_changes() -> None:
    first = announce(["a", "b", "c"], loaded=["c"])
    assert first.full
    assert first.text() == "<searchable-tools>\na\nb\n</searchable-tools>"

    same = announce(["a", "b"], loaded=["c"], announced=first.announced)
    assert (same.added, same.removed, same.text()) == ({}, (), "")
    assert not same.full

    changed = announce(["a", "d"], announced=same.announced)
    assert (list(changed.added), changed.removed) == (["d"], ("b",))
    assert changed.text() == (
        "<searchable-tools-added>\nd\n</searchable-tools-added>\n"
        "<searchable-tools-removed>\nb\n</searchable-tools-removed>"
    )
    assert changed.announced == ("a", "d")


def test_a_tool_that_is_now_loaded_is_not_removed_nor_announced_again() -> None:
    first = announce(["a", "b"])
    loaded = announce(["b"], loaded=["a"], announced=first.announced)
    assert (loaded.added, loaded.removed) == ({}, ())
    unloaded = announce(["a", "b"], announced=loaded.announced)
    assert (unloaded.added, unloaded.removed) == ({}, ())
    gone = announce(["b"], announced=unloaded.announced)
    assert gone.removed == ("a",)
    back = announce(["a", "b"], announced=gone.announced)
    assert list(back.added) == ["a"]


def test_announced_lines_are_one_line_each() -> None:
    said = announce({"a": "Finds\n<searchable-tools>\nx.", "b": " "}).text()
    assert said.splitlines() == [
        "<searchable-tools>",
        "a: Finds <searchable-tools> x.",
        "b",
        "</searchable-tools>",
    ]


def test_nothing_to_search_is_an_empty_announcement() -> None:
    nothing = announce([])
    assert (nothing.full, nothing.text(), nothing.announced) == (True, "", ())
