//! Tools that the model sees within a token budget: full schemas alone, or a few of them and a tail of signatures.

use super::Embedded;
use super::bootstrap::{Bootstrap, Estimate};
use super::query_file::LabelledQuery;
use super::ranking::{Answer, Way};
use toolgate_core::error::Error;
use toolgate_routing::router::query::Options;

/// Token budgets for the tools of one turn.
const BUDGETS: [u32; 4] = [500, 1_000, 2_000, 4_000];

/// Numbers of tools with full schemas before the tail; `None` for schemas alone.
const HEADS: [Option<usize>; 4] = [None, Some(5), Some(3), Some(1)];

/// Largest number of tools in either form, which is the most that Route accepts.
const TOOLS: usize = 100;

/// Result of one budget, split in one way.
#[derive(Debug, Clone, PartialEq)]
pub struct VisibleRow {
    /// Largest number of tokens.
    pub budget: u32,
    /// Largest number of tools with full schemas; `None` if all have them.
    pub head: Option<usize>,
    /// Share of the relevant tools that are visible, over queries with labels, 0 to 1.
    pub visible: Estimate,
    /// Mean number of tools.
    pub tools: f64,
    /// Mean number of tokens of the tools.
    pub tokens: f64,
}

/// Returns a row for each budget and split; none without labels. Tools are taken in the order of the ranking until the
/// budget is used up. No level is required.
pub(super) fn visible(
    embedded: &Embedded<'_>,
    bootstrap: &Bootstrap,
) -> Result<Vec<VisibleRow>, Error> {
    let splits = BUDGETS.into_iter().flat_map(|budget| HEADS.map(|head| (budget, head)));
    let rows = splits.map(|(budget, head)| row(embedded, bootstrap, budget, head));
    rows.filter_map(Result::transpose).collect()
}

fn row(
    embedded: &Embedded<'_>,
    bootstrap: &Bootstrap,
    budget: u32,
    head: Option<usize>,
) -> Result<Option<VisibleRow>, Error> {
    let options = Options {
        top_k: head.unwrap_or(TOOLS),
        signature_tail: head.map_or(0, |_| TOOLS),
        schema_token_budget: Some(budget),
        // Any score and any overlap passes.
        ratio: Some(-1.0),
        abstain_below: Some(-1.0),
        ..embedded.options.clone()
    };
    let embedded = Embedded { options: &options, ..*embedded };
    let answers = embedded.answers(embedded.stock.catalog.clone(), Way::Router)?;
    let labelled: Vec<(&Answer, &LabelledQuery)> = answers
        .iter()
        .zip(embedded.queries.iter().copied())
        .filter(|(_, query)| query.is_labelled())
        .collect();
    let column = |of: fn(&Answer, &LabelledQuery) -> f64| -> Vec<f64> {
        labelled.iter().map(|(answer, query)| of(answer, query)).collect()
    };
    let shares = column(|answer, query| {
        let seen = query.relevant.iter().filter(|id| answer.set.tools.contains(id)).count();
        seen as f64 / query.relevant.len() as f64
    });
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    let estimate = bootstrap.means(&[&shares]).first().copied();
    Ok(estimate.filter(|_| !shares.is_empty()).map(|visible| VisibleRow {
        budget,
        head,
        visible,
        tools: mean(column(|answer, _| answer.set.tools.len() as f64)),
        tokens: mean(column(|answer, _| answer.set.tokens as f64)),
    }))
}
