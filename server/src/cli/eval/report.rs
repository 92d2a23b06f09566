//! An evaluation as text for a terminal: the measures, the catalog's costs, the warnings.

use std::fmt::Write as _;

use super::sections::{Section, sections};
use crate::cli::output::{self, STRONG};
use crate::cli::table::render;
use crate::cli::text::{counted, grouped};
use toolgate_lab::eval::Report;

/// Number of names that one warning lists. The JSON report has all.
const NAMED: usize = 5;

/// Prints warnings on stderr about anything that limits the meaning of the figures.
pub(super) fn warn(report: &Report) {
    for renamed in report.renamed.iter().take(NAMED) {
        output::warn(format_args!(
            "the MCP server {:?} can't have this name in Toolgate; ranked as {:?}",
            renamed.from,
            renamed.to.as_str()
        ));
    }
    if report.renamed.len() > NAMED {
        output::warn(format_args!(
            "{} more renamed; --json lists all",
            report.renamed.len() - NAMED
        ));
    }
    let rejected = &report.rejected;
    for tool in rejected.iter().take(NAMED) {
        let server = &tool.server;
        let what = &tool.rejection;
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

/// Formats the whole report, coloured.
pub(super) fn report(report: &Report) -> String {
    let mut text = format!("{STRONG}{}{STRONG:#}\n\n", headline(report));
    if report.metrics.is_none() {
        text.push_str("No query has labels, so that nothing could be measured.\n\n");
    }
    for Section { words, columns, rows, .. } in sections(report) {
        if !words.is_empty() {
            let _ = writeln!(text, "{words}");
        }
        let _ = writeln!(text, "{}", render(&columns, rows));
    }
    text.push_str(&costs(report));
    text
}

/// Returns a line with the numbers of tools, MCP servers and queries.
pub(super) fn headline(report: &Report) -> String {
    let counts = &report.counts;
    let tools = counted(counts.tools, "tool");
    let servers = counted(counts.servers, "MCP server");
    let queries = grouped(counts.queries as u64);
    let labelled = grouped(counts.labelled as u64);
    let more = |count: usize, what: &str| match count {
        0 => String::new(),
        count => format!(", {} {what}", grouped(count as u64)),
    };
    format!(
        "{tools} of {servers}{}; {queries} queries, {labelled} labelled{}{}",
        more(counts.packed, "with requests of packs"),
        more(counts.no_tool, "needing no tool"),
        more(counts.truncated_queries, "longer than the encoder reads"),
    )
}

/// Formats the tokens of the catalog and the times of the evaluation.
pub(super) fn costs(report: &Report) -> String {
    let tokens = &report.tokens;
    let latency = &report.latency;
    let times = &report.times;
    let mean = tokens.schemas.checked_div(report.counts.tools as u64).unwrap_or(0);
    format!(
        "All schemas: {} tokens ({} a tool, {} the largest). All summaries: {} tokens.\n\
         Ranking and cut, once embedded: p50 {:.0} us, p90 {:.0}, p99 {:.0}. Embedding in batches: {:.0} us a \
         query, {:.0} a summary.\n\
         {:.1} s, {:.1} s of it embedding; encoder {}.\n",
        grouped(tokens.schemas),
        grouped(mean),
        grouped(tokens.largest_schema.into()),
        grouped(tokens.pool),
        latency.p50,
        latency.p90,
        latency.p99,
        latency.queries.micros_a_text(),
        latency.summaries.micros_a_text(),
        times.whole.as_secs_f64(),
        times.embed.as_secs_f64(),
        report.encoder.get(..12).unwrap_or(&report.encoder),
    )
}

#[cfg(test)]
mod tests {
    use super::super::example::example;
    use super::*;

    #[test]
    fn the_measures_stand_in_tables() {
        let text = anstream::adapter::strip_str(&report(&example())).to_string();
        let wanted = "\
1,200 tools of 1 MCP server; 3 queries, 2 labelled, 1 needing no tool, 1 longer than the encoder reads

SUMMARIES  RECALL@1     @3     @5    @10    @20  NDCG@10    MRR
toolgate      0.250  0.500  0.750  0.800  0.800    0.625  0.400
95% from      0.125  0.250  0.375  0.400  0.400    0.312  0.200
95% to        0.312  0.625  0.938  1.000  1.000    0.781  0.500

The sets that Route would send (router.threshold 0.28, router.relative_cutoff 0.5, router.top_k 10).
ACTIVE SET  TOOLS  PRECISION  RECALL  WHOLE  EMPTY  TOKENS
toolgate      6.2      0.200   0.700  0.500  0.100   1,235
95% from      3.1      0.100   0.350  0.250  0.050     617
95% to        7.8      0.250   0.875  0.625  0.125   1,543

A false accept sends a tool to a query that needs none (1 here), a false reject none to a query that needs some (2). AUC: how often the latter has the better overlap.
ABSTENTION    AUC  FALSE ACCEPTS  FALSE REJECTS
toolgate    0.750          0.300          0.100
95% from    0.375          0.150          0.050
95% to      0.938          0.375          0.125

What Route says of how well the best tool fits, and how often it, or one of the contenders, is right.
FIT        LABELLED          FIRST RIGHT  A CONTENDER  NO TOOL
ambiguous         2  0.500 (0.250-0.625)        0.750        1

Queries whose active set lacks a relevant tool of the catalog, each by the first reason that holds.
FAILURE     QUERIES  REASON
multi_hop         0  several tools needed, some found
strict_cut        2  ranked within top_k, but cut
ambiguous         0  other tools fit about equally
poor_text         5  its text does not say it

Compared with plain, query by query; p is how likely such a difference is by chance.
MEASURE    THIS  OTHER  DIFFERENCE  95% FROM      TO       P
recall@1  0.250  0.200      +0.050    -0.010  +0.110  0.1250

KIND    LABELLED  RECALL@1     @5    @10  NDCG@10  SET  SET RECALL  FALSE REJECTS  NO TOOL  FALSE ACCEPTS
single         2     0.250  0.750  0.800    0.625  6.2       0.700          0.100        -              -

All schemas: 240,000 tokens (200 a tool, 900 the largest). All summaries: 36,000 tokens.
Ranking and cut, once embedded: p50 80 us, p90 120, p99 300. Embedding in batches: 400 us a query, 900 a summary.
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
