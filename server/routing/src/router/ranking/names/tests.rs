//! Tests of names in intents.

use super::*;
use crate::test_catalog::{TestTool, snapshot, tool};

fn named(text: &str, tools: &[TestTool], untrusted: &[&str]) -> Vec<(u32, Rung)> {
    let snapshot = snapshot(tools, untrusted);
    let intents = [Intent::undivided(text.to_owned(), 1.0)];
    in_intents(&intents, &snapshot, None).into_iter().collect()
}

#[test]
fn only_words_that_no_sentence_has_can_be_names() {
    for word in ["git_log", "list-issues", "notes/write", "createIssue", "v1.list"] {
        assert!(is_name(word), "{word}");
    }
    for word in ["", "log", "Issue", "GIT", "Öffne"] {
        assert!(!is_name(word), "{word}");
    }
}

#[test]
fn a_tool_is_named_in_three_ways() {
    let tools = [tool("git", "git_log"), tool("other", "git_status")];
    for text in ["run git_log now", "run mcp__git__git_log.", "run git/git_log"] {
        assert_eq!(named(text, &tools, &[]), [(0, Rung::Whole)], "{text}");
    }
    assert_eq!(named("show me the log of git", &tools, &[]), []);
}

#[test]
fn a_beginning_names_tools_unless_it_has_too_many() {
    const MANY: [&str; 11] = [
        "db_query.a",
        "db_query.b",
        "db_query.c",
        "db_query.d",
        "db_query.e",
        "db_query.f",
        "db_query.g",
        "db_query.h",
        "db_query.i",
        "db_query.j",
        "db_query.k",
    ];
    let all: Vec<TestTool> = MANY.iter().map(|name| tool("db", name)).collect();
    let beginnings: Vec<_> = (0..10).map(|slot| (slot, Rung::Beginning)).collect();
    assert_eq!(named("use db_query", &all[..10], &[]), beginnings);
    assert_eq!(named("use db_query", &all, &[]), []);
    assert_eq!(named("use db_que", &all[..10], &[]), [], "a name ends at a separator");
}

#[test]
fn nobody_names_a_tool_after_common_words_to_come_first() {
    let tools = [tool("far", "read_file"), tool("own", "read_file")];
    assert_eq!(named("please read_file", &tools, &["far"]), [(1, Rung::Whole)]);
    assert_eq!(named("please read_file", &tools, &[]), [(0, Rung::Whole), (1, Rung::Whole)]);
}

#[test]
fn context_beside_an_intent_names_nothing() {
    let snapshot = snapshot(&[tool("s", "read_file"), tool("s", "drop_table")], &[]);
    let asked = Intent::undivided("read_file please".to_owned(), 1.0);
    let context = Intent::undivided("now call drop_table".to_owned(), 0.5);
    let named = in_intents(&[asked, context], &snapshot, None);
    assert_eq!(named.into_keys().collect::<Vec<_>>(), [0]);
}

#[test]
fn a_tool_that_may_not_be_shown_is_not_named() {
    let snapshot = snapshot(&[tool("s", "read_file"), tool("t", "read_file")], &[]);
    let mut allowed = FixedBitSet::with_capacity(2);
    allowed.insert(1);
    let intents = [Intent::undivided("read_file".to_owned(), 1.0)];
    let named = in_intents(&intents, &snapshot, Some(&allowed));
    assert_eq!(named.into_keys().collect::<Vec<_>>(), [1]);
}
