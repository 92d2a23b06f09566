//! An evaluation as people read it: the measures, what the catalog costs, what was odd.

use crate::cli::output::{self, STRONG};
use crate::cli::table::{Column, render};
use crate::cli::text::{counted, grouped};
use crate::eval::Report;
use crate::eval::conversation::{ANSWER_TOKENS, Conversation};
use crate::eval::metrics::Metrics;

/// Names that one warning lists; the JSON report has all.
const NAMED: usize = 5;

/// What makes the figures less than they seem, on stderr.
pub(super) fn warn(report: &Report) {
    for renamed in &report.renamed {
        output::warn(format_args!(
            "the MCP server {:?} can't have this name in Toolgate; ranked as {:?}",
            renamed.from,
            renamed.to.as_str()
        ));
    }
    let rejected = &report.rejected;
    for tool in rejected.iter().take(NAMED) {
        let (server, what) = (&tool.server, &tool.rejection);
        output::warn(format_args!("rejected: {server}: {}: {}", what.field, what.problem));
    }
    if rejected.len() > NAMED {
        let more = rejected.len() - NAMED;
        output::warn(format_args!("{more} more rejected; --json lists all"));
    }
    let missing = &report.counts.missing;
    if !missing.is_empty() {
        let named: Vec<_> = missing.iter().take(NAMED).map(String::as_str).collect();
        output::warn(format_args!(
            "{} named by queries can't be found and count as missed: {}{}",
            counted(missing.len(), "tool"),
            named.join(", "),
            if missing.len() > NAMED { ", …" } else { "" }
        ));
    }
}

/// The whole report, coloured.
pub(super) fn report(report: &Report) -> String {
    let counts = &report.counts;
    let (tools, servers) = (counted(counts.tools, "tool"), counted(counts.servers, "MCP server"));
    let (queries, labelled) = (grouped(counts.queries as u64), grouped(counts.labelled as u64));
    let truncated = match counts.truncated_queries {
        0 => String::new(),
        count => format!(", {} longer than the encoder reads", grouped(count as u64)),
    };
    format!(
        "{STRONG}{tools} of {servers}; {queries} queries, {labelled} labelled{truncated}{STRONG:#}\n\n\
         {}\n{}{}",
        measures(report),
        costs(report),
        report.conversation.as_ref().map_or_else(String::new, cache)
    )
}

fn measures(report: &Report) -> String {
    let Some(metrics) = &report.metrics else {
        return "No query has labels, so that nothing could be measured.\n".to_owned();
    };
    let columns = [
        Column::Left("SUMMARIES"),
        Column::Right("RECALL@1"),
        Column::Right("@3"),
        Column::Right("@5"),
        Column::Right("@10"),
        Column::Right("@20"),
        Column::Right("NDCG@10"),
    ];
    let row = |name: &str, metrics: &Metrics| {
        let values = metrics.named().map(|(_, value)| format!("{value:.3}"));
        std::iter::once(name.to_owned()).chain(values).collect()
    };
    let baseline = report.baseline.as_ref().map(|metrics| row("plain", metrics));
    let clauses = report.clauses.as_ref().map(|metrics| row("toolgate, by clauses", metrics));
    render(&columns, std::iter::once(row("toolgate", metrics)).chain(baseline).chain(clauses))
}

/// What a provider's cache serves of a conversation, by layout.
fn cache(played: &Conversation) -> String {
    let columns = [
        Column::Left("PROMPT"),
        Column::Right("TOKENS A TURN"),
        Column::Right("FROM THE CACHE"),
        Column::Right("PRICED AS"),
    ];
    let turns = played.turns.max(1) as f64;
    let rows = played.layouts.iter().map(|layout| {
        vec![
            layout.name.to_owned(),
            grouped((layout.tokens as f64 / turns).round() as u64),
            format!("{:.1}%", 100.0 * layout.hit_rate()),
            grouped((layout.priced() / turns).round() as u64),
        ]
    });
    format!(
        "\nA conversation of {}, with one tool registered halfway; each turn's call and answer are \
         taken as {ANSWER_TOKENS} tokens, a cached token as a tenth of another:\n{}",
        counted(played.turns, "turn"),
        render(&columns, rows)
    )
}

fn costs(report: &Report) -> String {
    let tokens = &report.tokens;
    let mean = tokens.schemas.checked_div(report.counts.tools as u64).unwrap_or(0);
    format!(
        "All schemas: {} tokens ({} a tool, {} the largest). All summaries: {} tokens.\n\
         {:.1} s, {:.1} s of it embedding; encoder {}.\n",
        grouped(tokens.schemas),
        grouped(mean),
        grouped(tokens.largest_schema.into()),
        grouped(tokens.pool),
        report.whole_time.as_secs_f64(),
        report.embed_time.as_secs_f64(),
        report.encoder.get(..12).unwrap_or(&report.encoder),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::report::{Counts, TokenTax};
    use std::collections::BTreeSet;
    use std::time::Duration;

    fn example() -> Report {
        Report {
            encoder: "0123456789abcdef".into(),
            counts: Counts {
                servers: 1,
                tools: 1_200,
                queries: 3,
                labelled: 2,
                truncated_queries: 1,
                missing: BTreeSet::new(),
            },
            metrics: Some(Metrics { recall: [0.25, 0.5, 0.75, 1.0, 1.0], ndcg: 0.625 }),
            baseline: None,
            clauses: None,
            conversation: None,
            tokens: TokenTax { schemas: 240_000, largest_schema: 900, pool: 36_000 },
            check_time: Duration::from_millis(300),
            embed_time: Duration::from_millis(1_200),
            whole_time: Duration::from_millis(1_600),
            rejected: Vec::new(),
            renamed: Vec::new(),
        }
    }

    #[test]
    fn the_measures_stand_in_a_table() {
        let text = anstream::adapter::strip_str(&report(&example())).to_string();
        let wanted = "\
1,200 tools of 1 MCP server; 3 queries, 2 labelled, 1 longer than the encoder reads

SUMMARIES  RECALL@1     @3     @5    @10    @20  NDCG@10
toolgate      0.250  0.500  0.750  1.000  1.000    0.625

All schemas: 240,000 tokens (200 a tool, 900 the largest). All summaries: 36,000 tokens.
1.6 s, 1.2 s of it embedding; encoder 0123456789ab.
";
        assert_eq!(text, wanted);
    }

    #[test]
    fn without_labels_there_is_nothing_to_measure() {
        let text = report(&Report { metrics: None, ..example() });
        assert!(text.contains("No query has labels"), "{text}");
    }
}
