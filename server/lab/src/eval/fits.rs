//! Accuracy of the fit that Route reports: how often the first tool is right if it is said to stand out, and how often
//! a right tool is among the contenders if several are said to fit about equally.

use super::bootstrap::{Bootstrap, Estimate};
use super::query_file::LabelledQuery;
use super::ranking::Answer;
use toolgate_routing::router::ranking::fit::Fit;

/// Accuracy over the queries with the same reported fit.
#[derive(Debug, Clone, PartialEq)]
pub struct FitRow {
    /// Name of the fit ([`Fit::name`]).
    pub fit: &'static str,
    /// Number of queries with labels.
    pub labelled: usize,
    /// Share of the labelled queries whose first tool is relevant, 0 to 1; `None` without labelled queries, or if the
    /// fit is that no tool fits.
    pub first: Option<Estimate>,
    /// Share of the labelled queries with a relevant tool among the contenders, 0 to 1; `None` if there are no
    /// contenders.
    pub among: Option<Estimate>,
    /// Number of queries that need no tool.
    pub no_tool: usize,
}

/// Returns a row for each fit that was reported. Queries without labels count only if they are known to need no tool.
#[must_use]
pub fn fits(answers: &[Answer], queries: &[&LabelledQuery], bootstrap: &Bootstrap) -> Vec<FitRow> {
    let names = [Fit::Clear, Fit::Ambiguous(Vec::new()), Fit::None, Fit::Unknown];
    let rows = names.map(|fit| {
        let said =
            answers.iter().zip(queries).filter(|(answer, _)| answer.fit.name() == fit.name());
        row(&fit, &said.map(|(answer, query)| (answer, *query)).collect::<Vec<_>>(), bootstrap)
    });
    rows.into_iter().filter(|row| row.labelled + row.no_tool > 0).collect()
}

fn row(fit: &Fit, said: &[(&Answer, &LabelledQuery)], bootstrap: &Bootstrap) -> FitRow {
    let labelled: Vec<_> = said.iter().filter(|(_, query)| query.is_labelled()).collect();
    let share = |contenders: fn(&Answer) -> usize| -> Option<Estimate> {
        let is_among = |(answer, query): &&(&Answer, &LabelledQuery)| {
            let mut shown = answer.ranked.ranked.iter().take(contenders(answer));
            f64::from(u8::from(shown.any(|id| query.relevant.contains(id))))
        };
        let column: Vec<f64> = labelled.iter().map(is_among).collect();
        (!column.is_empty()).then(|| bootstrap.means(&[&column]).first().copied())?
    };
    let is_told = |told: bool| told.then_some(());
    FitRow {
        fit: fit.name(),
        labelled: labelled.len(),
        first: is_told(!matches!(fit, Fit::None)).and_then(|()| share(|_| 1)),
        among: is_told(matches!(fit, Fit::Ambiguous(_))).and_then(|()| share(contenders)),
        no_tool: said.iter().filter(|(_, query)| query.needs_no_tool).count(),
    }
}

fn contenders(answer: &Answer) -> usize {
    match &answer.fit {
        Fit::Ambiguous(slots) => slots.len(),
        _ => 1,
    }
}
