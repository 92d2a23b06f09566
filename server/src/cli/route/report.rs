//! A Route answer as text: the active set, its cost and savings, and the tools that were left out.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use toolgate_client::v1;

use super::ranking;
use crate::cli::json::{refusal_code, short};
use crate::cli::output::{GOOD, ODD, STRONG};
use crate::cli::table::{Column, render};
use crate::cli::text::{counted, grouped, grouped_signed, one_line};

/// Number of locked tools that are named without `--explain`.
const LOCKED_MAX: usize = 3;

/// Formats the whole answer, coloured. The ranking and all refusals are shown only if `explained`.
pub(super) fn report(answer: &v1::RouteResponse, explained: bool) -> String {
    let mut text = active_set(answer);
    let undeferred = answer.deferral.as_ref().filter(|deferral| !deferral.deferred);
    if let Some(tokens) = &answer.accounting {
        text.push_str(&undeferred.map_or_else(|| savings(tokens), |_| sent_whole(tokens)));
    }
    if let Some(tokens) = &answer.accounting {
        text.push_str(&conversation(tokens));
    }
    if !answer.servers.is_empty() {
        push(&mut text, format_args!("MCP servers: {}\n", answer.servers.join(", ")));
    }
    if let Some(deferral) = undeferred {
        push(&mut text, format_args!("Tools are {}\n", deferral.message));
    }
    if !answer.pending_servers.is_empty() {
        let pending = answer.pending_servers.join(", ");
        push(&mut text, format_args!("Still connecting: {pending}\n"));
    }
    if let Some(fit) = answer.fit.as_ref().filter(|fit| !fit.message.is_empty()) {
        push(&mut text, format_args!("{ODD}note:{ODD:#} {}\n", fit.message));
    }
    text.push_str(&unknown(&answer.refusals));
    if !explained {
        text.push_str(&locked(&answer.refusals));
    }
    for reason in answer.degraded() {
        push(&mut text, format_args!("{ODD}note:{ODD:#} {}\n", degraded(reason)));
    }
    text.push_str(&answer.change.as_ref().map_or_else(String::new, change));
    text.push_str(&timings(&answer.timings));
    if explained {
        text.push_str(&answer.ranking.as_ref().map_or_else(String::new, ranking::table));
        text.push_str(&refusals(&answer.refusals));
    }
    text
}

fn active_set(answer: &v1::RouteResponse) -> String {
    if answer.active_tools.is_empty() {
        return "No tool is sent. --explain says what was near and why it was left out, --threshold asks \
                for less overlap.\n"
            .into();
    }
    let columns = [
        Column::Left("TOOL"),
        Column::Right("SCORE"),
        Column::Right("OVERLAP"),
        Column::Right("WORDS"),
        Column::Left("FOUND BY"),
        Column::Right("TOKENS"),
        Column::Left(""),
    ];
    let candidates = answer.ranking.iter().flat_map(|ranking| &ranking.candidates);
    let words: HashMap<&str, f32> =
        candidates.map(|one| (one.model_name.as_str(), one.words)).collect();
    let rows = answer.active_tools.iter().map(|tool| {
        let words = words.get(tool.model_name.as_str());
        vec![
            tool.model_name.clone(),
            format!("{:.3}", tool.score),
            format!("{:.3}", tool.overlap),
            words.map_or_else(String::new, |share| format!("{share:.3}")),
            found_by(tool.found_by()).to_owned(),
            grouped(tool.schema_tokens.into()),
            (if tool.newly_promoted { "new" } else { "kept" }).to_owned(),
        ]
    });
    render(&columns, rows)
}

/// Formats the tools that left the set, and those kept only for the prompt cache. Empty if tools were only added.
fn change(change: &v1::ActiveSetChange) -> String {
    let mut text = String::new();
    if !change.removed.is_empty() {
        push(&mut text, format_args!("Left the set: {}\n", change.removed.join(", ")));
    }
    if change.kept_for_cache {
        push(
            &mut text,
            format_args!(
                "{ODD}note:{ODD:#} the set was kept: making room would lose {} tokens of cache and save {}; \
                 --ignore-cache-cost makes it all the same\n",
                grouped(change.cache_loss_tokens),
                grouped(change.cache_saving_tokens)
            ),
        );
    }
    text
}

/// Formats the conversation's share of the request, with warnings. Empty without a conversation.
fn conversation(tokens: &v1::TokenAccounting) -> String {
    let Some(rho) = tokens.conversation_rho else { return String::new() };
    let count = grouped(tokens.conversation_tokens);
    let mut text = format!("Conversation: {count} tokens, {:.1}% of the request\n", 100.0 * rho);
    for warning in tokens.warnings() {
        let problem = match warning {
            v1::ContextWarning::LowUtilisation => {
                "tools and system prompt are most of the request (70% or more)"
            }
            v1::ContextWarning::WindowNearlyFull => "the context window is filled to 70% or more",
            v1::ContextWarning::Unspecified => continue,
        };
        push(&mut text, format_args!("{ODD}note:{ODD:#} {problem}\n"));
    }
    text
}

/// Formats the token counts without deferral, when nothing is saved. Missing tools may not be used in this state.
fn sent_whole(tokens: &v1::TokenAccounting) -> String {
    let sent = tokens.phase1_tokens + tokens.phase2_tokens;
    let full = tokens.full_catalog_tokens;
    let mut text =
        format!("\nSent: {} tokens. All tools: {} tokens.\n", grouped(sent), grouped(full));
    if tokens.phase2_tokens < full {
        text.push_str(
            "What is missing may not be used in this state, or has no room in one answer.\n",
        );
    }
    text
}

fn savings(tokens: &v1::TokenAccounting) -> String {
    let now = tokens.phase1_tokens + tokens.phase2_tokens;
    let full = tokens.full_catalog_tokens;
    let share = match full {
        0 => String::new(),
        full => format!(" ({:.1}%)", 100.0 * tokens.saved_tokens as f64 / full as f64),
    };
    let mut text = format!(
        "\nSent: {} tokens (summaries {} + schemas {}). All tools: {} tokens. \
         {STRONG}Saved: {GOOD}{}{share}{GOOD:#}{STRONG:#}\n",
        grouped(now),
        grouped(tokens.phase1_tokens),
        grouped(tokens.phase2_tokens),
        grouped(full),
        grouped_signed(tokens.saved_tokens),
    );
    if let (Some(rho), Some(rho_full)) = (tokens.rho, tokens.rho_full) {
        push(
            &mut text,
            format_args!(
                "Context left to the task: {:.1}%; with all tools {:.1}%\n",
                100.0 * rho,
                100.0 * rho_full
            ),
        );
    }
    text
}

fn timings(timings: &[v1::StageTiming]) -> String {
    let total: u64 = timings.iter().map(|timing| timing.micros).sum();
    let stage = |timing: &v1::StageTiming| format!("{} {}", timing.stage, millis(timing.micros));
    let stages: Vec<_> = timings.iter().map(stage).collect();
    if stages.is_empty() {
        return String::new();
    }
    format!("Took: {} ms ({})\n", millis(total), stages.join(", "))
}

fn millis(micros: u64) -> String {
    format!("{:.2}", Duration::from_micros(micros).as_secs_f64() * 1000.0)
}

/// Formats the names in the request that match no tool.
fn unknown(refusals: &[v1::Refusal]) -> String {
    let unknown = refusals.iter().filter(|one| one.code() == v1::RefusalCode::UnknownTool);
    let mut text = String::new();
    for refusal in unknown {
        let name = one_line(&refusal.name, 64);
        push(
            &mut text,
            format_args!(
                "{ODD}note:{ODD:#} there is no tool {name:?}: `toolgate tools` lists their names\n"
            ),
        );
    }
    text
}

/// Formats the nearest tools that the agent's state locks, and the conditions that would unlock them.
fn locked(refusals: &[v1::Refusal]) -> String {
    let unlockable = refusals.iter().filter(|refusal| !refusal.unlock.is_empty());
    let mut text = String::new();
    for refusal in unlockable.take(LOCKED_MAX) {
        let name = one_line(&refusal.model_name, 64);
        let unlock = one_line(&refusal.unlock.join(" and "), 80);
        let overlap = refusal.overlap;
        push(
            &mut text,
            format_args!("{ODD}locked:{ODD:#} {name} (overlap {overlap:.3}) needs {unlock}\n"),
        );
    }
    text
}

fn refusals(refusals: &[v1::Refusal]) -> String {
    if refusals.is_empty() {
        return String::new();
    }
    let columns = [
        Column::Left("TOOL"),
        Column::Right("OVERLAP"),
        Column::Left("WHY NOT"),
        Column::Left("WHAT WOULD UNLOCK IT"),
    ];
    let rows = refusals.iter().map(|refusal| {
        let name = if refusal.model_name.is_empty() { &refusal.name } else { &refusal.model_name };
        let why = refusal_code(refusal.code()).to_owned();
        vec![
            one_line(name, 64),
            format!("{:.3}", refusal.overlap),
            why,
            one_line(&refusal.unlock.join(" and "), 80),
        ]
    });
    format!("\nLeft out: {}\n{}", counted(refusals.len(), "tool"), render(&columns, rows))
}

pub(in crate::cli) fn found_by(way: v1::FoundBy) -> &'static str {
    match way {
        v1::FoundBy::Overlap => "overlap",
        v1::FoundBy::Name => "its name",
        v1::FoundBy::Words => "words",
        v1::FoundBy::Pin => "pin",
        v1::FoundBy::AlwaysLoad => "always loaded",
        v1::FoundBy::Kept => "turn before",
        v1::FoundBy::NotDeferred => "not deferred",
        v1::FoundBy::Memory => "memory",
        v1::FoundBy::Unspecified => "",
    }
}

pub(in crate::cli) fn degraded(reason: v1::DegradedReason) -> String {
    match reason {
        v1::DegradedReason::LexicalOnly => {
            "the encoder cannot be reached, so tools were ranked by words alone".into()
        }
        v1::DegradedReason::StaleCatalog => {
            "the store cannot be reached, so the answer is from the last snapshot".into()
        }
        v1::DegradedReason::IntentTruncated => {
            "an intent is longer than the encoder reads; its end did not count".into()
        }
        v1::DegradedReason::Unspecified => short(reason.as_str_name(), "DEGRADED_REASON_"),
    }
}

fn push(text: &mut String, part: std::fmt::Arguments<'_>) {
    text.write_fmt(part).expect("writing to a String does not fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    fn answer() -> v1::RouteResponse {
        let tool =
            |name: &str, overlap: f32, found_by: v1::FoundBy, newly_promoted| v1::ActiveTool {
                model_name: name.into(),
                overlap,
                score: if newly_promoted { 0.7 } else { 0.9 },
                found_by: found_by.into(),
                newly_promoted,
                schema_tokens: 1234,
                ..Default::default()
            };
        v1::RouteResponse {
            active_tools: vec![
                tool("mcp__git__git_log", 0.5128, v1::FoundBy::Kept, false),
                tool("mcp__git__git_diff", 0.41, v1::FoundBy::Overlap, true),
            ],
            accounting: Some(v1::TokenAccounting {
                full_catalog_tokens: 100_000,
                phase1_tokens: 9_000,
                phase2_tokens: 1_000,
                saved_tokens: 90_000,
                rho: Some(0.95),
                rho_full: Some(0.5),
                conversation_tokens: 2_500,
                conversation_rho: Some(0.2),
                warnings: vec![v1::ContextWarning::LowUtilisation.into()],
                ..Default::default()
            }),
            degraded: vec![v1::DegradedReason::LexicalOnly.into()],
            timings: vec![v1::StageTiming { stage: "embed".into(), micros: 2_500 }],
            active_set_handle: "abc".into(),
            servers: vec!["git".into(), "notes".into()],
            ranking: Some(v1::Ranking {
                abstain_below: 0.28,
                candidates: vec![v1::RankedTool {
                    model_name: "mcp__git__git_diff".into(),
                    words: 0.25,
                    ..Default::default()
                }],
            }),
            ..Default::default()
        }
    }

    #[test]
    fn an_answer_reads_well() {
        let text = plain(&report(&answer(), false));
        for part in [
            "mcp__git__git_log   0.900    0.513         turn before   1,234  kept",
            "mcp__git__git_diff  0.700    0.410  0.250  overlap       1,234  new",
            "Sent: 10,000 tokens (summaries 9,000 + schemas 1,000). All tools: 100,000 tokens. \
             Saved: 90,000 (90.0%)",
            "Context left to the task: 95.0%; with all tools 50.0%",
            "Conversation: 2,500 tokens, 20.0% of the request\nnote: tools and system prompt are most",
            "MCP servers: git, notes\n",
            "note: the encoder cannot be reached",
            "Took: 2.50 ms (embed 2.50)",
        ] {
            assert!(text.contains(part), "{text}\nlacks {part}");
        }
        assert!(!text.contains("abc") && !text.contains("Ranked"), "{text}");
        assert!(plain(&report(&answer(), true)).contains("Ranked"));
    }

    #[test]
    fn what_is_locked_says_what_would_unlock_it() {
        let refusal = |name: &str, unlock: &[&str]| v1::Refusal {
            model_name: name.into(),
            unlock: unlock.iter().map(ToString::to_string).collect(),
            overlap: 0.446,
            ..Default::default()
        };
        let mut answer = answer();
        answer.refusals =
            vec![refusal("far", &[]), refusal("post", &["is_authenticated(\"chat:write\")"])];
        let text = plain(&report(&answer, false));
        let want = "locked: post (overlap 0.446) needs is_authenticated(\"chat:write\")\n";
        assert!(text.contains(want) && !text.contains("far"), "{text}");
        let whole = plain(&report(&answer, true));
        assert!(!whole.contains("locked:") && whole.contains("Left out: 2 tools"), "{whole}");
    }

    #[test]
    fn an_empty_answer_says_what_to_do() {
        let text = plain(&report(&v1::RouteResponse::default(), false));
        assert!(text.contains("--explain") && text.contains("--threshold"), "{text}");
    }

    #[test]
    fn losses_are_shown_as_losses() {
        let tokens = v1::TokenAccounting {
            full_catalog_tokens: 100,
            phase1_tokens: 90,
            phase2_tokens: 60,
            saved_tokens: -50,
            ..Default::default()
        };
        assert!(plain(&savings(&tokens)).contains("Saved: -50 (-50.0%)"));
        assert!(plain(&savings(&v1::TokenAccounting::default())).contains("Saved: 0"));
    }

    #[test]
    fn refusals_say_what_would_unlock_them() {
        let refusal = v1::Refusal {
            model_name: "mcp__git__git_push".into(),
            code: v1::RefusalCode::ScopeMissing.into(),
            unlock: vec![
                "is_authenticated(\"repo:write\")".into(),
                "milestone_reached(\"m\")".into(),
            ],
            overlap: 0.6,
            ..Default::default()
        };
        let text = plain(&refusals(&[refusal]));
        let unlock = "SCOPE_MISSING  is_authenticated(\"repo:write\") and milestone_reached(\"m\")";
        assert!(text.contains("Left out: 1 tool") && text.contains(unlock), "{text}");
    }
}
