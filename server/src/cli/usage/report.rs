//! The ledger as text: a table, a line of savings day by day, and a verdict on deferral.

use std::collections::HashMap;
use std::fmt::Write as _;

use toolgate_client::v1;
use toolgate_client::well_known::Timestamp;

use super::moment::{SECONDS_OF_A_DAY, midnight};
use crate::cli::json::refusal_code;
use crate::cli::output::{GOOD, ODD};
use crate::cli::small_catalog;
use crate::cli::table::{Column, render};
use crate::cli::text::{grouped, grouped_signed};
use toolgate_core::deferral::CatalogSize;

/// Maximum number of days that are drawn. Earlier days are left out.
const DAYS_DRAWN: i64 = 60;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Mark of a day without Route calls. `NOTHING_SAVED` marks a day on which deferral saved nothing or cost more.
const IDLE: char = '·';
const NOTHING_SAVED: char = 'x';

/// A span and its usage.
pub(super) struct Row {
    pub(super) span: String,
    pub(super) usage: v1::GetUsageResponse,
}

/// Formats the report. The days and the verdict are those of the row `drawn`; the advice is on the catalog as it is.
pub(super) fn report(rows: &[Row], drawn: usize, size: CatalogSize) -> String {
    let columns = [
        Column::Left("SPAN"),
        Column::Right("ROUTES"),
        Column::Right("ALLOWED"),
        Column::Right("REFUSED"),
        Column::Right("ALL SCHEMAS"),
        Column::Right("SUMMARIES"),
        Column::Right("PROMOTED"),
        Column::Right("ON DEMAND"),
        Column::Right("SAVED"),
        Column::Right("SHARE"),
    ];
    let mut text = render(&columns, rows.iter().map(cells));
    if let Some(Row { span, usage }) = rows.get(drawn) {
        push_days(&mut text, usage);
        push_refusals(&mut text, usage);
        push_outcomes(&mut text, usage);
        push_searches(&mut text, usage);
        push_tax(&mut text, usage);
        push_verdict(&mut text, span, usage);
    }
    text.push_str(&small_catalog::advice(size));
    text
}

fn cells(row: &Row) -> Vec<String> {
    let usage = &row.usage;
    vec![
        row.span.clone(),
        grouped(usage.route_calls),
        grouped(usage.allowed_calls),
        grouped(usage.refused_calls),
        grouped(usage.full_catalog_tokens),
        grouped(usage.phase1_tokens),
        grouped(usage.phase2_tokens),
        grouped(usage.on_demand_tokens),
        grouped_signed(usage.saved_net_tokens),
        share(usage.saved_net_tokens as f64, usage.full_catalog_tokens),
    ]
}

fn share(part: f64, whole: u64) -> String {
    if whole == 0 { "-".into() } else { format!("{:.0}%", 100.0 * part / whole as f64) }
}

fn push_days(text: &mut String, usage: &v1::GetUsageResponse) {
    let Some((first, line)) = days(usage) else { return };
    let date = Timestamp { seconds: first, nanos: 0 }.to_string();
    let date = date.split('T').next().unwrap_or_default();
    let mut legend = Vec::new();
    if line.contains(IDLE) {
        legend.push(format!("{IDLE} no calls"));
    }
    if line.contains(NOTHING_SAVED) {
        legend.push(format!("{NOTHING_SAVED} saved nothing"));
    }
    let legend =
        if legend.is_empty() { String::new() } else { format!(" ({})", legend.join(", ")) };
    push(text, format_args!("\nsaved a day since {date}: {line}{legend}\n"));
}

/// Returns the first day, in seconds since 1970, and a mark for each day from it on.
fn days(usage: &v1::GetUsageResponse) -> Option<(i64, String)> {
    let start = |bucket: &v1::UsageBucket| bucket.start_time.map(|time| time.seconds);
    let saved: HashMap<i64, (u64, i64)> = usage
        .buckets
        .iter()
        .filter_map(|b| Some((start(b)?, (b.route_calls, b.saved_net_tokens))))
        .collect();
    // The end is exclusive, so that a span to midnight does not draw the day that begins then.
    let end = usage.end_time?.seconds - 1;
    let last = midnight(&Timestamp { seconds: end, nanos: 0 });
    let began = usage.start_time.as_ref().map(midnight);
    let first = began.or_else(|| usage.buckets.first().and_then(start))?;
    let first = first.max(last - (DAYS_DRAWN - 1) * SECONDS_OF_A_DAY);
    let most = saved.values().map(|(_, saved)| *saved).max().unwrap_or(0);
    let mut line = String::new();
    let mut day = first;
    while day <= last {
        line.push(sign(saved.get(&day).copied(), most));
        day += SECONDS_OF_A_DAY;
    }
    Some((first, line))
}

fn sign(day: Option<(u64, i64)>, most: i64) -> char {
    match day {
        None | Some((0, _)) => IDLE,
        Some((_, saved)) if saved <= 0 => NOTHING_SAVED,
        Some((_, saved)) => {
            let height = (BARS.len() as f64 * saved as f64 / most as f64).ceil();
            BARS[(height as usize).clamp(1, BARS.len()) - 1]
        }
    }
}

fn push_refusals(text: &mut String, usage: &v1::GetUsageResponse) {
    let one = |count: &v1::RefusalCount| {
        format!("{} {}", refusal_code(count.code()), grouped(count.calls))
    };
    let listed: Vec<_> = usage.refusals.iter().map(one).collect();
    if listed.is_empty() {
        return;
    }
    push(text, format_args!("refused: {}\n", listed.join(", ")));
    if usage.route_calls > 0 {
        let share = 100.0 * usage.refused_calls as f64 / usage.route_calls as f64;
        push(text, format_args!("refused calls for 100 calls of Route: {share:.1}\n"));
    }
}

fn push_outcomes(text: &mut String, usage: &v1::GetUsageResponse) {
    let outcomes = usage.refusal_outcomes.unwrap_or_default();
    let v1::RefusalOutcomes { mended_calls, asked_calls, given_up_calls } = outcomes;
    let all = mended_calls.saturating_add(asked_calls).saturating_add(given_up_calls);
    if all == 0 {
        return;
    }
    let part = |calls: u64| format!("{} ({})", grouped(calls), share(calls as f64, all));
    push(
        text,
        format_args!(
            "what became of refused calls, in conversations that Route was told of: {} mended by a later call, \
             {} asked the user, {} given up\n",
            part(mended_calls),
            part(asked_calls),
            part(given_up_calls)
        ),
    );
}

/// Adds the hit rate of searches, of those that are decided.
fn push_searches(text: &mut String, usage: &v1::GetUsageResponse) {
    let v1::SearchOutcomes { searches, hits, misses } = usage.search_outcomes.unwrap_or_default();
    let decided = hits.saturating_add(misses);
    if searches == 0 && decided == 0 {
        return;
    }
    push(
        text,
        format_args!(
            "searches: {}; of {} decided, {} ({}) led to a call of a tool that they showed\n",
            grouped(searches),
            grouped(decided),
            grouped(hits),
            share(hits as f64, decided)
        ),
    );
}

/// Adds what tools cost over the span: turns x tokens of tools a turn.
fn push_tax(text: &mut String, usage: &v1::GetUsageResponse) {
    let turns = usage.route_calls;
    if turns == 0 {
        return;
    }
    let phases = usage.phase1_tokens.saturating_add(usage.phase2_tokens);
    let spent = phases.saturating_add(usage.on_demand_tokens);
    let product = |tokens: u64| {
        let mean = (tokens as f64 / turns as f64).round() as u64;
        format!("{} x {} = {}", grouped(turns), grouped(mean), grouped(tokens))
    };
    let full = product(usage.full_catalog_tokens);
    push(
        text,
        format_args!(
            "tools tax (turns x tokens a turn): {}; with every schema {full}\n",
            product(spent)
        ),
    );
}

fn push_verdict(text: &mut String, span: &str, usage: &v1::GetUsageResponse) {
    let over = if span == "span" { "over this span".into() } else { format!("over {span}") };
    let full = usage.full_catalog_tokens;
    let saved = grouped_signed(usage.saved_net_tokens);
    let summaries = share(usage.phase1_tokens as f64, full);
    let promoted = share(usage.phase2_tokens as f64, full);
    match usage.deferral() {
        v1::DeferralVerdict::MostToolsUsed | v1::DeferralVerdict::CatalogTooSmall if full == 0 => {
            let none = format_args!(
                "{ODD}The catalog had no tools{ODD:#} {over}, whenever Route was called. `toolgate servers` lists \
                 what is registered.\n"
            );
            push(text, none);
        }
        v1::DeferralVerdict::NoCalls => push(text, format_args!("No Route call {over}.\n")),
        v1::DeferralVerdict::Paid => push(
            text,
            format_args!(
                "{GOOD}Deferral paid{GOOD:#} {over}: {saved} tokens, {} of what every schema on every turn \
                 would have cost.\n",
                share(usage.saved_net_tokens as f64, full)
            ),
        ),
        v1::DeferralVerdict::MostToolsUsed => push(
            text,
            format_args!(
                "{ODD}Deferral did not pay{ODD:#} {over} ({saved} tokens): most tools are used anyway. The \
                 promoted schemas were {promoted} of all, and the summaries cost {summaries} beside them.\n\
                 Send every schema to these agents, without Route and summaries; or promote fewer: raise \
                 router.threshold, lower router.top_k.\n"
            ),
        ),
        v1::DeferralVerdict::CatalogTooSmall => push(
            text,
            format_args!(
                "{ODD}Deferral did not pay{ODD:#} {over} ({saved} tokens): the summaries alone cost \
                 {summaries} of all schemas, the promoted schemas {promoted}.\n\
                 Send every schema to these agents, or leave the summaries out of their prompts: they pay \
                 with larger catalogs.\n"
            ),
        ),
        v1::DeferralVerdict::Unspecified => {}
    }
}

fn push(text: &mut String, part: std::fmt::Arguments<'_>) {
    text.write_fmt(part).expect("writing to a String does not fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Option<Timestamp> {
        Some(text.parse().expect("a time"))
    }

    fn day(date: &str, route_calls: u64, saved_net_tokens: i64) -> v1::UsageBucket {
        v1::UsageBucket {
            start_time: time(date),
            route_calls,
            saved_net_tokens,
            ..Default::default()
        }
    }

    fn used(deferral: v1::DeferralVerdict) -> v1::GetUsageResponse {
        v1::GetUsageResponse {
            route_calls: 1_234,
            allowed_calls: 7,
            refused_calls: 3,
            full_catalog_tokens: 200_000,
            phase1_tokens: 30_000,
            phase2_tokens: 20_000,
            saved_net_tokens: 150_000,
            deferral: deferral.into(),
            end_time: time("2026-11-20T19:00:00Z"),
            ..Default::default()
        }
    }

    fn plain(usage: v1::GetUsageResponse) -> String {
        let rows = [Row { span: "30 days".into(), usage }];
        anstream::adapter::strip_str(&report(&rows, 0, CatalogSize::default())).to_string()
    }

    #[test]
    fn a_span_reads_well() {
        let count = |code: v1::RefusalCode, calls| v1::RefusalCount { code: code.into(), calls };
        let usage = v1::GetUsageResponse {
            start_time: time("2026-11-16T00:00:00Z"),
            refusals: vec![
                count(v1::RefusalCode::UnknownTool, 2),
                count(v1::RefusalCode::ScopeMissing, 1),
            ],
            refusal_outcomes: Some(v1::RefusalOutcomes {
                mended_calls: 3,
                asked_calls: 1,
                given_up_calls: 0,
            }),
            search_outcomes: Some(v1::SearchOutcomes { searches: 1_002, hits: 3, misses: 1 }),
            buckets: vec![
                day("2026-11-16", 3, 10),
                day("2026-11-17", 2, -5),
                day("2026-11-18", 0, 0),
                day("2026-11-20", 9, 80),
            ],
            ..used(v1::DeferralVerdict::Paid)
        };
        assert_eq!(
            plain(usage),
            "SPAN     ROUTES  ALLOWED  REFUSED  ALL SCHEMAS  SUMMARIES  PROMOTED  ON DEMAND    SAVED  SHARE\n\
             30 days   1,234        7        3      200,000     30,000    20,000          0  150,000    75%\n\
             \n\
             saved a day since 2026-11-16: ▁x··█ (· no calls, x saved nothing)\n\
             refused: UNKNOWN_TOOL 2, SCOPE_MISSING 1\n\
             refused calls for 100 calls of Route: 0.2\n\
             what became of refused calls, in conversations that Route was told of: 3 (75%) mended by a later call, \
             1 (25%) asked the user, 0 (0%) given up\n\
             searches: 1,002; of 4 decided, 3 (75%) led to a call of a tool that they showed\n\
             tools tax (turns x tokens a turn): 1,234 x 41 = 50,000; with every schema 1,234 x 162 = 200,000\n\
             Deferral paid over 30 days: 150,000 tokens, 75% of what every schema on every turn would have \
             cost.\n"
        );
    }

    #[test]
    fn refused_calls_stand_beside_the_calls_of_route() {
        let refusals =
            vec![v1::RefusalCount { code: v1::RefusalCode::UnknownTool.into(), calls: 23 }];
        let shown = |route_calls, refused_calls| {
            let paid = used(v1::DeferralVerdict::Paid);
            let refusals = refusals.clone();
            plain(v1::GetUsageResponse { route_calls, refused_calls, refusals, ..paid })
        };
        assert!(shown(1_000, 23).contains("\nrefused calls for 100 calls of Route: 2.3\n"));
        assert!(!shown(0, 23).contains("refused calls for"), "nothing was routed");
    }

    #[test]
    fn a_small_catalog_is_told_to_be_loaded_whole() {
        let size = CatalogSize { tools: 12, tokens: 4_800, largest: 700 };
        let rows = [Row { span: "all".into(), usage: used(v1::DeferralVerdict::Paid) }];
        assert!(report(&rows, 0, size).ends_with(&small_catalog::advice(size)));
    }

    #[test]
    fn days_end_before_the_span_does_and_are_bounded() {
        let usage = |start: Option<&str>, end: &str, buckets| v1::GetUsageResponse {
            start_time: start.and_then(time),
            end_time: time(end),
            buckets,
            ..Default::default()
        };
        let one = || vec![day("2026-11-18", 1, 1)];
        let drawn = |usage| days(&usage).map(|(_, line)| line);
        let to_midnight = usage(Some("2026-11-18T00:00:00Z"), "2026-11-20T00:00:00Z", one());
        assert_eq!(drawn(to_midnight).as_deref(), Some("█·"));
        let from_the_beginning = usage(None, "2026-11-20T01:00:00Z", one());
        assert_eq!(drawn(from_the_beginning).as_deref(), Some("█··"));
        let long = usage(Some("1970-01-01T00:00:00Z"), "9999-12-31T00:00:00Z", one());
        assert_eq!(drawn(long).map(|line| line.chars().count()), Some(60));
        assert_eq!(drawn(usage(None, "2026-11-20T01:00:00Z", vec![])), None);
    }

    #[test]
    fn what_did_not_pay_is_said_with_what_to_do() {
        let cost_more = |verdict| v1::GetUsageResponse {
            phase1_tokens: 30_000,
            phase2_tokens: 180_000,
            saved_net_tokens: -10_000,
            ..used(verdict)
        };
        let text = plain(cost_more(v1::DeferralVerdict::MostToolsUsed));
        assert!(text.contains("did not pay over 30 days (-10,000 tokens)"), "{text}");
        assert!(text.contains("most tools are used anyway"), "{text}");
        assert!(text.contains("90% of all, and the summaries cost 15%"), "{text}");
        assert!(text.contains("Send every schema") && text.contains("router.top_k"), "{text}");
        let empty = v1::GetUsageResponse {
            full_catalog_tokens: 0,
            ..used(v1::DeferralVerdict::MostToolsUsed)
        };
        let text = plain(empty);
        assert!(text.contains("The catalog had no tools over 30 days"), "{text}");
        assert!(!text.contains("Send every schema"), "{text}");
        let text = plain(cost_more(v1::DeferralVerdict::CatalogTooSmall));
        assert!(text.contains("the summaries alone cost 15%"), "{text}");
        let nothing =
            v1::GetUsageResponse { full_catalog_tokens: 0, ..used(v1::DeferralVerdict::NoCalls) };
        let text = plain(nothing);
        assert!(text.ends_with("No Route call over 30 days.\n") && text.contains(" -\n"), "{text}");
    }
}
